"""ArduPilot over MAVLink: the link, the parameters and the embedded vehicle."""
