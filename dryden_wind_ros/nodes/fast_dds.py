"""Memory of a process with many nodes, where ROS talks by Fast DDS.

Fast DDS reserves memory for each end of each topic and service before any message comes. With the
parameter services that is 1 MB for a node that does nothing; a fleet of a hundred has two hundred.
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
