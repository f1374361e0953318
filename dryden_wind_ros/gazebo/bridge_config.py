"""Configuration of ros_gz_bridge for a world and its vehicles, made from config/gazebo_bridge.yaml.

That file fits one vehicle of the world next to it, and is the pattern for all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dryden_wind_ros.gazebo.vehicles import Vehicle
from dryden_wind_ros.gazebo.world_name import gz_name, ros_name

PATTERN_WORLD = 'dryden_wind'
PATTERN_MODEL = 'vehicle'

Entry = Mapping[str, object]


def expand(pattern: Sequence[Entry], world: str, vehicles: Sequence[Vehicle]) -> list[Entry]:
    """Return the entries of the pattern for a world and vehicles.

    Parameters
    ----------
    pattern : sequence of mapping
        Entries as ros_gz_bridge reads them, for world `PATTERN_WORLD` and model `PATTERN_MODEL`.
    world : str
        Name of the world, put in the place of the pattern's.
    vehicles : sequence of Vehicle
        Entries whose Gazebo topic speaks of the pattern's model are repeated for each: with its
        model, and with its ROS topic in its namespace. A vehicle without a model has one of the
        name of its namespace, or the pattern's.

    Returns
    -------
    list of dict
    """
    names = {'gz_topic_name': gz_name(world), 'ros_topic_name': ros_name(world)}
    entries: list[Entry] = []
    for entry in pattern:
        named = {key: value.replace(f'/world/{PATTERN_WORLD}/', f'/world/{names.get(key, world)}/')
                 if isinstance(value, str) else value for key, value in entry.items()}
        of_model = f'/model/{PATTERN_MODEL}/'
        gz_topic, ros_topic = str(named.get('gz_topic_name')), str(named.get('ros_topic_name'))
        if of_model not in gz_topic:
            entries.append(named)
            continue
        for vehicle in vehicles:
            namespace = vehicle.namespace.strip('/')
            # OdometryPublisher names its topic after the model alone, also where it is nested.
            model = (vehicle.model.rpartition('::')[2] or namespace.rpartition('/')[2]
                     or PATTERN_MODEL)
            entries.append(named | {
                'gz_topic_name': gz_topic.replace(of_model, f'/model/{model}/'),
                'ros_topic_name': f'/{namespace}{ros_topic}' if namespace else ros_topic})
    return entries
