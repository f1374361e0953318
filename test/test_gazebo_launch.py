"""gazebo.launch.py with the real launch packages, as far as it goes without a Gazebo."""

import subprocess

import pytest
from support import wait_until

pytestmark = [pytest.mark.ros2, pytest.mark.ros2launch]


def installed(package):
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix
    try:
        return bool(get_package_prefix(package))
    except PackageNotFoundError:
        return False


def run(folder, *arguments):
    """Run ros2 launch to its own end; return the exit code and what it said."""
    ended = subprocess.run(
        ['ros2', 'launch', 'dryden_wind_ros', 'gazebo.launch.py', *arguments], cwd=folder,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize(('arguments', 'package'), [
    (['gz_sim:=true'], 'ros_gz_sim'), ([], 'ros_gz_bridge')])
def test_a_package_of_gazebo_that_is_missing_is_named_with_its_ubuntu_package(
        tmp_path, arguments, package):
    if installed(package):
        pytest.skip(f'{package} is installed')
    code, text = run(tmp_path, *arguments)
    assert code == 1
    assert f'needs the package {package}' in text
    assert f'-{package.replace("_", "-")}' in text
    assert 'process started' not in text


@pytest.mark.parametrize(('arguments', 'named'), [
    (['vehicles:=a,b'], 'a Gazebo world has one wind'),
    (['mode:=wrench', 'vehicles:=a=iris'], 'does not say which link'),
    (['drag_area_x:=wide'], "launch argument drag_area_x is 'wide'"),
    (['params_file:=/no/such.yaml'], "params_file is '/no/such.yaml'"),
    (['gusts:=sitl'], 'gusts')])
def test_a_bad_argument_is_named_and_nothing_is_started(tmp_path, arguments, named):
    code, text = run(tmp_path, 'bridge:=false', *arguments)
    assert code == 1
    assert named in text
    assert 'process started' not in text


def test_each_vehicle_has_a_wind_node_on_gazebos_clock_and_a_seed_of_its_own(tmp_path):
    # gazebo_wind ends at once without the bindings or ros_gz_interfaces, and launch with it.
    if installed('ros_gz_interfaces'):
        pytest.skip('ros_gz_interfaces is installed: the launch would not end')
    code, text = run(tmp_path, 'bridge:=false', 'mode:=wrench', 'mean_wind_speed:=8', 'seed:=3',
                     'vehicles:=uav1=iris_1::base_link,uav2=iris_2::base_link')
    assert 'ros-gz-interfaces' in text
    assert 'gazebo_wind-3]: process has died' in text
    seeds = {part.split(',')[0] for part in text.split('Dryden gusts (seed ')[1:]}
    for name in ('uav1', 'uav2'):
        wait_until(lambda: f'waiting for /clock and /{name}/odom' in text, 0.0,  # noqa: B023
                   f'{name} on the clock of Gazebo')
    assert len(seeds) == 2
    assert code in (0, 1)
