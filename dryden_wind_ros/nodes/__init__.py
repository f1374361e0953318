"""Thin rclpy nodes: declare, subscribe, call the other rooms, publish."""
