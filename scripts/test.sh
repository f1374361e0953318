#!/usr/bin/env bash
# Set up (seconds if nothing changed), then lint, type check and test. Arguments go to pytest:
#
#   scripts/test.sh
#   scripts/test.sh -k history -x
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
"$root/scripts/setup.sh"
# shellcheck source=scripts/env.sh
source "$root/scripts/env.sh"
cd -- "$root"

# The tests run even where the linters complain: one run tells all.
complaints=()
echo '== ruff check' && ruff check . || complaints+=('ruff check')
echo '== mypy' && mypy || complaints+=(mypy)
if ((${#complaints[@]})); then
    printf 'test.sh: %s found something (above); this run will fail\n' "${complaints[@]}" >&2
fi

# Most tests wait for something: five at a time keep two cores busy.
echo '== pytest, in five processes'
python -m pytest --numprocesses 5 --dist loadfile --no-loadscope-reorder "$@"
((${#complaints[@]} == 0))
