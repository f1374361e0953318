"""A discrete gust on its way: from the air over MAVLink into the wind that SITL flies."""

import math

import numpy as np
import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support.autopilot import Pilot, param_set

from dryden_wind_ros.emulator.config import VehicleConfig
from dryden_wind_ros.gusts.air import SeededAir
from dryden_wind_ros.gusts.air_settings import AirSettings
from dryden_wind_ros.gusts.scenario import ScenarioGusts
from dryden_wind_ros.gusts.scenario_file import load
from dryden_wind_ros.sitl.odometry import OdometryBuilder


def test_a_certification_gust_reaches_sitl_with_its_peak_in_size_and_time(tmp_path):
    # 15 m at 20 m/s: the peak is 0.75 s after the begin. CS 25.341 at sea level:
    # U_ds = 17.07 m/s (15 / 107)^(1/6) = 12.30 m/s.
    begin, peak = 32.0, 17.07 * (15.0 / 107.0)**(1.0 / 6.0)
    file = tmp_path / 'gust.yaml'
    file.write_text('wind: {speed: 0, from: 270}\n'
                    'changes: [{at: 12, over: 10, speed: 20}]\n'
                    f'gusts: [{{at: {begin}, length: 15, direction: up, altitude: 0}}]\n')
    scenario = load(file)
    air = SeededAir(AirSettings(gusts='off'))
    air.follow_mean_wind(scenario.mean_wind(air.settings.mean))
    air.add_gust(ScenarioGusts(scenario))
    pilot, builder = Pilot(VehicleConfig(kind='copter', flight='hover')), OdometryBuilder()
    for name, interval in (('SYSTEM_TIME', 0.025), ('ATTITUDE', 0.05),
                           ('LOCAL_POSITION_NED', 0.05), ('GLOBAL_POSITION_INT', 0.05)):
        pilot.ask(getattr(mavlink, f'MAVLINK_MSG_ID_{name}'), interval)
    pilot.send(param_set('SIM_WIND_TC', 0.1), param_set('SIM_WIND_T', 1.0))
    flown, passing = [], []
    while pilot.t < begin + 3.0:
        for message in pilot.tick():
            sample = builder.update(message)
            if sample is not None:
                air.odometry(sample.time_ms * 1_000_000, sample.position, sample.velocity_enu)
            if message.get_type() != 'SYSTEM_TIME':
                continue
            tick = air.advance(message.time_boot_ms * 1_000_000).tick
            if tick is not None:
                wind = tick.sim_wind
                pilot.send(param_set('SIM_WIND_SPD', wind.speed),
                           param_set('SIM_WIND_DIR', wind.direction),
                           param_set('SIM_WIND_DIR_Z', wind.direction_z))
        if pilot.t > begin - 1.0:
            flown.append((pilot.t, pilot.autopilot.true_wind()[2]))
            passing.append(math.dist(air.newest.mean_enu, air.newest.at.velocity))
    assert passing == pytest.approx([20.0] * len(passing), rel=0.01)
    t, up = np.array(flown).T
    assert up.max() == pytest.approx(peak, rel=0.03)
    assert t[up.argmax()] == pytest.approx(begin + 0.75, abs=0.05)
    # Not the peak alone: the gust as a whole is where and what it should be.
    assert np.average(t, weights=up) == pytest.approx(begin + 0.75, abs=0.05)
    due = np.where(abs(t - begin - 0.75) < 0.75,
                   0.5 * peak * (1.0 - np.cos(np.pi * (t - begin) / 0.75)), 0.0)
    assert abs(up - due).max() < 0.15 * peak  # a wind is held for 0.05 s, in which it rises by 10 %
