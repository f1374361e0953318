"""Which vehicles share a Gazebo world: their ROS namespaces and their models in Gazebo."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

_NAMESPACE = re.compile(r'(/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*)?', re.ASCII)
_PART = re.compile(r'[^\s:,=/]+')

HOW = ('it must be a list like "uav1=iris_1::base_link, uav2=iris_2::base_link": the namespace '
       'of the wind topics, and after = the model in Gazebo with its canonical link after the '
       'last ::')


@dataclass(frozen=True)
class Vehicle:
    """One vehicle of a world.

    Attributes
    ----------
    namespace : str
        Of its topics, without a slash at the ends; '' is the namespace of the node that asks.
    model : str
        Scoped name of its model in Gazebo, e.g. ``iris_1``; '' if not given.
    link : str
        Scoped name of the canonical link of that model, e.g. ``iris_1::base_link``; '' if not
        given.
    """

    namespace: str
    model: str = ''
    link: str = ''

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self.namespace or self.model or 'the vehicle'

    def topic(self, name: str) -> str:
        """Return the name of one of its topics; relative while its namespace is."""
        return f'{self.namespace}/{name}' if self.namespace else name


def parse_vehicles(text: str, *, links: bool = False) -> tuple[Vehicle, ...]:
    """Read a list of vehicles.

    Parameters
    ----------
    text : str
        ``namespace`` or ``namespace=model::link``, separated by commas. Empty: one vehicle in the
        namespace of the node.
    links : bool, optional
        Whether model and link have to be given.

    Raises
    ------
    ValueError
        Naming what is wrong.

    Examples
    --------
    >>> parse_vehicles('uav1=iris_1::base_link')[0].link
    'iris_1::base_link'
    """
    vehicles = []
    for entry in text.split(','):
        namespace, equals, entity = (part.strip() for part in entry.partition('='))
        parts = entity.split('::')
        if not _NAMESPACE.fullmatch(namespace) or (not namespace and ',' in text) or (
                equals and not all(_PART.fullmatch(part) for part in parts)):
            raise ValueError(f'vehicles is {text!r}, with {entry.strip()!r} in it; {HOW}')
        if links and len(parts) < 2:
            raise ValueError(
                f'vehicles is {text!r}, and {entry.strip()!r} does not say which link the force '
                f'is to act on; {HOW}')
        model = entity if len(parts) == 1 else '::'.join(parts[:-1])
        vehicles.append(Vehicle(namespace, model, entity if len(parts) > 1 else ''))
    for what in ('namespace', 'model'):
        names = [getattr(v, what) for v in vehicles if what == 'namespace' or v.model]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f'vehicles is {text!r}; the {what} {twice[0]!r} is in it twice')
    return tuple(vehicles)


def missing_names(vehicle: Vehicle, models: Collection[str], links: Collection[str]) -> str:
    """Return what a world lacks of the names of a vehicle, in words; '' if it has them.

    Parameters
    ----------
    vehicle : Vehicle
        With model and link.
    models, links : collection of str
        Scoped names of what the world has.
    """
    if vehicle.model not in models:
        return (f'the world has no model {vehicle.model!r}; it has '
                + (', '.join(sorted(models)[:12]) or 'none'))
    if vehicle.link not in links:
        own = sorted(name for name in links if name.startswith(f'{vehicle.model}::'))
        return (f'the world has no link {vehicle.link!r}; the links of {vehicle.model} are '
                + (', '.join(own[:12]) or 'none'))
    return ''


def parse_instances(text: str) -> tuple[tuple[str, int], ...]:
    """Read a list of vehicles and their SITL instances.

    Parameters
    ----------
    text : str
        ``namespace=instance``, separated by commas. Without an instance, they are counted from 0.
        Empty: instance 0 in the namespace of the node.

    Returns
    -------
    tuple of (str, int)
        Namespace without a slash at the ends, and instance.

    Raises
    ------
    ValueError
        Naming what is wrong.

    Examples
    --------
    >>> parse_instances('uav1=0, uav2=3')
    (('uav1', 0), ('uav2', 3))
    """
    vehicles = []
    for count, entry in enumerate(text.split(',')):
        namespace, _, number = (part.strip() for part in entry.partition('='))
        instance = number or str(count)
        if not _NAMESPACE.fullmatch(namespace) or (not namespace and ',' in text) \
                or not re.fullmatch(r'\d{1,3}', instance, re.ASCII):
            raise ValueError(f'vehicles is {text!r}, with {entry.strip()!r} in it; it must be a '
                             'list like "uav1=0, uav2=1": namespace and SITL instance, 0 to 999')
        vehicles.append((namespace.strip('/'), int(instance)))
    for what, values in zip(('namespace', 'instance'), zip(*vehicles, strict=True), strict=True):
        if len(set(values)) < len(values):
            twice = next(value for value in values if values.count(value) > 1)
            raise ValueError(f'vehicles is {text!r}; the {what} {twice!r} is in it twice')
    return tuple(vehicles)
