#!/usr/bin/env python3
"""The tables of the evaluation of in-situ transformation (Schmidtke 2017), each by one command.

    cargo build --release && benchmarks/insitu/measure.py E1 [E2 …]

Needs root and /dev/fuse. ROUNDS (6) sets how often all ways take turns, TMPFS (/dev/shm) where tmpfs is, IOLAB another build.
Progress goes to stderr, tables to stdout.
"""

import argparse
import subprocess

import choosing
import overhead
import recording
import sharing
from house import BENCHMARKS, IOLAB, ROUNDS, QUICK, said


def by(*words):
    """A table that has a page of its own."""
    return lambda: print(said([BENCHMARKS / words[0], *words[1:]]))


TABLES = {
    "E1": ("overhead on tmpfs", overhead.e1),
    "E2": ("recording on slow storage", recording.e2),
    "E3": ("random writes", overhead.e3),
    "E4": ("one file of several processes", sharing.e4),
    "E5": ("many small files", by("many-small-files/measure.py", QUICK, IOLAB)),
    "E6": ("NetCDF of several processes", sharing.e6),
    "E7": ("checkpoints by way of a fast place", by("stage/measure.py", QUICK, QUICK, IOLAB)),
    "E8": ("readers", by("read-ahead/measure.py", QUICK)),
    "E9": ("hosting", by("hosting/measure.py", QUICK)),
    "E10": ("stages in one mount", by("mount/measure.py", QUICK)),
    "E11": ("tuning against the full grid", choosing.e11),
    "E12": ("predicted against measured", by("prediction/measure.py", "--iolab", IOLAB, "--runs", str(ROUNDS))),
    "E13": ("what is seen", recording.e13),
    "E14": ("classes", recording.e14),
}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("table", nargs="+", choices=TABLES, metavar="TABLE", help="E1 to E14")
    price = subprocess.run([BENCHMARKS / "price.sh"], check=True, capture_output=True, text=True)
    chosen = options.parse_args().table
    print(f"{price.stdout.strip()}\nMedian of {ROUNDS} rounds, least and greatest in brackets.")
    for name in chosen:
        title, print_table = TABLES[name]
        print(f"\n## {name}: {title}\n", flush=True)
        print_table()


if __name__ == "__main__":
    main()
