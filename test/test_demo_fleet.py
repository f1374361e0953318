"""What the demo says of a gust that passes along a formation."""

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from dryden_wind_ros.gusts.field import TurbulenceField
from dryden_wind_ros.tools import demo_fleet


def test_a_vehicle_downwind_meets_the_gusts_of_the_one_upwind_later(tmp_path):
    """16 m further at 8 m/s: 2 s later, nearly the same."""
    field, times = TurbulenceField(7, modes=256), np.arange(1200) * 0.05
    states = []
    for i in range(2):
        places = np.column_stack((np.full(1200, i * demo_fleet.SPACING_M), np.zeros(1200),
                                  np.full(1200, 10.0)))
        states.append([SimpleNamespace(air_time=t, u=u) for t, u in zip(
            times.tolist(), field.gust(places, times, (8.0, 0.0, 0.0))[:, 0], strict=True)])
    common, gusts = demo_fleet.gusts_by_time([states[0][3:], states[1]])
    assert common[0] == pytest.approx(0.15)
    lag, alike = demo_fleet.delay(*gusts)
    assert lag == pytest.approx(2.0, abs=0.051)
    assert alike > 0.95
    path = demo_fleet.passing_picture(common, gusts, 'two', tmp_path / 'out' / 'two.png')
    with Image.open(path) as image:
        assert image.size[0] > 1000
