"""Recorded flights: one reader each for dataflash logs, telemetry logs and bags.

Nothing in here knows rclpy or a socket. `reader.read_flights` opens any of them.
"""
