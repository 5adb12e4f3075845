"""A cache layer in Python: write-behind, which takes what memory holds and works it off in order.

It imitates `write-behind` of the catalogue to the last event, so that the two can be compared:

    python examples/python/write_behind.py
"""

from collections import deque
from collections.abc import Iterator

import iolab
from iolab import CacheAction as Do
from iolab import CacheEvent as Told


class WriteBehind:
    """One server's layer. Reads go before writes; queued writes that continue each other are joined."""

    def __init__(self, settings: iolab.CacheSettings) -> None:
        self.settings = settings
        self.free_bytes = settings.capacity_bytes
        self.reads: deque[tuple[int, int, int, int]] = deque()  # (tag, file, offset, length)
        self.writes: deque[tuple[int, int, int]] = deque()  # (file, offset, length)
        self.idle = list(range(settings.depth))  # operation numbers
        # By operation: (tag or None, file, offset, length).
        self.flights: dict[int, tuple[int | None, int, int, int]] = {}
        self.flushes: list[tuple[int, int]] = []  # (tag, file)
        self.is_settling = False  # between a completion and the word that the device is ready
        self.has_refused = False

    def step(self, now: int, event: Told) -> list[Do]:
        match event:
            case Told.WriteOffered(bytes):
                return [self.offered(bytes)]
            case Told.Completed(operation):
                return self.completed(operation)
            case Told.ReadArrived(tag, file, offset, length):
                self.reads.append((tag, file, offset, length))
            case Told.WriteArrived(_, file, offset, length):
                self.writes.append((file, offset, length))
            case Told.Released(bytes):
                self.free_bytes += bytes
            case Told.DeviceReady():
                self.is_settling = False
            case Told.FlushArrived(flush, file):
                self.flushes.append((flush, file))
        actions = list(self.start())
        if isinstance(event, Told.FlushArrived):
            actions += self.answer_flushes()
        if self.has_refused and not self.writes and not self.is_writing():
            actions.append(Do.RetryRefused())
        return actions

    def offered(self, bytes: int) -> Do:
        self.has_refused = self.free_bytes <= bytes
        if self.has_refused:
            return Do.Refuse()
        self.free_bytes -= bytes
        return Do.Admit()

    def start(self) -> Iterator[Do]:
        """Fills the device: the oldest read if there is memory for it, else the oldest write."""
        while self.idle and not self.is_settling:
            if self.reads and self.reads[0][3] < self.free_bytes:
                tag, file, offset, length = self.reads.popleft()
                self.free_bytes -= length
                yield Do.Read(self.launch(tag, file, offset, length), file, offset, length)
            elif self.writes:
                file, offset, length = self.next_write()
                yield Do.Write(self.launch(None, file, offset, length), file, offset, length)
            else:
                return

    def next_write(self) -> tuple[int, int, int]:
        """The oldest write, joined with those directly behind it as long as they continue it."""
        file, offset, length = self.writes.popleft()
        while self.writes:
            next_file, next_offset, next_length = self.writes[0]
            continues = next_file == file and next_offset == offset + length
            if not continues or length + next_length > self.settings.access_bytes:
                break
            length += next_length
            self.writes.popleft()
        return file, offset, length

    def launch(self, tag: int | None, file: int, offset: int, length: int) -> int:
        operation = self.idle.pop()
        self.flights[operation] = (tag, file, offset, length)
        return operation

    def completed(self, operation: int) -> list[Do]:
        tag, _, offset, length = self.flights.pop(operation)
        self.idle.append(operation)
        self.is_settling = True
        if tag is not None:  # its memory is free when it has left the server: Released
            return [Do.Deliver(tag, offset, length), *self.answer_flushes()]
        self.free_bytes += length
        return self.answer_flushes()

    def is_writing(self, file: int | None = None) -> bool:
        flights = self.flights.values()
        return any(flight[0] is None and file in (None, flight[1]) for flight in flights)

    def answer_flushes(self) -> list[Do]:
        def is_done(file: int) -> bool:
            return not self.is_writing(file) and all(write[0] != file for write in self.writes)

        done = [(flush, file) for flush, file in self.flushes if is_done(file)]
        self.flushes = [one for one in self.flushes if one not in done]
        return [Do.Flushed(flush) for flush, _ in done]


WORKLOAD = """
name = "checkpoints"
[[files]]
name = "state"
[[applications]]
name = "solver"
ranks = 10
[[applications.phases]]
name = "checkpoint"
repeat = 4
commands = [
  { open = "state" },
  { write = "state", pattern = "strided:strip=48k,stripes=10", per_call = 1 },
  { read = "state", pattern = "strided:strip=48k,stripes=10", per_call = 1 },
  { sync = "state" },
  { close = "state" },
  { compute = "5ms" },
]
"""


def main() -> None:
    rows: list[tuple[str, str | iolab.CacheMaker]] = [
        ("none", "none"),
        ("catalogue", "write-behind"),
        ("Python", WriteBehind),
    ]
    for name, cache in rows:
        result = iolab.simulate(WORKLOAD, cache=cache)
        print(f"{name:>10} {result.seconds:10.6f} s {result.bandwidth / 2**20:8.2f} MiB/s")


if __name__ == "__main__":
    main()
