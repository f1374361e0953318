"""Profiles of Fast DDS: memory of a process with many nodes, and a graph on loopback alone.

Fast DDS reserves memory for each end of each topic and service before any message comes. With the
parameter services that is 1 MB for a node that does nothing; a fleet of a hundred has two hundred.

It talks by shared memory where it can. What a killed process held there stays held: others of the
domain stand still for seconds, and may never come to their end (seen: `rcl_node_fini` waits for a
thread that waits for a lock). ``FASTDDS_BUILTIN_TRANSPORTS=UDPv4`` does without, except where
``ROS_AUTOMATIC_DISCOVERY_RANGE`` is LOCALHOST: rmw_fastrtps then chooses shared memory itself.
"""

from __future__ import annotations

import os
from pathlib import Path

PROFILES = Path(__file__).with_name('fast_dds.xml')

#: Where Fast DDS looks for profiles: variables (by version), and files in the folder it runs in.
_VARIABLES = 'FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE'
_FILES = 'DEFAULT_FASTDDS_PROFILES.xml', 'DEFAULT_FASTRTPS_PROFILES.xml'


def save_memory() -> None:
    """Have memory reserved as it is needed; call it before ``rclpy.init``.

    Profiles of the user's own stay in force, and other middleware takes no notice.
    """
    if any(name in os.environ for name in _VARIABLES) or any(map(os.path.exists, _FILES)):
        return
    for name in _VARIABLES:
        os.environ[name] = str(PROFILES)


#: What rmw_fastrtps does for the range LOCALHOST, without shared memory.
_NAME = 'dryden_wind_ros_loopback'
_LOOPBACK = f"""  <transport_descriptors>
    <transport_descriptor>
      <transport_id>{_NAME}</transport_id>
      <type>UDPv4</type>
      <interfaceWhiteList><address>127.0.0.1</address></interfaceWhiteList>
      <maxInitialPeersRange>32</maxInitialPeersRange>
    </transport_descriptor>
  </transport_descriptors>
  <participant profile_name="{_NAME}" is_default_profile="true">
    <rtps>
      <userTransports><transport_id>{_NAME}</transport_id></userTransports>
      <useBuiltinTransports>false</useBuiltinTransports>
      <builtin>
        <initialPeersList>
          <locator><udpv4><address>127.0.0.1</address></udpv4></locator>
        </initialPeersList>
      </builtin>
    </rtps>
  </participant>
</profiles>
"""


def on_loopback(folder: Path) -> dict[str, str]:
    """Return the environment in which ROS stays on loopback, and does without shared memory.

    Parameters
    ----------
    folder : Path
        Where a file of profiles is written, with those of `save_memory` in it.

    Notes
    -----
    Other middleware, and whoever has profiles of their own, get the range LOCALHOST.
    """
    middleware = os.environ.get('RMW_IMPLEMENTATION', 'rmw_fastrtps_cpp')
    given = next((os.environ[name] for name in _VARIABLES if name in os.environ), '')
    if given and _NAME in _content(given):
        return {}  # it is so already
    if given or 'fastrtps' not in middleware:
        return {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    path = folder / 'fast_dds.xml'
    path.write_text(PROFILES.read_text(encoding='utf-8').replace('</profiles>\n', _LOOPBACK),
                    encoding='utf-8')
    return {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SYSTEM_DEFAULT',
            **dict.fromkeys(_VARIABLES, str(path))}


def _content(path: str) -> str:
    try:
        return Path(path).read_text(encoding='utf-8')
    except (OSError, ValueError):
        return ''
