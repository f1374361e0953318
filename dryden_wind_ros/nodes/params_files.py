"""Params files that were given to a node and have nothing for it.

ROS takes what stands under the node's full name (``/uav1/dryden_wind``) or under a pattern that
fits it (``/**``, ``/*/dryden_wind``), and says nothing about a file in which nothing fits. A
section for the node's name in another namespace is the usual slip: the mean wind then stays 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from rclpy.node import Node

_OWN_NODES = frozenset(('dryden_wind', 'gazebo_wind', 'mavlink_bridge', 'sitl_wind_relay',
                        'wind_fleet', 'wind_markers', 'wind_record'))


def report_unused(node: Node, words: Sequence[str]) -> None:
    """Log an error for each params file of the command line of which nothing is for this node.

    A file with sections for other nodes of this package alone is none to report: launch gives
    one file to all of them.
    """
    name = node.get_fully_qualified_name()
    for path in given(words):
        try:
            content = yaml.safe_load(Path(path).read_text(encoding='utf-8'))
        except (OSError, ValueError, yaml.YAMLError):
            continue  # ROS has said so
        text = unused(content, name)
        if text is not None:
            node.get_logger().error(f'params file {path}: {text}')


def given(words: Sequence[str]) -> Iterator[str]:
    """Yield the params files that a command line names after ``--ros-args``."""
    after = False
    for number, word in enumerate(words):
        if word == '--ros-args':
            after = True
        elif word == '--':
            after = False
        elif after and word == '--params-file' and number + 1 < len(words):
            yield words[number + 1]


def unused(content: Any, name: str) -> str | None:
    """Return why nothing of a params file is for the node `name`, or None where something is.

    Parameters
    ----------
    content : object
        What the file holds.
    name : str
        Full name of the node, with its namespace.
    """
    sections = list(_sections(content, ''))
    if not sections or any(_fits(section, name) for section in sections):
        return None
    own = name.rpartition('/')[2]
    names = {section.rpartition('/')[2] for section in sections}
    if own not in names and names & _OWN_NODES:
        return None
    return (f'none of it applied: this node is {name}, and the file is for '
            f'{", ".join(sorted(sections))}. Write /**/{own} to mean it in any namespace.')


def _sections(content: Any, prefix: str) -> Iterator[str]:
    """Yield the full names or patterns that have ``ros__parameters``."""
    if not isinstance(content, dict):
        return
    for key, value in content.items():
        if key == 'ros__parameters':
            yield prefix or '/'
        else:
            yield from _sections(value, f'{prefix}/{str(key).strip("/")}')


def _fits(pattern: str, name: str) -> bool:
    parts = ['(/[^/]+)*' if part == '**' else '/[^/]+' if part == '*' else f'/{re.escape(part)}'
             for part in pattern.strip('/').split('/')]
    return re.fullmatch(''.join(parts), name) is not None
