#!/usr/bin/env python3
"""iolab's parallel file system beside the MPI library's own MPI-IO, in one run, every byte verified.

    cargo build --release && benchmarks/filesystem/measure.py [--ranks N] [--repeats N] [DIRECTORY]

DIRECTORY should be on tmpfs (default /dev/shm): both sides keep their bytes there, so neither waits for a
device; durability is `process` for both (after the final sync, bytes are in the kernel). The peers are
ROMIO (MPICH) and OMPIO (Open MPI); OrangeFS, the rival of the published figures, is not at hand here.
Figures are medians over interleaved repeats; the ratios are what counts. Below each table stands what the
machine copies in memory, as the limit of anything that copies.
"""

import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from in_turn import FILE, MIB, each_family, medians, parser, rates  # noqa: E402

IOLAB = os.environ.get("IOLAB", HERE.parents[1] / "target/release/iolab")
CASES = ["cyclic 8", "cyclic 32", "cyclic 128", "cyclic 256", "block", "tridiagonal", "strided 8", "strided 128", "calls 8", "calls 128"]
FAMILIES = {"MPICH": ("mpicc.mpich", "mpiexec.mpich"), "Open MPI": ("mpicc.openmpi", "mpiexec.openmpi")}
SERVERS = 4


def copy_rate():
    """MiB/s of one copy in memory, of blocks larger than the caches."""
    block = bytearray(os.urandom(64 * MIB))
    best = 1e9
    for _ in range(5):
        start = time.perf_counter()
        bytes(block)
        best = min(best, time.perf_counter() - start)
    return 64 / best


def main():
    options = parser(__doc__, FAMILIES, 3).parse_args()
    ways = {"own": [], "iolab": [IOLAB, "fs", "run", "--servers", str(SERVERS), "--"]}

    def table(family, program, directory):
        launcher = FAMILIES[family][1]
        environment = os.environ | {"TMPDIR": directory}
        print(f"\n**{family}**, {options.ranks} ranks, {SERVERS} servers, MiB/s write / read / read again (median of {options.repeats})\n")
        print("| case | own MPI-IO | iolab | ratio write | ratio read | ratio read again |\n|---|---|---|---|---|---|")
        for case in CASES:
            if case == "tridiagonal" and round(options.ranks**0.5) ** 2 != options.ranks:
                continue
            run = [launcher, "-n", str(options.ranks), program, FILE, *case.split()]
            figures = medians(ways, options.repeats, lambda way: rates(ways[way] + run, directory, environment))
            own, ours = figures["own"], figures["iolab"]
            ratios = " | ".join(f"{b / a:.1f}×" for a, b in zip(own, ours))
            text = lambda figures: " / ".join(f"{f:.0f}" if f >= 10 else f"{f:.1f}" for f in figures)
            print(f"| {case} | {text(own)} | {text(ours)} | {ratios} |", flush=True)

    each_family(options, FAMILIES, HERE / "workloads.c", ["-O2"], table)
    print(f"\nOne copy in memory: {copy_rate():.0f} MiB/s")


if __name__ == "__main__":
    main()
