"""Reading recorded flights: the right numbers of whole files, and honest ones of damaged files."""

from __future__ import annotations

import copy
import functools
import gzip
import io
import os
import random
import shutil
import sqlite3
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pymavlink import DFReader
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support import ekf_flights as flights
from support.bags import AirSettings, ekf_winds, fly, write_bag
from support.dataflash import DataflashWriter, write_flight

from dryden_wind_ros.logs import air, mcap, times
from dryden_wind_ros.logs.bag import read_bag
from dryden_wind_ros.logs.dataflash import read_dataflash
from dryden_wind_ros.logs.flight import RecordError
from dryden_wind_ros.logs.reader import read_flights
from dryden_wind_ros.tools import command_line, ekf_replay, ekf_wind_log, wind_report

DATA = Path(__file__).parent / 'data' / 'logs'
BREEZE = AirSettings(mean_speed=8.0, mean_from_deg=270.0, seed=7)
RECORD = 43  # bytes of a PARM record: head, QNff
XKV2_BYTES = 3 + 8 + 1 + 12 * 4


def notes_of(flight) -> str:
    return '\n'.join(flight.notes)


def spans_of(flight) -> list[tuple[str, float]]:
    return [(span.phase.name.lower(), round(span.start, 1)) for span in flight.wind_log.spans()]


@pytest.fixture(scope='module')
def plane_bin(tmp_path_factory) -> Path:
    return write_flight('plane_tas', tmp_path_factory.mktemp('log') / 'plane.BIN')


@pytest.fixture(scope='module')
def plane(plane_bin):
    return read_flights(plane_bin)[0]


@pytest.fixture(scope='module')
def real_bin(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp('real') / 'real.BIN'
    path.write_bytes(gzip.decompress((DATA / 'plane_gps_loss.BIN.gz').read_bytes()))
    return path


@functools.cache
def real_flight(path: Path):
    return read_flights(path)[0]


def places_of(data: bytes, wanted: bytes) -> list[int]:
    """Return where the records begin that hold a text, by walking the log."""
    lengths, found, at = {128: 89}, [], 0
    while at < len(data):
        if data[at + 2] == 128:
            lengths[data[at + 3]] = data[at + 4]
        end = at + lengths[data[at + 2]]
        if wanted in data[at:end]:
            found.append(at)
        at = end
    return found


def xkv2_of(data: bytes) -> int:
    """Return the number that stands for XKV2 in a log."""
    at = next(at for at in places_of(data, b'XKV2') if data[at + 2] == 128)
    return data[at + 3]


# -- dataflash logs --------------------------------------------------------------------------------

def test_a_real_log_has_the_phases_it_was_flown_with(real_bin):
    flight, = read_flights(real_bin)

    # GPS was off from 94.8 to 129.8 s (README.md of the data).
    assert spans_of(flight)[-3:] == [('coast', 102.1), ('relearn', 130.2), ('learning', 131.7)]
    after = flight.air.t > 42.0
    assert 4.0 < np.mean(flight.air.sim_wind[0][after]) < 8.0  # mean wind 6 m/s


def test_records_are_those_that_pymavlink_reads(real_bin):
    found = read_dataflash(real_bin, {'POS': ('RelHomeAlt', 'Lat'), 'XKF2': ('C', 'VWN', 'IDX')})

    reader = DFReader.DFReader_binary(str(real_bin))
    rows: dict[str, list] = {'POS': [], 'XKF2': []}
    while (record := reader.recv_match(type=list(rows))) is not None:
        rows[record.get_type()].append(record)
    for name, columns in (('POS', ('RelHomeAlt', 'Lat')), ('XKF2', ('C', 'VWN', 'IDX'))):
        table = found.tables[name]
        assert table.t.tolist() == [r.TimeUS * 1e-6 for r in rows[name]]
        for column in columns:
            assert table.columns[column].tolist() == pytest.approx(
                [getattr(r, column) for r in rows[name]], rel=1e-12)
    assert found.counts == {name: reader.counts[number]
                            for name, number in reader.name_to_id.items() if reader.counts[number]}


def test_an_unknown_type_costs_one_record_and_is_said(plane_bin, plane, tmp_path):
    data = bytearray(plane_bin.read_bytes())
    data[places_of(data, b'SIM_WIND_DIR\0')[2000] + 2] = 200
    (tmp_path / 'f.BIN').write_bytes(data)

    flight, = read_flights(tmp_path / 'f.BIN')

    assert len(flight.air) == len(plane.air) == 5116
    assert spans_of(flight) == spans_of(plane)
    assert f'{3 + 8 + 16 + 8} bytes in 1 place' in notes_of(flight)
    assert 'at least 1 record is lost' in notes_of(flight)


@pytest.mark.parametrize(('record', 'bit'), [(b'SIM_WIND_SPD', 43), (b'SIM_WIND_SPD', 23),
                                             (None, 43), (None, 62)])
def test_a_wrong_time_is_left_out_and_counted(plane_bin, plane, tmp_path, record, bit):
    data = bytearray(plane_bin.read_bytes())
    if record is None:
        at = [one for one in places_of(data, b'') if data[one + 2] == 143][200]  # XKV2
    else:
        at = places_of(data, record)[1500]
    data[at + 3 + bit // 8] ^= 1 << bit % 8
    (tmp_path / 'f.BIN').write_bytes(data)

    flight, = read_flights(tmp_path / 'f.BIN')

    assert len(flight.air) == 5116
    assert flight.air.t[-1] - flight.air.t[0] == pytest.approx(255.75)
    assert [name for name, _ in spans_of(flight)] == [name for name, _ in spans_of(plane)]
    assert '1 record with a time that those around them do not support left out' in notes_of(flight)


def damaged(data: bytes, kind: str, draw: random.Random, share: float) -> tuple[bytes, int]:
    """Return a log with a share of it damaged in one of several ways; how many XKV2 are gone."""
    out = bytearray(data)
    size = int(share * len(out))
    at = draw.randrange(20_000, len(out) - size)  # the formats stay
    if kind == 'zeros':
        out[at:at + size] = bytes(size)
    elif kind == 'random':
        out[at:at + size] = draw.randbytes(size)
    elif kind == 'missing':
        del out[at:at + size]
    elif kind == 'cut':
        del out[len(out) - size:]
    elif kind == 'flips':
        for _ in range(max(1, size // 2000)):
            out[draw.randrange(20_000, len(out))] ^= 1 << draw.randrange(8)
    elif kind == 'times':
        for place in draw.sample(places_of(data, b'')[1000:], 30):
            out[place + 3 + draw.randrange(8)] ^= 1 << draw.randrange(8)
    elif kind == 'shuffled':
        places = places_of(data, b'')
        begin = draw.randrange(1000, len(places) - 400)
        chosen = places[begin:begin + 300]
        parts = [data[one:after] for one, after in zip(chosen, places[begin + 1:begin + 301],
                                                       strict=True)]
        draw.shuffle(parts)
        out[chosen[0]:places[begin + 300]] = b''.join(parts)
    begin = len(data) - size if kind == 'cut' else at
    number = xkv2_of(data)
    gone = sum(data[place + 2] == number and begin < place + XKV2_BYTES and place < begin + size
               for place in places_of(data, b''))
    return bytes(out), gone


@settings(deadline=None, max_examples=14,
          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(kind=st.sampled_from(['zeros', 'random', 'missing', 'cut', 'flips', 'times', 'shuffled']),
       seed=st.integers(0, 10**6), share=st.floats(0.001, 0.3))
@example(kind='zeros', seed=336, share=0.25)  # a quarter of the bytes, a third of the records
def test_damage_of_any_kind_leaves_the_rest_and_is_said(real_bin, tmp_path, kind, seed, share):
    data, gone = damaged(real_bin.read_bytes(), kind, random.Random(seed), share)
    (tmp_path / 'f.BIN').write_bytes(data)
    whole = real_flight(real_bin)

    found = read_flights(tmp_path / 'f.BIN')

    assert len(found) == 1
    flight, = found
    assert whole.air.t[0] - 0.6 < flight.air.t[0]
    assert flight.air.t[-1] < whole.air.t[-1] + 0.6
    assert (np.diff(flight.ekf.t) >= 0.0).all()
    if kind in ('times', 'flips', 'shuffled'):
        assert len(flight.ekf) > 0.9 * len(whole.ekf)
    else:
        # What is left is read; random bytes may happen to look like a record, and hide the next.
        assert 0 <= len(whole.ekf) - gone - len(flight.ekf) <= 1
    if kind in ('zeros', 'random'):
        assert 'are no records and were passed over' in notes_of(flight)


def test_a_damaged_number_is_left_out_without_a_warning(real_bin, tmp_path):
    data = bytearray(real_bin.read_bytes())
    number = xkv2_of(data)
    places = [place for place in places_of(bytes(data), b'') if data[place + 2] == number]
    for place in places[10:200:10]:
        for column in range(12):  # signalling NaNs, of which NumPy warns
            data[place + 12 + 4 * column:place + 16 + 4 * column] = b'\x01\x00\xa0\x7f'
    (tmp_path / 'f.BIN').write_bytes(data)

    with warnings.catch_warnings():
        warnings.simplefilter('error')
        flight, = read_flights(tmp_path / 'f.BIN')

    assert len(flight.ekf) > 0.95 * len(real_flight(real_bin).ekf)


def test_two_boots_in_one_log_are_two_flights(plane_bin, tmp_path):
    (tmp_path / 'f.BIN').write_bytes(plane_bin.read_bytes() * 2)

    first, second = read_flights(tmp_path / 'f.BIN')

    assert spans_of(first) == spans_of(second)
    assert len(first.air) == len(second.air) == 5116
    assert (first.number, second.number) == (1, 2)


def replay_log(path: Path) -> Path:
    """Write a log with a filter that flew (core 0) and one that was replayed (core 100)."""
    log = DataflashWriter()
    log.add('ARM', 0.5, ArmState=1)
    for step in range(200):
        t = 1.0 + 0.5 * step
        for core, variance, wind in ((0, 0.5, 5.0), (100, 0.0, 9.0)):
            log.add('XKV2', t, C=core, V22=variance, V23=variance)
            log.add('XKF2', t, C=core, VWN=wind, VWE=0.0, IS=0.01 * step)
    return log.save(path)


def test_a_replayed_filter_is_told_from_the_one_that_flew(tmp_path):
    path = replay_log(tmp_path / 'f.BIN')

    flown, = read_flights(path)
    replayed, = read_flights(path, replayed=True)

    assert {name for name, _ in spans_of(flown)} == {'learning'}
    assert set(flown.wind_log.wind_n[1:].tolist()) == {5.0}
    assert {name for name, _ in spans_of(replayed)} == {'coast', 'inhibited'}
    assert '(core 100) is in the log too: --replayed shows it' in notes_of(flown)
    assert 'this is the replayed filter (core 100)' in notes_of(replayed)


def test_a_change_of_the_core_in_flight_is_said_and_parts_the_phases(tmp_path):
    log = DataflashWriter()
    log.add('ARM', 0.5, ArmState=1)
    for step in range(100):
        t, core = 1.0 + 0.5 * step, int(step >= 60)
        log.add('XKV2', t, C=core, V22=0.5, V23=0.5)
        for one, wind in ((0, 2.0), (1, 8.0)):
            log.add('XKF2', t, C=one, VWN=wind, VWE=0.0, IS=0.01 * step)

    flight, = read_flights(log.save(tmp_path / 'f.BIN'))

    assert 'from core 0 to 1 at 31.0 s' in notes_of(flight)
    spans = flight.wind_log.spans()
    assert [(span.core, span.wind_n) for span in spans[-2:]] == [(0, 2.0), (1, 8.0)]


def test_a_log_without_ekf3_says_what_is_in_it_by_count(tmp_path, capsys):
    log = DataflashWriter()
    for step in range(50):
        log.add('IMU', 1.0 + 0.1 * step, I=0, GyrX=0.1)
    log.add('EV', 2.0, Id=10)

    assert ekf_wind_log.main([str(log.save(tmp_path / 'f.BIN'))]) == 1

    said = capsys.readouterr().err
    assert 'no EKF3 records at all' in said
    assert '50 IMU' in said
    assert 'XKF2' not in said  # there is a format of that name, but no such record


def test_a_text_log_gives_what_the_binary_one_does(tmp_path):
    lines = ['FMT, 128, 89, FMT, BBnNZ, Type,Length,Name,Format,Columns',
             'FMT, 140, 30, XKF2, QBcch, TimeUS,C,VWN,VWE,IDX', 'FMT, 143, 20, XKV2, QBff, '
             'TimeUS,C,V22,V23', 'FMT, 135, 20, ARM, QB, TimeUS,ArmState', 'ARM, 500000, 1']
    for step in range(40):
        lines += [f'XKF2, {1_000_000 + 500_000 * step}, 0, 3.25, -1.5, {step}',
                  f'XKV2, {1_000_000 + 500_000 * step}, 0, 0.5, 0.5']
    lines.insert(20, 'rubbish')
    (tmp_path / 'f.log').write_text('\n'.join(lines))

    flight, = read_flights(tmp_path / 'f.log')

    assert len(flight.ekf) == 40
    assert flight.wind_log.wind_n[-1] == 3.25
    assert '1 lines are no records' in notes_of(flight)


# -- telemetry logs --------------------------------------------------------------------------------

STAMPED = 1767225600.0


@functools.cache
def plain_tlog() -> bytes:
    return gzip.decompress(flights.tlog_path('plane_tas').read_bytes())


@functools.cache
def whole_tlog():
    return read_flights(flights.tlog_path('plane_tas'))[0]


def packed(message, system: int, component: int, stamp: float) -> bytes:
    sender = mavlink.MAVLink(None, srcSystem=system, srcComponent=component)
    return round(stamp * 1e6).to_bytes(8, 'big') + message.pack(sender)


def tlog_with(path: Path, extra: list[tuple[float, bytes]]) -> Path:
    """Write the plane's log with packets of others between its own."""
    parts = [(t, round((STAMPED + t) * 1e6).to_bytes(8, 'big') + bytes(one.get_msgbuf()))
             for t, one in flights.messages('plane_tas')]
    path.write_bytes(b''.join(part for _, part in sorted([*parts, *extra], key=lambda p: p[0])))
    return path


def attitude(ms: int):
    return mavlink.MAVLink_attitude_message(ms, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(('source', 'says'), [
    ((1, 154), 'component 154, gimbal, of the same system (1 message)'),
    ((1, 191), 'onboard computer'), ((255, 190), 'of system 255'), ((1, 1), 'do not support')])
def test_a_strange_clock_on_the_link_changes_nothing_and_is_named(tmp_path, source, says):
    path = tlog_with(tmp_path / 'f.tlog', [
        (120.0, packed(attitude(5_000_000), *source, STAMPED + 120.0))])

    flight, = read_flights(path)

    assert len(flight.air) == 5140
    assert spans_of(flight) == spans_of(whole_tlog())
    assert says in notes_of(flight)


def test_a_second_vehicle_is_named_and_can_be_chosen(tmp_path, capsys):
    other = []
    for t, one in flights.messages('copter_drag'):
        one = copy.copy(one)
        other.append((t + 60.0, packed(one, 2, 1, STAMPED + t + 60.0)))
    path = tlog_with(tmp_path / 'f.tlog', other)

    first, = read_flights(path)
    second, = read_flights(path, system=2)

    assert len(first.air) == 5140
    assert spans_of(first) == spans_of(whole_tlog())
    assert 'system 2 is an ArduPilot vehicle in the same log: --system 2 shows it' in \
        notes_of(first)
    assert spans_of(second) == spans_of(read_flights(flights.tlog_path('copter_drag'))[0])
    assert ekf_replay.main([str(path), '--system', '7', '--csv', str(tmp_path / 'x')]) == 1
    assert 'no ArduPilot vehicle with system id 7 in the log; there is 1, 2' in \
        capsys.readouterr().err


def test_a_restart_in_a_telemetry_log_begins_another_flight(tmp_path):
    (tmp_path / 'f.tlog').write_bytes(plain_tlog() * 2)

    first, second = read_flights(tmp_path / 'f.tlog')

    for flight in (first, second):
        assert len(flight.air) == 5140
        assert spans_of(flight) == spans_of(whole_tlog())
        assert (np.diff(flight.ekf.t) >= 0.0).all()


# -- times -----------------------------------------------------------------------------------------

@settings(deadline=None, max_examples=50)
@given(st.integers(60, 400), st.lists(st.tuples(st.integers(5, 54), st.integers(24, 62)),
                                      max_size=5, unique_by=lambda one: one[0]),
       st.integers(0, 10**6))
def test_flipped_bits_of_times_are_found_and_nothing_else_is(count, flips, seed):
    draw = random.Random(seed)
    t = np.cumsum([draw.choice([0.0, 0.01, 0.05, 0.1]) for _ in range(count)]) + 20.0
    wrong = t.copy()
    for at, bit in flips:
        wrong[at * count // 60] = (round(t[at * count // 60] * 1e6) ^ 1 << bit) * 1e-6

    found = times.sort_out(wrong)

    assert set(np.flatnonzero(~found.kept).tolist()) == {at * count // 60 for at, _ in flips}
    assert found.flights == 1


def test_pauses_and_restarts_are_no_wrong_times():
    t = np.concatenate([np.arange(0, 60, 0.1), np.arange(300, 360, 0.1), np.arange(2, 50, 0.1)])

    found = times.sort_out(t)

    assert found.kept.all()
    assert found.flights == 2
    assert np.flatnonzero(np.diff(found.flight)).tolist() == [1199]


def test_no_input_makes_a_grid_beyond_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(air, 'MAX_GRID', 72_000)
    log = DataflashWriter()
    for step in range(100):
        log.add('PARM', 10.0 + step, Name='SIM_WIND_SPD', Value=5.0)
    for step in range(100):
        log.add('PARM', 1e6 + step, Name='SIM_WIND_SPD', Value=6.0)
    # Both halves are dense: a pause of eleven days, which nothing contradicts.
    flight, = read_flights(log.save(tmp_path / 'f.BIN'))

    assert len(flight.air) == 72_000
    assert 'the log spans 278 h; the air of its first 1 h is shown' in notes_of(flight)


# -- bags ------------------------------------------------------------------------------------------

def ekf_of(seconds: float):
    return ekf_winds([(0.0, seconds, 'learning')], lambda t: (8.0, 0.0), lambda t: (7.0, 0.0))


@pytest.fixture(scope='module')
def bag(tmp_path_factory) -> Path:
    return write_bag(tmp_path_factory.mktemp('bag') / 'flight', [*fly(BREEZE, 20.0), *ekf_of(20.0)])


def test_a_chunk_index_without_message_index_is_no_empty_bag():
    flight, = read_bag(DATA / 'no_message_index.mcap')

    assert len(flight.air) == 1201
    assert len(flight.ekf) == 300


@pytest.mark.parametrize('text', [
    '', 'rosbag2_bagfile_information:\n  vers', '{}', '- a\n- list\n', '\x00\x01', 'a: [', None,
    'no storage', 'no topics', 'renamed'])
def test_metadata_of_no_use_does_not_hide_whole_data(bag, tmp_path, text):
    shutil.copytree(bag, tmp_path / 'b')
    metadata = tmp_path / 'b' / 'metadata.yaml'
    said = metadata.read_text()
    if text == 'no storage':
        metadata.write_text(said.replace('storage_identifier: mcap', "storage_identifier: ''"))
    elif text == 'no topics':
        head, tail = said.split('  topics_with_message_count:')
        metadata.write_text(f'{head}  topics_with_message_count: []\n  compression_format: ""\n')
        assert tail
    elif text == 'renamed':
        (tmp_path / 'b' / 'flight.mcap').rename(tmp_path / 'b' / 'other')
    elif text is None:
        metadata.unlink()
    else:
        metadata.write_text(text)

    flight, = read_bag(tmp_path / 'b')

    assert len(flight.air) == 401
    assert 'metadata.yaml ' + ('is missing' if text is None else 'was not used') in notes_of(flight)


def test_a_restart_under_sim_time_is_two_flights(tmp_path):
    parts = []
    for seconds, length in ((0.0, 30.0), (0.5, 15.0)):
        name = write_bag(tmp_path / f'part{length:g}', [*fly(BREEZE, length), *ekf_of(length)])
        parts.append((name, seconds))
    # Stamps of both begin at the same time, as with --use-sim-time: one file behind the other.
    folder = tmp_path / 'both'
    folder.mkdir()
    for at, (name, _) in enumerate(parts):
        shutil.copy(next(name.glob('*.mcap')), folder / f'both_{at}.mcap')

    first, second = read_bag(folder)

    assert [len(one.air) for one in (first, second)] == [601, 301]
    assert [len(one.ekf) for one in (first, second)] == [150, 75]
    assert first.ekf.t[-1] == pytest.approx(29.8)


def test_vehicles_of_a_fleet_come_in_natural_order(tmp_path):
    path = write_bag(tmp_path / 'fleet', [
        one for number in (10, 1, 2) for one in fly(BREEZE, 2.0, namespace=f'/drone{number}')])

    assert [one.namespace for one in read_bag(path)] == ['drone1', 'drone2', 'drone10']


def test_a_cut_recording_with_a_tail_of_zeros_is_read_up_to_there(bag, tmp_path):
    data = (bag / 'flight.mcap').read_bytes()
    (tmp_path / 'f.mcap').write_bytes(data[:len(data) // 2] + bytes(100_000))

    flight, = read_bag(tmp_path / 'f.mcap')

    assert 100 < len(flight.air) < 300
    assert 'cut off' in notes_of(flight)


def test_a_bad_chunk_costs_only_itself(tmp_path):
    path = write_bag(tmp_path / 'long', fly(BREEZE, 120.0))
    data = bytearray((path / 'long.mcap').read_bytes())
    data[len(data) // 2:len(data) // 2 + 5000] = random.Random(3).randbytes(5000)
    (path / 'long.mcap').write_bytes(data)

    flight, = read_bag(path)

    assert 1200 < len(flight.air) <= 2401
    assert 'damaged' in notes_of(flight)
    assert flight.air.t[-1] == pytest.approx(120.0)


@pytest.fixture(scope='module')
def database(tmp_path_factory) -> Path:
    path = write_bag(tmp_path_factory.mktemp('db') / 'd', fly(BREEZE, 60.0), 'sqlite3')
    return path / 'd.db3'


def test_a_database_with_a_bad_page_or_cut_off_gives_the_other_pages(database, tmp_path):
    data = database.read_bytes()
    page = len(data) // 2 // 4096 * 4096
    (tmp_path / 'bad.db3').write_bytes(data[:page] + b'\xff' * 4096 + data[page + 4096:])
    (tmp_path / 'cut.db3').write_bytes(data[:page + 100])

    bad, = read_bag(tmp_path / 'bad.db3')
    cut, = read_bag(tmp_path / 'cut.db3')

    assert 1150 < len(bad.air) < 1201
    assert 'messages in it cannot be read' in notes_of(bad)
    assert 500 < len(cut.air) < 700
    assert 'cut off' in notes_of(cut)


def test_a_database_of_the_first_schema_is_read(database, tmp_path):
    shutil.copy(database, tmp_path / 'old.db3')
    with sqlite3.connect(tmp_path / 'old.db3') as old:
        old.executescript("""
            CREATE TABLE t AS SELECT id, name, type, serialization_format FROM topics;
            DROP TABLE topics; ALTER TABLE t RENAME TO topics; DROP TABLE schema;
            DROP TABLE metadata; DROP TABLE message_definitions;""")

    assert len(read_bag(tmp_path / 'old.db3')[0].air) == 1201


@pytest.mark.parametrize('suffix', ['.mcap', '.db3'])
def test_a_compressed_file_needs_no_metadata(bag, database, tmp_path, suffix):
    source = database if suffix == '.db3' else bag / 'flight.mcap'
    whole = mcap.zstd().compress(source.read_bytes())
    (tmp_path / f'a{suffix}.zstd').write_bytes(whole)
    (tmp_path / f'cut{suffix}.zstd').write_bytes(whole[:len(whole) * 2 // 3])

    whole_flight = read_bag(tmp_path / f'a{suffix}.zstd')[0]
    assert len(whole_flight.air) == (401 if suffix == '.mcap' else 1201)
    cut = read_bag(tmp_path / f'cut{suffix}.zstd')[0]
    assert 100 < len(cut.air) < 1000
    assert 'cut off' in notes_of(cut)


# -- command lines ---------------------------------------------------------------------------------

def test_outputs_never_take_the_place_of_inputs(plane_bin, bag, tmp_path, capsys):
    log = tmp_path / 'f.BIN'
    shutil.copy(plane_bin, log)
    (tmp_path / 'link').symlink_to(log)
    os.link(log, tmp_path / 'hard')
    telemetry = tmp_path / 'f.tlog'
    telemetry.write_bytes(plain_tlog())
    inside = next(bag.glob('*.mcap'))
    for main, words in ((ekf_wind_log.main, [log, '--csv', log]),
                        (ekf_wind_log.main, [log, '--csv', tmp_path / 'link']),
                        (ekf_wind_log.main, [log, '--plot', tmp_path / 'hard']),
                        (ekf_replay.main, [telemetry, '--csv', telemetry]),
                        (wind_report.main, [bag, '--csv', inside])):
        before = [path.read_bytes() for path in (log, telemetry, inside)]
        assert main([str(word) for word in words]) == 1
        assert 'it would be written over' in capsys.readouterr().err
        assert [path.read_bytes() for path in (log, telemetry, inside)] == before


def test_titles_and_names_are_text_and_not_markup(plane_bin, tmp_path, capsys):
    shutil.copy(plane_bin, tmp_path / '[red]a[blue].BIN')

    assert ekf_wind_log.main([str(tmp_path / '[red]a[blue].BIN'), '--title', '[red]x[/blue]']) == 0
    assert ekf_wind_log.main([str(tmp_path / '[red]a[blue].BIN')]) == 0

    said = capsys.readouterr().out
    assert '[red]x[/blue]' in said
    assert '[red]a[blue].BIN' in said


def test_progress_of_a_long_task_is_a_line_now_and_then_without_a_terminal(monkeypatch):
    said = io.StringIO()
    monkeypatch.setattr(sys, 'stderr', said)
    now = [0.0]
    monkeypatch.setattr(command_line.time, 'monotonic', lambda: now[0])
    with command_line.progress_bar() as report:
        for now[0] in np.arange(0.0, 12.0, 0.5).tolist():
            report('reading f.BIN', now[0] / 12.0)

    assert said.getvalue().splitlines() == ['reading f.BIN: 25%', 'reading f.BIN: 67%']


def test_nothing_of_use_names_what_is_there(tmp_path):
    path = tmp_path / 'gcs.tlog'
    path.write_bytes(b''.join(packed(mavlink.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3), 255, 190,
                                     STAMPED + k) for k in range(20)))
    with pytest.raises(RecordError, match='no ArduPilot vehicle'):
        read_flights(path)
