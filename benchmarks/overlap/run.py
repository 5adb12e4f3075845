#!/usr/bin/env python3
"""Does overlap follow max(c, io)/(c + io) where I/O really takes time? `run.py`

Mounts the slow file system beside this script (needs root) and runs the sweeps of plans/overlap on it,
without MPI and under both families. Results (CSV and SVG) go into this folder, a summary to stdout.
Everything runs with real-time priority, as the machine may have other things to do.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
IOLAB = ROOT / "target/release/iolab"
PLANS = ROOT / "plans/overlap"
MEGABYTES_PER_SECOND = "64"
# The rank computes on one of two processors; on fewer its helper would never get one.
RANK, DEVICE = ["chrt", "-f", "10"], ["chrt", "-f", "20"]
# What is kept of a point; one rank has no spread.
COLUMNS = ("method direction way poll wanted compute_over_io repetition ratio theory quality usable "
           "nonblocking_ns blocking_ns compute_inflation io_inflation start_ns wait_ns").split()
FAMILIES = {"mpich": [], "openmpi": ["--bind-to", "none"]}


class SlowFiles:
    """The slow file system, mounted as long as this lives."""

    def __enter__(self):
        self.point = tempfile.mkdtemp(prefix="iolab-slow-")
        command = [*DEVICE, sys.executable, HERE / "slowfs.py", self.point, MEGABYTES_PER_SECOND]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit("the slow file system cannot be mounted: it needs root and /dev/fuse")
        return Path(self.point)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        os.rmdir(self.point)


def launchers():
    """How a rank is started: alone, and by each family that is installed."""
    yield "without-mpi", []
    for family, flags in FAMILIES.items():
        if shutil.which(f"mpiexec.{family}"):
            yield family, [f"mpiexec.{family}", *flags, "-n", "1"]
        else:
            print(f"mpiexec.{family} is not installed", file=sys.stderr)


def measured(name, launcher, plan):
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with SlowFiles() as folder:
        result = folder.parent / f"{folder.name}.json"
        command = [*RANK, *launcher, IOLAB, "overlap", plan, "-o", folder / "file",
                   "--csv", "--output", result]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
        if done.returncode != 0:
            sys.exit(f"{name} failed")
    keep(HERE / f"{name}.csv", [short(row) for row in csv.DictReader(done.stdout.splitlines())])
    outcome = json.loads(result.read_text())
    subprocess.run([IOLAB, "overlap", "report", result, "--plot", HERE / f"{name}.svg"],
                   check=True, stdout=subprocess.DEVNULL)
    result.unlink()
    return outcome


def short(row):
    """Four digits of every number are more than the measurement has."""
    def digits(text):
        return f"{float(text):.4g}" if "." in text and len(text) > 6 else text
    return {name: digits(row[name]) for name in COLUMNS}


def keep(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def sweep():
    price = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../price.sh")
    print(subprocess.run([price], check=True, capture_output=True, text=True).stdout)
    print("| ranks by | way | worst distance from theory | at c/io | usable |")
    print("|---|---|---|---|---|")
    for name, launcher in launchers():
        plan = PLANS / ("sweep-mpi.toml" if launcher else "sweep.toml")
        outcome = measured(f"sweep-{name}", launcher, plan)
        for index, case in enumerate(outcome["cases"]):
            own = [s for s in outcome["summaries"] if s["case"] == index]
            found = [(s["found"]["off_theory"], s["wanted"]) for s in own if s["found"]]
            off, at = max(found, key=lambda pair: abs(pair[0]))
            usable = sum(s["usable"] for s in own), sum(s["repetitions"] for s in own)
            print(f"| {name} | {case['title']} | {off * 100:+.1f} % | {at:g} | "
                  f"{usable[0]} of {usable[1]} |", flush=True)


if __name__ == "__main__":
    sweep()
