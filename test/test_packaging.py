"""package.xml, setup.py, requirements/ and README.md agree, and rosdep knows every key."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[1]

ROSDEP_KEYS = frozenset(f'python3-{name}' for name in (
    'hypothesis', 'matplotlib', 'numpy', 'pandas', 'psutil', 'pymavlink-pip', 'pytest',
    'pytest-timeout', 'pytest-xdist', 'rich', 'rosbags-pip', 'scipy', 'serial', 'transforms3d',
    'yaml'))
"""Keys of rosdep/python.yaml in ros/rosdistro, commit 8468e88 (22 August 2026).

There is none for pymavlink but the -pip one, and none at all for plotly, mcap, dask and pyarrow."""

ROS_PACKAGES = frozenset((
    'ament_cmake', 'ament_index_python', 'builtin_interfaces', 'diagnostic_msgs', 'geometry_msgs',
    'launch', 'launch_ros', 'nav_msgs', 'rcl_interfaces', 'rclpy', 'ros2bag', 'ros2launch',
    'rosbag2_py', 'rosgraph_msgs', 'rosidl_default_generators', 'rosidl_default_runtime',
    'std_msgs', 'std_srvs', 'visualization_msgs'))
"""Released packages of jazzy/distribution.yaml, same commit."""

KEY_OF = {'pymavlink': 'python3-pymavlink-pip', 'pyserial': 'python3-serial',
          'pyyaml': 'python3-yaml'}
"""rosdep key of a package of PyPI where it is not python3-NAME."""

MODULE_OF = {'pyserial': 'serial', 'pyyaml': 'yaml'}
OPTIONAL_MODULES = frozenset((
    'dask', 'distributed', 'pandas', 'plotly', 'pyarrow', 'rosbag2_py', 'rosbags'))
"""Imported only by what the README lists as optional."""

WITH_ROSBAGS = frozenset(('backports', 'compression', 'lz4'))
"""What rosbags brings: Zstandard (in Python's own library from 3.14 on) and LZ4."""

NOT_ON_PYPI = frozenset(('launch', 'launch_ros', 'ros2launch'))
INTERFACES = 'dryden_wind_interfaces'


def dependencies(package: str = '.') -> dict[str, set[str]]:
    """Return {tag: keys} of a package.xml."""
    found: dict[str, set[str]] = {}
    for element in ElementTree.parse(ROOT / package / 'package.xml').getroot():
        if element.tag.endswith('depend'):
            found.setdefault(element.tag, set()).add(element.text or '')
    return found


def keys(package: str = '.') -> set[str]:
    return set().union(*dependencies(package).values())


def setup_list(*path: str) -> set[str]:
    """Return a list of names out of the call of setup()."""
    call = next(node for node in ast.walk(ast.parse((ROOT / 'setup.py').read_text()))
                if isinstance(node, ast.Call) and getattr(node.func, 'id', '') == 'setup')
    values = {word.arg: word.value for word in call.keywords}
    value = ast.literal_eval(values[path[0]])
    return set(value[path[1]] if len(path) > 1 else value)


def lines_of(name: str) -> set[str]:
    lines = (ROOT / 'requirements' / name).read_text().splitlines()
    return {match[0].lower() for line in lines if (match := re.match(r'[A-Za-z][\w.-]*', line))}


def imported(*folders: str) -> dict[str, str]:
    """Return {top-level module: a file that imports it}, without the standard library and us."""
    found: dict[str, str] = {}
    for path in (path for folder in folders for path in (ROOT / folder).rglob('*.py')):
        for node in ast.walk(ast.parse(path.read_text())):
            names = ([alias.name for alias in node.names] if isinstance(node, ast.Import) else
                     [node.module or ''] if isinstance(node, ast.ImportFrom) and not node.level
                     else [])
            for name in names:
                found.setdefault(name.partition('.')[0], str(path.relative_to(ROOT)))
    return {name: path for name, path in found.items()
            if name not in sys.stdlib_module_names and name != 'dryden_wind_ros'}


@pytest.mark.parametrize('package', ['.', INTERFACES])
def test_every_key_is_one_that_rosdep_knows(package: str) -> None:
    unknown = keys(package) - ROSDEP_KEYS - ROS_PACKAGES - {INTERFACES}
    assert not unknown, (f'{unknown}: look them up in ros/rosdistro (rosdep/*.yaml, '
                         'jazzy/distribution.yaml): one unknown key stops `rosdep install`')


def test_setup_and_package_xml_need_the_same() -> None:
    def as_keys(names: set[str]) -> set[str]:
        return {KEY_OF.get(name, f'python3-{name}') for name in names}

    of_python = {tag: {key for key in found if key.startswith('python3-')}
                 for tag, found in dependencies().items()}
    assert as_keys(setup_list('install_requires') - {'setuptools'}) == of_python['exec_depend']
    assert as_keys(setup_list('extras_require', 'test')) == of_python['test_depend']


def test_requirements_bring_all_that_setup_and_package_xml_need() -> None:
    tools, ros = lines_of('tools.in'), lines_of('ros.in')
    assert setup_list('install_requires') | setup_list('extras_require', 'test') <= (
        tools | {'setuptools'})
    of_ros = {key for package in ('.', INTERFACES) for key in keys(package)
              if key in ROS_PACKAGES} - NOT_ON_PYPI
    assert {f'ros-jazzy-{name.replace("_", "-")}' for name in of_ros} <= ros
    assert tools | ros <= lines_of('lock.txt'), 'requirements/lock.txt is older than its *.in'


def test_what_is_imported_is_needed_or_named_as_optional() -> None:
    hard = ({MODULE_OF.get(name, name) for name in setup_list('install_requires')}
            | {key for key in keys() if not key.startswith('python3-')})
    modules = imported('dryden_wind_ros', 'launch')
    unknown = {name: path for name, path in modules.items()
               if name not in hard | OPTIONAL_MODULES | WITH_ROSBAGS}
    assert not unknown
    unused = (keys() & ROS_PACKAGES) - set(modules) - {'ros2launch'}
    assert not unused, 'in package.xml, but nobody imports it'


def test_the_readme_installs_what_comes_by_pip_and_lists_what_is_optional() -> None:
    readme = (ROOT / 'README.md').read_text()
    commands = readme[:readme.index('rosdep install')]
    assert 'export PIP_BREAK_SYSTEM_PACKAGES=1' in commands
    for name in OPTIONAL_MODULES - {'rosbag2_py'}:
        assert f'`{name}`' in readme, f'{name} is optional: say what for'
