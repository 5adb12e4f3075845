#!/usr/bin/env python3
"""iolab's parallel file system beside the MPI library's own MPI-IO, in one run, every byte verified.

    cargo build --release && benchmarks/filesystem/measure.py [--ranks N] [--repeats N] [DIRECTORY]

DIRECTORY should be on tmpfs (default /dev/shm): both sides keep their bytes there, so neither waits for a
device; durability is `process` for both (after the final sync, bytes are in the kernel). The peers are
ROMIO (MPICH) and OMPIO (Open MPI); OrangeFS, the rival of the published figures, is not at hand here.
Figures are medians over interleaved repeats; the ratios are what counts. Below each table stands what the
machine copies in memory, as the limit of anything that copies.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
IOLAB = os.environ.get("IOLAB", HERE.parents[1] / "target/release/iolab")
CASES = ["cyclic 8", "cyclic 32", "cyclic 128", "cyclic 256", "block", "tridiagonal", "strided 8", "strided 128", "calls 8", "calls 128"]
FAMILIES = {"MPICH": ("mpicc.mpich", "mpiexec.mpich"), "Open MPI": ("mpicc.openmpi", "mpiexec.openmpi")}
SERVERS = 4
MIB = 1 << 20


def once(command, directory):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    size, *seconds = next(l for l in done.stdout.splitlines() if l[:1].isdigit()).split()
    return [int(size) / MIB / float(s) for s in seconds]


def copy_rate():
    """MiB/s of one copy in memory, of blocks larger than the caches."""
    block = bytearray(os.urandom(64 * MIB))
    best = 1e9
    for _ in range(5):
        start = time.perf_counter()
        bytes(block)
        best = min(best, time.perf_counter() - start)
    return 64 / best


def table(family, program, launcher, options, directory):
    print(f"\n**{family}**, {options.ranks} ranks, {SERVERS} servers, MiB/s write / read / read again (median of {options.repeats})\n")
    print("| case | own MPI-IO | iolab | ratio write | ratio read | ratio read again |\n|---|---|---|---|---|---|")
    for case in CASES:
        if case == "tridiagonal" and round(options.ranks**0.5) ** 2 != options.ranks:
            continue
        words = case.split()
        rows = {"own": [], "iolab": []}
        for _ in range(options.repeats):
            run = [launcher, "-n", str(options.ranks), program, "bench.bin", *words]
            for way, before in (("own", []), ("iolab", [IOLAB, "fs", "run", "--servers", str(SERVERS), "--"])):
                rows[way].append(once(before + run, directory))
                (Path(directory) / "bench.bin").unlink(missing_ok=True)
        own, ours = ([statistics.median(column) for column in zip(*rows[way])] for way in ("own", "iolab"))
        cells = " | ".join(f"{b / a:.1f}×" for a, b in zip(own, ours))
        text = lambda figures: " / ".join(f"{f:.0f}" if f >= 10 else f"{f:.1f}" for f in figures)
        print(f"| {case} | {text(own)} | {text(ours)} | {cells} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", nargs="?", default="/dev/shm")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--family", choices=FAMILIES, action="append")
    options = parser.parse_args()
    price = subprocess.run([HERE.parent / "price.sh"], check=True, capture_output=True, text=True)
    print(price.stdout.strip())
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        os.environ["TMPDIR"] = directory
        for family in options.family or FAMILIES:
            compiler, launcher = FAMILIES[family]
            if not shutil.which(compiler):
                print(f"\n{family} is not installed")
                continue
            program = Path(directory) / "workloads"
            subprocess.run([compiler, "-O2", "-o", program, HERE / "workloads.c"], check=True)
            table(family, program, launcher, options, directory)
    print(f"\nOne copy in memory: {copy_rate():.0f} MiB/s")


if __name__ == "__main__":
    main()
