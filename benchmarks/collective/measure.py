#!/usr/bin/env python3
"""Algorithms of `iolab run --collective` beside the MPI library's own collective, every byte compared.

    cargo build --release && benchmarks/collective/measure.py [--ranks N] [--repeats N] [DIRECTORY]

DIRECTORY should be on tmpfs (default /dev/shm), where nobody waits for a device. The ranks have pieces in
turn. All ways take turns in each repeat; figures are medians, the ratios against the library's own in the same run are what
counts. The library is preloaded by itself, as `iolab run` does it: no launcher is measured.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parents[1] / "target/release/libiolab_mpi.so"
FAMILIES = {"MPICH": ("mpicc.mpich", "mpiexec.mpich"), "Open MPI": ("mpicc.openmpi", "mpiexec.openmpi")}
PIECES = [8, 64, 512, 4096, 65536]
WAYS = ["own", "two-phase", "interleaved-two-phase", "double-buffered-two-phase", "direct"]
# One access for each piece: a system call for each 8 bytes says nothing new.
DIRECT_FROM = 512
RANK_BYTES = 16 << 20
MIB = 1 << 20


def once(launcher, options, program, directory, piece, way):
    environment = dict(os.environ)
    if way != "own":
        environment |= {"LD_PRELOAD": str(LIBRARY), "IOLAB_COLLECTIVE": way}
    command = [launcher, "-n", str(options.ranks), program, "bench.bin", str(piece), str(RANK_BYTES)]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=600)
    (Path(directory) / "bench.bin").unlink(missing_ok=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ({way}): exit code {done.returncode}\n{done.stderr}")
    size, *seconds = next(l for l in done.stdout.splitlines() if l[:1].isdigit()).split()
    return [int(size) / MIB / float(s) for s in seconds]


def table(family, program, launcher, options, directory):
    print(f"\n**{family}**, {options.ranks} ranks, MiB/s first write / write / read, and against own (median of {options.repeats})\n")
    print("| piece | " + " | ".join(WAYS) + " |\n|---|" + "---|" * len(WAYS))
    for piece in PIECES:
        ways = [way for way in WAYS if way != "direct" or piece >= DIRECT_FROM]
        rows = {way: [] for way in ways}
        for _ in range(options.repeats):
            for way in ways:
                rows[way].append(once(launcher, options, program, directory, piece, way))
        figures = {way: [statistics.median(column) for column in zip(*rows[way])][:3] for way in ways}
        cells = []
        for way in WAYS:
            if way not in figures:
                cells.append("")
                continue
            text = " / ".join(f"{figure:.0f}" for figure in figures[way])
            ratios = " / ".join(f"{a / b:.1f}×" for a, b in zip(figures[way], figures["own"]))
            cells.append(text if way == "own" else f"{text} ({ratios})")
        print(f"| {piece} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", nargs="?", default="/dev/shm")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--family", choices=FAMILIES, action="append")
    options = parser.parse_args()
    price = subprocess.run([HERE.parent / "price.sh"], check=True, capture_output=True, text=True)
    print(price.stdout.strip())
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        for family in options.family or FAMILIES:
            compiler, launcher = FAMILIES[family]
            if not shutil.which(compiler):
                print(f"\n{family} is not installed")
                continue
            program = Path(directory) / "interleaved"
            subprocess.run([compiler, "-O2", "-o", program, HERE / "interleaved.c"], check=True)
            table(family, program, launcher, options, directory)


if __name__ == "__main__":
    main()
