"""The embedded vehicle: parameters, air, flight, EKF3 and MAVLink of a small ArduPilot SITL.

``config`` says what to build, ``parameters`` is its parameter table, ``flight`` its physics,
``estimator`` its EKF3, ``autopilot`` the MAVLink vehicle made of them, ``ports`` its sockets.
:mod:`dryden_wind_ros.emulator.main` runs it.
"""
