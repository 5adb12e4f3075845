"""What policies written in Python are told and may answer; ``docs/howto/python.md`` has the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from ._iolab import CacheAction, CacheEvent, CollectiveAction

__all__ = [
    "CacheAction",
    "CacheEvent",
    "CacheMaker",
    "CachePolicy",
    "CacheSettings",
    "CollectiveAction",
    "CollectiveCall",
    "CollectiveMaker",
    "CollectivePolicy",
    "FileCall",
]


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """What a cache layer is made from, one for each server."""

    capacity_bytes: int
    """Memory for data on its way, either direction."""
    access_bytes: int
    """Largest single transfer."""
    depth: int
    """Transfers the device takes at once."""
    near_bytes: int
    """Distances below this cost the device little."""


class CachePolicy(Protocol):
    """A cache layer of one server."""

    def step(self, now: int, event: CacheEvent, /) -> Iterable[CacheAction] | None:
        """Reacts to one event at ``now``, in nanoseconds of simulated time."""
        ...


CacheMaker = Callable[[CacheSettings], CachePolicy]


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """One rank's part in a command of messages."""

    rank: int
    """This process, within the communicator."""
    rank_count: int
    """Processes in the communicator."""
    root: int
    """The process the call is about, where there is one."""
    bytes: int
    """Payload of each process."""
    eager_bytes: int
    """Larger messages are not sent unasked, where an algorithm makes that difference."""


@dataclass(frozen=True, slots=True)
class FileCall:
    """One rank's part in a collective read or write."""

    rank: int
    """This process, within the communicator."""
    is_write: bool
    """Which way."""
    wanted: list[list[tuple[int, int]]]
    """For every rank its extents: (offset, length)."""
    buffer_bytes: int
    """Memory of each rank for other ranks' data."""


class CollectivePolicy(Protocol):
    """One rank of one collective call."""

    def step(self, event: Literal["began", "round_completed"], /) -> Iterable[CollectiveAction]:
        """The next round: the call began, or what the last round sent, awaited and accessed is done."""
        ...


CollectiveMaker = Callable[[CollectiveCall], CollectivePolicy] | Callable[[FileCall], CollectivePolicy]
