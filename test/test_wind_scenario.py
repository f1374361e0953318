"""Scenarios of recorded flights, and the command that makes, checks and draws them."""

import math
from pathlib import Path

import numpy as np
import pytest
from support.bags import fly, write_bag
from support.dataflash import DataflashWriter

from dryden_wind_ros.gusts.air import SeededAir
from dryden_wind_ros.gusts.air_settings import AirSettings
from dryden_wind_ros.gusts.conditions import MeanWind
from dryden_wind_ros.gusts.mean_wind import RecordedWind
from dryden_wind_ros.gusts.record_csv import ScenarioError
from dryden_wind_ros.gusts.tick_grid import TICK_NS
from dryden_wind_ros.logs.bag import read_bag
from dryden_wind_ros.logs.recorded_wind import open_scenario
from dryden_wind_ros.report.plots import ColumnStore
from dryden_wind_ros.report.sections.scenario import planned_wind
from dryden_wind_ros.report.sections.scenario import scenario as scenario_section
from dryden_wind_ros.report.sheet import Sheet
from dryden_wind_ros.tools.wind_scenario import main

EXAMPLES = Path(__file__).parents[1] / 'config' / 'scenarios'
CALM = MeanWind.of(0.0, 270.0)


@pytest.fixture(scope='module')
def log(tmp_path_factory):
    """A flight of 200 s, armed at 10 s, estimating from 12 s on: a wind that swings with 20 s."""
    writer = DataflashWriter()
    for k in range(400):
        t = 0.5 * k
        if t == 10.0:
            writer.add('ARM', t, ArmState=1)
            writer.add('EV', t, Id=10)
        estimating = t >= 12.0
        writer.add('XKV2', t, V22=0.5 if estimating else 0.0, V23=0.5 if estimating else 0.0)
        writer.add('XKF2', t, VWN=4.0, VWE=6.0 + 2.0 * math.sin(2.0 * math.pi * t / 20.0))
        writer.add('XKF3', t)
        writer.add('XKF4', t)
        writer.add('POS', t, RelHomeAlt=min(t, 60.0))
    return writer.save(tmp_path_factory.mktemp('log') / 'flight.BIN')


def test_the_wind_of_a_log_becomes_a_scenario_smoothed_as_said(log, tmp_path, capsys):
    target = tmp_path / 'again.yaml'
    assert main([str(log), '-o', str(target), '--smoothing', '5', '--clock', 'arming']) == 0
    said = capsys.readouterr().out
    assert 'without the 20 s after it began' in said
    assert 'low-pass of 5 s' in said
    scenario = open_scenario(target)
    assert scenario.smoothing == 5.0
    # Estimating from 12 s on, and used from 32 s on: 22 s after arming.
    assert scenario.record.x[0] + scenario.offset == pytest.approx(22.0, abs=1.0)
    t = np.array(scenario.record.x)
    east, north, _ = np.array(scenario.record.enu).T
    settled = t > 80.0
    assert north == pytest.approx(4.0, abs=0.01)
    # A first-order low-pass of time constant T passes 1 / sqrt(1 + (2 pi f T)^2).
    passed = 2.0 / math.sqrt(1.0 + (2.0 * math.pi / 20.0 * 5.0)**2)
    assert np.ptp(east[settled]) / 2.0 == pytest.approx(passed, rel=0.07)
    assert east[settled].mean() == pytest.approx(6.0, abs=0.15)
    assert target.with_suffix('.png').read_bytes().startswith(b'\x89PNG')


def test_the_wind_of_a_log_by_height(log, tmp_path, capsys):
    assert main([str(log), '-o', str(tmp_path / 'layers.yaml'), '--by', 'height']) == 0
    assert 'layers of 10 m' in capsys.readouterr().out
    scenario = open_scenario(tmp_path / 'layers.yaml')
    assert scenario.by_height
    assert scenario.smoothing == 0.0
    # Used from 32 s on, at 32 m: layers 30-40, 40-50, 50-60 m and the cruise at 60 m.
    assert scenario.record.x == pytest.approx((35.75, 44.75, 54.75, 60.0), abs=0.6)
    assert scenario.record.enu[-1][:2] == pytest.approx((6.0, 4.0), abs=0.1)


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    """Ten seconds in which the mean wind changes at 3 and at 7 s."""
    settings = AirSettings(mean_speed=8.0, mean_from_deg=250.0, seed=7)
    calls = [(3.0, lambda air: air.configure(AirSettings(
                 mean_speed=11.3, mean_from_deg=271.7, mean_up=0.3, seed=7))),
             (7.0, lambda air: air.configure(AirSettings(
                 mean_speed=2.9, mean_from_deg=10.1, seed=7)))]
    flown = list(fly(settings, 10.0, changes=calls))
    folder = write_bag(tmp_path_factory.mktemp('bag') / 'flight', iter(flown))
    return folder, [sample.message for sample in flown if sample.topic == '/wind/state']


def test_a_bag_is_flown_again_with_its_mean_wind_and_its_gusts(bag):
    folder, states = bag
    scenario = open_scenario(folder)
    air = SeededAir(AirSettings(seed=7))  # neither speed nor direction of that flight
    air.follow_mean_wind(scenario.mean_wind(air.settings.mean))
    for k, state in enumerate(states):
        air.odometry((k - 1) * TICK_NS, (0.0, 0.0, 10.0), (0.0, 0.0, 0.0))
        tick = air.advance(k * TICK_NS).tick
        assert tick.mean_enu == pytest.approx((state.mean.x, state.mean.y, state.mean.z), abs=1e-12)
        assert tick.gust == pytest.approx((state.u, state.v, state.w), abs=1e-9)
        assert tick.sim_wind.speed == pytest.approx(state.sim_wind_spd, abs=1e-9)


def test_a_bag_as_a_record_of_a_file_and_as_csv(bag, tmp_path, capsys):
    folder, states = bag
    inside = tmp_path / 'inside.yaml'
    inside.write_text(f'clock: restart\nrecord: {{file: {folder}}}\n')
    assert main([str(folder), '-o', str(tmp_path / 'copy.yaml')]) == 0
    assert 'seed 7' in capsys.readouterr().out
    for path in (inside, tmp_path / 'copy.yaml'):
        wind = open_scenario(path).mean_wind(CALM)
        assert isinstance(wind, RecordedWind)
        for state in states[::7]:
            assert wind.sample(state.t).enu == (state.mean.x, state.mean.y, state.mean.z)


def test_what_cannot_be_a_scenario_says_why(log, tmp_path, capsys):
    with pytest.raises(ScenarioError, match='make one of it: wind_scenario flight'):
        open_scenario(log)
    with pytest.raises(ScenarioError, match='the folder is empty'):
        open_scenario(tmp_path)
    two = write_bag(tmp_path / 'two', iter(
        [*fly(AirSettings(), 0.5, namespace='/a'), *fly(AirSettings(mean_speed=3.0), 0.5,
                                                         namespace='/b')]))
    with pytest.raises(ScenarioError, match='several vehicles, /a, /b'):
        open_scenario(two)
    assert open_scenario(two, '/b').record.enu[0][0] == pytest.approx(3.0)
    for arguments, text in (
            ([log], 'say with -o which scenario to write'),
            ([tmp_path / 'gone.yaml'], 'there is no such file'),
            ([tmp_path / 'gone.BIN', '-o', tmp_path / 'x.yaml'], 'there is no such file'),
            ([EXAMPLES / 'low_level_jet.yaml', '--plot', tmp_path / 'x.xyz'], 'x.xyz'),
            ([EXAMPLES / 'low_level_jet.yaml', '--plot', tmp_path / 'no/x.png'], 'No such file')):
        assert main([str(one) for one in arguments]) == 1
        assert text in capsys.readouterr().err
    bad = tmp_path / 'bad.yaml'
    bad.write_text('wind: {speed: -1}\nclock: x\n')
    assert main([str(bad)]) == 1
    assert [line.split(': ', 2)[2][:16] for line in capsys.readouterr().err.splitlines()] == [
        'line 1: wind: sp', 'line 2: scenario']


def test_the_examples_are_good_and_are_drawn(tmp_path, capsys):
    examples = sorted(EXAMPLES.glob('*.yaml'))
    assert len(examples) >= 4
    for example in examples:
        picture = tmp_path / f'{example.stem}.png'
        plotted = ['--plot', str(picture), '--seconds', '5'] if 'f' in example.name else []
        assert main([str(example), *plotted]) == 0
        assert not plotted or picture.read_bytes().startswith(b'\x89PNG')
    assert 'at 60 s' in capsys.readouterr().out


def test_the_report_shows_the_scenario_beside_what_was_flown(tmp_path):
    path = tmp_path / 'changing.yaml'
    path.write_text('changes: [{at: 2, over: 4, speed: 12, from: 10}]\n'
                    'profile: {power: {exponent: 0.2}}\n'
                    'gusts: [{at: 5, amplitude: 3, duration: 0.5}]\n')
    wind = open_scenario(path).mean_wind(MeanWind.of(6.0, 350.0))
    # Half-way the wind is set by hand, and no more that of the scenario.
    by_hand = [(0.0, lambda air: air.follow_mean_wind(wind)),
               (8.0, lambda air: air.configure(AirSettings(mean_speed=3.0)))]
    samples = list(fly(AirSettings(mean_speed=6.0, mean_from_deg=350.0), 10.0, changes=by_hand,
                       height=lambda t: 10.0 + t))
    for sample in samples:
        if sample.topic == '/wind/state':
            sample.message.scenario = str(path)
    flight = read_bag(write_bag(tmp_path / 'bag', iter(samples)))[0]
    assert len(flight.settings) == 1
    planned = planned_wind(open_scenario(path), flight, str(path), None)
    flown = np.hypot(flight.air.mean_enu[0], flight.air.mean_enu[1])
    followed = flight.air.t < 8.0
    assert planned[0, followed] == pytest.approx(flown[followed])
    assert planned[0, -1] == pytest.approx(12.0 * 2.0**0.2)
    assert planned[1, 80] == pytest.approx(0.0, abs=1e-6)
    sheet = Sheet('a', flight, None, ColumnStore())
    page = scenario_section(sheet)
    assert 'one_minus_cosine gust of 3 m/s over 0.5 s, along, at 5 s' in page
    # Not the section's own anchor, or the plot would take its place.
    assert [plot.key for plot in sheet.plots] == ['a-planned']
    path.unlink()
    assert 'there is no such file' in scenario_section(Sheet('a', flight, None, ColumnStore()))
