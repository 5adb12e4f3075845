"""A collective in Python: allgather around a ring, one object for each rank and call.

It imitates `ring` of the catalogue, so that the two can be compared:

    python examples/python/ring_allgather.py
"""

import iolab
from iolab import CollectiveAction as Do

TAG = 6
HEADER_BYTES = 20


class Ring:
    """In each round every rank passes on to its upper neighbour the block it got last."""

    def __init__(self, call: iolab.CollectiveCall) -> None:
        self.call = call
        self.round = 0

    def step(self, event: str) -> list[Do]:
        self.round += 1
        rank, count = self.call.rank, self.call.rank_count
        actions: list[Do] = []
        if self.round < count:
            actions.append(Do.Receive((rank - 1) % count, TAG))
            actions.append(Do.Send((rank + 1) % count, TAG, self.call.bytes + HEADER_BYTES))
        if self.round + 1 >= count:
            actions.append(Do.Finish())
        return actions


class TokenReads:
    """A collective access, naive: ranks read or write what they want one after the other."""

    def __init__(self, call: iolab.FileCall) -> None:
        self.call = call
        self.has_token = call.rank == 0
        self.is_done = False

    def step(self, event: str) -> list[Do]:
        rank = self.call.rank
        if not self.has_token:
            self.has_token = True
            return [Do.Receive(rank - 1, TAG)]
        if not self.is_done:
            self.is_done = True
            wanted = self.call.wanted[rank]
            return [Do.WriteFile(wanted) if self.call.is_write else Do.ReadFile(wanted)]
        is_last = rank + 1 == len(self.call.wanted)
        return [Do.Finish()] if is_last else [Do.Send(rank + 1, TAG, HEADER_BYTES), Do.Finish()]


WORKLOAD = """
name = "exchange"
[[files]]
name = "state"
[[applications]]
name = "solver"
ranks = 8
[[applications.phases]]
name = "iterate"
repeat = 10
commands = [{ compute = "1ms" }, { allgather = "256k" }]
[[applications.phases]]
name = "write"
commands = [
  { open = "state" },
  { write_all = "state", pattern = "strided:strip=64k,stripes=16", per_call = "all" },
  { close = "state" },
]
"""


def main() -> None:
    rows: list[tuple[str, dict[str, str | iolab.CollectiveMaker]]] = [
        ("direct", {}),
        ("ring", {"allgather": "ring"}),
        ("ring in Python", {"allgather": Ring}),
        ("with a token for files", {"allgather": Ring, "file": TokenReads}),
    ]
    for name, collective in rows:
        result = iolab.simulate(WORKLOAD, collective=collective)
        print(f"{name:>24} {result.seconds:10.6f} s")


if __name__ == "__main__":
    main()
