"""What the diagnostics of `mavlink_bridge` say, from snapshots of what it looks after."""

from __future__ import annotations

from collections.abc import Sequence

from diagnostic_msgs.msg import DiagnosticStatus

from dryden_wind_ros.ekf.advice import Advice, Level, as_text
from dryden_wind_ros.nodes import common
from dryden_wind_ros.nodes.ekf_wind import EkfWindSample
from dryden_wind_ros.sitl.link_status import LinkState, LinkStatus
from dryden_wind_ros.sitl.parameters import ParametersStatus, Phase
from dryden_wind_ros.sitl.wind_effect import Effect, WindEffect


def link_finding(name: str, link: LinkStatus, odometries: int) -> DiagnosticStatus:
    """Return how the link is.

    Parameters
    ----------
    name : str
        Of the node.
    link : LinkStatus
    odometries : int
        How many odometry samples there were.
    """
    level, text = _judge_link(link)
    return common.status(f'{name}: link', level, text, {
        'connection': link.connection, 'state': link.state.value,
        'system id': link.system_id, 'armed': link.armed,
        'vehicle time': 'unknown' if link.time is None else f'{link.time:.3f} s',
        'speedup': f'{link.speedup:.2f}', 'clock rate': f'{link.clock_rate:.1f} Hz',
        'connections': link.connections, 'restarts': link.restarts,
        'frames': link.frames, 'bad frames': link.bad_frames,
        'odometry samples': odometries,
        **{f'interval {what}': f'{interval / 1000:g} ms' if interval else 'not settled'
           for what, interval in link.intervals}})


def parameters_finding(name: str, parameters: ParametersStatus,
                       refused_wind: str) -> DiagnosticStatus:
    """Return how the wind parameters are; `refused_wind` is the last that was not allowed."""
    level, text = _judge_parameters(parameters, refused_wind)
    return common.status(f'{name}: wind parameters', level, text, {
        'phase': parameters.phase.value,
        'found': _listed(parameters.found),
        'found in': 'state file' if parameters.found_in_file else 'vehicle',
        'in force': _listed(parameters.in_force),
        'missing': ', '.join(parameters.missing) or 'none',
        'not confirmed': ', '.join(parameters.unconfirmed) or 'none',
        'sent': parameters.sent, 'echoed': parameters.echoed,
        'winds received': parameters.winds, 'winds dropped': parameters.winds_dropped})


def ekf_finding(name: str, sample: EkfWindSample | None,
                advice: Sequence[Advice]) -> DiagnosticStatus:
    """Return what EKF3 believes, and the advice that holds now."""
    if sample is None:
        return common.status(f'{name}: ekf wind', DiagnosticStatus.OK, 'nothing heard yet')
    state = sample.state
    warnings = [one.text for one in advice if one.level >= Level.WARN]
    text = f'{state.phase_name}: {state.reason}'
    if warnings:
        text += '; advice: ' + ' '.join(warnings)
    level = DiagnosticStatus.WARN if warnings else DiagnosticStatus.OK
    return common.status(
        f'{name}: ekf wind', level, text, {
            'phase': state.phase_name, 'since': f'{state.since:.2f} s',
            'settled': state.settled, 'aiding lost': state.aiding_lost,
            'estimate': f'{state.speed:.2f} m/s from {state.from_deg:.0f} deg',
            'error': f'{sample.error_speed:.2f} m/s, {sample.error_direction:.0f} deg',
            'advice': as_text(advice)})


def effect_finding(name: str, result: WindEffect) -> DiagnosticStatus:
    """Return whether the vehicle feels the wind that it is given."""
    level = DiagnosticStatus.WARN if result.effect is Effect.NOT_FELT else DiagnosticStatus.OK
    return common.status(f'{name}: wind effect', level, result.text,
                         {'wind given': result.effect.value})


def _listed(values: Sequence[tuple[str, float]]) -> str:
    return ', '.join(f'{name} {value:g}' for name, value in values) or 'none'


def _judge_link(link: LinkStatus) -> tuple[bytes, str]:
    if link.problems:
        level = DiagnosticStatus.WARN if link.state is LinkState.UP else DiagnosticStatus.ERROR
        return level, '; '.join(link.problems)
    if link.state is LinkState.UP:
        return DiagnosticStatus.OK, f'vehicle {link.system_id} on {link.connection}'
    return DiagnosticStatus.WARN, f'{link.connection}: {link.state.value}'


def _judge_parameters(parameters: ParametersStatus, refused_wind: str) -> tuple[bytes, str]:
    problems = [*parameters.problems, *([refused_wind] if refused_wind else [])]
    if problems:
        bad = parameters.phase in (Phase.NOT_A_SIMULATOR, Phase.BUSY)
        return DiagnosticStatus.ERROR if bad else DiagnosticStatus.WARN, '; '.join(problems)
    return DiagnosticStatus.OK, parameters.phase.value
