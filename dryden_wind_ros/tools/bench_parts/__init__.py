"""Parts of the bench, and the processes they need."""

from dryden_wind_ros import ending

# Those processes are started by `python -m`
ending.listen_early()
