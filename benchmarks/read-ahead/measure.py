#!/usr/bin/env python3
"""What strategies for readers cost and gain per call, side by side in one run.

    cargo build --release && benchmarks/read-ahead/measure.py [DIRECTORY]

DIRECTORY should be on tmpfs (default /dev/shm). Each cell of the first table is processor time per call, the least of
interleaved rounds; of the second, bytes per second of elapsed time on storage of 100 MiB/s with a latency of 1 ms
(`throttle`). Sums over what was read must agree, or this ends.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
IOLAB = os.environ.get("IOLAB", HERE.parents[1] / "target/release/iolab")
REPEATS = int(os.environ.get("REPEATS", "5"))
SLOW = "throttle:rate=100m,latency=1ms"
BUFFER = "read-ahead:via=buffer,outsiders=none"
SIEVE = "data-sieve:outsiders=none"
SEEKS = "seek-elide:outsiders=none"

# Kind, bytes, calls, step; what stands beside bare.
CALLS = [
    ("pread", 64, 400_000, 64, ["null", "read-ahead", BUFFER]),
    ("read", 64, 400_000, 64, ["null", "read-ahead", BUFFER]),
    ("backward", 64, 400_000, 64, ["null", "read-ahead", BUFFER]),
    ("pread", 4096, 20_000, 4096, ["null", "read-ahead", BUFFER]),
    ("pread", 65536, 1_000, 65536, ["null", "read-ahead", BUFFER]),
    ("strided", 64, 200_000, 128, ["null", SIEVE]),
    ("strided", 64, 100_000, 1024, ["null", SIEVE]),
    ("strided", 64, 40_000, 2112, ["null", SIEVE]),
    ("strided", 64, 20_000, 8192, ["null", SIEVE]),
    ("seek", 64, 200_000, 64, ["null", "seek-elide", SEEKS, BUFFER]),
]
STREAMS = [
    ("pread", 65536, 480, 65536),
    ("read", 65536, 480, 65536),
    ("backward", 65536, 480, 65536),
    ("strided", 65536, 480, 262144),
    ("pread", 4096, 2000, 4096),
]


def run(program, file, apply, arguments):
    prefix = [IOLAB, "run"] + [f"--apply={s}" for s in apply] + ["--"] if apply else []
    command = [*prefix, program, file, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    time, total = done.stdout.split()
    return float(time), total


def calls(program, file):
    print("| reads | bare, ns | " + "strategy, ns (× bare) |")
    print("|---|---|---|")
    for kind, size, count, step, strategies in CALLS:
        ways = [[]] + [[s] for s in strategies]
        least, sums = [1e18] * len(ways), set()
        for _ in range(REPEATS):
            for number, way in enumerate(ways):
                time, total = run(program, file, way, [kind, size, count, step, 5])
                least[number] = min(least[number], time)
                sums.add(total)
        assert len(sums) == 1, f"{kind}: {sums}"
        cells = ", ".join(
            f"{s} {t:.1f} ({least[0] / t:.2f}×)" for s, t in zip(strategies, least[1:])
        )
        print(f"| {kind} {size} B every {step} B | {least[0]:.1f} | {cells} |", flush=True)


def streams(program, file):
    print("\n| reads on slow storage | alone, MiB/s | under read-ahead, MiB/s | of its rate |")
    print("|---|---|---|---|")
    for kind, size, count, step in STREAMS:
        rates = []
        for way in [[SLOW], ["read-ahead", SLOW]]:
            time, _ = run(program, file, way, [kind, size, count, step, 1, "wall"])
            rates.append(size / time * 1e9 / 2**20)
        print(f"| {kind} {size} B every {step} B | {rates[0]:.1f} | {rates[1]:.1f} | {rates[1] / 100:.2f} |", flush=True)


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else "/dev/shm"
    with tempfile.TemporaryDirectory() as build:
        program, file = Path(build) / "loop", Path(directory) / "iolab-read-ahead.bin"
        subprocess.run(["cc", "-O2", "-o", program, HERE / "loop.c"], check=True)
        calls(program, file)
        streams(program, file)


if __name__ == "__main__":
    main()
