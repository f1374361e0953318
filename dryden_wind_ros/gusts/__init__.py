"""The air: pure Python and NumPy. No ROS, no MAVLink, no clock of its own."""
