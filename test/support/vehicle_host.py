"""Program for tests: the embedded vehicle with its faults at hand.

``python -m support.vehicle_host CONFIG`` runs a vehicle; CONFIG is JSON, the fields of
`VehicleConfig`. It obeys lines on its standard input: ``shift SECONDS``, ``freeze``, ``thaw``,
``reboot``, ``drop``.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path

from dryden_wind_ros.emulator.main import EmbeddedVehicle, VehicleConfig


def config(text: str) -> VehicleConfig:
    fields = json.loads(text)
    for name in ('connections', 'parameters'):
        fields[name] = tuple(tuple(entry) if isinstance(entry, list) else entry
                             for entry in fields.get(name, ()))
    if 'eeprom' in fields:
        fields['eeprom'] = Path(fields['eeprom'])
    return VehicleConfig(**fields)


def main() -> None:
    vehicle = EmbeddedVehicle(config(sys.argv[1]), lambda text: print(text, flush=True))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: vehicle.stop())

    def obey() -> None:
        vehicle.started.wait()
        print('started', flush=True)
        for line in sys.stdin:
            command, *numbers = line.split()
            {'shift': vehicle.shift_clock, 'freeze': lambda: vehicle.freeze(True),
             'thaw': lambda: vehicle.freeze(False), 'reboot': vehicle.reboot,
             'drop': vehicle.drop_clients}[command](*map(float, numbers))

    threading.Thread(target=obey, daemon=True).start()
    vehicle.run()


if __name__ == '__main__':
    main()
