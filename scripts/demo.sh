#!/usr/bin/env bash
# Set up (seconds if nothing changed), then fly the embedded vehicle in seeded gusts for two minutes
# of sim time, measure the air and draw it. With a SITL of yours instead:
#
#   scripts/demo.sh --connection tcp:127.0.0.1:5762
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
"$root/scripts/setup.sh"
# shellcheck source=scripts/env.sh
source "$root/scripts/env.sh"
exec python -m dryden_wind_ros.tools.demo "$@"
