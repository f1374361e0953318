"""The embedded vehicle: parameters, air, flight, EKF3 and MAVLink of a small ArduPilot SITL.

``config`` says what to build, ``parameters`` is its parameter table, ``air`` what blows, ``flight``
its physics, ``estimator`` its EKF3, ``dead_reckoning`` how far that is off without GPS, and
``plan`` what the vehicle flies by itself. ``autopilot`` is the MAVLink vehicle made of them:
``handlers`` act on what comes in, ``encoders`` make what goes out, and a ``channel`` is one port
without its socket. ``ports`` are the sockets, ``options`` the command line, and
:mod:`dryden_wind_ros.emulator.main` runs it all.
"""

from dryden_wind_ros import ending

ending.listen_early('sitl_emulator')
