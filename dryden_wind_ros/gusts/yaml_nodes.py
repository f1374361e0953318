"""YAML files judged as a whole: every mistake with its line.

PyYAML's nodes know where they stand in the file; what is read of them is checked here, and mistakes
are collected instead of stopping at the first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from dryden_wind_ros.gusts.inputs import short
from dryden_wind_ros.gusts.record_csv import MAX_MISTAKES, ScenarioError, text_of


def compose(path: Path, most_bytes: int, what: str) -> yaml.Node:
    """Return the root node of a YAML file.

    Raises
    ------
    ScenarioError
        If it cannot be read, is no YAML, or is empty.
    """
    text = text_of(path, most_bytes, what)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f'line {mark.line + 1}: ' if mark else ''
        raise ScenarioError(path, [f'{where}not YAML: {error.problem}']) from None
    except yaml.YAMLError as error:
        raise ScenarioError(path, [f'not YAML: {error}']) from None
    except RecursionError:
        raise ScenarioError(path, ['not YAML that makes sense: brackets within brackets']) from None
    if root is None:
        raise ScenarioError(path, ['it is empty'])
    return root


class NodeReader:
    """Takes YAML nodes apart, and keeps a list of what was wrong instead of stopping."""

    def __init__(self) -> None:
        self.mistakes: list[tuple[int, str]] = []

    def named(self) -> list[str]:
        """Return the mistakes in the order of the file."""
        found = sorted(self.mistakes, key=lambda mistake: mistake[0])
        texts = [f'line {line}: {text}' for line, text in found[:MAX_MISTAKES]]
        if len(found) > MAX_MISTAKES:
            texts.append(f'and {len(found) - MAX_MISTAKES} more')
        return texts

    def wrong(self, node: yaml.Node, text: str) -> None:
        """Note a mistake at the line of a node."""
        self.mistakes.append((node.start_mark.line + 1, text))

    def mapping(self, node: yaml.Node, what: str, known: Sequence[str]) -> dict[str, yaml.Node]:
        """Return the values of a mapping by key; keys that are not known are mistakes."""
        if not isinstance(node, yaml.MappingNode):
            self.wrong(node, f'{what} must be a mapping with {", ".join(known)}')
            return {}
        values: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = self.key(key, what)
            if name is None:
                continue
            if name not in known:
                self.wrong(key, f'{what}: {short(name)} is unknown; known are {", ".join(known)}')
            elif name in values:
                self.wrong(key, f'{what}: {name} is there twice')
            else:
                values[name] = value
        return values

    def key(self, node: yaml.Node, what: str) -> str | None:
        """Return the text of a key; None, and a mistake, where it is a list or a mapping."""
        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        kind = 'list' if isinstance(node, yaml.SequenceNode) else 'mapping'
        self.wrong(node, f'{what}: a {kind} is no name of anything; text was expected')
        return None

    def sequence(self, node: yaml.Node | None, what: str) -> list[yaml.Node]:
        """Return the nodes of a list."""
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.wrong(node, f'{what} must be a list')
            return []
        return list(node.value)

    def number(self, values: Mapping[str, yaml.Node], key: str, what: str, low: float,
               high: float, unit: str = '') -> float | None:
        """Return a number within limits; None where there is none, or a mistake."""
        node = values.get(key)
        if node is None:
            return None
        text = node.value if isinstance(node, yaml.ScalarNode) else ''
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not low <= number <= high:  # NaN too
            shown = short(text) or 'nothing' if isinstance(node, yaml.ScalarNode) else 'no number'
            self.wrong(node, f'{what}: {key} is {shown}; it must be a number from {low:g} to '
                             f'{high:g} {unit}'.rstrip())
            return None
        return number

    def text(self, values: Mapping[str, yaml.Node], key: str, what: str,
             choices: Sequence[str] = ()) -> str | None:
        """Return text, one of `choices` if there are any; None: none there, or a mistake."""
        node = values.get(key)
        if node is None:
            return None
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            self.wrong(node, f'{what}: {key} must be text')
            return None
        if choices and node.value not in choices:
            self.wrong(node, f'{what}: {key} is {short(node.value)}; it must be one of '
                             f'{", ".join(choices)}')
            return None
        return str(node.value)

    def needed(self, node: yaml.Node, values: Mapping[str, yaml.Node], what: str,
               *keys: str) -> None:
        """Note which of the keys are missing."""
        if not isinstance(node, yaml.MappingNode):
            return  # said already
        missing = [key for key in keys if key not in values]
        if missing:
            self.wrong(node, f'{what}: {", ".join(missing)} is missing')
