"""The command line of the embedded vehicle: its arguments, and the vehicles that they ask for."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from dryden_wind_ros.emulator.config import (
    CLOCKS,
    FLIGHTS,
    KINDS,
    REFUSALS,
    Home,
    VehicleConfig,
)
from dryden_wind_ros.emulator.parameters import default_parameters, read_parameter_file
from dryden_wind_ros.emulator.ports import parse_endpoint

FORMATIONS = ('line', 'square')


def _assignment(text: str) -> tuple[str, float]:
    name, equals, value = text.partition('=')
    try:
        if not equals or not name:
            raise ValueError
        return name, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f'{text!r} is not NAME=VALUE') from None


def _home(text: str) -> Home:
    try:
        return Home.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Shows a default only where it tells something."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default in (None, False, []):
            return action.help
        return super()._get_help_string(action)


def command_line() -> argparse.ArgumentParser:
    """Return the parser of sitl_emulator's arguments."""
    parser = argparse.ArgumentParser(
        prog='sitl_emulator', formatter_class=_Help,
        description='A MAVLink vehicle that behaves as ArduPilot SITL does, for demos and tests '
                    'without ArduPilot: SIM_WIND_* through its real filter, EKF3 wind phases, '
                    'restarts. Connect to it as to SITL, e.g. tcp:127.0.0.1:5762.')
    vehicle = parser.add_argument_group('vehicle')
    vehicle.add_argument('--vehicle', choices=KINDS, default='copter', help='kind of vehicle')
    vehicle.add_argument('-I', '--instance', type=int, default=0,
                         help='SITL instance: ports 5760, 5762, 5763 plus ten times this')
    vehicle.add_argument('--sysid', type=int, default=1,
                         help='MAVLink system id (SITL: 1 for every instance); '
                              'with --count, of the first vehicle')
    vehicle.add_argument('--count', type=int, default=1,
                         help='so many vehicles in this process: instances and system ids from '
                              '--instance and --sysid on')
    vehicle.add_argument('--home', type=_home, action='append', metavar='LAT,LON,ALT[,HEADING]',
                         help='where it stands, degrees and m (default: -35.363261,149.16523,584,'
                              '270); may be given again, once a vehicle')
    vehicle.add_argument('--spacing', type=float, default=0.0, metavar='M',
                         help='with --count: metres between neighbours; the first stands at --home')
    vehicle.add_argument('--formation', choices=FORMATIONS, default='line',
                         help='with --spacing: a line towards the east, or a square that fills '
                              'row by row, eastwards and then northwards')
    vehicle.add_argument('--drag', action='store_true',
                         help='copter: drag fusion on, so that EKF3 estimates wind')
    vehicle.add_argument('--dynamics', action='store_true',
                         help='copter: the air blows it off its set point, and the gains PSC_* '
                              'and ATC_* bring it back (without: it is exactly there)')
    vehicle.add_argument('--no-airspeed', action='store_true',
                         help='plane: no airspeed sensor in use')
    flight = parser.add_argument_group('flight')
    flight.add_argument('--flight', choices=FLIGHTS, default='none',
                        help='none: stand disarmed, as SITL does; hover: take off and stay; '
                             'loiter: take off and circle (wings); auto: take off, 60 s, land')
    flight.add_argument('--takeoff-alt', type=float, metavar='M',
                        help='height of the take-off, m; 10 copter, 80 plane, 30 quadplane '
                             'unless given')
    flight.add_argument('--origin-after', type=float, default=3.0, metavar='S',
                        help='seconds after boot until EKF3 has an origin and uses GPS (SITL: 20 '
                             'plane, 41 copter)')
    clock = parser.add_argument_group('time')
    clock.add_argument('--speedup', type=float, default=1.0,
                       help='sim seconds per wall second, 0.1 to 50; 0: as fast as possible')
    clock.add_argument('--clock-jitter', choices=CLOCKS, default='auto',
                       help="plane: 50 Hz main loop, a 20 Hz SYSTEM_TIME comes 40 and 60 ms apart; "
                            "even: 400 Hz loop; auto: the vehicle's own")
    link = parser.add_argument_group('link')
    link.add_argument('--connection', action='append', metavar='STRING', default=None,
                      help='tcp:HOST:PORT (a server), udpout:HOST:PORT or udpin:HOST:PORT instead '
                           "of SITL's ports; may be given again; with --count, PORT rises by ten")
    link.add_argument('--host', default='127.0.0.1', help="address for SITL's ports")
    link.add_argument('--wait-client', action='store_true',
                      help='as SITL does by default: do not run, nor open the other ports, before '
                           'a client has joined the first')
    parameters = parser.add_argument_group('parameters')
    parameters.add_argument('--param', action='append', type=_assignment, metavar='NAME=VALUE',
                            default=[], help='default of a parameter; may be given again')
    parameters.add_argument('--defaults', action='append', type=Path, metavar='FILE', default=[],
                            help='.parm file of defaults (unknown names are reported and skipped)')
    parameters.add_argument('--eeprom', type=Path, metavar='FILE',
                            help='keeps saved parameters over restarts of this program')
    parameters.add_argument('--without-param', action='append', metavar='NAME', default=[],
                            help='a version without this parameter, e.g. SIM_WIND_TC')
    parameters.add_argument('--no-sim-params', action='store_true',
                            help='a vehicle that is no simulator: no SIM_ parameters')
    parameters.add_argument('--refuse', action='append', metavar='NAME', default=[],
                            help='a parameter that cannot be written')
    parameters.add_argument('--refusal', choices=REFUSALS, default='error',
                            help='answer to a bad write: PARAM_ERROR, nothing, or the old value')
    faults = parser.add_argument_group('faults')
    faults.add_argument('--echo-loss', type=float, default=0.0, metavar='FRACTION',
                        help='PARAM_VALUE echoes lost')
    faults.add_argument('--clock-loss', type=float, default=0.0, metavar='FRACTION',
                        help='SYSTEM_TIME messages lost')
    faults.add_argument('--ignore-wind', action='store_true',
                        help='take SIM_WIND_* and fly in still air, as with an external simulator')
    faults.add_argument('--seed', type=int, default=1, help='of all that is random here')
    output = parser.add_argument_group('output')
    output.add_argument('--truth', type=Path, metavar='FILE',
                        help="CSV of the true phase of EKF3's wind (with --count: one vehicle)")
    output.add_argument('--winds', type=Path, metavar='FILE',
                        help='JSON of how regularly each vehicle is given winds, written when '
                             'the program gets SIGUSR1')
    output.add_argument('--quiet', action='store_true', help='print nothing but errors')
    return parser


def configurations(options: argparse.Namespace, say: Callable[[str], None]) -> list[VehicleConfig]:
    """Return one configuration a vehicle; ValueError with the reason where they make no sense."""
    if not 1 <= options.count <= 255:
        raise ValueError(f'--count {options.count} is not from 1 to 255')
    homes = _homes(options)
    config = VehicleConfig(
        kind=options.vehicle, instance=options.instance, host=options.host, sysid=options.sysid,
        speedup=options.speedup, flight=options.flight, takeoff_altitude=options.takeoff_alt,
        eeprom=options.eeprom, clock=options.clock_jitter, drag=options.drag,
        dynamics=options.dynamics, airspeed=not options.no_airspeed, echo_loss=options.echo_loss,
        clock_loss=options.clock_loss, ignore_wind=options.ignore_wind, seed=options.seed,
        without_parameters=tuple(options.without_param), simulator=not options.no_sim_params,
        refused_parameters=tuple(options.refuse), refusal=options.refusal,
        origin_after=options.origin_after, wait_for_client=options.wait_client,
        truth=options.truth, connections=tuple(options.connection or ()))
    known = default_parameters(config)
    from_files = []
    for path in options.defaults:
        for name, value in read_parameter_file(path):
            if name in known:
                from_files.append((name, value))
            else:
                say(f'{path}: {name} is not emulated, skipped')
    config = replace(config, parameters=(*from_files, *options.param))
    default_parameters(config)
    if options.count > 1 and (options.truth is not None or options.eeprom is not None):
        raise ValueError('--truth and --eeprom are files of one vehicle: not with --count')
    configs = []
    for number in range(options.count):
        connections = []
        for text in config.connections:
            scheme, host, port = parse_endpoint(text)
            connections.append(f'{scheme}:{host}:{port + 10 * number}')
        configs.append(replace(config, instance=config.instance + number,
                               sysid=config.sysid + number, seed=config.seed + number,
                               home=homes[number], connections=tuple(connections)))
    return configs


def _homes(options: argparse.Namespace) -> list[Home]:
    """Return where each vehicle stands."""
    count, spacing, given = options.count, options.spacing, options.home or [Home()]
    if not (math.isfinite(spacing) and 0.0 <= spacing <= 10_000.0):
        raise ValueError(f'--spacing {spacing:g} is not from 0 to 10000 m')
    if len(given) > 1:
        if len(given) != count:
            raise ValueError(f'--home is given {len(given)} times for {count} vehicles: '
                             'give it once, or once a vehicle')
        if spacing:
            raise ValueError('--spacing is for vehicles without a --home of their own')
        return list(given)
    row = count if options.formation == 'line' else math.ceil(math.sqrt(count))
    return [given[0].moved(number // row * spacing, number % row * spacing)
            for number in range(count)]


def joined(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with ``--home -35.3,...`` as one: else argparse sees two options."""
    found: list[str] = []
    for argument in arguments:
        if found and found[-1] == '--home' and argument[:1] == '-' and argument[1:2].isdigit():
            found[-1] = f'--home={argument}'
        else:
            found.append(argument)
    return found
