"""E11: what `iolab tune` picks, against the best of a full measured grid.

Five programs of one process on storage as it is, and ranks of MPI (both families) that write small pieces of one file in
turn on slow storage (`NETWORK`). `CHOOSE=WORD` keeps to programs with that word in their names.
"""

import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from house import (
    BENCHMARKS,
    HERE,
    IOLAB,
    NETWORK,
    ROUNDS,
    build,
    elapsed,
    ratio,
    rounds,
    run,
    said,
    shown,
    storage,
    table,
)

RECORDS = (
    "f = open('out/records', 'wb', buffering=0)\n"
    "for n in range(30000):\n"
    "    f.write(b'%08d some record of a program\\n' % n)\n"
)
READER = (
    "import os\n"
    "fd = os.open('out/small', os.O_RDONLY)\n"
    "total = 0\n"
    "for n in range(60000):\n"
    "    total += len(os.pread(fd, 64, n * 64))\n"
    "os.close(fd)\n"
)
INSERTS = "pragma journal_mode=memory; create table t(a integer, b text);" + "".join(
    f"insert into t values({n}, 'row number {n}');" for n in range(1500)
)
# Stages by their place from above; the grid has every choice of one or none per place.
PLACES = [
    [None, "seek-elide"],
    [None, *(f"write-back:buffer={size}" for size in ("256k", "1m", "8m")), "read-ahead", "read-ahead:window=1m"],
    [None, "align:block=64k", "align:block=1m"],
]


# The same for ranks of one file; `collect` and what brings processes together are asked for by a word.
PLACES_OF_RANKS = [
    [None, "collect:paths=out/**", "collect:slow=0,paths=out/**"],
    [None, "hints:romio_cb_write=enable", "hints:romio_cb_write=disable"],
    [None, "demote", "aggregate:paths=out/**", "single-writer:paths=out/**"],
]
ALLOWED = ["--allow", "late-visibility"]


def programs(made):
    """Name, command, storage, places of the grid and what `tune` is allowed."""
    checkpoint = build(BENCHMARKS.parent / "examples/checkpoint/checkpoint.c", made, "checkpoint", "-lm")
    yield "checkpoint example", [checkpoint, "out"], [], PLACES, []
    dd = ["dd", "if=/dev/zero", "of=out/zeros", "bs=64", "count=100000", "status=none"]
    yield "dd, 64 B blocks", dd, [], PLACES, []
    yield "python3, 30,000 records", [sys.executable, "-S", "-c", RECORDS], [], PLACES, []
    yield "python3, 60,000 reads of 64 B", [sys.executable, "-S", "-c", READER], [], PLACES, []
    yield "sqlite3, 1,500 inserts", ["sqlite3", "out/rows.db", INSERTS], [], PLACES, []
    for family in ("mpich", "openmpi"):
        turns = build(HERE / "turns.c", made, f"turns.{family}", compiler=f"mpicc.{family}")
        launch = [f"mpiexec.{family}", "-n", "2", turns, "out/shared"]
        yield f"{family}, 2 × 500 writes of 512 B", [*launch, "512", "500"], [NETWORK], PLACES_OF_RANKS, ALLOWED
        yield (
            f"{family}, 2 × 50 collective writes of 64 KiB",
            [*launch, "65536", "50", "all"],
            [NETWORK],
            PLACES_OF_RANKS,
            ALLOWED,
        )


def grid(places):
    """Every stack of up to three stages that `iolab run` would take."""
    for stages in itertools.product(*places):
        stack = [stage for stage in stages if stage]
        if not 0 < len(stack) <= 3:
            continue
        trial = [IOLAB, "run", "--quiet", *ALLOWED, *(word for it in stack for word in ("--apply", it)), "--", "true"]
        with tempfile.TemporaryDirectory() as place:
            Path(place, "out").mkdir()
            if subprocess.run(trial, capture_output=True, cwd=place).returncode == 0:
                yield tuple(stack)


def fresh(place):
    out = place / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    (out / "small").write_bytes(bytes(range(256)) * 16384)


def tuned(command, place, allowed):
    """The stages it recommends, their label, and how often it ran the command."""
    fresh(place)
    with tempfile.TemporaryDirectory() as results:
        words = [IOLAB, "tune", "--output", "out", "--budget", os.environ.get("BUDGET", "5m"), "--results", results]
        told = json.loads(said([*words, *allowed, "--json", "--", *command], cwd=place))
    if told["verdict"] != "helps":
        return [], "nothing", told["run_count"]
    winner = next(it for it in told["field"] if it["stack"] == told["winner"])
    return winner["apply"], f"`{told['winner']}`", told["run_count"]


def compared():
    """A row for each program."""
    with tempfile.TemporaryDirectory() as made:
        for name, command, slow, places, allowed in programs(made):
            if os.environ.get("CHOOSE", "") not in name:
                continue
            stacks = list(grid(places))
            with storage(*slow) as (place, _):
                apply, label, run_count = tuned(command, place, allowed)
                ways = {"plain": [], "tuned": run(*apply, more=allowed) if apply else []}
                ways |= {" + ".join(it): run(*it, more=allowed) for it in stacks}

                def once(way):
                    fresh(place)
                    return elapsed([*ways[way], *command], cwd=place)

                took = rounds(ways, once)
            best = min(["plain", *list(ways)[2:]], key=lambda way: statistics.median(took[way]))
            middle, *_ = ratio(took["tuned"], took[best])
            speeds = [shown(took[way], took["plain"]) for way in ("tuned", best)]
            runs = f"{run_count} of {len(stacks) * ROUNDS}"
            yield name, label, speeds[0], f"`{best}`", speeds[1], f"{middle:.2f}", runs


def e11():
    print(f"Speed beside plain; each stack of the grid is measured {ROUNDS} times, in turns with plain and the tuned one.\n")
    heads = ["program", "tuned", "its speed", "best of the grid", "its speed", "tuned ÷ best", "runs"]
    table(heads, compared())
