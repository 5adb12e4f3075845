"""Policies written in Python stand where those of the catalogue would."""

import iolab
import pytest
import ring_allgather
import write_behind
from iolab import CacheAction, CacheEvent, CollectiveAction

READS_AND_WRITES = """
[[files]]
name = "old"
size = "8m"
[[files]]
name = "new"
[[applications]]
name = "mixed"
ranks = 6
[[applications.phases]]
name = "all"
commands = [
  { open = "old" }, { open = "new" },
  { read = "old", rank_step = "1m", bytes = "100k", calls = 5 },
  { write = "new", rank_step = "700k", bytes = "70k", calls = 10 },
  { read = "new", rank_step = "700k", bytes = "300k", calls = 2 },
  { sync = "new" },
  { close = "new" }, { close = "old" },
]
"""

SHORT_OF_MEMORY = {"memory_bytes": "256k"}


def platform_with(**server_node):
    """The classic cluster with other server nodes."""
    import tomllib

    described = tomllib.loads(iolab.Platform.preset("classic-hdd").text)
    described["nodes"][1].update(server_node)
    return iolab.Platform(described)


@pytest.mark.parametrize("workload", [write_behind.WORKLOAD, READS_AND_WRITES])
@pytest.mark.parametrize("memory", [{}, SHORT_OF_MEMORY])
@pytest.mark.parametrize("tie_seed", [0, 3])
def test_write_behind_in_python_equals_the_catalogues(workload, memory, tie_seed):
    platform = platform_with(**memory)
    ours = iolab.simulate(workload, platform, cache=write_behind.WriteBehind, tie_seed=tie_seed)
    theirs = iolab.simulate(workload, platform, cache="write-behind", tie_seed=tie_seed)
    assert ours == theirs


@pytest.mark.parametrize("tie_seed", [0, 3])
def test_the_ring_in_python_equals_the_catalogues(tie_seed):
    workload = ring_allgather.WORKLOAD
    ours = iolab.simulate(workload, collective={"allgather": ring_allgather.Ring}, tie_seed=tie_seed)
    theirs = iolab.simulate(workload, collective={"allgather": "ring"}, tie_seed=tie_seed)
    assert ours == theirs
    assert ours != iolab.simulate(workload, tie_seed=tie_seed)


def test_a_collective_access_in_python_moves_every_byte():
    workload = ring_allgather.WORKLOAD
    ours = iolab.simulate(workload, collective={"file": ring_allgather.TokenReads})
    theirs = iolab.simulate(workload)
    written = [sum(server.written_bytes for server in one.servers) for one in (ours, theirs)]
    assert written == [8 * 16 * 65536] * 2
    assert ours.seconds > theirs.seconds, "one after the other takes longer"


def test_an_exception_in_a_policy_ends_the_run_and_is_its_cause():
    class Faulty(write_behind.WriteBehind):
        def step(self, now, event):
            if now > 20_000_000:
                raise ZeroDivisionError("too late")
            return super().step(now, event)

    with pytest.raises(iolab.PolicyError) as raised:
        iolab.simulate(write_behind.WORKLOAD, cache=Faulty)
    assert "cache layer Faulty at 0.02" in raised.value.message
    assert "too late" in raised.value.message
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_an_exception_in_a_collective_ends_the_run_and_is_its_cause():
    class Faulty(ring_allgather.Ring):
        def step(self, event):
            return super().step(event) if self.round < 2 else {}["nothing"]

    with pytest.raises(iolab.PolicyError) as raised:
        iolab.simulate(ring_allgather.WORKLOAD, collective={"allgather": Faulty})
    assert "collective Faulty, rank" in raised.value.message
    assert isinstance(raised.value.__cause__, KeyError)


def test_an_exception_while_a_policy_is_made_ends_the_run():
    def make(settings):
        raise ValueError(f"cannot work with {settings.depth}")

    with pytest.raises(iolab.PolicyError, match="making a cache layer: ValueError: cannot work with 1"):
        iolab.simulate(write_behind.WORKLOAD, cache=make)
    with pytest.raises(iolab.PolicyError, match="making a collective for allgather"):
        iolab.simulate(ring_allgather.WORKLOAD, collective={"allgather": make})


class Careless(write_behind.WriteBehind):
    """Answers one event wrongly."""

    wrong_event = CacheEvent.DeviceReady
    wrong_answer = ()

    def step(self, now, event):
        actions = super().step(now, event)
        return list(self.wrong_answer) if isinstance(event, self.wrong_event) else actions


@pytest.mark.parametrize(
    ("event", "answer", "told"),
    [
        (CacheEvent.WriteOffered, [], "needs one Admit or Refuse, not 0"),
        (CacheEvent.WriteOffered, [CacheAction.Admit(), CacheAction.Refuse()], "not 2"),
        (CacheEvent.WriteArrived, [CacheAction.Admit()], "only answer an offered write"),
        (CacheEvent.WriteArrived, [CacheAction.Deliver(7, 0, 100)], "delivers [0, 100) to request 7"),
        (CacheEvent.WriteArrived, [CacheAction.Flushed(7)], "flush 7, which nobody asked for"),
        (CacheEvent.DeviceReady, [CacheAction.WakeAt(0)], "which is over"),
        (CacheEvent.WriteArrived, [CacheAction.Write(0, 0, 0, 0)], "transfers 0 B at once"),
        (CacheEvent.WriteArrived, [CacheAction.Write(0, 0, 0, 1 << 40)], "at once; 1 to"),
        (CacheEvent.WriteArrived, [CacheAction.Write(n, 0, n, 1) for n in range(2)], "more than 1"),
        (CacheEvent.WriteArrived, ["write"], "no CacheAction"),
        (CacheEvent.WriteArrived, [CollectiveAction.Finish()], "no CacheAction"),
    ],
)
def test_what_breaks_the_discipline_of_a_cache_is_told(event, answer, told):
    careless = type("Told", (Careless,), {"wrong_event": event, "wrong_answer": answer})
    with pytest.raises(iolab.PolicyError) as raised:
        iolab.simulate(write_behind.WORKLOAD, cache=careless)
    assert told in raised.value.message
    assert "docs/howto/python.md" in raised.value.hint


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ([CollectiveAction.Send(99, 1, 1)], "of 8 talks to rank 99"),
        ([], "without any action"),
        ([CollectiveAction.ReadFile([(0, 1)])], "of a file in allgather"),
        (["go"], "no CollectiveAction"),
        (None, "without any action"),
        ([CollectiveAction.Finish()], "without what it was promised"),
    ],
)
def test_what_breaks_the_discipline_of_a_collective_is_told(answer, told):
    maker = type("Wrong", (), {"__init__": lambda self, call: None, "step": lambda self, event: answer})
    with pytest.raises(iolab.PolicyError) as raised:
        iolab.simulate(ring_allgather.WORKLOAD, collective={"allgather": maker})
    assert told in raised.value.message


def test_a_cache_that_never_answers_is_diagnosed_as_a_deadlock():
    class Silent:
        def __init__(self, settings):
            pass

        def step(self, now, event):
            return [CacheAction.Refuse()] if isinstance(event, CacheEvent.WriteOffered) else None

    with pytest.raises(iolab.Error) as raised:
        iolab.simulate(write_behind.WORKLOAD, cache=Silent)
    assert "wait" in raised.value.message


def test_a_collective_whose_partner_never_sends_is_diagnosed():
    class Deaf:
        def __init__(self, call):
            self.call = call

        def step(self, event):
            return [CollectiveAction.Receive((self.call.rank + 1) % 8, 1), CollectiveAction.Finish()]

    with pytest.raises(iolab.Error) as raised:
        iolab.simulate(ring_allgather.WORKLOAD, collective={"allgather": Deaf})
    assert "rank" in raised.value.message and raised.value.hint
