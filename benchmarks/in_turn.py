"""What measurements of MPI programs beside a peer share: all ways take turns in each repeat, figures are medians."""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILE = "bench.bin"
MIB = 1 << 20


def rates(command, directory, environment=os.environ, way=""):
    """MiB/s of each pass of a program that prints its bytes and the seconds of its passes; its file goes."""
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=600)
    (Path(directory) / FILE).unlink(missing_ok=True)
    if done.returncode != 0:
        about = f" ({way})" if way else ""
        sys.exit(f"{' '.join(map(str, command))}{about}: exit code {done.returncode}\n{done.stderr}")
    size, *seconds = next(line for line in done.stdout.splitlines() if line[:1].isdigit()).split()
    return [int(size) / MIB / float(s) for s in seconds]


def medians(ways, repeats, once):
    """The median of each pass, by way; `once(way)` gives the passes of one run."""
    rows = {way: [] for way in ways}
    for _ in range(repeats):
        for way in ways:
            rows[way].append(once(way))
    return {way: [statistics.median(column) for column in zip(*rows[way])] for way in ways}


def cells(ways, figures, base, digits):
    """A cell for each way: its figures, and against those of `base`; nothing where a way did not run."""
    for way in ways:
        text = " / ".join(f"{figure:.0f}" for figure in figures.get(way, []))
        ratios = " / ".join(f"{a / b:.{digits}f}×" for a, b in zip(figures.get(way, []), figures[base]))
        yield f"{text} ({ratios})" if ratios and way != base else text


def parser(about, families, repeats):
    options = argparse.ArgumentParser(description=about.splitlines()[0])
    options.add_argument("directory", nargs="?", default="/dev/shm")
    options.add_argument("--ranks", type=int, default=2)
    options.add_argument("--repeats", type=int, default=repeats)
    options.add_argument("--family", choices=families, action="append")
    return options


def each_family(options, families, source, flags, table):
    """Prints the machine's prices, then `table(family, program, directory)` for each family that is installed; its
    compiler stands first in `families`."""
    price = subprocess.run([HERE / "price.sh"], check=True, capture_output=True, text=True)
    print(price.stdout.strip())
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        for family in options.family or families:
            compiler = families[family][0]
            if not shutil.which(compiler):
                print(f"\n{family} is not installed")
                continue
            program = Path(directory) / source.stem
            subprocess.run([compiler, *flags, "-o", program, source], check=True)
            table(family, program, directory)
