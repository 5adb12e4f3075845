#!/usr/bin/env python3
"""`collect` on independent writes of pieces that ranks have in turn, beside the bare program, every byte compared.

    cargo build && benchmarks/mpiio-layer/collect.py [--ranks N] [--repeats N] [--target debug|release] [DIRECTORY]

DIRECTORY should be on tmpfs (default /dev/shm). All ways take turns in each repeat; a ratio is that of the medians, with those of the
slowest and the fastest repeat as its interval. Slow storage is `throttle`, below every way alike, the bare one included. Of
a pass, the sync at its end counts, too.
"""

import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from in_turn import FILE, MIB, each_family, parser, rates  # noqa: E402
from measure import SLOW, preloaded  # noqa: E402

FAMILIES = {
    "MPICH": ("mpicc.mpich", "mpiexec.mpich", {}),
    "Open MPI": ("mpicc.openmpi", "mpiexec.openmpi", {}),
}
WAYS = {
    "bare": "",
    "collect:when=never": "collect:when=never,paths=*.bin",
    "collect": "collect:paths=*.bin",
    "collect:slow=0": "collect:slow=0,paths=*.bin",
}
# Storage, bytes of a piece, bytes of a rank.
CASES = [
    ("throttle", 512, MIB // 4),
    ("throttle", 4096, MIB),
    ("throttle", 65536, 8 * MIB),
    ("throttle", MIB, 16 * MIB),
    ("tmpfs", 512, MIB),
    ("tmpfs", 4096, 8 * MIB),
    ("tmpfs", 65536, 16 * MIB),
    ("tmpfs", MIB, 16 * MIB),
]


def cell(figures, bare):
    """Medians of both passes; of the second one the ratio, and its interval of repeats."""
    both = " / ".join(f"{statistics.median(column):.1f}" for column in zip(*figures))
    if figures is bare:
        return both
    ratios = [own[1] / plain[1] for own, plain in zip(figures, bare)]
    return f"{both} ({statistics.median(ratios):.2f}×, {min(ratios):.2f} to {max(ratios):.2f})"


def main():
    arguments = parser(__doc__, FAMILIES, 5)
    arguments.add_argument("--target", default="debug", help="the build: debug (optimised, too) or release")
    options = arguments.parse_args()

    def table(family, program, directory):
        _, launcher, own = FAMILIES[family]
        print(f"\n**{family}**, {options.ranks} ranks, MiB/s first / second pass, and the second against bare: median and interval of {options.repeats} repeats\n")
        print("| storage, piece | " + " | ".join(WAYS) + " |\n|---|" + "---|" * len(WAYS))
        for storage, piece, bytes_ in CASES:
            figures = {way: [] for way in WAYS}
            for _ in range(options.repeats):
                for way, stack in WAYS.items():
                    stack = " + ".join(filter(None, [stack, SLOW if storage == "throttle" else ""]))
                    command = [launcher, "-n", str(options.ranks), program, FILE, str(piece), str(bytes_)]
                    figures[way].append(rates(command, directory, preloaded(options, stack, own), way))
            name = f"{piece // 1024} KiB" if piece >= 1024 else f"{piece} B"
            print(f"| {storage}, {name} | " + " | ".join(cell(figures[way], figures["bare"]) for way in WAYS) + " |", flush=True)

    each_family(options, FAMILIES, HERE / "turns.c", ["-O2", "-w"], table)


if __name__ == "__main__":
    main()
