"""Scenario files: what they say, when their gusts blow, and how mistakes in them are named."""

import os
import textwrap

import pytest

from dryden_wind_ros.gusts.air import SeededAir
from dryden_wind_ros.gusts.air_settings import AirSettings
from dryden_wind_ros.gusts.conditions import MeanWind, Moment
from dryden_wind_ros.gusts.record_csv import ScenarioError
from dryden_wind_ros.gusts.scenario import ScenarioGusts
from dryden_wind_ros.gusts.scenario_file import load
from dryden_wind_ros.gusts.tick_grid import TICK_NS

PARAMETERS = MeanWind.of(6.0, 270.0, 0.5)


def write(folder, text, name='wind.yaml'):
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def moment(time, height=10.0, *, armed_at=None, restarted_at=0.0, place=(0.0, 0.0)):
    return Moment(tick=round(time / 0.05), time=time, position=(*place, height),
                  position_is_true=False, height=height, velocity=(0.0, 0.0, 0.0),
                  armed_at=armed_at, restarted_at=restarted_at)


def test_a_whole_scenario_is_read(tmp_path):
    scenario = load(write(tmp_path, """\
        name: morning
        clock: arming
        wind: {speed: 5, from: 250, up: 1e-1}
        changes:
          - {at: 10, over: 10, speed: 9, from: 350, turn: counterclockwise}
          - {at: 30, up: -2}
        profile:
          log: {z0: 0.03, reference_height: 20}
        gusts:
          - {at: 40, length: 15, direction: up}
          - {once: {height: 50, going: up}, shape: ramp, amplitude: -4, duration: 2}
        """))
    wind = scenario.mean_wind(PARAMETERS)
    assert wind.at(moment(99.0, 20.0))[:3] == pytest.approx((5.0, 250.0, 0.1))
    assert wind.at(moment(99.0, 20.0, armed_at=84.0))[:3] == pytest.approx((7.0, 120.0, 0.1))
    assert wind.at(moment(99.0, 20.0, armed_at=60.0))[:3] == pytest.approx((9.0, 350.0, -2.0))
    assert wind.at(moment(99.0, 60.0, armed_at=60.0)).speed > 10.0
    assert [planned.gust.shape for planned in scenario.gusts] == ['one_minus_cosine', 'ramp']
    assert 'morning' in scenario.in_words()


def test_what_a_scenario_leaves_open_is_what_the_parameters_say(tmp_path):
    only_gusts = load(write(tmp_path, 'gusts: [{at: 1, amplitude: 3, duration: 1}]'))
    assert only_gusts.mean_wind(PARAMETERS).at(moment(50.0)) == PARAMETERS
    turned = load(write(tmp_path, 'wind: {from: 90}')).mean_wind(PARAMETERS).at(moment(50.0))
    assert turned[:3] == (6.0, 90.0, 0.5)


def test_a_table_alone_is_the_wind(tmp_path):
    scenario = load(write(tmp_path, """\
        profile:
          table:
            - {height: 0, speed: 3, from: 340}
            - {height: 100, speed: 13, from: 20}
        changes: [{at: 100, speed: 8}]
        """))
    wind = scenario.mean_wind(PARAMETERS)
    assert wind.at(moment(0.0, 100.0))[:3] == pytest.approx((13.0, 20.0, 0.5))
    assert wind.at(moment(0.0, 50.0))[:2] == pytest.approx((8.0, 0.0))
    # At the reference height, 10 m, the table has 4 m/s: a change to 8 doubles it at all heights.
    assert wind.at(moment(100.0, 100.0)).speed == pytest.approx(26.0)


def blown(scenario, moments, mean=PARAMETERS):
    """Return the ticks at which the discrete gusts blow (upwards), and what was said."""
    gusts = ScenarioGusts(scenario)
    up = {now.tick: gusts.at(now, mean)[2] for now in moments}
    return [tick for tick, w in up.items() if w > 1e-9], gusts.news()


@pytest.mark.parametrize(('when', 'clock', 'first'), [
    ('at: 2.0', 'boot', 2.0), ('at: 2.0', 'arming', 5.0), ('at: 1.0', 'restart', 7.0),
    ('once: {height: 30}', 'boot', 3.0), ('once: {height: 30, going: down}', 'boot', 7.0),
    ('once: {east: 40, north: 3, within: 5}', 'boot', 3.6)])
def test_gusts_begin_at_their_time_or_place(tmp_path, when, clock, first):
    # A climb and descent at 10 m/s, eastwards at 10 m/s; armed at 3 s; restarted at 6 s.
    scenario = load(write(tmp_path, f"""\
        clock: {clock}
        gusts: [{{{when}, amplitude: 5, duration: 0.5, direction: up}}]
        """))
    flight = [moment(t, 10.0 * (t if t < 5.0 else 10.0 - t), place=(10.0 * t, 0.0),
                     armed_at=3.0 if t > 3.1 else None, restarted_at=6.0 if t > 6.0 else 0.0)
              for t in (0.05 * k for k in range(200))]
    if clock == 'restart':
        first_time, _ = blown(scenario, flight[:100])
        assert first_time[0] == 20  # from boot, as long as there was no restart
    ticks, said = blown(scenario, flight)
    begun = [tick for tick in ticks if tick - 1 not in ticks]
    # What is given at a tick is flown at the next.
    assert begun[-1] == round(first / 0.05)
    assert f'begins at {first:.2f} s' in said[-1]


def test_a_node_that_comes_to_a_flying_vehicle_takes_it_for_no_climb(tmp_path):
    scenario = load(write(tmp_path, """\
        gusts: [{once: {height: 30}, amplitude: 5, duration: 0.5, direction: up}]
        """))
    # No odometry in the first second, then the vehicle is at 80 m.
    flight = [moment(0.05 * k, 80.0 if k > 20 else 0.0)._replace(sampled_at=0.05 * k * (k > 20))
              for k in range(60)]
    assert blown(scenario, flight) == ([], [])


def test_gusts_wait_again_after_another_arming_and_are_not_made_up_for(tmp_path):
    scenario = load(write(tmp_path, """\
        clock: arming
        gusts: [{at: 1, amplitude: 5, duration: 0.5, direction: up}]
        """))
    ticks, _ = blown(scenario, [
        moment(0.05 * k, armed_at=1.0 if k < 100 else 5.0) for k in range(200)])
    assert [tick for tick in ticks if tick - 1 not in ticks] == [40, 120]
    # Armed long before anybody listened: that gust is over.
    ticks, said = blown(scenario, [moment(50.0 + 0.05 * k, armed_at=1.0) for k in range(100)])
    assert ticks == []
    assert 'will not blow' in said[0]
    # Arming that is known a little late delays a gust that was due, and does not cut it.
    late = [moment(0.05 * k, armed_at=0.2 if k >= 30 else None) for k in range(100)]
    ticks, _ = blown(scenario, late)
    assert ticks[0] == 30
    assert len(ticks) == 19


@pytest.mark.parametrize(('text', 'mistakes'), [
    ('wnid: {speed: 3}', ['line 1: scenario: wnid is unknown; known are name, clock, wind']),
    ('wind: {speed: .nan, from: 400}', ['line 1: wind: speed is .nan; it must be a number from 0',
                                        'line 1: wind: from is 400']),
    ('wind: {speed: nan}', ['line 1: wind: speed is nan; it must be a number from 0 to 60 m/s']),
    ('wind: {speed: fast}\nclock: noon',
     ['line 1: wind: speed is fast', 'line 2: scenario: clock is noon; it must be one of boot']),
    ('changes:\n- {at: 20, speed: 3}\n- {at: 10, speed: 4}\n- {speed: 9}\n- {at: 30, turn: short}',
     ['line 3: change: at is 10 s, before the 20 s', 'line 4: change: at is missing',
      'line 5: change: one of speed, from, up is missing', 'line 5: change: turn needs']),
    ('wind: {speed: 30}\nprofile: {log: {z0: 0.5}}',
     ['line 2: profile: the wind would reach 64']),
    ('profile: {log: {z0: 0.03}, power: {exponent: 0.2}}', ['line 1: profile must have exactly']),
    ('profile: {log: {}}', ['line 1: log: z0 is missing']),
    ('profile:\n  table:\n  - {height: 9, speed: 1, from: 0}\n  - {height: 9, speed: 1, from: 0}',
     ['line 4: row of the table: height is 9 m, not above']),
    ('gusts:\n- {length: 20}\n- {at: 1, length: 150}\n- {at: 1, once: {height: 3}, length: 20}',
     ['line 2: gust: it needs either at', 'line 3: gust: length is 150 m; without an amplitude',
      'line 4: gust: it needs either at']),
    ('gusts:\n- {once: {east: 3}, length: 20}\n- {at: 1, length: 20, direction: azimuth}',
     ['line 2: once: north, within is missing', 'line 3: gust: direction azimuth and azimuth']),
    ('record: {file: gone.csv}\nwind: {speed: 3}',
     ['line 1: record .*gone.csv: there is no such file', 'line 2: wind cannot stand beside']),
    ('wind: {speed: 3}\nwind: {speed: 4}', ['line 2: scenario: wind is there twice']),
    ('wind: {speed: 3\n', ['line 2: not YAML']),
    ('wind: {[1, 2]: 3}', ['line 1: wind: a list is no name of anything; text was expected']),
    ('? {a: 1}\n: 3', ['line 1: scenario: a mapping is no name of anything']),
    (f'wind: {{speed: {"9" * 5000}}}\nclock: {"x" * 90}',
     [f'line 1: wind: speed is {"9" * 36}... (5000 characters); it must be a number from 0 to 60',
      f'line 2: scenario: clock is {"x" * 36}... (90 characters); it must be one of']),
    ('- 3', ['line 1: scenario must be a mapping']),
    ('', ['it is empty']),
    pytest.param('[' * 1000, ['not YAML that makes sense'], id='brackets'),
])
def test_every_mistake_is_named_with_its_line(tmp_path, text, mistakes):
    path = tmp_path / 'wind.yaml'
    path.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert len(caught.value.mistakes) == len(mistakes)
    for found, expected in zip(caught.value.mistakes, mistakes, strict=True):
        start, _, end = expected.partition('.*')
        assert found.startswith(start)
        assert end in found


def test_records_in_both_notations(tmp_path):
    (tmp_path / 'a.csv').write_text(
        '\ufeff# a comment\nt, east, north, up\n0, 1, 2, 3\n2, 3, 4, 5\n')
    (tmp_path / 'b.csv').write_text('height,speed,from\n10,4,270\n\n20,8,180\n')
    first = load(write(tmp_path, 'record: {file: a.csv, offset: 10, smoothing: 4}'))
    assert first.smoothing == 4.0
    assert first.mean_wind(PARAMETERS).at(moment(11.0)).enu == (2.0, 3.0, 4.0)
    second = load(write(tmp_path, 'record: {file: b.csv, by: height}'))
    assert second.by_height
    assert second.mean_wind(PARAMETERS).at(moment(0.0, 15.0)).enu == pytest.approx((2., 4., 0.))


@pytest.mark.parametrize(('text', 'mistakes'), [
    ('t,east\n0,1\n', ['line 1: no column north; needed are t and east, north or speed, from']),
    ('time,east,north\n0,1,1\n', ['line 1: no column t;', 'line 1: column time is unknown']),
    ('t,east,north\n0,1,1\n1,nan,1\n2,1,inf\n', ['line 3: nan in column 2 is not a finite number',
                                                 'line 4: inf in column 3']),
    ('t,east,north\n0,1,1\n# x\n2,1,1\n1,1,1\n', ['line 5: t is 1, not above the 2']),
    ('t,east,north\n0,1,1\n1,1\n2,1,,\n', ['line 3: 2 columns instead of 3', 'line 4: 4 columns']),
    ('t,speed,from\n0,70,10\n1,-3,10\n', ['line 2: the wind is 70 m/s', 'line 3: speed is -3']),
    ('t,east,north\n', ['there is no row']),
    ('', ['line 1: no column t, speed, from']),
])
def test_every_mistake_of_a_record_is_named_with_its_line(tmp_path, text, mistakes):
    (tmp_path / 'wind.csv').write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load(write(tmp_path, '# first line\nrecord:\n  file: wind.csv\n'))
    assert len(caught.value.mistakes) == len(mistakes)
    for found, expected in zip(caught.value.mistakes, mistakes, strict=True):
        assert found.startswith('line 3: record ')
        assert f'wind.csv: {expected}' in found


def test_a_gigabyte_of_rows_is_refused_without_reading_it(tmp_path):
    with open(tmp_path / 'wind.csv', 'wb') as file:  # takes no space on the disk
        file.write(b't,east,north\n')
        os.truncate(file.fileno(), 1_000_000_000)
    with pytest.raises(ScenarioError, match=r'line 1: record .*wind.csv: it has 1000 MB; a record '
                                            'has at most 50 MB'):
        load(write(tmp_path, 'record: {file: wind.csv}'))
    with pytest.raises(ScenarioError, match='it has 1000 MB; a scenario file has at most 1 MB'):
        load(tmp_path / 'wind.csv')


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(ScenarioError, match='there is no such file'):
        load(tmp_path / 'gone.yaml')
    with pytest.raises(ScenarioError, match='this is not a file'):
        load(tmp_path)
    (tmp_path / 'binary.yaml').write_bytes(b'\xa3\x95\x80\x80')
    with pytest.raises(ScenarioError, match='this is not text'):
        load(tmp_path / 'binary.yaml')


@pytest.mark.parametrize('kind', [
    {'gusts': 'off'}, {'gusts': 'field'}, {'method': 'euler'}, {'model': 'mil_f_8785c'},
    {'model': 'mil_hdbk_1797b'}])
def test_any_turbulence_blows_on_the_wind_of_a_scenario(tmp_path, kind):
    scenario = load(write(tmp_path, """\
        wind: {speed: 5, from: 200}
        profile: {power: {exponent: 0.2}}
        gusts: [{at: 1, shape: ramp, amplitude: 4, duration: 0.5, direction: azimuth, azimuth: 90}]
        """))
    air = SeededAir(AirSettings(**kind))
    air.follow_mean_wind(scenario.mean_wind(air.settings.mean))
    air.add_gust(ScenarioGusts(scenario))
    for k in range(60):
        air.odometry((k - 1) * TICK_NS, (0.0, 0.0, 40.0), (0.0, 0.0, 0.0))
        tick = air.advance(k * TICK_NS).tick
    assert tick.mean[:2] == pytest.approx((5.0 * 4.0**0.2, 200.0))
    assert tick.discrete_enu == pytest.approx((-4.0, 0.0, 0.0), abs=1e-9)
    assert (tick.gust_enu == pytest.approx(tick.discrete_enu)) == (kind == {'gusts': 'off'})
    # sigma_w = 0.1 W20: of the standards, with the wind that the profile has at 20 ft.
    if 'model' in kind or kind == {'gusts': 'field'}:
        assert air.scales(40.0).sigma_w == pytest.approx(0.1 * 5.0 * 0.6096**0.2)
