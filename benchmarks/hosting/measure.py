#!/usr/bin/env python3
"""What it costs to stand between a program and its files, beside the bare program in the same run.

    cargo build --release && benchmarks/hosting/measure.py [DIRECTORY]

DIRECTORY should be on tmpfs (default /dev/shm). Each cell is CPU time per call (of the start of a
process: elapsed time), the least of interleaved rounds. The first column is the bare program; the
others show what is added to it. Absolute times differ from machine to machine.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
IOLAB = os.environ.get("IOLAB", HERE.parents[1] / "target/release/iolab")
APPLIED = {
    "not chosen": ["null:paths=*.other"],
    "null": ["null"],
    "count": ["count"],
    "null ×2": ["null"] * 2,
    "null ×3": ["null"] * 3,
    "unheard": ["null:hear=nothing"],
    "seek-elide": ["seek-elide"],
    "write-back": ["write-back"],
    "null above write-back": ["null", "write-back"],
    "count above write-back": ["count", "write-back"],
}
ROUNDS = int(os.environ.get("ROUNDS", "5"))
REPEATS = int(os.environ.get("REPEATS", "4"))


def ways(trace):
    """The words before the program in each column."""
    yield "bare", []
    for name, stages in APPLIED.items():
        yield name, [IOLAB, "run", *(f"--apply={stage}" for stage in stages), "--"]
    yield "record", [IOLAB, "record", "--output", trace, "--"]


def measure(prefix, command, least):
    done = subprocess.run([*prefix, *command], check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        kind, ns = line.split("\t")
        least[kind] = min(least.get(kind, 1e18), float(ns))


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else "/dev/shm"
    print(subprocess.run([HERE.parent / "price.sh"], check=True, capture_output=True, text=True).stdout)
    least = {}
    with tempfile.TemporaryDirectory() as build, tempfile.TemporaryDirectory(dir=directory) as work:
        program, file, trace = Path(build) / "loop", Path(work) / "loop.bin", Path(work) / "loop.iot"
        subprocess.run(["cc", "-O2", "-pthread", "-o", program, HERE / "loop.c"], check=True)
        for _ in range(REPEATS):
            for more in ([], ["start"]):
                for name, prefix in ways(trace):
                    trace.unlink(missing_ok=True)
                    command = [program, file, str(ROUNDS), *more]
                    measure(prefix, command, least.setdefault(name, {}))
    others = list(least)[1:]
    print("| call | bare, ns | " + " | ".join(others) + " |")
    print("|---|" + "---|" * (len(others) + 1))
    for kind, bare in least["bare"].items():
        cells = " | ".join(f"{least[name][kind] - bare:+.1f}" for name in others)
        print(f"| {kind} | {bare:.1f} | {cells} |")


if __name__ == "__main__":
    main()
