"""What a run came to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from .errors import Error
from .optional import needed
from .tables import text_table

if TYPE_CHECKING:
    import pandas

__all__ = ["Application", "Link", "Phase", "Result", "Server"]


@dataclass(frozen=True, slots=True)
class Phase:
    """What the ranks of an application did in one of its phases."""

    name: str
    start_seconds: float | None
    """When the first rank came to it; None when none did."""
    end_seconds: float
    """When the last rank left it."""
    rank_seconds: float
    """Time in it, summed over ranks."""
    calls: int
    """Data commands given."""
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True, slots=True)
class Application:
    """What an application did."""

    name: str
    rank_count: int
    seconds: float
    """When its last rank ended."""
    phases: list[Phase]
    notes: list[str]
    """What a reader of these should know: a sentence each."""


@dataclass(frozen=True, slots=True)
class Server:
    """What a server and its device did."""

    name: str
    accesses: int
    no_seek: int
    """Accesses that went on where the last one ended."""
    near: int
    far: int
    read_bytes: int
    written_bytes: int
    busy_seconds: float
    queue_max: int
    """Most requests it had at once, from their arrival to their answer."""
    found_bytes: int
    """Bytes of reads that its cache layer had kept when they were asked for."""
    kept_bytes_max: int
    """Most bytes kept at once."""


@dataclass(frozen=True, slots=True)
class Link:
    """What a link or switch carried."""

    name: str
    kind: str
    packets: int
    bytes: int
    busy_seconds: float


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """What came of it: the median run over several orders of simultaneous events. Equal arguments give
    equal results, to the last bit."""

    seconds: float
    """Time of the last event: all data that will be on devices is there."""
    low: float
    """The same in the fastest order."""
    high: float
    """And in the slowest. A difference smaller than the range means nothing."""
    tie_seeds: int
    """How many orders were run."""
    event_count: int
    event_hash: int
    """Over all events and their times: equal runs have equal ones."""
    lost_packet_count: int
    """Packets that faults of links have lost; they were sent again."""
    applications: list[Application]
    servers: list[Server]
    links: list[Link]
    _csv: str = field(default="", repr=False, compare=False)

    @property
    def time(self) -> float:
        """The same as ``seconds``."""
        return self.seconds

    @property
    def bytes(self) -> int:
        """Bytes the programs asked for; of a recorded program, what the devices moved."""
        phases = [phase for application in self.applications for phase in application.phases]
        if phases:
            return sum(phase.read_bytes + phase.written_bytes for phase in phases)
        return sum(server.read_bytes + server.written_bytes for server in self.servers)

    @property
    def bandwidth(self) -> float:
        """Bytes per second of the whole run."""
        return self.bytes / self.seconds if self.seconds > 0 else 0.0

    def csv(self) -> str:
        """Everything as comma-separated values, a line for the run, each end of its range, each application,
        phase, server and link: the table that ``iolab simulate --csv`` prints."""
        return self._csv

    def __repr__(self) -> str:
        band = f", {self.low:.6g} to {self.high:.6g} s in {self.tie_seeds} orders" if self.tie_seeds > 1 else ""
        return f"<iolab.Result: {self.seconds:.6g} s{band}; {self.bytes} bytes, {self.bandwidth:.6g} B/s>"

    def _rows(self, of: str) -> Iterable[Any]:
        if of not in ("servers", "links", "applications", "phases"):
            raise Error(f"a result has no `{of}`", "choose from servers, links, applications, phases")
        if of == "phases":
            return [phase for application in self.applications for phase in application.phases]
        rows: Iterable[Any] = getattr(self, of)
        return rows

    def frame(self, of: str = "servers") -> pandas.DataFrame:
        """The servers, links, applications or phases as a table of pandas."""
        rows = [asdict(row) for row in self._rows(of)]
        if of == "phases":
            names = [application.name for application in self.applications for _ in application.phases]
            rows = [{"application": name, **row} for name, row in zip(names, rows)]
        frame: pandas.DataFrame = needed("pandas").DataFrame(rows)
        return frame.drop(columns=["phases", "notes"], errors="ignore")

    def table(self, of: str = "servers") -> str:
        """The servers, links, applications or phases as text, one line each."""
        rows = self._rows(of)
        return text_table([{f.name: getattr(row, f.name) for f in fields(row)} for row in rows])


def result_of(given: dict[str, Any]) -> Result:
    """From what the compiled part returns."""

    def application(one: dict[str, Any]) -> Application:
        return Application(**{**one, "phases": [Phase(**phase) for phase in one["phases"]]})

    return Result(
        seconds=given["seconds"],
        low=given["low"],
        high=given["high"],
        tie_seeds=given["tie_seeds"],
        event_count=given["event_count"],
        event_hash=given["event_hash"],
        lost_packet_count=given["lost_packet_count"],
        applications=[application(one) for one in given["applications"]],
        servers=[Server(**one) for one in given["servers"]],
        links=[Link(**one) for one in given["links"]],
        _csv=given["csv"],
    )
