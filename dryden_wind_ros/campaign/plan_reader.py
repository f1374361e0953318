"""What every part of a plan is read with: names, files beside it, truths, values or lists."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from dryden_wind_ros.gusts.inputs import short
from dryden_wind_ros.gusts.yaml_nodes import NodeReader

MAX_NAME = 64
NAME_MARKS = ' _-.+=,()%'
NAMES = (f'1 to {MAX_NAME} letters, digits and any of "{NAME_MARKS}", beginning with a letter or a '
         'digit and not ending with a blank or a dot')


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a campaign or a variant: of a folder anywhere."""
    return (0 < len(text) <= MAX_NAME and text[0].isalnum() and text[-1] not in ' .'
            and all(mark.isalnum() or mark in NAME_MARKS for mark in text)
            and len(os.fsencode(text)) <= 200)


def alike(text: str) -> str:
    """Return what two names share that a file system or a reader may take for one."""
    return unicodedata.normalize('NFKC', text).casefold()


class PlanReader(NodeReader):
    """Reads values of a plan, and the files that it names.

    Parameters
    ----------
    path : Path
        Of the plan: files are relative to its folder.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def name(self, node: yaml.Node, what: str, text: str) -> None:
        """Note a mistake where a text is no name."""
        if not is_name(text):
            self.wrong(node, f'{what} is {short(repr(text))}; it must be {NAMES}')

    def truth(self, values: Mapping[str, yaml.Node], key: str, what: str) -> bool | None:
        text = self.text(values, key, what, ('true', 'false', 'yes', 'no', 'on', 'off'))
        return None if text is None else text in ('true', 'yes', 'on')

    def many(self, values: Mapping[str, yaml.Node], key: str,
             read: Callable[[Mapping[str, yaml.Node], str], Any], default: Any) -> list[Any]:
        """Return a value, or each of a list of values."""
        node = values.get(key)
        if node is None:
            return [default]
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if not nodes:
            self.wrong(node, f'winds: {key} has no value')
        found = [read({key: one}, key) for one in nodes]
        return [one for one in found if one is not None]

    def file(self, node: yaml.Node, what: str) -> Path | None:
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            self.wrong(node, f'{what} must be the name of a file')
            return None
        path = self._path.parent / Path(node.value).expanduser()
        if not path.is_file():
            self.wrong(node, f'{what} {path}: there is no such file')
            return None
        return path
