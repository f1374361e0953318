"""Thin rclpy nodes: declare, subscribe, call the rooms beside this one, publish."""

from dryden_wind_ros import ending

# A node spends its first seconds importing. When another node refuses its parameters in that time,
# launch interrupts this one, and a traceback from somewhere in NumPy buries the line that matters.
ending.listen_early('dryden_wind', 'gazebo_wind', 'mavlink_bridge', 'sitl_wind_relay', 'wind_fleet',
                    'wind_markers', 'wind_record')
