#!/usr/bin/env bash
# Fly twenty campaigns of equal and unequal variants, and count what they claim; see --help.
#
#   scripts/campaign_soak.sh --campaigns 20
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
"$root/scripts/setup.sh"
# shellcheck source=scripts/env.sh
source "$root/scripts/env.sh"
cd -- "$root/test"
exec python -m support.campaign_soak "$@"
