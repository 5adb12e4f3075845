#!/usr/bin/env python3
"""What strategies cost and gain per call, side by side in one run.

    cargo build --release && benchmarks/write-back/measure.py [DIRECTORY]

DIRECTORY should be on tmpfs (default /dev/shm). Each cell is CPU time per call, the least of
interleaved rounds; the ratios are what counts, absolute times differ from machine to machine.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
IOLAB = os.environ.get("IOLAB", HERE.parents[1] / "target/release/iolab")
WAYS = {
    "bare": [],
    "not chosen": ["write-back:paths=*.other"],
    "null": ["null"],
    "write-back": ["write-back:buffer=1m"],
}
SIZES = {64: 400_000, 512: 100_000, 4096: 20_000, 16384: 5_000}
ROUNDS = 5
REPEATS = int(os.environ.get("REPEATS", "5"))


def measure(program, directory, way, kind, size):
    prefix = [IOLAB, "run", "--quiet"] + [f"--apply={s}" for s in WAYS[way]] + ["--"] if WAYS[way] else []
    file = Path(directory) / "iolab-write-back.bin"
    command = prefix + [program, file, kind, str(size), str(SIZES[size]), str(ROUNDS)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else "/dev/shm"
    print(subprocess.run([HERE.parent / "price.sh"], check=True, capture_output=True, text=True).stdout)
    print("| call | " + " | ".join(f"{way}, ns" for way in WAYS) + " | gain of write-back |")
    print("|---|" + "---|" * (len(WAYS) + 1))
    with tempfile.TemporaryDirectory() as build:
        program = Path(build) / "loop"
        subprocess.run(["cc", "-O2", "-o", program, HERE / "loop.c"], check=True)
        for kind in ("append", "overwrite"):
            for size in SIZES:
                least = {way: 1e18 for way in WAYS}
                for _ in range(REPEATS):
                    for way in WAYS:
                        ns = measure(program, directory, way, kind, size)
                        least[way] = min(least[way], ns)
                cells = " | ".join(f"{least[way]:.1f}" for way in WAYS)
                gain = least["bare"] / least["write-back"]
                print(f"| {kind} {size} B | {cells} | {gain:.1f}× |", flush=True)


if __name__ == "__main__":
    main()
