#!/usr/bin/env python3
"""Strategies of the layer MPI-IO on collective accesses of segments, beside the bare program, every byte compared.

    cargo build && benchmarks/mpiio-layer/measure.py [--ranks N] [--repeats N] [--target debug|release] [DIRECTORY]

DIRECTORY should be on tmpfs (default /dev/shm). All ways take turns in each repeat; figures are medians, the ratios to the
bare program in the same run are what counts. Slow storage is `throttle`, below every way alike, the bare one included.
The libraries are preloaded as `iolab run` does it: no launcher is measured.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from in_turn import FILE, MIB, cells, each_family, medians, parser, rates  # noqa: E402

# Open MPI makes one rank's accesses alone here by itself; named, its components exchange.
FAMILIES = {
    "MPICH": ("mpicc.mpich", "mpiexec.mpich", {}),
    "Open MPI": ("mpicc.openmpi", "mpiexec.openmpi", {}),
    "Open MPI, fcoll vulcan": ("mpicc.openmpi", "mpiexec.openmpi", {"OMPI_MCA_fcoll": "vulcan"}),
    "Open MPI, fcoll two_phase": ("mpicc.openmpi", "mpiexec.openmpi", {"OMPI_MCA_fcoll": "two_phase"}),
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
# Storage, bytes of a call, bytes of a rank, bytes of the blocks of a view (0: no holes).
CASES = [
    ("tmpfs", 4096, MIB, 0),
    ("tmpfs", 65536, 4 * MIB, 0),
    ("tmpfs", MIB, 16 * MIB, 0),
    ("tmpfs", MIB, 16 * MIB, 65536),
    ("throttle", 65536, MIB, 0),
    ("throttle", MIB, 8 * MIB, 0),
]


def preloaded(options, stack, own):
    """The environment of a program under a stack, as `iolab run` makes it; without a stack, nothing is preloaded."""
    environment = os.environ | own
    if stack:
        target = HERE.parents[1] / "target" / options.target
        libraries = [target / f"libiolab_{name}.so" for name in ("intercept", "mpi")]
        words = {"IOLAB_APPLY": stack, "IOLAB_ALLOW": "late-visibility,cruel"}
        environment |= {"LD_PRELOAD": ":".join(map(str, libraries))} | words
    return environment


def once(family, options, program, directory, case, way):
    storage, piece, bytes_, block = case
    stack = " + ".join(filter(None, [WAYS[way], SLOW if storage == "throttle" else ""]))
    _, launcher, own = FAMILIES[family]
    environment = preloaded(options, stack, own)
    command = [launcher, "-n", str(options.ranks), program, FILE, str(piece), str(bytes_), str(block)]
    return rates(command, directory, environment, way)


def main():
    arguments = parser(__doc__, FAMILIES, 5)
    arguments.add_argument("--target", default="debug", help="the build: debug (optimised, too) or release")
    options = arguments.parse_args()

    def table(family, program, directory):
        print(f"\n**{family}**, {options.ranks} ranks, MiB/s first write / write / read, and against bare (median of {options.repeats})\n")
        print("| storage, call | " + " | ".join(WAYS) + " |\n|---|" + "---|" * len(WAYS))
        for case in CASES:
            figures = medians(WAYS, options.repeats, lambda way: once(family, options, program, directory, case, way))
            holes = f", blocks of {case[3] // 1024} KiB" if case[3] else ""
            print(f"| {case[0]}, {case[1] // 1024} KiB{holes} | " + " | ".join(cells(WAYS, figures, "bare", 2)) + " |", flush=True)

    each_family(options, FAMILIES, HERE / "segments.c", ["-O2", "-w"], table)


if __name__ == "__main__":
    main()
