# shellcheck shell=bash disable=SC2154,SC2296
# Source this to use the environment that scripts/setup.sh made (bash or zsh, from anywhere):
#
#   source path/to/scripts/env.sh
#
# It changes variables of this shell only: PATH and what ROS looks things up in. Sourcing it twice
# does no harm. DRYDEN_WIND_ENV then names the environment.

# The word after :- is zsh's; bash does not look at it.
_dw_root="${BASH_SOURCE[0]:-${(%):-%x}}"
_dw_root="$(CDPATH='' cd -- "$(dirname -- "$_dw_root")/.." && pwd -P)"

# On top of a ROS installation that is sourced, or all from PyPI; see setup.sh.
if [ "${DRYDEN_WIND_ENV:-}" = "$_dw_root/.venv" ] || [ "${DRYDEN_WIND_ENV:-}" = "$_dw_root/.venv-ros" ]; then
    _dw_env="$DRYDEN_WIND_ENV"
elif [ -z "${DRYDEN_WIND_ENV:-}" ] && [ -n "${ROS_DISTRO:-}${AMENT_PREFIX_PATH:-}" ]; then
    _dw_env="$_dw_root/.venv-ros"
else
    _dw_env="$_dw_root/.venv"
fi

if [ ! -f "$_dw_env/.setup/ready" ] && [ -z "${DRYDEN_WIND_SETUP:-}" ]; then
    echo "env.sh: $_dw_env is not set up (or only in part). Run: $_dw_root/scripts/setup.sh" >&2
    unset _dw_root _dw_env
    # shellcheck disable=SC2317
    return 1 2>/dev/null || exit 1
fi

_dw_prepend() { # NAME DIRECTORY...: put in front of a list of paths what is not in it
    _dw_name="$1"
    shift
    for _dw_item in "$@"; do
        eval "_dw_list=\"\${$_dw_name:-}\""
        case ":$_dw_list:" in
            *":$_dw_item:"*) ;;
            *) eval "export $_dw_name=\"\$_dw_item\${_dw_list:+:\$_dw_list}\"" ;;
        esac
    done
}

export DRYDEN_WIND_ENV="$_dw_env" VIRTUAL_ENV="$_dw_env"
_dw_prepend PATH "$_dw_env/bin"
_dw_prepend AMENT_PREFIX_PATH "$_dw_env"
_dw_prepend CMAKE_PREFIX_PATH "$_dw_env"
if [ -f "$_dw_env/.setup/library_path" ]; then
    # The wheels find their libraries by LD_LIBRARY_PATH, and would start every interpreter twice to
    # set it; the second variable tells them that it has been done.
    _dw_prepend LD_LIBRARY_PATH "$(cat "$_dw_env/.setup/library_path")"
    export _ROS_WHEELS_BOOTSTRAP_COMPLETE=1
    export RMW_IMPLEMENTATION=rmw_fastrtps_cpp # the only one there is on PyPI
else
    # The installation's own tools (ros2 topic echo ...) must find the messages too.
    _dw_prepend LD_LIBRARY_PATH "$_dw_env/lib"
    for _dw_item in "$_dw_env"/lib/python3.*/site-packages; do
        _dw_prepend PYTHONPATH "$_dw_item"
    done
fi

unset -f _dw_prepend
unset _dw_root _dw_env _dw_name _dw_item _dw_list
