"""Two minutes of ticks by column."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryden_wind_ros.gusts.history import COLUMNS, WindHistory


def filled(count, missing=()):
    history = WindHistory()
    for k in range(1, count + 1):
        if k not in missing:
            history.record(k, [k * 0.05] + [float(k)] * (len(COLUMNS) - 1))
    return history


def test_it_keeps_the_newest_two_minutes():
    columns = filled(5000).columns()
    assert len(columns['t']) == 2400
    assert columns['t'][-1] == pytest.approx(250.0)
    assert columns['t'][0] == pytest.approx(250.0 - 120.0 + 0.05)
    assert set(columns) == set(COLUMNS)


def test_ten_seconds_are_200_ticks_in_order():
    t = filled(3000).columns(seconds=10.0)['t']
    assert len(t) == 200
    assert np.allclose(np.diff(t), 0.05)


def test_any_resolution_counted_back_from_the_newest():
    t = filled(3000).columns(seconds=10.0, step=0.5)['t']
    assert t == pytest.approx(150.0 - 0.5 * np.arange(19, -1, -1))


def test_a_resolution_between_ticks_takes_the_tick_before():
    t = filled(40).columns(step=0.12)['t']
    # 2.0, 1.88, 1.76 ... -> the newest multiples of 0.05 not after them
    assert t[-4:] == pytest.approx([1.60, 1.75, 1.85, 2.0])


def test_a_hole_is_bridged_by_the_tick_before_it_and_never_repeated():
    t = filled(100, missing=range(40, 60)).columns(step=0.2)['t']
    assert len(set(t.tolist())) == len(t)
    assert 39 * 0.05 in t


@pytest.mark.parametrize(('seconds', 'step', 'named'), [
    (-1.0, 0.0, 'seconds is -1'), (math.nan, 0.0, 'seconds is nan'), (121.0, 0.0, 'seconds is 121'),
    (0.0, -0.1, 'step is -0.1'), (0.0, math.nan, 'step is nan'), (0.0, math.inf, 'step is inf')])
def test_a_bad_request_is_named_and_loses_nothing(seconds, step, named):
    history = filled(10)
    with pytest.raises(ValueError, match=named):
        history.columns(seconds, step)
    assert len(history) == 10


def test_nothing_recorded_is_an_empty_answer():
    assert [len(c) for c in WindHistory().columns(10.0, 0.5).values()] == [0] * len(COLUMNS)


@given(st.integers(0, 3000), st.floats(0.0, 120.0), st.floats(0.0, 120.0))
def test_rows_are_recorded_ticks_in_order_each_once(count, seconds, step):
    t = filled(count).columns(seconds, step)['t']
    assert np.all(np.diff(t) > 0.04)
    if count:
        assert t[-1] == pytest.approx(count * 0.05)
