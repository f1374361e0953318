#!/usr/bin/env bash
# Start and end nodes by the hundred under load, with signals at random moments; see --help.
#
#   scripts/soak.sh --count 200
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
"$root/scripts/setup.sh"
# shellcheck source=scripts/env.sh
source "$root/scripts/env.sh"
cd -- "$root/test"
exec python -m support.soak "$@"
