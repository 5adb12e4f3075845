#!/usr/bin/env python3
"""Several processes that write one file, on slow storage: bare, under `aggregate`, `single-writer` and both.

    benchmarks/aggregate/measure.py [DIRECTORY] [IOLAB]

DIRECTORY is on tmpfs, /dev/shm by default; needs root and /dev/fuse. Slow storage is
`iolab mount --apply throttle:rate=100m,latency=1ms` over it. All ways take turns, ROUNDS times; figures are
medians of MB/s from the start until the last process has closed, and the ratio to the first row of a table.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS = int(os.environ.get("ROUNDS", "5"))
STORAGE = os.environ.get("STORAGE", "throttle:rate=100m,latency=1ms")
MIB = 1 << 20
WAYS = {
    "bare": [],
    "`aggregate`": ["aggregate"],
    "`single-writer`": ["single-writer"],
    "`aggregate + single-writer`": ["aggregate", "single-writer"],
}


def rate(command, environment, bytes_written):
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return bytes_written / 1e6 / float(told.stdout)


def table(title, cases, iolab, above, below, program):
    """`cases` are rows: what it is called, its way, piece, count, ranks, layout, pause."""
    rates = {name: [] for name, *_ in cases}
    for _ in range(ROUNDS):
        for name, way, piece, count, ranks, layout, pause in cases:
            under = [iolab, "run", "--quiet", "--allow", "late-visibility"] if WAYS[way] else []
            for strategy in WAYS[way]:
                under += ["--apply", f"{strategy}:paths={above}/**"]
            if under:
                under.append("--")
            words = [program, above / "file", piece, count, ranks, layout, pause]
            size = piece * count * ranks
            rates[name].append(rate([*under, *map(str, words)], os.environ, size))
            written = (below / "file").read_bytes()
            assert len(written) == size and sum(written.count(b) for b in b"abcd"[:ranks]) == size, name
            (above / "file").unlink()
    medians = {name: statistics.median(row) for name, row in rates.items()}
    first = next(iter(medians.values()))
    print(f"\n{title}\n\n| | MB/s | ÷ first | rounds |\n|---|---|---|---|")
    for name, median in medians.items():
        rounds = ", ".join(f"{it:.1f}" for it in rates[name])
        print(f"| {name} | {median:.1f} | {median / first:.2f} | {rounds} |")


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else "/dev/shm"
    iolab = sys.argv[2] if len(sys.argv) > 2 else "iolab"
    subprocess.run([HERE.parent / "price.sh"], check=True)
    with tempfile.TemporaryDirectory(dir=top) as place:
        program = pathlib.Path(place, "ranks")
        subprocess.run(["cc", "-O2", "-o", program, HERE / "ranks.c"], check=True)
        below, above = pathlib.Path(place, "below"), pathlib.Path(place, "above")
        below.mkdir(), above.mkdir()
        mount = subprocess.Popen([iolab, "mount", "--apply", STORAGE, below, above], stdout=subprocess.DEVNULL)
        while not os.path.ismount(above):
            time.sleep(0.02)
        try:
            own = ("segmented", 0)
            ways = list(WAYS)
            small = [("one writer in order, 4 KiB, bare", "bare", 4096, 2048, 1, *own)]
            small += [("one writer in order, 1 MiB, bare", "bare", MIB, 16, 1, *own)]
            small += [(f"2 ranks interleaved, 4 KiB, {way}", way, 4096, 1024, 2, "interleaved", 0) for way in ways[:1]]
            small += [(f"2 ranks interleaved, 4 KiB, {way}", way, 4096, 2048, 2, "interleaved", 0) for way in ways[1:]]
            table("Interleaved pieces", small, iolab, above, below, program)
            for ranks in (1, 2, 4):
                large = [
                    (f"{ranks} × 16 blocks of 1 MiB, {way}", way, MIB, 16, ranks, "interleaved", 20_000 * ranks)
                    for way in ways
                ]
                title = f"Blocks of 1 MiB, {20 * ranks} ms between those of a process, {ranks} of these"
                table(title, large, iolab, above, below, program)
                busy = [(f"{ranks} × 16 blocks of 1 MiB, {way}", way, MIB, 16, ranks, "interleaved", 0) for way in ways]
                table(f"Blocks of 1 MiB, one behind the other, {ranks} processes", busy, iolab, above, below, program)
        finally:
            subprocess.run(["umount", above], check=False)
            mount.wait()


main()
