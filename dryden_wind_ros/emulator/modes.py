"""Flight modes of the embedded vehicle: ArduPilot's numbers and names."""

from __future__ import annotations

PLANE_MODES = {
    0: 'MANUAL', 1: 'CIRCLE', 2: 'STABILIZE', 5: 'FBWA', 6: 'FBWB', 7: 'CRUISE', 10: 'AUTO',
    11: 'RTL', 12: 'LOITER', 13: 'TAKEOFF', 15: 'GUIDED', 17: 'QSTABILIZE', 18: 'QHOVER',
    19: 'QLOITER', 20: 'QLAND', 21: 'QRTL'}
COPTER_MODES = {
    0: 'STABILIZE', 2: 'ALT_HOLD', 3: 'AUTO', 4: 'GUIDED', 5: 'LOITER', 6: 'RTL', 7: 'CIRCLE',
    9: 'LAND', 16: 'POSHOLD', 17: 'BRAKE', 21: 'SMART_RTL'}
VTOL_MODES = frozenset((17, 18, 19, 20, 21))
GUIDED_MODES = frozenset(('AUTO', 'GUIDED', 'RTL', 'LOITER', 'CIRCLE', 'TAKEOFF', 'LAND', 'QRTL',
                          'QLAND'))
STICK_MODES = frozenset(('ALT_HOLD', 'LOITER', 'POSHOLD', 'QHOVER', 'QLOITER', 'STABILIZE',
                         'QSTABILIZE'))
"""Modes in which the throttle stick sets the climb rate."""

_FIXED_WING_MODES = {number: name for number, name in PLANE_MODES.items()
                     if number not in VTOL_MODES}
MODES = {'copter': COPTER_MODES, 'plane': _FIXED_WING_MODES, 'quadplane': PLANE_MODES}
"""Numbers and names of each kind's modes."""

START_MODES = {'copter': 0, 'plane': 0, 'quadplane': 5}
