"""Seeded Dryden gusts for ArduPilot SITL and Gazebo, and what EKF3 believes about the wind."""
