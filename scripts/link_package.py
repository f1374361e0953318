"""Put this checkout into an environment, as `colcon build --symlink-install` would.

Python, launch files and configuration are linked, so an edit needs no new set-up (a new launch
file does: `ros2 launch` looks through real folders only). The executables that `setup.py` names
are written to `bin/` and to `lib/dryden_wind_ros/`, where `ros2 run` and launch files look for
them; the package is entered into the ament index.

Run with the interpreter of the environment and the checkout's path: `link_package.py ROOT`.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

PACKAGE = 'dryden_wind_ros'

SCRIPT = """\
{shebang}
import sys

from {module} import {function}

sys.exit({function}())
"""


def entry_points(root: Path) -> dict[str, tuple[str, str]]:
    """Return {executable: (module, function)} of the checkout's setup.py."""
    import setuptools  # noqa: F401  (must come before distutils, which it replaces)

    from distutils.core import run_setup  # isort: skip

    os.chdir(root)
    distribution = run_setup('setup.py', stop_after='init')
    found = {}
    for line in distribution.entry_points['console_scripts']:
        name, target = (part.strip() for part in line.split('='))
        module, function = target.split(':')
        found[name] = (module, function)
    return found


def shebang(interpreter: str) -> str:
    """Return first lines that start `interpreter` even if its path is long or has spaces."""
    if ' ' not in interpreter and len(interpreter) < 120:
        return f'#!{interpreter}'
    return f"#!/bin/sh\n'''exec' \"{interpreter}\" \"$0\" \"$@\"\n' '''"


def link(path: Path, target: Path) -> None:
    """Make `path` a symbolic link to `target`, in one step for whoever is looking."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f'.{path.name}.new')
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(path)


def write_script(path: Path, module: str, function: str) -> None:
    """Write an executable that calls ``module.function()``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f'.{path.name}.new')
    temporary.write_text(SCRIPT.format(shebang=shebang(sys.executable), module=module,
                                       function=function), encoding='utf-8')
    temporary.chmod(0o755)
    temporary.replace(path)


def main() -> int:
    """Link the checkout given on the command line into the running interpreter's environment."""
    root = Path(sys.argv[1]).resolve()
    prefix = Path(sys.prefix)
    link(Path(sysconfig.get_path('purelib')) / PACKAGE, root / PACKAGE)
    share = prefix / 'share' / PACKAGE
    for folder in (share / 'launch', share / 'config'):
        if folder.is_symlink():
            folder.unlink()
        for old in folder.rglob('*'):
            if old.is_symlink() and not old.exists():
                old.unlink()
    for path in (root / 'package.xml', *root.glob('launch/**/*'), *root.glob('config/**/*')):
        if path.is_file() and '__pycache__' not in path.parts:
            link(share / path.relative_to(root), path)
    link(prefix / 'share/ament_index/resource_index/packages' / PACKAGE,
         root / 'resource' / PACKAGE)

    scripts = entry_points(root)
    libexec = prefix / 'lib' / PACKAGE
    for stale in set(libexec.glob('*')) - {libexec / name for name in scripts}:
        stale.unlink()
        (prefix / 'bin' / stale.name).unlink(missing_ok=True)
    for name, (module, function) in scripts.items():
        write_script(libexec / name, module, function)
        link(prefix / 'bin' / name, libexec / name)
    print(f'{len(scripts)} executables: {", ".join(sorted(scripts))}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
