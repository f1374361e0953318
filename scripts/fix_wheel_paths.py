"""Make the ROS wheels' own files point at the environment they were installed into.

The wheels from PyPI were built under ``/opt/python/cp3XX-cp3XX`` and say so in text files that
ament and CMake read: the ament index (``parent_prefix_path``) and the CMake exports of the message
packages (include directories of Python and NumPy). Left as they are, an interface package does
not build against them.

Run with the interpreter of the environment; changes nothing the second time.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path

# Longest first: the include directories need not lie below the environment's prefix.
BUILD_PREFIX = r'/opt/python/cp3\d+-cp3\d+t?'


def replacements(prefix: str) -> list[tuple[re.Pattern[str], str]]:
    """Return (pattern, replacement) pairs for an environment at ``prefix``."""
    site_packages = sysconfig.get_path('purelib')
    return [
        (re.compile(BUILD_PREFIX + r'/include/python3\.\d+t?'), sysconfig.get_path('include')),
        (re.compile(BUILD_PREFIX + r'/lib/python3\.\d+t?/site-packages'), site_packages),
        (re.compile(BUILD_PREFIX), prefix),
    ]


def main() -> int:
    """Rewrite what is to be rewritten below the running interpreter's prefix."""
    prefix = Path(sys.prefix)
    pairs = replacements(str(prefix))
    index = prefix / 'share/ament_index/resource_index/parent_prefix_path'
    files = [*index.glob('*'), *prefix.glob('share/*/cmake/*.cmake'),
             *prefix.glob('lib/cmake/*/*.cmake')]
    changed = 0
    for path in files:
        before = path.read_text(encoding='utf-8')
        after = before
        for pattern, replacement in pairs:
            after = pattern.sub(lambda _, text=replacement: text, after)
        if after != before:
            path.write_text(after, encoding='utf-8')
            changed += 1
    if not files:
        print(f'no ROS wheels found below {prefix}', file=sys.stderr)
        return 1
    print(f'{changed} of {len(files)} files rewritten')
    return 0


if __name__ == '__main__':
    sys.exit(main())
