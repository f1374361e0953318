"""How to hold a changing force on a link of Gazebo with messages that only add and clear.

Gazebo's ApplyLinkWrench (gz-sim 8 to 10) has ``wrench``, which acts for a single physics step, and
``wrench/persistent``, which stays. A force of 20 Hz is to act in all fifty physics steps between
two ticks, so it has to be persistent. But persistent wrenches *add up*, and ``wrench/clear``
removes all wrenches of an entity, those included that arrive in the same physics step.

So two names of the same link take turns: the model (whose wrench acts on its canonical link) and
that link itself. At each tick the new force goes to one name and the other name is cleared. A name
is never given a force in the tick in which it is cleared; what is lost or late is put right by the
next tick, and forces never pile up. While the two messages of a tick arrive in different physics
steps, both or none of the forces act for that moment.

Source: ``src/systems/apply_link_wrench/ApplyLinkWrench.cc`` and ``entityFromMsg`` in
``src/Util.cc`` of gz-sim.
"""

from __future__ import annotations

from dataclasses import dataclass

MODEL = 2
LINK = 3
"""Entity types, as in ros_gz_interfaces/Entity and gz.msgs.Entity."""


@dataclass(frozen=True)
class Target:
    """A name for the link: `kind` is `MODEL` or `LINK`."""

    name: str
    kind: int


@dataclass(frozen=True)
class Turn:
    """What to do at a tick: give the force to `add`, clear `clear`."""

    add: Target
    clear: Target


class WrenchCycle:
    """Whose turn it is.

    Parameters
    ----------
    model, link : str
        Scoped names of a model and of its canonical link.
    """

    def __init__(self, model: str, link: str) -> None:
        self._now = Target(model, MODEL)
        self._other = Target(link, LINK)

    @property
    def targets(self) -> tuple[Target, Target]:
        """Both names: clear them to leave no force behind."""
        return self._now, self._other

    def turn(self) -> Turn:
        """Go on to the next tick."""
        self._now, self._other = self._other, self._now
        return Turn(add=self._now, clear=self._other)
