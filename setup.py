from glob import glob

from setuptools import find_packages, setup

package_name = 'dryden_wind_ros'

setup(
    name=package_name,
    version='0.1.0',
    packages=find_packages(include=[package_name, f'{package_name}.*']),
    package_data={package_name: ['py.typed'], f'{package_name}.nodes': ['fast_dds.xml'],
                  f'{package_name}.report': ['page.css', 'page.js']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{package_name}']),
        (f'share/{package_name}', ['package.xml']),
        (f'share/{package_name}/launch', glob('launch/*.launch.py')),
        (f'share/{package_name}/config', glob('config/*.*')),
        (f'share/{package_name}/config/scenarios', glob('config/scenarios/*')),
        (f'share/{package_name}/config/campaigns', glob('config/campaigns/*')),
    ],
    install_requires=[
        'setuptools', 'numpy', 'pymavlink', 'pyserial', 'transforms3d', 'pyyaml', 'rich',
        'matplotlib', 'scipy'],
    extras_require={
        'test': ['pytest', 'pytest-timeout', 'pytest-xdist', 'hypothesis'],
        'campaign': ['dask', 'distributed', 'pandas', 'pyarrow', 'plotly']},
    zip_safe=True,
    maintainer='dryden_wind_ros maintainers',
    maintainer_email='maintainers@users.noreply.a-seed-f9281f3a.example',
    description='Seeded Dryden gusts for ArduPilot SITL and Gazebo, and EKF3 wind phases.',
    license='Apache-2.0',
    entry_points={
        'console_scripts': [
            'dryden_wind = dryden_wind_ros.nodes.dryden_wind:main',
            'mavlink_bridge = dryden_wind_ros.nodes.mavlink_bridge:main',
            'wind_fleet = dryden_wind_ros.nodes.wind_fleet:main',
            'gazebo_wind = dryden_wind_ros.nodes.gazebo_wind:main',
            'sitl_wind_relay = dryden_wind_ros.nodes.sitl_wind_relay:main',
            'wind_markers = dryden_wind_ros.nodes.wind_markers:main',
            'wind_record = dryden_wind_ros.nodes.wind_record:main',
            'ekf_replay = dryden_wind_ros.tools.ekf_replay:main',
            'ekf_wind_log = dryden_wind_ros.tools.ekf_wind_log:main',
            'wind_top = dryden_wind_ros.tools.wind_top:main',
            'sitl_emulator = dryden_wind_ros.emulator.main:main',
            'wind_report = dryden_wind_ros.tools.wind_report:main',
            'wind_campaign = dryden_wind_ros.tools.wind_campaign:main',
            'wind_scenario = dryden_wind_ros.tools.wind_scenario:main',
        ],
    },
)
