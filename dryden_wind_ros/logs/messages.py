"""A bag's file as a row of messages, whatever the format and whatever is left of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

Progress = Callable[[float], None]


class Definition(NamedTuple):
    """What a bag says of a message type: 'ros2msg', 'ros2idl' or '' and the text."""

    encoding: str
    text: str


class Raw(NamedTuple):
    """One message as it stands in the bag: topic, type, time of recording (ns), CDR bytes."""

    topic: str
    kind: str
    stamp_ns: int
    data: bytes


@dataclass
class Contents:
    """What a file was found to hold, known when its messages have been read.

    Attributes
    ----------
    topics : dict of str to str
        Type of each topic.
    counts : dict of str to int
        Messages of each topic.
    definitions : dict of str to Definition
        Of the message types.
    notes : list of str
        Damage, with how much.
    """

    topics: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class MessageFile(Protocol):
    """A file of a bag."""

    contents: Contents

    def messages(self, kinds: Collection[str], progress: Progress) -> Iterator[Raw]:
        """Yield the messages of these types in the order in which they were recorded."""
        ...
