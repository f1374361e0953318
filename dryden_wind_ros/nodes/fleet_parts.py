"""One fleet in several processes: what they tell each other.

A fleet of many vehicles is dealt to several `wind_fleet` processes (`sitl.fleet.deal`), because one
interpreter uses one core. Each makes the same list of vehicles with the same names and seeds, and
serves its own. Data flow::

    user --parameters, wind/restart--> part 1 (/wind_fleet) --settings, latched--> other parts
    part 1 --common time, drift, origin of the field, twice a second--> other parts
    other parts --summary at the end--> part 1 --one line--> user

Only the first part is to be asked; the others follow it, also when they are started later. A change
is judged there by the rules that hold for every vehicle, so it reaches all parts or none.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from std_msgs.msg import String

from dryden_wind_ros.gusts.shared_air import Anchor, SharedAir
from dryden_wind_ros.nodes import common
from dryden_wind_ros.sitl.frame import Frame

SETTINGS = 'wind_fleet/settings'
SUMMARY = 'wind_fleet/summary'
AIR = 'wind_fleet/air'

TELL_AIR_S = 0.4
"""How often the first part tells where the common air is, s."""

SETTINGS_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=50, reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""Latched, and several changes in a row all arrive."""

SUMMARY_WITHIN_S = 3.0
"""How long the first part waits for what the others say at the end, once it has ended itself, s."""


@dataclass(frozen=True)
class Summary:
    """What a part says at its end.

    Attributes
    ----------
    part : int
        Which one, from 0.
    vehicles : int
        How many it served.
    left : tuple of str
        What could not be put back, a line a vehicle.
    """

    part: int
    vehicles: int
    left: tuple[str, ...]

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps({'part': self.part, 'vehicles': self.vehicles, 'left': self.left})

    @classmethod
    def of_json(cls, text: str) -> Summary:
        """Return what `to_json` wrote; ValueError if it is something else."""
        try:
            content = json.loads(text)
            return cls(int(content['part']), int(content['vehicles']),
                       tuple(str(line) for line in content['left']))
        except (KeyError, TypeError) as error:
            raise ValueError(f'{text!r} is no summary of a part of a fleet') from error


def in_words(summaries: Mapping[int, Summary], parts: int) -> str:
    """Return the end of a whole fleet in one line."""
    vehicles = sum(summary.vehicles for summary in summaries.values())
    left = [line for _, summary in sorted(summaries.items()) for line in summary.left]
    text = f'{vehicles - len(left)} of {vehicles} vehicles in {len(summaries)} processes ended well'
    if left:
        text += f'; not put back: {"; ".join(left)}'
    if len(summaries) < parts:
        silent = ', '.join(str(part + 1) for part in range(parts) if part not in summaries)
        text += f'; nothing was heard of process {silent} of {parts}: see what it said itself'
    return text


class Parts:
    """What one part of a fleet hears of the others, and tells them.

    Parameters
    ----------
    node : rclpy.node.Node
        The node of this part.
    part, parts : int
        Which part, from 0, of how many.
    """

    def __init__(self, node: Node, part: int, parts: int) -> None:
        self.part, self.parts = part, parts
        self._restarts = 0
        self._seen_restarts: int | None = None
        self._settings_pub = self._settings_sub = self._summary_pub = self._summary_sub = None
        self._air_pub = self._air_sub = None
        if parts == 1:
            return
        polled = common.Polled()
        self._told_air_at = 0.0
        if part == 0:
            self._air_pub = node.create_publisher(String, AIR, common.LATCHED_QOS)
            self._settings_pub = node.create_publisher(String, SETTINGS, SETTINGS_QOS)
            self._summary_sub = node.create_subscription(
                String, SUMMARY, lambda _: None, common.STREAM_QOS, callback_group=polled)
        else:
            self._air_sub = node.create_subscription(
                String, AIR, lambda _: None, common.LATCHED_QOS, callback_group=polled)
            self._settings_sub = node.create_subscription(
                String, SETTINGS, lambda _: None, SETTINGS_QOS, callback_group=polled)
            self._summary_pub = node.create_publisher(String, SUMMARY, common.STREAM_QOS)

    @property
    def waking(self) -> tuple[Subscription, ...]:
        """What the first part tells: to be heard at once."""
        return tuple(sub for sub in (self._air_sub, self._settings_sub) if sub is not None)

    @property
    def first(self) -> bool:
        """Whether this is the part that users speak to."""
        return self.part == 0

    def tell(self, settings: Mapping[str, Any], by_hand: Collection[str] = (),
             restart: bool = False) -> None:
        """Tell the other parts what is in force now.

        Parameters
        ----------
        settings : mapping
            All parameters of the wind.
        by_hand : collection of str, optional
            Names of those that were set just now, also to what they were.
        restart : bool, optional
            Whether the air begins anew.
        """
        self._restarts += restart
        if self._settings_pub is not None:
            self._settings_pub.publish(String(data=json.dumps({
                'settings': dict(settings), 'by_hand': sorted(by_hand),
                'restarts': self._restarts})))

    def heard(self) -> tuple[dict[str, Any], set[str], bool] | None:
        """Return what the first part told lately: settings, those set by hand, and whether to
        begin anew; None: nothing."""
        if self._settings_sub is None:
            return None
        waiting = list(common.take_all(self._settings_sub))
        if not waiting:
            return None
        told = [json.loads(message.data) for message in waiting]
        by_hand = {name for content in told for name in content['by_hand']}
        restarts = told[-1]['restarts']
        before, self._seen_restarts = self._seen_restarts, restarts
        return told[-1]['settings'], by_hand, before is not None and restarts > before

    def tell_air(self, air: SharedAir, frame: Frame) -> None:
        """Tell the others every now and then where the common air is."""
        now = time.monotonic()
        if self._air_pub is None or now - self._told_air_at < TELL_AIR_S:
            return
        anchor, origin = air.anchor(), frame.origin
        if anchor is None or math.isnan(anchor.speed):
            return  # who joins by it has to know how fast the time goes
        self._told_air_at = now
        self._air_pub.publish(String(data=json.dumps({
            'anchor': anchor,
            'origin': None if origin is None else (origin.latitude, origin.longitude)})))

    def hear_air(self, air: SharedAir, frame: Frame) -> bool:
        """Follow what the first part tells of the air; return whether it did."""
        waiting = list(common.take_all(self._air_sub)) if self._air_sub is not None else []
        if not waiting:
            return False
        content = json.loads(waiting[-1].data)
        moment, wall, knots, speed = content['anchor']
        air.follow(Anchor(moment, wall, tuple(tuple(knot) for knot in knots), speed))
        if content['origin'] is not None:
            frame.adopt(*content['origin'])
        return True

    def end(self, own: Summary) -> dict[int, Summary]:
        """Tell the first part what came of this one; there, return what came of all."""
        summaries = {own.part: own}
        if self._summary_pub is not None:
            self._summary_pub.publish(String(data=own.to_json()))
            self._summary_pub.wait_for_all_acked(Duration(seconds=1))
        deadline = time.monotonic() + SUMMARY_WITHIN_S
        while self._summary_sub is not None and len(summaries) < self.parts \
                and time.monotonic() < deadline:
            for message in common.take_all(self._summary_sub):
                summary = Summary.of_json(message.data)
                summaries[summary.part] = summary
            time.sleep(0.02)
        return summaries
