"""Campaigns: the plan, the flights, the folder of results, and the verdict."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dryden_wind_ros.campaign import plan as plans
from dryden_wind_ros.campaign.compare import verdict
from dryden_wind_ros.campaign.course import ACCELERATION, Circle, Legs
from dryden_wind_ros.campaign.embedded_flight import fly_embedded
from dryden_wind_ros.campaign.entry import Entry, Event, Manoeuvre, Vehicle, Wind
from dryden_wind_ros.campaign.flight import TAKEN, fly
from dryden_wind_ros.campaign.keeper import descendants
from dryden_wind_ros.campaign.measures import MEASURES, measures_of
from dryden_wind_ros.emulator.autopilot import Autopilot
from dryden_wind_ros.emulator.config import VehicleConfig
from dryden_wind_ros.emulator.parameters import Eeprom
from dryden_wind_ros.gusts.air import SeededAir
from dryden_wind_ros.gusts.air_settings import AirSettings
from dryden_wind_ros.gusts.lockstep import lockstep
from dryden_wind_ros.logs.reader import read_flights
from dryden_wind_ros.tools import wind_campaign

ROOT = Path(__file__).parents[1]
GOLDEN = (0.11715164096479744, 0.9987360260177074)
HALF = {'PSC_NE_POS_P': 0.5, 'PSC_NE_VEL_P': 1.0, 'PSC_NE_VEL_I': 0.5}
SHORT = 'vehicle: {altitude: 2}\nflight: {settle: 5, seconds: 10}\n'
TWO = 'variants: {a: , b: {parameters: {PSC_NE_POS_P: 0.5}}}\n'


def written(folder: Path, text: str) -> Path:
    path = folder / 'plan.yaml'
    path.write_text(text)
    return path


def table_of(outcome):
    lines = outcome.files['flight.csv'].decode().splitlines()
    return dict(zip(lines[0].split(','), np.array(
        [line.split(',') for line in lines[1:]], dtype=float).T, strict=True))


def entry(**more) -> Entry:
    return Entry(**{'index': 0, 'variant': 'a', 'vehicle': Vehicle(), 'wind': Wind(8.0), 'seed': 7,
                    'manoeuvre': Manoeuvre(seconds=10.0, settle=5.0), **more})


# ---------------------------------------------------------------------- the plan


@pytest.mark.parametrize('name', ['acceptance', 'gains', 'ekf_wind'])
def test_the_ready_made_plans_are_good(name):
    plan = plans.load(ROOT / 'config' / 'campaigns' / f'{name}.yaml')
    assert plan.name == name
    assert len({one.key for one in plan.entries}) == len(plan.entries)


def test_every_variant_flies_the_product_of_the_winds(tmp_path):
    plan = plans.load(written(tmp_path, TWO + """
winds:
  - {speed: [3, 8], from: [0, 90], gusts: [dryden, off], seeds: {first: 5, count: 2}}
  - {speed: 12, model: mil_f_8785c, severity: moderate}
"""))
    pairs = {name: [one.pair for one in plan.entries if one.variant == name]
             for name in plan.variants}
    assert len(pairs['a']) == 2 * 2 * 2 * 2 + 1
    assert pairs['a'] == pairs['b']
    assert plan.entries[0].wind == Wind(3.0, 0.0)
    assert plan.entries[0].seed == 5


def test_every_mistake_is_named_with_its_line(tmp_path):
    (tmp_path / 'own.py').write_text('def broken(:\n')
    with pytest.raises(plans.PlanError) as caught:
        plans.load(written(tmp_path, """name: bad
vehicle: {kind: copter, sitl: '"'}
flight: {path: hover, script: fly.py}
variants:
  a: {parameters: {NO_SUCH: 1}}
  b: {baseline: perhaps}
winds: {speed: 99, gusts: gale, seeds: {count: -3}}
events: [{at: 5, parameter: SIM_WIND_SPD, value: 3}]
measures: {own: own.py:broken}
limits: [{measure: happiness, most: 3}]
ros: perhaps
kep: all
"""))
    told = '\n'.join(caught.value.mistakes)
    for line, words in ((2, 'sitl is no command'), (3, 'path and script'),
                        (5, "no parameter 'NO_SUCH'"), (6, 'baseline is perhaps'),
                        (7, 'speed is 99'), (7, 'gusts is gale'), (7, '-3 must be a whole'),
                        (8, 'what the wind is written to'), (9, 'own.py'), (10, 'happiness'),
                        (11, 'ros is perhaps'), (12, 'kep is unknown')):
        assert any(one.startswith(f'line {line}:') and words in one
                   for one in caught.value.mistakes), f'{line} {words}\n{told}'


@pytest.mark.parametrize(('text', 'named'), [
    ('name: ..', "name is '..'"), ('name: a/b', "name is 'a/b'"),
    ('name: "a\\nb"', r"name is 'a\nb'"), ('name: -x', "name is '-x'"),
    (f'name: {"x" * 65}', '(67 characters)'), ("name: 'a '", "name is 'a '"),
    ('variants: {"../a": }', "'../a'"), ('variants: {"": }', "is ''"),
    ('variants: {Half: , half: }', 'half and Half differ by upper and lower case only'),
    ('variants: {a: {parameters: {"A 1\\nB": 2}}}', r"'A 1\nB' is no name of a parameter"),
    ('events: [{at: 1, parameter: lower, value: 2}]', "'lower' is no name of a parameter"),
    ('measures: {Seed: own.py:f}', 'Seed is taken'), ('measures: {a b: own.py:f}', "'a b' is no"),
    ('measures: {own: own.py:f, OWN: own.py:f}', 'OWN is taken'),
    ('winds: {speed: [5, 5.0000001]}', "the same name '5 m/s from 270 dryden'"),
    ('winds: {scenario: [x/g.yaml, y/g.yaml]}', 'give their files different names'),
    ('variants: {a: {executable: own.py}}', 'executable is for a vehicle of sitl:'),
    ('vehicle: {sitl: a}\nvariants: {a: {executable: no}}', '/no: there is no such file'),
    ('vehicle: {sitl: a}\nvariants: {a: {executable: own.py}}', 'own.py: it cannot be run'),
    ('vehicle: {sitl: ./no/such -x}', '/no/such: there is no such file'),
    ('vehicle: {sitl: a}\nvariants: {a: {firmware: own.py}}', "and 'a' has none"),
    ("vehicle: {sitl: 'a {firmware}'}", 'no firmware is given'),
    ('variants: {a: {script: no.py}}', 'no.py: there is no such file')])
def test_names_and_paths_are_judged_before_anything_starts(tmp_path, text, named):
    (tmp_path / 'own.py').write_text('def f(c):\n    return 1\n')
    for folder, speed in (('x', 3), ('y', 4)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / 'g.yaml').write_text(f'wind: {{speed: {speed}, from: 90}}\n')
    rest = ''.join(line for key, line in (('variants', 'variants: {a: }\n'),
                                          ('winds', 'winds: {speed: 5}\n')) if key not in text)
    with pytest.raises(plans.PlanError) as caught:
        plans.load(written(tmp_path, f'{text}\n{rest}'))
    assert len(caught.value.mistakes) == 1
    assert named in caught.value.mistakes[0]


def test_winds_without_gusts_are_flown_once_whatever_gusts_would_be_like(tmp_path):
    plan = plans.load(written(tmp_path, 'variants: {a: }\nwinds: {speed: 5, gusts: [off, dryden], '
                                        'model: [first_order, mil_f_8785c]}\n'))
    assert [one.wind.name for one in plan.entries] == [
        '5 m/s from 270 off', '5 m/s from 270 dryden', '5 m/s from 270 mil_f_8785c']


def test_a_key_is_of_all_that_decides_the_flight_and_of_nothing_else():
    one = entry()
    assert replace(one, index=5, wall_limit=9.0).key == one.key
    changed = [replace(one, seed=8), replace(one, wind=Wind(9.0)),
               replace(one, events=(Event(1.0, 'SIM_GPS1_ENABLE', 0.0),)),
               replace(one, vehicle=Vehicle(parameters=(('PSC_NE_POS_P', 0.5),)))]
    assert len({other.key for other in [one, *changed]}) == 5


# ---------------------------------------------------------------------- one flight


@pytest.fixture(scope='module')
def kept():
    """One flight with drag fusion, whose files are kept."""
    return fly(entry(vehicle=Vehicle(drag=True)))


@pytest.mark.parametrize('settings', [
    {'seed': 7}, {'gusts': 'off'}, {'scale': 1.7, 'mean_up': 1.5, 'mean_from_deg': 359.9},
    {'mean_speed': 0.0}, {'model': 'mil_f_8785c'}, {'gusts': 'field', 'field_modes': 64}])
def test_air_in_lock_step_is_the_seeds_air_number_for_number(settings):
    settings = AirSettings(**{'mean_speed': 8.0, **settings})
    air, lean = SeededAir(settings), lockstep(settings)
    for tick in range(1, 200):
        way = 0.05 * tick
        position = (3.0 * way, 10.0 * math.sin(way), 2.0 + 3.0 * way)
        velocity = (3.0, 10.0 * math.cos(way), 3.0)
        air.odometry(tick * 50_000_000, position, velocity, True)
        made = air.advance(tick * 50_000_000).tick
        assert made is not None
        wind = made.sim_wind
        assert lean.wind(tick, position, velocity, None) == (
            wind.speed, wind.direction, wind.direction_z)
    assert lean.missed == 0


def test_the_wind_of_three_writes_at_once_is_that_of_three_writes():
    """Until boot's calm ends and after, while saves are heard, and where one is refused."""
    for parameters, refused in (((), ()), ((), ('SIM_WIND_DIR',)),
                                ((('SIM_WIND_T', 0.0), ('SIM_WIND_TURB', 0.5)), ())):
        config = VehicleConfig(flight='hover', parameters=parameters, refused_parameters=refused)
        one, other = Autopilot(config, Eeprom()), Autopilot(config, Eeprom())
        for k in range(1, 300):
            for vehicle in (one, other):
                vehicle.advance(k * 50_000)
                if k == 250:
                    vehicle.client_joined(vehicle.channels[0])
            winds = 5.0 + 0.1 * (k % 7), 350.0 + 2.0 * (k % 9), float(k % 3)
            one.write_wind(*winds)
            for name, value in zip(('SPD', 'DIR', 'DIR_Z'), winds, strict=True):
                other.write_parameter(f'SIM_WIND_{name}', value)
            assert one.air.at(10.0, False) == other.air.at(10.0, False)
            assert one.flight.roll == other.flight.roll
            assert one.channels[0].take() == other.channels[0].take()
        assert one.parameters.values == other.parameters.values
        assert one.winds.count == other.winds.count


def test_a_flight_can_be_flown_again_and_its_log_holds_the_wind_it_flew(kept, tmp_path):
    """Recorded or not it is the same; the log holds the parameters as the vehicle says them."""
    again = fly(entry(vehicle=Vehicle(drag=True)), 'failures')
    assert again.row == kept.row
    assert list(again.files) == ['entry.json']
    assert set(again.row) == {*TAKEN, *MEASURES}
    assert kept.row['ticks_missed'] == 0
    # Of the code before it was made fast: the numbers of a seed do not change
    assert kept.row['position_error_rms'] == pytest.approx(GOLDEN[0], rel=1e-9)
    assert kept.row['ekf_wind_error_rms'] == pytest.approx(GOLDEN[1], rel=1e-9)
    (tmp_path / 'flight.tlog').write_bytes(kept.files['flight.tlog'])
    flown, = read_flights(tmp_path / 'flight.tlog')
    table = table_of(kept)
    ticks = np.rint(table['t'] / 0.05).astype(int)
    assert np.all(np.diff(ticks) == 1)
    assert flown.air.tick.tolist() == list(range(1, ticks[-1] + 1))
    told = flown.air.sim_wind[:, ticks - 1]
    for row, name in enumerate(('sim_wind_spd', 'sim_wind_dir', 'sim_wind_dir_z')):
        np.testing.assert_allclose(told[row], table[name], rtol=1e-5, atol=1e-5)  # six digits
    assert flown.ekf is not None


def test_measures_are_those_of_the_samples():
    samples = fly_embedded(entry())
    found, c = measures_of(samples), samples.measured
    assert len(c['t']) == 201
    off = c['position_error']
    assert found['position_error_rms'] == pytest.approx(math.sqrt(sum(off**2) / len(off)))
    assert found['position_error_max'] == max(off)
    # 8 m/s is leant against with atan(64/400) = 9.1 degrees, and gusts come on top
    assert 9.1 < found['tilt_max'] < 25.0
    assert math.isnan(found['ekf_wind_error_rms'])  # no drag fusion: no wind


def test_a_flight_that_cannot_be_flown_costs_its_own_row_only():
    outcome = fly(entry(events=(Event(1.0, 'NO_SUCH', 1.0),)))
    assert 'NO_SUCH' in outcome.row['failure']
    assert outcome.row['failed'] is True
    blown = fly(entry(wind=Wind(40.0)))
    assert blown.row['failure'] == 'blown away'
    assert fly(entry(sim_limit=8.0)).row['failure'] == 'time limit (sim)'


def test_courses_end_where_they_say_and_do_not_jump():
    box = Legs([(20.0, 0.0, None), (20.0, 20.0, None), (0.0, 20.0, None), (0.0, 0.0, None)], 3.0,
               again=True)
    circle = Circle(20.0, 3.0)
    for course in (box, circle):
        t = np.arange(0.0, 120.0, 0.02)
        north, east, v_north, v_east = np.array([course.at(x) for x in t]).T
        # Position is the integral of velocity, and acceleration is bounded
        np.testing.assert_allclose(np.diff(north), v_north[:-1] * 0.02, atol=0.001)
        np.testing.assert_allclose(np.diff(east), v_east[:-1] * 0.02, atol=0.001)
        assert np.hypot(np.diff(v_north), np.diff(v_east)).max() < 0.03 * ACCELERATION
        assert np.hypot(v_north, v_east).max() == pytest.approx(3.0, abs=1e-6)
    # 20 m at 3 m/s with 1 m/s^2 at both ends: 20/3 + 3 s a side
    assert box.at(20.0 / 3.0 + 3.0)[:2] == pytest.approx((20.0, 0.0), abs=1e-6)
    legs = Legs([(30.0, 40.0, 12.0)], 5.0)
    assert legs.seconds == pytest.approx(15.0)  # 50/5 + 5
    assert legs.at(99.0) == (30.0, 40.0, 0.0, 0.0)
    assert legs.height(3.0) == 12.0


# ---------------------------------------------------------------------- many flights


def campaign(plan: Path, results: Path, *more: str, **options) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, '-m', 'dryden_wind_ros.tools.wind_campaign', str(plan), '--results',
         str(results), *more], cwd=ROOT, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, **options)


def until(what, seconds=300.0):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, 'it did not come to that'
        time.sleep(0.02)


def rows_of(results: Path):
    # What begins with a dot is being written
    return {path.parent.name: path.read_bytes()
            for path in (results / 'flights').glob('[!.]*/row.json')}


@pytest.fixture(scope='module')
def threads():
    """Return the address of a scheduler with two workers, in this process."""
    distributed = pytest.importorskip('distributed')
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False,
                                  dashboard_address='127.0.0.1:0') as cluster:
        yield cluster.scheduler_address


def worker_of(process: subprocess.Popen[str]) -> int:
    """Return the process id of the only dask worker on this machine."""
    worker, = [child for child in descendants(process.pid)
               if b'spawn_main' in Path(f'/proc/{child}/cmdline').read_bytes()]
    return worker


def test_killed_and_interrupted_in_the_middle_it_goes_on_and_each_flight_is_there_once(
        tmp_path, threads, capsys):
    """Twenty flights on two workers; kill -9; a worker dies; Ctrl-C to the group; to the end.

    The end is flown elsewhere: on a cluster's two workers.
    """
    pandas = pytest.importorskip('pandas')
    plan = written(tmp_path, SHORT + TWO + 'winds: {speed: 6, seeds: {count: 10}}\n')
    results = tmp_path / 'results'
    begun = campaign(plan, results, '--workers', '2')
    until(lambda: len(rows_of(results)) >= 3 or begun.poll() is not None)
    begun.kill()
    begun.communicate()
    first = rows_of(results)
    assert 3 <= len(first) < 20
    part = results / 'flights' / '.part-left'  # what a kill in the middle of writing leaves
    part.mkdir()
    begun = campaign(plan, results, '--workers', '1', start_new_session=True)
    until(lambda: len(rows_of(results)) > len(first) or begun.poll() is not None)
    os.kill(worker_of(begun), signal.SIGKILL)
    before = len(rows_of(results))
    # Whatever it had sent has arrived by then: these come from the worker in its place
    until(lambda: len(rows_of(results)) > before + 2 or begun.poll() is not None)
    os.killpg(begun.pid, signal.SIGINT)
    _, errors = begun.communicate(timeout=300)
    assert begun.returncode == 130, errors
    assert 'Traceback' not in errors
    assert 'Warning' not in errors  # another campaign may run beside it
    second = rows_of(results)
    assert first.items() <= second.items()  # nothing was flown again
    assert wind_campaign.main(
        [str(plan), '--results', str(results), '--scheduler', threads]) == 0
    output = capsys.readouterr().out
    assert not part.exists()
    third = rows_of(results)
    assert second.items() <= third.items()
    table = pandas.read_parquet(results / 'flights.parquet')
    assert sorted(table.key) == sorted(third)
    assert len(table) == 20
    assert list(table['index']) == list(range(20))
    assert 'b, position_error_rms: worse' in output
    assert json.loads((results / 'verdict.json').read_text())['missing'] == 0
    page = (results / 'index.html').read_text()
    assert 'Wind campaign' in page
    worst = table.sort_values('position_error_max').key.iloc[-1]
    assert f'--only {worst}' in page


def test_a_cluster_gives_the_same_table_and_limits_decide_the_exit_code(
        tmp_path, threads, capsys):
    """A scheduler with two workers, by its address; the same again in this process alone."""
    pandas = pytest.importorskip('pandas')
    (tmp_path / 'own.py').write_text('def most_north(c):\n    return c["north"].max()\n')
    plan = written(tmp_path, SHORT + 'measures: {most_north: own.py:most_north}\n'
                   'variants: {a: }\nwinds: {speed: [4, 9], seeds: {count: 2}}\n'
                   'limits: [{measure: most_north, most: 1.0e-9}]\nkeep: all\n')
    assert wind_campaign.main(
        [str(plan), '--results', str(tmp_path / 'one'), '--scheduler', threads]) == 1
    loaded = plans.load(plan)
    rows = [fly(one).row for one in loaded.entries]
    table = pandas.read_parquet(tmp_path / 'one' / 'flights.parquet')
    pandas.testing.assert_frame_equal(table, pandas.DataFrame(rows), check_dtype=False)
    assert 'limit most_north <= 1e-09: 0 of 4 flights within, NOT HELD' in capsys.readouterr().out
    kept = tmp_path / 'one' / 'flights' / loaded.entries[0].key / 'flight.csv'
    assert kept.read_text().startswith('t,measured,north')
    # Nothing is left to be flown; the verdict can be made again
    assert wind_campaign.main(['report', str(tmp_path / 'one')]) == 1


def test_a_bad_command_line_says_what_is_wrong(tmp_path, capsys):
    plan = written(tmp_path, 'variants: {a: }\nwinds: {speed: 4}\n')
    assert wind_campaign.main([str(tmp_path / 'none.yaml')]) == 2
    assert 'there is no such file' in capsys.readouterr().err
    assert wind_campaign.main([str(plan), '--only', 'abc']) == 2
    assert 'abc: no such flight' in capsys.readouterr().err
    plan = written(tmp_path, "vehicle: {sitl: 'no_such_vehicle --model plane'}\n"
                             'variants: {a: }\nwinds: {speed: 4}\n')
    assert wind_campaign.main([str(plan), '--results', str(tmp_path / 'none')]) == 2
    assert "variant a: there is no program 'no_such_vehicle'" in capsys.readouterr().err
    assert not (tmp_path / 'none').exists()
    assert wind_campaign.main(['report', str(tmp_path)]) == 2
    assert 'not the folder of a campaign' in capsys.readouterr().err


# ---------------------------------------------------------------------- the verdict


def made_up(tmp_path, pairs, difference, noise, seed=1, speeds='5'):
    """Return the verdict of a campaign whose numbers come from a table of random numbers."""
    plan = plans.load(written(
        tmp_path, f'variants: {{a: , b: {{seed: 1}}}}\nwinds: {{speed: [{speeds}], '
        f'seeds: {{count: {pairs}}}}}\n'))
    draw = np.random.default_rng(seed)
    air, apart = draw.normal(2.0, 0.5, pairs), difference + noise * draw.normal(size=pairs)
    rows = [{'key': one.key, 'variant': one.variant, 'pair': one.pair, 'wind': one.wind.name,
             'seed': one.seed, 'wind_speed': 5.0, 'failed': False, 'failure': '',
             'position_error_rms': air[one.seed - 1] + (
                 apart[one.seed - 1] if one.variant == 'b' else 0.0)}
            for one in plan.entries]
    found = {one.measure: one for one in verdict(plan, rows).found}
    return found['position_error_rms']


def test_a_difference_within_the_airs_scatter_is_found_by_pairs(tmp_path):
    """0.2 m in a scatter of 0.5 m between seeds: pairs (noise 0.1) show it."""
    found = made_up(tmp_path, 20, 0.2, 0.1)
    assert found.verdict == 'worse'
    assert found.low < 0.2 < found.high
    assert found.scatter == pytest.approx(0.5, rel=0.5)


def test_a_difference_that_cannot_be_told_says_how_many_pairs_would_do(tmp_path):
    """Of a median, 1.57 (2.8 s/d)^2 pairs: 12 (s/d)^2, from the theory of the normal median."""
    found = made_up(tmp_path, 12, 0.1, 0.5, seed=4)
    assert found.verdict == 'open'
    assert 'cannot be told yet' in found.text
    assert found.more_pairs == 0 or f'about {found.more_pairs} more pairs would do' in found.text


def test_the_same_seed_in_many_winds_is_no_further_evidence(tmp_path):
    """Its draws are the same: four winds say what one says, not four times as much."""
    one = made_up(tmp_path, 12, 0.1, 0.2)
    four = made_up(tmp_path, 12, 0.1, 0.2, speeds='2, 4, 6, 8')
    assert (one.pairs, four.pairs) == (12, 48)
    assert (four.seeds, four.p, four.low, four.high) == (12, one.p, one.low, one.high)


def test_one_seed_says_that_more_are_needed(tmp_path):
    found = made_up(tmp_path, 1, 0.3, 0.0)
    assert found.text == 'cannot be told from one seed (+0.3 m); 10 or more are needed'


def test_equal_numbers_are_the_same(tmp_path):
    assert made_up(tmp_path, 10, 0.0, 0.0).verdict == 'same'


def test_halved_gains_are_found_with_twenty_pairs_and_equal_ones_are_not(tmp_path):
    plan = plans.load(written(tmp_path, f"""
flight: {{settle: 5, seconds: 10}}
variants: {{a: , same: , half: {{parameters: {json.dumps(HALF)}}}}}
winds: {{speed: [6, 9], seeds: {{count: 10}}}}
"""))
    flown = {}
    for one in plan.entries:
        if one.key not in flown:
            flown[one.key] = fly(one, 'none').row
    rows = [{**flown[one.key], 'variant': one.variant} for one in plan.entries]
    found = {(one.variant, one.measure): one.verdict for one in verdict(plan, rows).found}
    assert found['half', 'position_error_rms'] == 'worse'
    assert {word for (variant, _), word in found.items() if variant == 'same'} <= {'same', 'open'}
