"""What was flown, read back and measured: records of flights, their numbers, their page.

Nothing here imports rclpy: bags are read through ``rosbags``, on any machine.
"""
