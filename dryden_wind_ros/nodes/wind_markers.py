"""Wind arrows at the vehicle, for RViz and Foxglove: wind/state and odom in, wind/markers out.

Markers, by their namespace (what a viewer can switch off):

========  ======================================================================================
total     arrow from the vehicle, the whole wind
mean      arrow from the vehicle, the mean wind
gust      arrow from the tip of the mean wind to the tip of the whole wind
trail     where the tip of the whole wind was in the last seconds, coloured by the gust's strength
path      where the vehicle was in the last seconds
vehicle   a dot
label     mean wind and gust in figures
slice     of a field: the gusts around the vehicle, coloured by their speed
========  ======================================================================================
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from dryden_wind_ros.gusts.air_slice import MOST_ARROWS, PLANES, arrows, grid
from dryden_wind_ros.gusts.field_turbulence import field_of
from dryden_wind_ros.nodes import common
from dryden_wind_ros.nodes.common import Parameter

PARAMETERS = (
    Parameter('rate', 10.0, 'How often the arrows are drawn, Hz of wall time.',
              low=0.2, high=60.0),
    Parameter('scale', 1.0, 'Length of the arrows, m per m/s of wind.',
              low=0.0, high=100.0, above_low=True),
    Parameter('trail', 10.0, 'How many seconds of sim time the trails reach back; 0 for none.',
              low=0.0, high=300.0),
    Parameter('slice', 'off', "Gusts of a field around the vehicle: 'horizontal', 'vertical' (east "
              "and up) or 'off'.", choices=PLANES),
    Parameter('slice_size', 60.0, 'Width of the slice, m.', low=1.0, high=10_000.0),
    Parameter('slice_spacing', 4.0, 'Distance between its arrows, m; wider where they would be '
              f'more than {MOST_ARROWS}.', low=0.1, high=1000.0),
    Parameter('frame_id', '', 'Frame of the markers. Empty: that of the odometry, or, without '
              'any, that of the wind.'),
)

NEWEST_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""For drawing: the newest message is all that counts."""

PATIENCE_S = 5.0
"""Wall time after which missing topics are reported, s."""

MEAN_COLOR = (0.20, 0.60, 1.00)
GUST_COLOR = (1.00, 0.55, 0.10)
TOTAL_COLOR = (0.90, 0.90, 0.90)
PATH_COLOR = (0.55, 0.75, 0.55)
VEHICLE_COLOR = (0.30, 0.85, 0.40)

NAMES = ('total', 'mean', 'gust', 'trail', 'path', 'vehicle', 'label', 'slice')

SLICE_PERIOD_S = 0.5
"""Wall time between two slices, s: a large one takes 50 ms."""

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class _Trace:
    """One point of the trails: kept as messages, for they are sent again and again."""

    t: float
    position: Point
    tip: Point
    color: ColorRGBA


class WindMarkersNode(Node):
    """Draws the wind of one vehicle."""

    def __init__(self, **kwargs: Any) -> None:
        messages = common.interfaces('msg')
        super().__init__('wind_markers', **kwargs)
        self.parameters = common.ParameterTable(self, PARAMETERS, apply=self._on_parameters)
        self._markers_pub = self.create_publisher(MarkerArray, 'wind/markers', 1)
        self._state_sub = self.create_subscription(
            messages.WindState, 'wind/state', self._on_state, NEWEST_QOS)
        self._odom_sub = self.create_subscription(
            Odometry, 'odom', self._on_odometry, NEWEST_QOS)
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._rate: float = self.parameters['rate']
        self._timer = self.create_timer(1.0 / self._rate, self._draw, clock=self._steady)

        self._state: Any = None
        self._odometry: Odometry | None = None
        self._trail: deque[_Trace] = deque()
        self._sliced_at = -math.inf
        self._slice_points: list[Point] = []
        self._slice_colors: list[ColorRGBA] = []
        self._shown = False
        self._started_at = time.monotonic()
        self._said: set[str] = set()
        self.get_logger().info(f'drawing {self._state_sub.topic_name} at '
                               f'{self._odom_sub.topic_name} on {self._markers_pub.topic_name}')

    def _on_parameters(self, values: Mapping[str, Any]) -> None:
        if values['rate'] != self._rate:
            self._rate = values['rate']
            self.destroy_timer(self._timer)
            self._timer = self.create_timer(1.0 / self._rate, self._draw, clock=self._steady)

    def _on_state(self, message: Any) -> None:
        self._state = message

    def _on_odometry(self, message: Odometry) -> None:
        p = message.pose.pose.position
        if all(map(math.isfinite, (p.x, p.y, p.z))):
            self._odometry = message

    def _draw(self) -> None:
        if self._state is None:
            self._warn_once(self._state_sub.topic_name, 'no wind to draw')
            return
        if self._odometry is None:
            self._warn_once(self._odom_sub.topic_name,
                            "the wind is drawn above the origin, at the wind's own height")
        if self.count_publishers(self._state_sub.topic_name) == 0:
            if self._shown:
                self.clear()
            return
        self._markers_pub.publish(self._markers())
        self._shown = True

    def clear(self) -> None:
        """Take away what was drawn, from viewers too."""
        self._shown, self._state = False, None
        self._trail.clear()
        self._markers_pub.publish(MarkerArray(markers=[Marker(action=Marker.DELETEALL)]))

    def _warn_once(self, topic: str, consequence: str) -> None:
        if topic not in self._said and time.monotonic() - self._started_at >= PATIENCE_S:
            self._said.add(topic)
            self.get_logger().warning(
                f'nothing heard on {topic} for {PATIENCE_S:.0f} s '
                f'({self.count_publishers(topic)} publishers): {consequence}')

    # ------------------------------------------------------------------ drawing

    def _markers(self) -> MarkerArray:
        state, odometry, scale = self._state, self._odometry, self.parameters['scale']
        if odometry is None:
            position: Vector = (0.0, 0.0, state.height)
            frame = state.header.frame_id
        else:
            p = odometry.pose.pose.position
            position, frame = (p.x, p.y, p.z), odometry.header.frame_id
        frame = self.parameters['frame_id'] or frame
        mean: Vector = (state.mean.x, state.mean.y, state.mean.z)
        gust: Vector = (state.gust.x, state.gust.y, state.gust.z)
        mean_tip, tip = _along(position, mean, scale), _along(
            _along(position, mean, scale), gust, scale)
        sigma = math.hypot(state.sigma_u, state.sigma_v, state.sigma_w)
        self._remember(state.t, position, tip, math.hypot(*gust) / sigma if sigma > 0.0 else 0.0)

        def marker(name: str, kind: int, color: Sequence[float], width: float,
                   points: Sequence[Vector] = ()) -> Marker:
            made = Marker(ns=name, id=0, type=kind, action=Marker.ADD, frame_locked=True,
                          points=[_point(p) for p in points], color=_color(color))
            made.header.frame_id, made.header.stamp = frame, _stamp(state)
            made.pose.orientation.w = 1.0
            made.scale.x = width
            return made

        def arrow(name: str, color: Sequence[float], width: float, start: Vector, end: Vector,
                  ) -> Marker:
            length = math.dist(start, end)
            made = marker(name, Marker.ARROW, color, width, (start, end))
            if length < 1e-6:  # viewers complain of arrows without a direction
                made.action, made.points = Marker.DELETE, []
            made.scale.y, made.scale.z = 2.5 * width, min(5.0 * width, 0.4 * length)
            return made

        def strip(name: str, points: list[Point], colors: list[ColorRGBA]) -> Marker:
            made = marker(name, Marker.LINE_STRIP, PATH_COLOR, 0.04 * scale)
            if len(points) < 2:
                made.action = Marker.DELETE
            else:
                made.points, made.colors = points, colors
            return made

        vehicle = marker('vehicle', Marker.SPHERE, VEHICLE_COLOR, 0.4 * scale)
        vehicle.scale.y = vehicle.scale.z = 0.4 * scale
        vehicle.pose.position = _point(position)
        label = marker('label', Marker.TEXT_VIEW_FACING, TOTAL_COLOR, 0.0)
        label.scale.z = 0.6 * scale
        label.pose.position = _point(_along(position, (0.0, 0.0, 1.2), scale))
        label.text = (f'{state.mean_wind_speed:.1f} m/s from {state.mean_wind_from_deg:03.0f} deg, '
                      f'gust {math.hypot(*gust):.1f} m/s')
        trail = self._trail
        self._fade()
        return MarkerArray(markers=[
            arrow('total', (*TOTAL_COLOR, 0.6), 0.10 * scale, position, tip),
            arrow('mean', MEAN_COLOR, 0.14 * scale, position, mean_tip),
            arrow('gust', GUST_COLOR, 0.12 * scale, mean_tip, tip),
            strip('trail', [x.tip for x in trail], [x.color for x in trail]),
            strip('path', [x.position for x in trail], []),
            vehicle, label, self._slice(state, position, marker('slice', Marker.LINE_LIST, (
                *MEAN_COLOR, 0.8), 0.03 * scale))])

    def _slice(self, state: Any, position: Vector, made: Marker) -> Marker:
        """Fill the marker of the slice; it is drawn anew now and then only."""
        plane = self.parameters['slice']
        if plane == 'off' or state.gusts != 'field':
            made.action = Marker.DELETE
            self._sliced_at = -math.inf
            return made
        if time.monotonic() - self._sliced_at >= SLICE_PERIOD_S:
            self._sliced_at = time.monotonic()
            key = (state.seed, state.field_spectrum, int(state.field_modes), state.field_life,
                   state.severity)
            places = grid(position, plane, self.parameters['slice_size'],
                          self.parameters['slice_spacing'])
            mean, drift = state.mean, state.drift
            segments, speed = arrows(
                field_of(*key), places, places[:, 2] - state.ground_height,
                (mean.x, mean.y, mean.z), (drift.x, drift.y, drift.z), state.age, state.scale,
                self.parameters['scale'])
            sigma = math.hypot(state.sigma_u, state.sigma_v, state.sigma_w)
            colors = [_color(_strength_color(one / sigma if sigma > 0.0 else 0.0))
                      for one in speed.tolist()]
            self._slice_points = [_point((x, y, z)) for x, y, z in segments.reshape(-1, 3).tolist()]
            self._slice_colors = [color for color in colors for _ in range(6)]
        made.points, made.colors = self._slice_points, self._slice_colors
        return made

    def _remember(self, t: float, position: Vector, tip: Vector, strength: float) -> None:
        trail = self._trail
        if trail and t < trail[-1].t:
            trail.clear()  # sim time went back
        if not trail or t > trail[-1].t:
            trail.append(_Trace(t, _point(position), _point(tip),
                                _color(_strength_color(strength))))
        while trail and t - trail[0].t > self.parameters['trail']:
            trail.popleft()

    def _fade(self) -> None:
        newest, reach = self._trail[-1].t, max(self.parameters['trail'], 1e-3)
        for trace in self._trail:
            trace.color.a = 1.0 - 0.9 * (newest - trace.t) / reach


def _along(start: Vector, vector: Vector, scale: float) -> Vector:
    return (start[0] + scale * vector[0], start[1] + scale * vector[1],
            start[2] + scale * vector[2])


def _point(p: Vector) -> Point:
    return Point(x=p[0], y=p[1], z=p[2])


def _color(rgba: Sequence[float]) -> ColorRGBA:
    r, g, b, a = (*rgba, 1.0)[:4]
    return ColorRGBA(r=r, g=g, b=b, a=a)


def _strength_color(strength: float) -> Vector:
    """Blue for no gust, red for one of two standard deviations or more."""
    share = min(max(strength / 2.0, 0.0), 1.0)
    return (0.2 + 0.8 * share, 0.6 - 0.4 * share, 1.0 - 0.9 * share)


def _stamp(state: Any) -> Time:
    return Time(sec=state.header.stamp.sec, nanosec=state.header.stamp.nanosec)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node ``wind_markers``."""
    return common.run(WindMarkersNode, args, rows=PARAMETERS, about=__doc__)


if __name__ == '__main__':
    raise SystemExit(main())
