#!/usr/bin/env python3
"""Strategies of the layer MPI-IO on collective accesses of segments, beside the bare program, every byte compared.

    cargo build && benchmarks/mpiio-layer/measure.py [--ranks N] [--repeats N] [--target debug|release] [DIRECTORY]

DIRECTORY should be on tmpfs (default /dev/shm). All ways take turns in each repeat; figures are medians, the ratios to the
bare program in the same run are what counts. Slow storage is `throttle`, below every way alike, the bare one included.
The libraries are preloaded as `iolab run` does it: no launcher is measured.
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
# Open MPI makes one rank's accesses alone here by itself; named, its components exchange.
FAMILIES = {
    "MPICH": ("mpich", {}),
    "Open MPI": ("openmpi", {}),
    "Open MPI, fcoll vulcan": ("openmpi", {"OMPI_MCA_fcoll": "vulcan"}),
    "Open MPI, fcoll two_phase": ("openmpi", {"OMPI_MCA_fcoll": "two_phase"}),
}
WAYS = {
    "bare": "",
    "demote:when=never": "demote:when=never",
    "demote": "demote",
    "hints: cb disable": "hints:romio_cb_write=disable,romio_cb_read=disable,collective_buffering=false",
    "hints: cb enable": "hints:romio_cb_write=enable,romio_cb_read=enable,collective_buffering=true",
    "cb enable + demote": "hints:romio_cb_write=enable,romio_cb_read=enable,collective_buffering=true + demote",
}
SLOW = "throttle:latency=1ms,rate=100m,paths=*.bin"
MIB = 1 << 20
# Storage, bytes of a call, bytes of a rank, bytes of the blocks of a view (0: no holes).
CASES = [
    ("tmpfs", 4096, MIB, 0),
    ("tmpfs", 65536, 4 * MIB, 0),
    ("tmpfs", MIB, 16 * MIB, 0),
    ("tmpfs", MIB, 16 * MIB, 65536),
    ("throttle", 65536, MIB, 0),
    ("throttle", MIB, 8 * MIB, 0),
]


def once(family, options, program, directory, case, way):
    storage, piece, bytes_, block = case
    stack = " + ".join(filter(None, [WAYS[way], SLOW if storage == "throttle" else ""]))
    package, own = FAMILIES[family]
    environment = os.environ | own
    if stack:
        target = HERE.parents[1] / "target" / options.target
        libraries = [target / f"libiolab_{name}.so" for name in ("intercept", "mpi")]
        environment |= {"LD_PRELOAD": ":".join(map(str, libraries)), "IOLAB_APPLY": stack}
    command = [f"mpiexec.{package}", "-n", str(options.ranks), program, "bench.bin", str(piece), str(bytes_), str(block)]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=600)
    (Path(directory) / "bench.bin").unlink(missing_ok=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ({way}): exit code {done.returncode}\n{done.stderr}")
    size, *seconds = next(l for l in done.stdout.splitlines() if l[:1].isdigit()).split()
    return [int(size) / MIB / float(s) for s in seconds]


def table(family, program, options, directory):
    print(f"\n**{family}**, {options.ranks} ranks, MiB/s first write / write / read, and against bare (median of {options.repeats})\n")
    print("| storage, call | " + " | ".join(WAYS) + " |\n|---|" + "---|" * len(WAYS))
    for case in CASES:
        rows = {way: [] for way in WAYS}
        for _ in range(options.repeats):
            for way in WAYS:
                rows[way].append(once(family, options, program, directory, case, way))
        figures = {way: [statistics.median(column) for column in zip(*rows[way])] for way in WAYS}
        holes = f", blocks of {case[3] // 1024} KiB" if case[3] else ""
        cells = []
        for way in WAYS:
            text = " / ".join(f"{figure:.0f}" for figure in figures[way])
            ratios = " / ".join(f"{a / b:.2f}×" for a, b in zip(figures[way], figures["bare"]))
            cells.append(text if way == "bare" else f"{text} ({ratios})")
        print(f"| {case[0]}, {case[1] // 1024} KiB{holes} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", nargs="?", default="/dev/shm")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--target", default="debug", help="the build: debug (optimised, too) or release")
    parser.add_argument("--family", choices=FAMILIES, action="append")
    options = parser.parse_args()
    price = subprocess.run([HERE.parent / "price.sh"], check=True, capture_output=True, text=True)
    print(price.stdout.strip())
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        for family in options.family or FAMILIES:
            compiler = f"mpicc.{FAMILIES[family][0]}"
            if not shutil.which(compiler):
                print(f"\n{family} is not installed")
                continue
            program = Path(directory) / "segments"
            subprocess.run([compiler, "-O2", "-w", "-o", program, HERE / "segments.c"], check=True)
            table(family, program, options, directory)


if __name__ == "__main__":
    main()
