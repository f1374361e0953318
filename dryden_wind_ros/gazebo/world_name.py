"""Names of Gazebo worlds, and what they are in the topics of Gazebo and of ROS."""

from __future__ import annotations

import re

_NAME = re.compile(r'[A-Za-z0-9_.\- ]+', re.ASCII)


def check_world(name: str, *, wrench: bool = False) -> None:
    """Refuse what cannot be the name of a world.

    Parameters
    ----------
    name : str
        As in ``<world name='...'>``.
    wrench : bool, optional
        Whether its system ApplyLinkWrench is needed, which cannot hear topics with spaces.

    Raises
    ------
    ValueError
        Naming what is wrong.
    """
    if not _NAME.fullmatch(name) or name != name.strip():
        raise ValueError(f"world is {name!r}; it must be the name in <world name='...'> of its "
                         'SDF: letters, digits, _ - . and spaces between them')
    if wrench and ' ' in name:
        raise ValueError(
            f'world is {name!r}; forces cannot be given to a world with a space in its name, for '
            f"Gazebo's ApplyLinkWrench does not hear such topics: rename it {gz_name(name)!r}")


def gz_name(name: str) -> str:
    """Return the name in Gazebo's topics, which have underscores for spaces."""
    return name.replace(' ', '_')


def ros_name(name: str) -> str:
    """Return the name in ROS topics, whose parts are letters, digits and underscores."""
    plain = re.sub(r'\W', '_', name, flags=re.ASCII)
    return f'_{plain}' if plain[0].isdigit() else plain
