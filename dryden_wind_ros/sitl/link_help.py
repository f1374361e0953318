"""What to do about a connection that cannot be made, or on which nothing is heard."""

from __future__ import annotations

from dryden_wind_ros.sitl.connection import ConnectionTarget


def lost_hint(target: ConnectionTarget, why: str) -> str:
    """Return what may help with a connection that could not be made because of `why`."""
    if why == 'connection refused':
        instance = target.sitl_instance
        if target.kind == 'tcp' and instance is not None and target.port % 10 in (2, 3):
            return (f'Nothing listens there: SITL is not running, or it still waits for its '
                    f'first client on port {5760 + 10 * instance} (a GCS or MAVProxy; or start '
                    f'SITL with --serial0 tcp:0). Trying until it is there.')
        return 'Nothing listens there: is SITL running, and on this port? Trying on.'
    if 'no address of this machine' in why:
        return ("Listen on 127.0.0.1, or, where others may send too (parameter 'allow_remote'), on "
                '0.0.0.0. Trying on, in case it gets that address.')
    if 'may not be listened on' in why:
        return 'Use a port from 1024 on.'
    if 'cannot be resolved' in why:
        return 'Is the name right? Trying on.'
    if 'already' in why:
        return 'Close that program (MAVProxy, a GCS, another bridge), or use another port.'
    return 'Trying until it works.'


def silence_hint(target: ConnectionTarget) -> str:
    """Return why nothing at all may be heard on a connection that exists."""
    if target.kind == 'tcp':
        return ('connected, but nothing is heard. SITL serves one client per port: another '
                'program (MAVProxy, a GCS, another bridge) probably holds this one; use the next '
                "port (5762 or 5763 + 10 x instance), or MAVProxy's udp:127.0.0.1:14550")
    if target.kind == 'udpin':
        return ('nothing is sent there. sim_vehicle.py forwards to udp 14550 + 10 x instance; '
                f'other senders need --out=udp:127.0.0.1:{target.port}')
    if target.kind == 'udpout':
        return 'nothing answers there; does a vehicle listen on that UDP port?'
    return 'connected, but nothing is heard'
