"""What is put into messages has the very types that their C code asserts."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.ros2


@pytest.mark.parametrize(('variance', 'true'), [(0.0, False), (1e-4, True), (0.5, False)])
def test_truth_is_a_bool_of_pythons_own(variance, true):
    from nav_msgs.msg import Odometry

    from dryden_wind_ros.nodes.wind_messages import tells_truth
    odometry = Odometry()
    odometry.pose.covariance[0] = variance
    assert tells_truth(odometry) is true
