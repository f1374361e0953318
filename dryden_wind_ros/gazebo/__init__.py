"""Wind for Gazebo: what can be said without a Gazebo, and one module that speaks to it."""
