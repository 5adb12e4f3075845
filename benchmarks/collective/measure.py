#!/usr/bin/env python3
"""Algorithms of `iolab run --collective` beside the MPI library's own collective, every byte compared.

    cargo build --release && benchmarks/collective/measure.py [--ranks N] [--repeats N] [DIRECTORY]

DIRECTORY should be on tmpfs (default /dev/shm), where nobody waits for a device. The ranks have pieces in
turn. All ways take turns in each repeat; figures are medians, the ratios against the library's own in the same run are what
counts. The library is preloaded by itself, as `iolab run` does it: no launcher is measured.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from in_turn import FILE, MIB, cells, each_family, medians, parser, rates  # noqa: E402

LIBRARY = HERE.parents[1] / "target/release/libiolab_mpi.so"
FAMILIES = {"MPICH": ("mpicc.mpich", "mpiexec.mpich"), "Open MPI": ("mpicc.openmpi", "mpiexec.openmpi")}
PIECES = [8, 64, 512, 4096, 65536]
WAYS = ["own", "two-phase", "interleaved-two-phase", "double-buffered-two-phase", "direct"]
# One access for each piece: a system call for each 8 bytes says nothing new.
DIRECT_FROM = 512
RANK_BYTES = 16 << 20


def once(launcher, options, program, directory, piece, way):
    environment = dict(os.environ)
    if way != "own":
        environment |= {"LD_PRELOAD": str(LIBRARY), "IOLAB_COLLECTIVE": way}
    command = [launcher, "-n", str(options.ranks), program, FILE, str(piece), str(RANK_BYTES)]
    return rates(command, directory, environment, way)[:3]


def main():
    options = parser(__doc__, FAMILIES, 5).parse_args()

    def table(family, program, directory):
        launcher = FAMILIES[family][1]
        print(f"\n**{family}**, {options.ranks} ranks, MiB/s first write / write / read, and against own (median of {options.repeats})\n")
        print("| piece | " + " | ".join(WAYS) + " |\n|---|" + "---|" * len(WAYS))
        for piece in PIECES:
            ways = [way for way in WAYS if way != "direct" or piece >= DIRECT_FROM]
            figures = medians(ways, options.repeats, lambda way: once(launcher, options, program, directory, piece, way))
            print(f"| {piece} | " + " | ".join(cells(WAYS, figures, "own", 1)) + " |", flush=True)

    each_family(options, FAMILIES, HERE / "interleaved.c", ["-O2"], table)


if __name__ == "__main__":
    main()
