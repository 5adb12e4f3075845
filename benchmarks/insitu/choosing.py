"""E11: what `iolab tune` picks, against the best of a full measured grid."""

import itertools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from house import BENCHMARKS, HERE, IOLAB, ROUNDS, build, elapsed, ratio, rounds, run, said, shown, table

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


def programs(made):
    checkpoint = build(BENCHMARKS.parent / "examples/checkpoint/checkpoint.c", made, "checkpoint", "-lm")
    yield "checkpoint example", [checkpoint, "out"]
    yield "dd, 64 B blocks", ["dd", "if=/dev/zero", "of=out/zeros", "bs=64", "count=100000", "status=none"]
    yield "python3, 30,000 records", [sys.executable, "-S", "-c", RECORDS]
    yield "python3, 60,000 reads of 64 B", [sys.executable, "-S", "-c", READER]
    yield "sqlite3, 1,500 inserts", ["sqlite3", "out/rows.db", INSERTS]


def grid():
    """Every stack that the rules allow."""
    for stages in itertools.product(*PLACES):
        stack = [stage for stage in stages if stage]
        checked = stack and subprocess.run([IOLAB, "strategies", "--check", " + ".join(stack)], capture_output=True)
        if stack and checked.returncode == 0:
            yield tuple(stack)


def fresh(place):
    out = place / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    (out / "small").write_bytes(bytes(range(256)) * 16384)


def tuned(command, place):
    """The stack it recommends, and how often it ran the command."""
    fresh(place)
    results = place / "tuned"
    words = [IOLAB, "tune", "--output", "out", "--budget", "5m", "--results", results, "--json", "--", *command]
    told = json.loads(said(words, cwd=place))
    # The winner of the field stands there even where it was not faster than plain.
    return (told["winner"] if told["speedup"] else None), told["run_count"]


def compared(stacks):
    """A row for each program."""
    with tempfile.TemporaryDirectory() as made:
        for name, command in programs(made):
            place = Path(tempfile.mkdtemp(dir=made))
            stack, run_count = tuned(command, place)
            ways = {"plain": [], "tuned": run(*stack.split(" + ")) if stack else []}
            ways |= {" + ".join(it): run(*it) for it in stacks}

            def once(way):
                fresh(place)
                return elapsed([*ways[way], *command], cwd=place)

            took = rounds(ways, once)
            best = min(["plain", *list(ways)[2:]], key=lambda way: statistics.median(took[way]))
            middle, *_ = ratio(took["tuned"], took[best])
            speeds = [shown(took[way], took["plain"]) for way in ("tuned", best)]
            runs = f"{run_count} of {len(stacks) * ROUNDS}"
            yield name, f"`{stack}`" if stack else "nothing", speeds[0], f"`{best}`", speeds[1], f"{middle:.2f}", runs


def e11():
    stacks = list(grid())
    print(f"Speed beside plain; the grid is {len(stacks)} stacks, each measured {ROUNDS} times, in turns with plain and the tuned one.\n")
    heads = ["program", "tuned", "its speed", "best of the grid", "its speed", "tuned ÷ best", "runs"]
    table(heads, compared(stacks))
