"""The compiled part. Use it through the package."""

from collections.abc import Callable, Mapping
from typing import ClassVar, Literal

class CacheEvent:
    """What a cache layer is told. Sizes and places are bytes; a tag is the number of a request."""

    class ReadArrived(CacheEvent):
        """A piece of a read request is here; at most ``access_bytes`` long."""

        __match_args__: ClassVar[tuple[Literal["tag"], Literal["file"], Literal["offset"], Literal["length"]]] = ("tag", "file", "offset", "length")

        tag: int
        file: int
        offset: int
        length: int

    class WriteAnnounced(CacheEvent):
        """A write of so many bytes, from its first byte on, will come; its packets are offered later."""

        __match_args__: ClassVar[tuple[Literal["tag"], Literal["file"], Literal["offset"], Literal["length"]]] = ("tag", "file", "offset", "length")

        tag: int
        file: int
        offset: int
        length: int

    class WriteOffered(CacheEvent):
        """A packet of write data is at the door. Answer one Admit or one Refuse."""

        __match_args__: ClassVar[tuple[Literal["bytes"]]] = ("bytes",)

        bytes: int

    class WriteArrived(CacheEvent):
        """A piece of the packet just admitted; at most ``access_bytes`` long."""

        __match_args__: ClassVar[tuple[Literal["tag"], Literal["file"], Literal["offset"], Literal["length"]]] = ("tag", "file", "offset", "length")

        tag: int
        file: int
        offset: int
        length: int

    class Completed(CacheEvent):
        """The device has carried this out. Settle it; start nothing before DeviceReady."""

        __match_args__: ClassVar[tuple[Literal["operation"]]] = ("operation",)

        operation: int

    class DeviceReady(CacheEvent):
        """The device can take another transfer."""

    class Released(CacheEvent):
        """Read data of this size has left the server; its memory is free."""

        __match_args__: ClassVar[tuple[Literal["bytes"]]] = ("bytes",)

        bytes: int

    class FlushArrived(CacheEvent):
        """Somebody wants the file's data on the device; Flushed answers when it is."""

        __match_args__: ClassVar[tuple[Literal["flush"], Literal["file"]]] = ("flush", "file")

        flush: int
        file: int

    class Woke(CacheEvent):
        """The moment of the last WakeAt has come."""

class CacheAction:
    """What a cache layer wants done."""

    class Admit(CacheAction):
        """The offered packet comes in."""

        def __init__(self) -> None: ...

    class Refuse(CacheAction):
        """It must wait; it is offered again after a completed write, or on RetryRefused."""

        def __init__(self) -> None: ...

    class Read(CacheAction):
        """Move bytes from the device; Completed comes back with ``operation``."""

        def __init__(self, operation: int, file: int, offset: int, length: int) -> None: ...

    class Write(CacheAction):
        """Move bytes to the device; Completed comes back with ``operation``."""

        def __init__(self, operation: int, file: int, offset: int, length: int) -> None: ...

    class Deliver(CacheAction):
        """This part of the request's data is in memory now."""

        def __init__(self, tag: int, offset: int, length: int) -> None: ...

    class Flushed(CacheAction):
        """Nothing of the file that this flush was about is left in memory."""

        def __init__(self, flush: int) -> None: ...

    class RetryRefused(CacheAction):
        """What was refused may be offered again."""

        def __init__(self) -> None: ...

    class WakeAt(CacheAction):
        """Send Woke at that time."""

        def __init__(self, time: int) -> None: ...

class CollectiveAction:
    """What a rank does in a round of a collective."""

    class Send(CollectiveAction):
        """So many bytes on the wire, headers included, to a rank of the communicator."""

        def __init__(self, to: int, tag: int, bytes: int) -> None: ...

    class Receive(CollectiveAction):
        """Await a message."""

        def __init__(self, from_rank: int, tag: int) -> None: ...

    class ReadFile(CollectiveAction):
        """Read these extents (offset, length)."""

        def __init__(self, extents: list[tuple[int, int]]) -> None: ...

    class WriteFile(CollectiveAction):
        """Write these extents."""

        def __init__(self, extents: list[tuple[int, int]]) -> None: ...

    class Finish(CollectiveAction):
        """When this round is completed, the call is over for this rank."""

        def __init__(self) -> None: ...

class Recording:
    """A recorded parallel program."""

    @property
    def name(self) -> str: ...
    @property
    def rank_count(self) -> int: ...

class LoadedTrace:
    """A trace in memory."""

    @staticmethod
    def load(path: str, format: str | None, progress: Callable[[int, int], None] | None) -> LoadedTrace: ...
    def __len__(self) -> int: ...
    def header(self) -> str: ...
    def recording(self) -> Recording: ...
    def save(self, path: str) -> None: ...
    def report(self) -> LoadedReport: ...
    def columns(self) -> dict[str, tuple[bytes, str] | tuple[tuple[bytes, str], list[str]]]: ...

class LoadedReport:
    """What is said about a trace."""

    def json(self) -> str: ...
    def text(self) -> str: ...
    def save(self, trace: LoadedTrace, path: str) -> None: ...

class LoadedComparison:
    """What differs between runs."""

    @staticmethod
    def of(a: list[tuple[str, LoadedTrace]], b: list[tuple[str, LoadedTrace]]) -> LoadedComparison: ...
    def json(self) -> str: ...
    def text(self) -> str: ...
    def slower_by(self) -> float: ...
    def is_equal(self) -> bool: ...
    def save(self, a: tuple[str, LoadedTrace], b: tuple[str, LoadedTrace], path: str) -> None: ...

def unfinished(path: str) -> str | None: ...
def presets() -> list[tuple[str, str]]: ...
def caches() -> list[tuple[str, str]]: ...
def collectives() -> list[tuple[str, str, str]]: ...
def check_platform(text: str) -> None: ...
def check_workload(text: str) -> None: ...
def toml_of_json(json: str) -> str: ...
def simulate(
    program: str | Recording,
    platform: str,
    cache: str | Callable[..., object] | None,
    collectives: Mapping[str, str | Callable[..., object]],
    apply: list[str],
    order: str,
    seeds: int | None,
    tie_seed: int | None,
    seed: int | None,
    faults: str | None,
) -> dict[str, object]: ...
