"""sitl_wind_relay in a real ROS graph, between a SITL and a physics on real sockets."""

import json
import socket

import pytest
import rclpy
from geometry_msgs.msg import TwistWithCovarianceStamped
from support import free_port, wait_until
from support.processes import Program
from test_json_relay import Physics, servos

from dryden_wind_ros.nodes import common

pytestmark = pytest.mark.ros2

MODULE = 'dryden_wind_ros.nodes.sitl_wind_relay'


def parameters(**values):
    return ['--ros-args', *(word for name, value in values.items()
                            for word in ('-p', f'{name}:={value}'))]


def test_each_sitl_gets_the_wind_of_its_own_vehicle_and_the_relay_ends_cleanly(tmp_path):
    sitl_port, physics_port = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
    program = Program(tmp_path / 'relay.log', MODULE, *parameters(
        vehicles='one=0,two=1', sitl_port=sitl_port, physics_port=physics_port))
    physics = []
    rclpy.init()
    user = rclpy.create_node('user')
    sitl = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sitl.settimeout(5.0)
    try:
        physics += [Physics(physics_port), Physics(physics_port + 10)]
        publishers = [user.create_publisher(
            TwistWithCovarianceStamped, f'/{name}/wind', common.STREAM_QOS)
            for name in ('one', 'two')]
        wait_until(lambda: program.alive() and all(p.get_subscription_count() for p in publishers),
                   30, 'the relay to hear the winds')
        for publisher, east in zip(publishers, (8.0, -3.0), strict=True):
            message = TwistWithCovarianceStamped()
            message.twist.twist.linear.x, message.twist.twist.linear.z = east, 0.5
            publisher.publish(message)

        def told(instance):
            sitl.sendto(servos(1), ('127.0.0.1', sitl_port + 10 * instance))
            return json.loads(sitl.recv(65_507)).get('velocity_wind')

        # NED of winds towards the east with an updraft of half a metre per second.
        for instance, wind in ((0, [0.0, 8.0, -0.5]), (1, [0.0, -3.0, -0.5])):
            wait_until(lambda instance=instance, wind=wind: told(instance) == wind, 10,
                       f'the wind {wind} in the answers of instance {instance}')
        assert program.stop() == 0
        assert 'Traceback' not in program.text
    finally:
        program.process.kill()
        sitl.close()
        user.destroy_node()
        rclpy.shutdown()
        for side in physics:
            side.close()


@pytest.mark.parametrize(('values', 'words'), [
    ({'physics_address': '10.0.0.7'}, 'physics_address is 10.0.0.7, which is not of this machine'),
    ({'sitl_address': 'here'}, "sitl_address is 'here'"),
    ({'vehicles': 'one=0,two=0'}, 'the instance 0 is in it twice'),
    ({'sitl_port': 9002}, 'sitl_port and physics_port are both 9002'),
    ({'vehicles': 'one=999', 'physics_port': 60000}, 'up to 69990'),
])
def test_a_bad_parameter_ends_it_with_one_message(tmp_path, values, words):
    program = Program(tmp_path / 'relay.log', MODULE, *parameters(**values))
    assert program.wait(30.0) == 2
    assert words in program.text
    assert 'Traceback' not in program.text
