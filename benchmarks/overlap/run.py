#!/usr/bin/env python3
"""Does overlap follow max(c, io)/(c + io) where I/O really takes time? `run.py [SWEEP | EQUAL]…`

Mounts the slow file system beside this script (needs root), runs the sweeps of plans/overlap on it
without MPI and under both families, and what each way gains at equality with two processors per rank
and with one. Results (CSV and SVG) go into this folder, a summary to stdout. The sweep runs with
real-time priority, as the machine may have other things to do; Linux stops such a rank for 50 ms in
a second, which the medians forget.
"""

import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
IOLAB = ROOT / "target/release/iolab"
PLANS = ROOT / "plans/overlap"
MEGABYTES_PER_SECOND = "64"
# A computation of real-time priority would not let a helper onto its processor, so only the sweep,
# where there are two, uses it.
ALONE, FAVOURED, DEVICE = ["chrt", "-f", "10"], ["nice", "-n", "-20"], ["chrt", "-f", "20"]
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


def measured(name, launcher, arguments, prefix):
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with SlowFiles() as folder:
        result = folder.parent / f"{folder.name}.json"
        command = [*prefix, *launcher, IOLAB, "overlap", *arguments, "-o", folder / "file",
                   "--csv", "--output", result]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
        if done.returncode != 0:
            sys.exit(f"{name} failed")
    (HERE / f"{name}.csv").write_text(done.stdout)
    outcome = json.loads(result.read_text())
    subprocess.run([IOLAB, "overlap", "report", result, "--plot", HERE / f"{name}.svg"],
                   check=True, stdout=subprocess.DEVNULL)
    result.unlink()
    return outcome


def sweep():
    print("| ranks by | way | worst distance from theory | at c/io | usable |")
    print("|---|---|---|---|---|")
    for name, launcher in launchers():
        plan = PLANS / ("sweep-mpi.toml" if launcher else "sweep.toml")
        outcome = measured(f"sweep-{name}", launcher, [plan], ALONE)
        for index, case in enumerate(outcome["cases"]):
            own = [s for s in outcome["summaries"] if s["case"] == index]
            found = [(s["found"]["off_theory"], s["wanted"]) for s in own if s["found"]]
            off, at = max(found, key=lambda pair: abs(pair[0]))
            usable = sum(s["usable"] for s in own), sum(s["repetitions"] for s in own)
            print(f"| {name} | {case['title']} | {off:+.1%} | {at:g} | "
                  f"{usable[0]} of {usable[1]} |", flush=True)


def equal():
    """The published setting: 2 and 1 processors per rank, averages over the ways."""
    print("| processors of a rank | ways | average ratio at equality | from | to |")
    print("|---|---|---|---|---|")
    for processors, prefix in ((2, ["taskset", "-c", "0,1"]), (1, ["taskset", "-c", "1"])):
        prefix = [*FAVOURED, *prefix]
        ratios = []
        for name, launcher in launchers():
            methods = ["nonblocking", "independent"] if launcher else ["uring", "aio", "posix"]
            for method in methods:
                way = "thread" if method in ("posix", "independent") else "native"
                arguments = ["-b", "256k", "-a", method, "--way", way, "-i", "9", "--count", "5",
                             "--direction", "write,read"]
                label = f"equal-{processors}-{name}-{method}"
                outcome = measured(label, launcher, arguments, prefix)
                (HERE / f"{label}.svg").unlink()
                ratios += [s["found"]["ratio"]["median"] for s in outcome["summaries"]
                           if s["found"]]
        print(f"| {processors} | {len(ratios)} | {statistics.mean(ratios):.3f} | "
              f"{min(ratios):.3f} | {max(ratios):.3f} |", flush=True)
    gather()


def gather():
    """One CSV of the many small ones."""
    files = sorted(HERE.glob("equal-*-*.csv"))
    rows = []
    for path in files:
        processors = path.stem.split("-")[1]
        with path.open(newline="") as file:
            rows += [{"processors": processors, **row} for row in csv.DictReader(file)]
        path.unlink()
    with (HERE / "equal.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    wanted = sys.argv[1:] or ["SWEEP", "EQUAL"]
    for name in wanted:
        {"SWEEP": sweep, "EQUAL": equal}[name]()


if __name__ == "__main__":
    main()
