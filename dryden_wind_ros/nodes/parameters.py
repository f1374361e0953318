"""Parameters of a node, declared from a table of `Parameter` rows.

A whole number given for a real-valued parameter is taken as one; a refused value is answered with
the parameter, the value and what is allowed, and a name that no row declares is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter as RclpyParameter

from dryden_wind_ros.nodes import inside_rclpy

_ALWAYS_KNOWN = ('use_sim_time', 'start_type_description_service')


class BadParameter(ValueError):
    """A parameter has a value that is not allowed; the text names it, the value and the range."""


@dataclass(frozen=True)
class Parameter:
    """One row of a node's parameter table.

    Attributes
    ----------
    name : str
        As users write it, e.g. ``mean_wind.speed``.
    default : float, int, bool or str
        Its type is the parameter's type.
    description : str
        One sentence with the unit.
    low, high : float or int, optional
        Smallest and largest value allowed.
    choices : tuple of str, optional
        The texts allowed.
    above_low : bool, optional
        Whether `low` itself is forbidden.
    read_only : bool, optional
        Whether it can be given at the start only.
    """

    name: str
    default: float | int | bool | str
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    above_low: bool = False
    read_only: bool = False

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        kind = {bool: 'true or false', int: 'a whole number', float: 'a number',
                str: 'text'}[type(self.default)]
        if self.choices:
            return 'one of ' + ', '.join(self.choices)
        # A whole number in full: the largest seed has 19 digits.
        low, high = (limit if isinstance(limit, int) else f'{limit:g}' if limit is not None else ''
                     for limit in (self.low, self.high))
        if self.low is None and self.high is None:
            return kind
        if self.high is None:
            return f'{kind} {"above" if self.above_low else "from"} {low}'
        above = 'above ' if self.above_low else ''
        return f'{kind} from {above}{low} to {high}'

    def checked(self, value: object) -> Any:
        """Return the value in the parameter's type.

        Raises
        ------
        BadParameter
            If it is not allowed.
        """
        expected = type(self.default)
        if value is False and 'off' in self.choices:
            value = 'off'  # an unquoted off is a truth value in YAML
        good = isinstance(value, expected) and not (expected is int and isinstance(value, bool))
        if expected is float and isinstance(value, int) and not isinstance(value, bool):
            value, good = float(value), True
        if good and isinstance(value, float):
            good = math.isfinite(value)
        if good and isinstance(value, (int, float)) and not isinstance(value, bool):
            low_ok = self.low is None or value > self.low or (
                value == self.low and not self.above_low)
            good = low_ok and (self.high is None or value <= self.high)
        if good and self.choices:
            good = value in self.choices
        if not good:
            raise BadParameter(f'{self.name} is {value!r}; it must be {self.allowed}')
        return value

    def descriptor(self) -> ParameterDescriptor:
        """Return what ``ros2 param describe`` shows."""
        descriptor = ParameterDescriptor(
            description=self.description, read_only=self.read_only, dynamic_typing=True,
            additional_constraints=f'{self.name} must be {self.allowed}')
        if self.low is not None and self.high is not None:
            if isinstance(self.default, int):
                descriptor.integer_range = [
                    IntegerRange(from_value=int(self.low), to_value=int(self.high))]
            else:
                descriptor.floating_point_range = [
                    FloatingPointRange(from_value=float(self.low), to_value=float(self.high))]
        return descriptor


class ParameterTable:
    """Declares a node's parameters and keeps their values.

    Parameters
    ----------
    node : rclpy.node.Node
        The node.
    rows : sequence of Parameter
        What it declares.
    judge : callable, optional
        Called with all values as they would be after a change, to refuse what no single row can see
        (by raising ValueError). It must not have side effects.
    apply : callable, optional
        Called with all values after a change was accepted.
    also_known : iterable of str, optional
        Names that other nodes of the same process know: not to be reported.

    Attributes
    ----------
    values : dict
        Value of each parameter.
    given : frozenset of str
        Those that were given at the start.
    set_now : frozenset of str
        Those of the change that `apply` is called for, also where their values stayed the same.

    Raises
    ------
    BadParameter
        If a value given at the start is not allowed.
    """

    def __init__(self, node: Node, rows: Sequence[Parameter],
                 judge: Callable[[Mapping[str, Any]], None] | None = None,
                 apply: Callable[[Mapping[str, Any]], None] | None = None,
                 also_known: Iterable[str] = ()) -> None:
        self._node = node
        self._rows = {row.name: row for row in rows}
        self._judge = judge
        self._apply = apply
        self.values: dict[str, Any] = {}
        self.set_now: frozenset[str] = frozenset()
        overrides = inside_rclpy.parameter_overrides(node)
        self.given = frozenset(self._rows) & frozenset(overrides)
        for row in rows:
            if row.name in overrides:
                # Checked before rclpy sees it: its own text names neither the type nor the unit.
                value = row.checked(overrides[row.name].value)
            else:
                value = row.default
            node.declare_parameter(row.name, value, row.descriptor(), ignore_override=True)
            self.values[row.name] = value
        if judge is not None:
            judge(self.values)
        self._report_unknown(overrides, frozenset(also_known))
        node.add_pre_set_parameters_callback(self._pre_set)
        node.add_on_set_parameters_callback(self._on_set)
        node.add_post_set_parameters_callback(self._post_set)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def _report_unknown(self, overrides: Mapping[str, Any], also_known: frozenset[str]) -> None:
        unknown = sorted(
            name for name in overrides
            if name not in self._rows and name not in _ALWAYS_KNOWN and name not in also_known
            and not name.startswith('qos_overrides.'))
        for name in unknown:
            self._node.get_logger().error(
                f'parameter {name} is unknown and has no effect; '
                f'known are: {", ".join(sorted(self._rows))}')

    def _pre_set(self, parameters: list[RclpyParameter]) -> list[RclpyParameter]:
        return [self._as_declared(parameter) for parameter in parameters]

    def _as_declared(self, parameter: RclpyParameter) -> RclpyParameter:
        row = self._rows.get(parameter.name)
        if row is None:
            return parameter
        whole = isinstance(parameter.value, int) and not isinstance(parameter.value, bool)
        if isinstance(row.default, float) and whole:
            return RclpyParameter(parameter.name, value=float(parameter.value))
        if parameter.value is False and 'off' in row.choices:
            return RclpyParameter(parameter.name, value='off')
        return parameter

    def _on_set(self, parameters: list[RclpyParameter]) -> SetParametersResult:
        try:
            changed = dict(self.values)
            for parameter in parameters:
                if parameter.name in self._rows:
                    changed[parameter.name] = self._rows[parameter.name].checked(parameter.value)
            if self._judge is not None:
                self._judge(changed)
        except ValueError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _post_set(self, parameters: list[RclpyParameter]) -> None:
        for parameter in parameters:
            if parameter.name in self._rows:
                self.values[parameter.name] = self._rows[parameter.name].checked(parameter.value)
        self.set_now = frozenset(parameter.name for parameter in parameters)
        if self._apply is not None:
            self._apply(self.values)
