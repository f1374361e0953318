"""EKF3's wind from onboard logs, and the command line that shows it."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import functools
import gzip
import io
import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import ekf_flights as flights
from support.dataflash import DataflashWriter, write_flight

from dryden_wind_ros.ekf.phase import WindPhase
from dryden_wind_ros.logs.ekf_wind import phases_from_variance
from dryden_wind_ros.logs.flight import RecordError
from dryden_wind_ros.logs.reader import read_log
from dryden_wind_ros.logs.tlog import MESSAGES, TlogReader
from dryden_wind_ros.tools import ekf_replay, ekf_wind_log


def read_wind_log(path, progress=None):
    """Return EKF3's wind of the only flight of a log, with the notes on the file."""
    flight, = read_log(path, progress)
    if flight.wind_log is None:
        raise RecordError(f'{path}: {flight.no_ekf}')
    return dataclasses.replace(flight.wind_log, notes=flight.notes)


@pytest.fixture(scope='module')
def plane_bin(tmp_path_factory):
    return write_flight('plane_tas', tmp_path_factory.mktemp('log') / 'plane.BIN')


@pytest.fixture(scope='module')
def plane(plane_bin):
    return read_wind_log(plane_bin)


@pytest.fixture(scope='module')
def small_bin(tmp_path_factory):
    return write_flight('plane_crosswind_takeoff', tmp_path_factory.mktemp('log') / 'small.BIN',
                        parameters=False)


@pytest.fixture(scope='module')
def shown(plane_bin, tmp_path_factory):
    """What the command line prints and writes of the plane's log: text, CSV rows, picture."""
    folder = tmp_path_factory.mktemp('out')
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert ekf_wind_log.main([str(plane_bin), '--csv', str(folder / 'out.csv'),
                                  '--plot', str(folder / 'out.png')]) == 0
    with open(folder / 'out.csv', newline='') as file:
        rows = list(csv.DictReader(file))
    return printed.getvalue(), rows, (folder / 'out.png').read_bytes()


def names(log):
    return [phase.name.lower() for phase in log.phase]


# -- phases from a dataflash log -------------------------------------------------------------------

def assert_true_phases(log, name):
    assert names(log) == [phase for _, phase in flights.truth(name)]
    assert log.t.tolist() == pytest.approx([t for t, _ in flights.truth(name)], abs=1e-6)


def test_every_row_has_the_true_phase(plane):
    assert_true_phases(plane, 'plane_tas')


@pytest.mark.parametrize(('name', 'core'), [('copter_drag', 0), ('copter_nodrag', 0),
                                            ('plane_no_tas', 0), ('quadplane', 1)])
def test_every_row_has_the_true_phase_in_other_vehicles(name, core, tmp_path):
    log = read_wind_log(write_flight(name, tmp_path / 'f.BIN', core=core, parameters=False))
    assert_true_phases(log, name)


def test_estimate_is_that_of_the_core_in_use(plane):
    rows = flights.truth_table('plane_tas')
    for row, north, east in zip(rows, plane.wind_n, plane.wind_e, strict=True):
        if row['phase'] in ('ground', 'inhibited'):
            assert math.isnan(north)
            assert math.isnan(east)
        else:
            assert north == pytest.approx(float(row['VWN']), abs=0.006)
            assert east == pytest.approx(float(row['VWE']), abs=0.006)
    assert plane.variance_n.tolist() == pytest.approx([float(r['V22']) for r in rows], rel=1e-6)


def test_tiny_and_negative_variances_are_a_coast_while_innovations_change():
    # A copter's V22 alternates between 0 and -1e-8 while it coasts.
    variance = [0.0, 1.8, 0.3, 0.2, -1e-8, 0.0, -1e-8, 0.4, 0.2]
    phases = phases_from_variance([0.5 * i for i in range(9)], variance, [True] * 9,
                                  [False] + [True] * 8)
    assert [phase.name for phase in phases] == [
        'INHIBITED', 'INIT', 'INIT', 'LEARNING', 'COAST', 'COAST', 'COAST', 'RELEARN', 'LEARNING']


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-1e-6, 400.0), st.booleans(), st.booleans()), max_size=60))
def test_relearn_ends_below_1_or_after_20_s(rows):
    times = [0.5 * i for i in range(len(rows))]
    phases = phases_from_variance(times, [r[0] for r in rows], [r[1] for r in rows],
                                  [r[2] for r in rows])
    assert len(phases) == len(rows)
    for at, phase in enumerate(phases):
        if phase is WindPhase.RELEARN and phases[at - 1] is WindPhase.RELEARN:
            assert rows[at][0] >= 1.0
        if phase is WindPhase.RELEARN:
            begin = max(i for i in range(at + 1) if phases[i - 1] is WindPhase.COAST)
            assert times[at] - times[begin] < 20.0
        assert phase in (WindPhase.GROUND, WindPhase.INHIBITED, WindPhase.COAST) or \
            rows[at][0] > 1e-6


def test_log_without_arming_says_so(tmp_path):
    log = read_wind_log(write_flight('copter_nodrag', tmp_path / 'f.BIN', arming=False,
                                     parameters=False))
    assert set(log.phase) == {WindPhase.GROUND}
    assert any('arming' in note for note in log.notes)


def short_log(*armings):
    """A log of two flights, 1000 s apart, without LOG_DISARMED in between."""
    writer = DataflashWriter()
    for t, text in armings:
        writer.add('MSG', t, Message=text)
    for begin in (20.0, 1050.0):
        for step in range(120):
            t = begin + 0.5 * step
            flies = step > 10
            writer.add('XKF2', t - 0.1, VWN=3.0, VWE=4.0, IS=0.01 * step if flies else 0.0)
            writer.add('XKV2', t, V22=0.5 if flies else 0.0, V23=0.5 if flies else 0.0)
    return writer


def test_arming_that_only_a_text_tells(tmp_path):
    path = short_log((21.0, 'Arming motors'), (79.9, 'Disarming motors'),
                     (1051.0, 'Arming motors')).save(tmp_path / 'f.BIN')
    log = read_wind_log(path)
    found = [(span.phase, span.start, span.end) for span in log.spans()]
    assert found[:4] == [(WindPhase.GROUND, 20.0, 21.0), (WindPhase.INHIBITED, 21.0, 25.5),
                         (WindPhase.INIT, 25.5, 26.5), (WindPhase.LEARNING, 26.5, 79.5)]
    assert not any('arming' in note for note in log.notes)


def test_a_phase_does_not_last_over_a_pause_of_the_log(tmp_path):
    spans = read_wind_log(short_log().save(tmp_path / 'f.BIN')).spans()
    assert all(span.end - span.start < 60.0 for span in spans)
    assert (WindPhase.LEARNING, 26.5, 79.5) in [(one.phase, one.start, one.end) for one in spans]
    assert spans[-1].end == pytest.approx(1109.5)


def test_slow_logging_of_the_innovations(tmp_path):
    log = read_wind_log(write_flight('plane_no_tas', tmp_path / 'f.BIN', parameters=False,
                                     wind_records=2.5))
    wrong = sum(a != b for a, (_, b) in zip(names(log), flights.truth('plane_no_tas'),
                                            strict=True))
    assert wrong <= 4


# -- the wind flown --------------------------------------------------------------------------------

def test_wind_flown_is_the_wind_that_was_set(plane):
    # SIM_WIND_TC 0.1 is a time constant of 16 ms: what was set at 20 Hz is what was flown.
    set_at = []
    speed = direction = tilt = math.nan
    clock = 0.0
    for _, heard in flights.messages('plane_tas'):
        clock = max(clock, getattr(heard, 'time_boot_ms', 0) * 1e-3)
        if heard.get_type() == 'PARAM_VALUE':
            if heard.param_id == 'SIM_WIND_SPD':
                speed = heard.param_value
            elif heard.param_id == 'SIM_WIND_DIR':
                direction = heard.param_value
            elif heard.param_id == 'SIM_WIND_DIR_Z':
                tilt = heard.param_value
            set_at.append((clock, speed, direction, tilt))
    times = [one[0] for one in set_at]
    compared = 0
    for t, north, east in zip(plane.t, plane.flown_n, plane.flown_e, strict=True):
        if t < 30.0:
            continue
        _, spd, from_deg, up = set_at[int(np.searchsorted(times, t - 0.03)) - 1]
        level = spd * math.cos(math.radians(up))
        assert north == pytest.approx(-level * math.cos(math.radians(from_deg)), abs=1.0)
        assert east == pytest.approx(-level * math.sin(math.radians(from_deg)), abs=1.0)
        compared += 1
    assert compared > 400


def test_flight_outside_sitl_has_no_flown_wind(tmp_path, capsys):
    path = write_flight('copter_nodrag', tmp_path / 'f.BIN', parameters=False)
    assert np.isnan(read_wind_log(path).flown_n).all()
    assert ekf_wind_log.main([str(path)]) == 0
    assert 'not known' in capsys.readouterr().out


# -- files that are not as they should be ----------------------------------------------------------

def test_log_cut_off_in_a_record(small_bin, tmp_path):
    whole = flights.truth('plane_crosswind_takeoff')
    data = small_bin.read_bytes()
    path = tmp_path / 'cut.BIN'
    path.write_bytes(data[:len(data) * 3 // 4 + 1])
    log = read_wind_log(path)
    assert any('cut off' in note for note in log.notes)
    assert 0.6 * len(whole) < len(log.t) < 0.8 * len(whole)
    assert names(log)[:-1] == [phase for _, phase in whole][:len(log.t) - 1]


def test_log_with_rubbish_in_the_middle(small_bin, tmp_path):
    data = small_bin.read_bytes()
    half = len(data) // 2
    path = tmp_path / 'rubbish.BIN'
    path.write_bytes(data[:half] + b'\x00' * 1000 + data[half + 1000:])
    log = read_wind_log(path)
    assert len(log.t) > 0.9 * len(flights.truth('plane_crosswind_takeoff'))
    assert log.notes


@pytest.mark.parametrize(('content', 'word'), [
    (b'', 'empty'),
    (b'\xa3\x95', 'dataflash'),
    (b'\xa3\x95\x80' + bytes(40), 'dataflash'),
    (b'just a text, ' * 1000, 'no MAVLink messages'),
    (b'short', 'no MAVLink messages'),
    (os.urandom(5000).replace(b'\xfd', b'\x00').replace(b'\xfe', b'\x00'), 'no MAVLink messages'),
    (gzip.compress(b'hello ' * 5000), 'no MAVLink messages'),
    (b'\x1f\x8b\x08 not really gzip', 'gzip'),
], ids=['empty', 'head', 'truncated format', 'text', 'short', 'random', 'gzip of text', 'no gzip'])
def test_foreign_file(content, word, tmp_path, capsys):
    path = tmp_path / 'flight.BIN'
    path.write_bytes(content)
    with pytest.raises(RecordError, match=word) as caught:
        read_wind_log(path)
    assert str(path) in str(caught.value)
    assert ekf_wind_log.main([str(path)]) == 1
    said = capsys.readouterr()
    assert said.out == ''
    assert said.err.count('\n') == 1


def test_log_without_ekf3_says_what_it_has(tmp_path):
    log = DataflashWriter()
    log.add('IMU', 1.0, I=0, GyrX=0.1)
    log.add('XKF2', 1.0, C=0)
    path = log.save(tmp_path / 'f.BIN')
    with pytest.raises(RecordError, match=r'XKV2.*EK3_LOG_LEVEL 0'):
        read_wind_log(path)


def test_missing_file(tmp_path):
    with pytest.raises(RecordError, match='No such file'):
        read_wind_log(tmp_path / 'nowhere.BIN')


def test_telemetry_log_cut_off(tmp_path):
    whole = flights.tlog_path('plane_no_tas').read_bytes()
    path = tmp_path / 'cut.tlog.gz'
    path.write_bytes(whole[:len(whole) // 2])
    log = read_wind_log(path)
    assert any('cut off' in note for note in log.notes)
    assert WindPhase.LEARNING in log.phase
    plain = gzip.decompress(whole)
    path = tmp_path / 'cut.tlog'
    path.write_bytes(plain[:len(plain) // 2 + 5])
    reader = TlogReader(path)
    assert len(list(reader)) == reader.messages > 5000
    assert 'cut off' in reader.problem


def test_telemetry_log_with_rubbish_in_the_middle(tmp_path):
    plain = gzip.decompress(flights.tlog_path('plane_no_tas').read_bytes())
    path = tmp_path / 'rubbish.tlog'
    path.write_bytes(plain[:200_000] + b'\x00' * 777 + plain[200_000:])
    reader = TlogReader(path)
    whole = len(flights.messages('plane_no_tas'))
    assert whole - 60 <= len(list(reader)) <= whole
    assert reader.bad_bytes >= 700


@functools.cache
def plain_tlog():
    return gzip.decompress(flights.tlog_path('plane_no_tas').read_bytes())[:20_000]


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 19_999), st.integers(0, 255)), max_size=40),
       st.integers(0, 20_000), st.integers(0, 20_000))
def test_damaged_telemetry_log_gives_what_is_whole(tmp_path_factory, changes, cut_from, cut_to):
    data = bytearray(plain_tlog())
    for at, value in changes:
        data[at] = value
    if cut_from < cut_to:
        del data[cut_from:cut_to]
    path = tmp_path_factory.mktemp('damaged') / 'f.tlog'
    path.write_bytes(data)
    reader = TlogReader(path)
    whole = {bytes(heard.get_msgbuf()) for _, heard in flights.messages('plane_no_tas')[:1500]}
    try:
        heard = [bytes(one.get_msgbuf()) for _, one in reader]
    except RecordError:
        assert len(changes) > 5 or cut_to - cut_from > 15_000
        return
    assert whole.issuperset(heard)


@pytest.mark.parametrize('start', [b'\x89PNG\r\n', b'PK\x03\x04', b'ID3'])
def test_other_binary_files_are_no_telemetry(start, tmp_path):
    path = tmp_path / 'file'
    path.write_bytes(start + random.Random(1).randbytes(20_000))
    with pytest.raises(RecordError, match='no MAVLink'):
        list(TlogReader(path, MESSAGES))


# -- the command lines -----------------------------------------------------------------------------

def test_table_says_each_phase_with_its_error(shown):
    lines = [line.split() for line in shown[0].splitlines() if line.strip()]
    seen = [line[0] for line in lines if line[0] in (
        'ground', 'inhibited', 'init', 'learning', 'coast', 'relearn')]
    assert seen == ['ground', 'inhibited', 'init', 'learning', 'coast', 'relearn', 'learning',
                    'coast', 'relearn', 'learning', 'ground']
    coast = next(line for line in lines if line[0] == 'coast')
    assert float(coast[1]) == pytest.approx(141.6, abs=0.1)
    assert float(coast[2]) == pytest.approx(143.2, abs=0.1)


def test_csv_of_a_dataflash_log(shown, plane):
    rows = shown[1]
    assert tuple(rows[0]) == ekf_wind_log.COLUMNS
    assert [row['phase'] for row in rows] == names(plane)
    row = next(row for row in rows if row['phase'] == 'learning')
    error = math.hypot(float(row['wind_n']) - float(row['flown_n']),
                       float(row['wind_e']) - float(row['flown_e']))
    assert float(row['error_speed']) == pytest.approx(error, abs=0.01)
    assert -180.0 < float(row['error_direction']) <= 180.0
    assert float(row['variance_n']) > 0.0


def test_telemetry_log_gives_the_same_flight(plane):
    log = read_wind_log(flights.tlog_path('plane_tas'))
    by_telemetry = [(span.phase, span.start) for span in log.spans()]
    by_dataflash = [(span.phase, span.start) for span in plane.spans()]
    assert [one[0] for one in by_telemetry] == [one[0] for one in by_dataflash]
    assert [one[1] for one in by_telemetry] == pytest.approx([one[1] for one in by_dataflash],
                                                             abs=0.7)
    assert log.settled is not None
    # The same wind flown, whichever log it was rebuilt from.
    for span, other in zip(log.spans()[3:], plane.spans()[3:], strict=True):
        if span.end - span.start > 10.0:
            assert span.flown_n == pytest.approx(other.flown_n, abs=0.2)
            assert span.flown_e == pytest.approx(other.flown_e, abs=0.2)


def test_picture(shown):
    assert shown[2].startswith(b'\x89PNG')
    assert len(shown[2]) > 20_000


def test_places_that_cannot_be_written(small_bin, tmp_path, capsys):
    assert ekf_wind_log.main([str(small_bin), '--csv', str(tmp_path / 'no' / 'out.csv')]) == 1
    assert 'No such file' in capsys.readouterr().err
    assert ekf_wind_log.main([str(small_bin), '--plot', str(tmp_path / 'out.nonsense')]) == 1
    assert 'nonsense' in capsys.readouterr().err


def test_progress_goes_from_0_to_1(small_bin):
    for path in (small_bin, flights.tlog_path('plane_tas')):
        seen = []
        read_wind_log(path, seen.append)
        assert seen == sorted(seen)
        assert len(seen) >= 3
        assert seen[0] >= 0.0
        assert seen[-1] == pytest.approx(1.0, abs=0.1)


def test_replay_as_a_module_writes_a_row_for_each_report(tmp_path):
    out = tmp_path / 'out.csv'
    path = flights.tlog_path('plane_no_tas')
    with gzip.open(flights.DATA / 'plane_no_tas.truth.csv.gz', 'rb') as file:
        (tmp_path / 'truth.csv').write_bytes(file.read())
    done = subprocess.run(
        [sys.executable, '-m', 'dryden_wind_ros.tools.ekf_replay', str(path), '--csv', str(out),
         '--truth', str(tmp_path / 'truth.csv'), '--mean-wind', '8', '300'],
        capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert 'agreement' in done.stdout
    assert 'start of relearn' in done.stdout
    with open(out, newline='') as file:
        rows = list(csv.reader(file))
    assert rows[0] == ['t_boot_s', 'phase', 'wind_n', 'wind_e', 'settled']
    reports = [heard for _, heard in flights.messages('plane_no_tas')
               if heard.get_type() == 'EKF_STATUS_REPORT']
    assert len(rows) - 1 == len(reports)
    assert {row[1] for row in rows[1:]} <= {'ground', 'inhibited', 'init', 'learning', 'coast',
                                            'relearn'}
    assert {row[4] for row in rows[1:]} == {'0', '1'}
    assert all(math.isfinite(float(row[0])) for row in rows[1:])


def test_replay_of_a_copter_without_drag_fusion_says_what_its_log_says():
    rows = list(ekf_replay.replay(flights.messages('copter_nodrag')))
    assert {row.phase for row in rows} == {'ground', 'inhibited'}
    assert all(math.isnan(row.wind_n) for row in rows)


def test_replay_of_a_file_without_reports(tmp_path, capsys):
    path = tmp_path / 'f.tlog'
    packed = b''
    for t, heard in flights.messages('plane_no_tas')[:300]:
        if heard.get_type() == 'HEARTBEAT':
            packed += round(t * 1e6).to_bytes(8, 'big') + bytes(heard.get_msgbuf())
    path.write_bytes(packed)
    assert ekf_replay.main([str(path)]) == 1
    assert 'EKF_STATUS_REPORT' in capsys.readouterr().err
    with pytest.raises(RecordError, match='EKF_STATUS_REPORT'):
        read_wind_log(path)
