"""Part `logs`: how fast logs are read, against reading their bytes and against pymavlink."""

from __future__ import annotations

import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pymavlink import DFReader, mavutil

from dryden_wind_ros.logs.reader import read_flights
from dryden_wind_ros.tools.bench_parts.phase import telemetry
from dryden_wind_ros.tools.bench_parts.stage import Bench
from dryden_wind_ros.tools.bench_parts.table import Row, ratio_row

# Name: number, format, columns, how many a second. Much of a log is of the inertial sensors.
_RECORDS: dict[str, tuple[int, str, str, int]] = {
    'IMU': (10, 'QBIffffffIIfBBHH', 'TimeUS,I,T,a,b,c,d,e,f,EG,EA,Te,GH,AH,GHz,AHz', 400),
    'ATT': (11, 'QccccCCCCB', 'TimeUS,DR,R,DP,P,DY,Y,ER,EY,A', 100),
    'POS': (12, 'QLLfff', 'TimeUS,Lat,Lng,Alt,RelHomeAlt,RelOriginAlt', 25),
    'ARSP': (13, 'QBffffB', 'TimeUS,I,Airspeed,DP,T,Raw,U', 10),
    'PARM': (14, 'QNff', 'TimeUS,Name,Value,Default', 60),
    'XKF1': (15, 'QBccCfffffffccce', 'TimeUS,C,R,P,Y,VN,VE,VD,dPD,PN,PE,PD,GX,GY,GZ,OH', 50),
    'XKF2': (16, 'QBccccchhhhhhfff',
             'TimeUS,C,AX,AY,AZ,VWN,VWE,MN,ME,MD,MX,MY,MZ,IDX,IDY,IS', 50),
    'XKF3': (17, 'QBcccccchhhccff',
             'TimeUS,C,IVN,IVE,IVD,IPN,IPE,IPD,IMX,IMY,IMZ,IYAW,IVT,RErr,ErSc', 50),
    'XKV2': (18, 'QBffffffffffff', 'TimeUS,C,V12,V13,V14,V15,V16,V17,V18,V19,V20,V21,V22,V23', 2)}
_CODES = {'c': 'h', 'C': 'H', 'e': 'i', 'L': 'i', 'n': '4s', 'N': '16s', 'Z': '64s'}


def _packing(layout: str) -> struct.Struct:
    return struct.Struct('<' + ''.join(_CODES.get(one, one) for one in layout))


def _head() -> bytes:
    fmt = _packing('BBnNZ')
    rows = {'FMT': (128, 'BBnNZ', 'Type,Length,Name,Format,Columns', 0), **_RECORDS}
    return b''.join(
        b'\xa3\x95\x80' + fmt.pack(number, 3 + _packing(layout).size, name.encode(),
                                   layout.encode(), columns.encode())
        for name, (number, layout, columns, _) in rows.items())


def _second() -> tuple[bytes, list[int], list[int]]:
    """Return the records of a second, where their times are, and the times, us."""
    due = sorted((at / rate, name) for name, (_, _, _, rate) in _RECORDS.items()
                 for at in range(rate))
    out, places, when = bytearray(), [], []
    for count, (t, name) in enumerate(due):
        number, layout, columns, _ = _RECORDS[name]
        packing = _packing(layout)
        values: list[object] = []
        for one, column in zip(layout, columns.split(','), strict=True):
            if one == 'N':
                values.append((b'SIM_WIND_SPD', b'SIM_WIND_DIR', b'SIM_WIND_DIR_Z')[count % 3])
            elif one in 'fd':
                values.append(0.5 if column.startswith('V2') else 0.01 * (count % 700))
            else:
                values.append(0 if column in ('C', 'I', 'TimeUS') else count % 200)
        places.append(len(out) + 3)
        when.append(round(t * 1e6))
        out += bytes((0xA3, 0x95, number)) + packing.pack(*values)
    return bytes(out), places, when


def write_dataflash(path: Path, size: int) -> Path:
    """Write a log of about `size` bytes: the records of one second again and again."""
    second, places, when = _second()
    part = np.frombuffer(second, dtype=np.uint8)
    at = np.array(places)[:, None] + np.arange(8)
    with open(path, 'wb') as file:
        file.write(_head())
        for number in range(max(20, size // len(second))):
            now = part.copy()
            times = np.array(when, dtype='<u8') + np.uint64((number + 1) * 1_000_000)
            now[at] = times.view(np.uint8).reshape(-1, 8)
            file.write(now.tobytes())
    return path


def write_tlog(path: Path, size: int, seconds: float = 60.0) -> Path:
    """Write a telemetry log of about `size` bytes: starts of a plane, one behind the other."""
    frames = telemetry(seconds)
    with open(path, 'wb') as file:
        while file.tell() < size:
            for count, frame in enumerate(frames):
                file.write((1_700_000_000_000_000 + count).to_bytes(8, 'big') + frame)
    return path


def run_logs(bench: Bench) -> list[Row]:
    """Compare with reading the bytes and with pymavlink's own readers, in turns."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix='bench-logs-') as folder:
        size = 600_000 if bench.quick else 60_000_000
        bench.tell(f'logs: writing {size / 1e6:.0f} MB of each')
        flash = write_dataflash(Path(folder) / 'f.BIN', size)
        radio = write_tlog(Path(folder) / 'f.tlog', size // 4, bench.seconds(60.0))
        for path, what, other in ((flash, 'dataflash log', _with_dfreader),
                                  (radio, 'telemetry log', _with_mavutil)):
            rows += _compare(bench, path, what, other)
    return rows


def _compare(bench: Bench, path: Path, what: str, other: Callable[[Path], object]) -> list[Row]:
    ours, bare, theirs = [], [], []
    for turn in range(bench.repeats(3)):
        bench.tell(f'logs: {what}, turn {turn + 1}')
        bare.append(_seconds(lambda: path.read_bytes()))
        ours.append(_seconds(lambda: read_flights(path)))
        theirs.append(_seconds(lambda: other(path)))
    speed = path.stat().st_size / 1e6 / sorted(ours)[len(ours) // 2]
    name = f'reading the flights of a {what}'
    return [
        ratio_row('logs', name, 'reading its bytes',
                  [a / b for a, b in zip(ours, bare, strict=True)], note=f'{speed:.0f} MB/s'),
        ratio_row('logs', name, "pymavlink's reader",
                  [a / b for a, b in zip(ours, theirs, strict=True)], note=f'{speed:.0f} MB/s')]


def _seconds(what: Callable[[], object]) -> float:
    start = time.perf_counter()
    what()
    return time.perf_counter() - start


def _with_dfreader(path: Path) -> None:
    reader = DFReader.DFReader_binary(str(path))
    while reader.recv_match(type=['PARM', 'POS', 'ARSP', 'XKF2', 'XKF3', 'XKV2']) is not None:
        pass
    reader.close()


def _with_mavutil(path: Path) -> None:
    reader = mavutil.mavlink_connection(str(path))
    while reader.recv_match() is not None:
        pass
