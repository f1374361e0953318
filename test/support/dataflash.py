"""A writer of ArduPilot dataflash logs (.BIN), as far as the tests of reading them need it.

A log says what it holds: an FMT record for each record type, FMTU with units and multipliers, then
records of ``0xA3 0x95 type`` and packed fields. Formats are those of ArduPilot 4.7
(``AP_Logger/LogStructure.h``, ``AP_NavEKF3/LogStructure.h``).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support import ekf_flights as flights

_HEAD = b'\xa3\x95'
# Format character: struct code, scale of the stored integer.
_PACKING = {'Q': ('Q', 1), 'B': ('B', 1), 'b': ('b', 1), 'H': ('H', 1), 'h': ('h', 1),
            'I': ('I', 1), 'i': ('i', 1), 'f': ('f', 1), 'd': ('d', 1), 'c': ('h', 100),
            'C': ('H', 100), 'e': ('i', 100), 'L': ('i', 10_000_000), 'n': ('4s', None),
            'N': ('16s', None), 'Z': ('64s', None)}

# Name: number, format, columns, units, multipliers.
FORMATS = {
    'UNIT': (130, 'QbZ', 'TimeUS,Id,Label', 's--', 'F--'),
    'MULT': (131, 'Qbd', 'TimeUS,Id,Mult', 's--', 'F--'),
    'FMTU': (132, 'QBNN', 'TimeUS,FmtType,UnitIds,MultIds', 's---', 'F---'),
    'PARM': (133, 'QNff', 'TimeUS,Name,Value,Default', 's---', 'F---'),
    'MSG': (134, 'QZ', 'TimeUS,Message', 's-', 'F-'),
    'ARM': (135, 'QBIBB', 'TimeUS,ArmState,ArmChecks,Forced,Method', 's----', 'F----'),
    'EV': (136, 'QB', 'TimeUS,Id', 's-', 'F-'),
    'POS': (137, 'QLLfff', 'TimeUS,Lat,Lng,Alt,RelHomeAlt,RelOriginAlt', 'sDUmmm', 'FGG000'),
    'IMU': (138, 'QBf', 'TimeUS,I,GyrX', 's#E', 'F-0'),
    'XKF2': (140, 'QBccccchhhhhhfff',
             'TimeUS,C,AX,AY,AZ,VWN,VWE,MN,ME,MD,MX,MY,MZ,IDX,IDY,IS',
             's#---nnGGGGGGoor', 'F----BBCCCCCC000'),
    'XKF3': (141, 'QBcccccchhhccff',
             'TimeUS,C,IVN,IVE,IVD,IPN,IPE,IPD,IMX,IMY,IMZ,IYAW,IVT,RErr,ErSc',
             's#nnnmmmGGGd?--', 'F-BBBBBBCCCBB00'),
    'XKF4': (142, 'QBHHHHHfffHBIHb',
             'TimeUS,C,SV,SP,SH,SM,SVT,errRP,OFN,OFE,FS,TS,SS,GPS,PI',
             's#------mm-----', 'F-------??-----'),
    'XKV2': (143, 'QBffffffffffff',
             'TimeUS,C,V12,V13,V14,V15,V16,V17,V18,V19,V20,V21,V22,V23',
             's#------------', 'F-------------'),
}


class DataflashWriter:
    """Collects records and gives the bytes of the log."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.record_ends: list[int] = []
        self._size = 0
        for name, (number, layout, columns, _, _) in {
                'FMT': (128, 'BBnNZ', 'Type,Length,Name,Format,Columns', '', ''),
                **FORMATS}.items():
            size = 3 + sum(struct.calcsize(f'<{_PACKING[one][0]}') for one in layout)
            self._write(128, 'BBnNZ', (number, size, name, layout, columns))
        for mark, label in (('s', 's'), ('#', 'instance'), ('n', 'm/s'), ('m', 'm')):
            self.add('UNIT', 0.0, Id=ord(mark), Label=label)
        for mark, factor in (('F', 1e-6), ('B', 1e-2), ('0', 1.0), ('C', 1e-3), ('G', 1e-7)):
            self.add('MULT', 0.0, Id=ord(mark), Mult=factor)
        for number, _, _, units, multipliers in FORMATS.values():
            self.add('FMTU', 0.0, FmtType=number, UnitIds=units, MultIds=multipliers)

    def add(self, kind: str, t: float, **fields: Any) -> None:
        """Add one record at ``t`` s; fields that are not given are zero."""
        number, layout, columns, _, _ = FORMATS[kind]
        values = [round(t * 1e6) if name == 'TimeUS' else fields.pop(name, 0)
                  for name in columns.split(',')]
        assert not fields, f'{kind} has no {sorted(fields)}'
        self._write(number, layout, values)

    def _write(self, number: int, layout: str, values: Sequence[Any]) -> None:
        packed = []
        for one, value in zip(layout, values, strict=True):
            scale = _PACKING[one][1]
            if scale is None:
                packed.append(str(value).encode() if value else b'')
            else:
                packed.append(round(value * scale) if scale != 1 else value)
        body = struct.pack('<' + ''.join(_PACKING[one][0] for one in layout), *packed)
        record = _HEAD + bytes((number,)) + body
        self._parts.append(record)
        self._size += len(record)
        self.record_ends.append(self._size)

    def to_bytes(self) -> bytes:
        return b''.join(self._parts)

    def save(self, path: Path) -> Path:
        path.write_bytes(self.to_bytes())
        return path


def write_flight(name: str, path: Path, *, core: int = 0, arming: bool = True,
                 parameters: bool = True, wind_records: float = 10.0) -> Path:
    """Write the onboard log of a recorded flight as far as its truth tells it.

    Variances and estimates are the logged ones. The innovations change while EKF3 estimates or
    coasts and are frozen while it is inhibited, as they were (by that the truth was told apart).

    Parameters
    ----------
    name : str
        Flight under test/data/ekf.
    core : int
        EKF3 core in use; another one is logged beside it, with a wind of 99 m/s.
    arming : bool
        Write the ARM records.
    parameters : bool
        Write SIM_WIND_* as they were set in the flight.
    wind_records : float
        Rate of XKF2 and XKF3, Hz.
    """
    log = DataflashWriter()
    rows = flights.truth_table(name)
    times = [float(row['t_boot_s']) for row in rows]
    records: list[tuple[float, str, dict[str, Any]]] = [
        (1.0, 'MSG', {'Message': 'ArduPilot V4.7.0-dev'}),
        (1.0, 'PARM', {'Name': 'LOG_DISARMED', 'Value': 1.0})]
    armed = False
    for t, row in zip(times, rows, strict=True):
        records.append((t, 'XKV2', {'C': core, 'V22': float(row['V22']), 'V23': float(row['V23'])}))
        records.append((t, 'IMU', {'I': 0, 'GyrX': t}))
        if arming and armed != (row['phase'] != 'ground'):
            armed = not armed
            records.append((t - 0.1, 'ARM', {'ArmState': int(armed)}))
            records.append((t - 0.1, 'EV', {'Id': 10 if armed else 11}))
    at, moved = 0, 0
    grid = [times[0] - 0.3 + i / wind_records
            for i in range(int((times[-1] - times[0] + 0.8) * wind_records))]
    for t in sorted({*grid, *times}):
        while at + 1 < len(times) and times[at + 1] <= t + 1e-9:
            at += 1
        row = rows[at]
        after = rows[min(at + 1, len(rows) - 1)]
        if row['phase'] not in ('ground', 'inhibited') \
                and after['phase'] not in ('ground', 'inhibited'):
            moved += 1
        wind = {'VWN': float(row['VWN']), 'VWE': float(row['VWE'])}
        records.append((t, 'XKF2', {'C': core, **wind, 'IS': 0.001 * moved}))
        records.append((t, 'XKF2', {'C': 1 - core, 'VWN': 70.0, 'VWE': 70.0, 'IS': t}))
        records.append((t, 'XKF3', {'C': core}))
        records.append((t, 'XKF4', {'C': core, 'PI': core}))
    if parameters:
        clock = 0.0
        for _, heard in flights.messages(name):
            clock = max(clock, getattr(heard, 'time_boot_ms', 0) * 1e-3)
            if heard.get_type() == 'PARAM_VALUE' and heard.param_id.startswith('SIM_WIND'):
                records.append((clock, 'PARM', {'Name': heard.param_id,
                                                'Value': heard.param_value}))
    for t, kind, fields in sorted(records, key=lambda one: one[0]):
        log.add(kind, t, **fields)
    return log.save(path)
