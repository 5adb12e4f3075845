#!/usr/bin/env python3
"""Prediction against measurement: how far off is `iolab simulate`, on programs nobody here wrote
and on our examples?

    benchmarks/prediction/measure.py [--iolab target/release/iolab] [--directory DIR] [--runs 9] [--storage STAGE]

Calibrates DIR's file system, records each program once, predicts its plain run and its run under
each strategy, then runs it plain and under each strategy in turns, and prints a table of medians.
Last, of how many pairs of strategies whose measured runs are apart (no run of one as long as one of
the other) the prediction knows the order. --storage puts a mount with that stage over DIR (root, /dev/fuse), and programs make a fiftieth of their calls there.
Results of one machine: results.md.
"""

import argparse
import contextlib
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks/insitu"))
from house import mounted  # noqa: E402



def programs(part):
    """What is run, with a `part`-th of its calls, and the file it needs beside it."""
    records, reads, steps, inserts, lines = 60_000 // part, 60_000 // part, 20_000 // part, 3000 // part, 3000 // part
    writes = (
        "f = open('records', 'wb', buffering=0)\n"
        f"for n in range({records}):\n"
        "    f.write(b'%08d some record of a program\\n' % n)\n")
    read_by = (
        "import os\n"
        "fd = os.open('../small', os.O_RDONLY)\n"
        "for n in range({}):\n"
        "    os.pread(fd, 64, n * {})\n")
    dd = ["dd", "if=/dev/zero", "of=out", "status=none"]
    python = [sys.executable, "-S", "-c"]
    for_sqlite = "\n".join(
        ["pragma journal_mode=memory; pragma synchronous=off; create table t(a integer, b text);"]
        + [f"insert into t values({n}, 'row number {n}');" for n in range(inserts)])
    return {
        "dd, 64 B blocks": [*dd, "bs=64", f"count={200_000 // part}"],
        "dd, 512 B blocks": [*dd, "bs=512", f"count={100_000 // part}"],
        "dd, 4 KiB blocks, fsync": [*dd, "bs=4k", f"count={8000 // part}", "conv=fsync"],
        f"sqlite3, {inserts} inserts": ["sqlite3", "-init", "../inserts.sql", "rows.db", ".quit"],
        f"python3, {records} records": [*python, writes],
        f"python3, {reads} reads in order": [*python, read_by.format(reads, 64)],
        f"python3, {steps} reads by a step": [*python, read_by.format(steps, 192)],
        f"bash, {lines} lines": ["bash", "-c", f"for ((n = 0; n < {lines}; n++)); do echo line $n; done > lines"],
    }, for_sqlite


# Of the calls, where each waits for a server.
PART_ON_SLOW_STORAGE = 50
STRATEGIES = [
    "null",
    "write-back",
    "seek-elide",
    "align:block=64k",
    "write-back + align:block=64k",
    "read-ahead",
    "read-ahead:via=buffer,outsiders=none",
    "data-sieve:outsiders=none",
]


def chosen(stack, paths):
    """The stack for files that `paths` names."""
    stages = stack.split(" + ")
    return " + ".join(f"{stage}{',' if ':' in stage else ':'}paths={paths}" for stage in stages)


def examples(build: Path):
    """Our own examples, where they can be built."""
    programs = {}
    checkpoint = build / "checkpoint"
    source = ROOT / "examples/checkpoint/checkpoint.c"
    if subprocess.run(["cc", "-O2", "-o", checkpoint, source, "-lm"]).returncode == 0:
        programs["checkpoint example"] = [str(checkpoint), "."]
    jacobi, source = build / "jacobi", ROOT / "examples/jacobi/jacobi.c"
    for family in ["mpich", "openmpi"]:
        if shutil.which(f"mpicc.{family}") is None:
            continue
        binary = f"{jacobi}-{family}"
        if subprocess.run([f"mpicc.{family}", "-O2", "-o", binary, source, "-lm"]).returncode == 0:
            launcher = [f"mpiexec.{family}", "-n", "2"]
            if family == "openmpi":
                launcher[1:1] = ["--allow-run-as-root", "--oversubscribe"]
            programs[f"jacobi example, {family}"] = [*launcher, binary, "."]
    return programs


def run(command, directory: Path):
    """Elapsed seconds of one run in an empty directory."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    started = time.perf_counter()
    subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iolab", type=Path, default=ROOT / "target/release/iolab")
    parser.add_argument("--directory", type=Path, default=Path("/tmp"))
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--storage", default="", help="as throttle:rate=100m,latency=1ms")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path, help="keep traces and the platform file here")
    options = parser.parse_args()
    iolab = str(options.iolab.resolve())
    scratch = options.directory / f"iolab-prediction-{os.getpid()}"
    scratch.mkdir()
    keep = options.keep or scratch
    keep.mkdir(exist_ok=True)
    try:
        below = scratch / "storage"
        below.mkdir()
        shown = mounted(below, scratch / "slow", options.storage, iolab=iolab)
        with shown if options.storage else contextlib.nullcontext(below) as place:
            measure(options, iolab, scratch, keep, place)
    finally:
        shutil.rmtree(scratch)


def measure(options, iolab, scratch, keep, place):
    platform = keep / "this-machine.toml"
    run_here, inserts = programs(PART_ON_SLOW_STORAGE if options.storage else 1)
    (place / "inserts.sql").write_text(inserts)
    (place / "small").write_bytes(bytes(range(256)) * 16384)
    subprocess.run([iolab, "calibrate", place, "-o", platform], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    work = place / "work"
    paths = f"{place}/**"
    applied = lambda strategy: [iolab, "run", "--quiet", "--apply", chosen(strategy, paths), "--"]
    if not options.storage:
        run_here |= examples(scratch)
    print(f"{options.runs} runs each, in {options.directory} {options.storage}".strip())
    price = ROOT / "benchmarks/price.sh"
    print(subprocess.run([price], check=True, capture_output=True, text=True).stdout)
    print("| program | strategy | predicted ms | by model alone | measured ms | error | speed-up predicted | measured |")
    print("|---|---|---|---|---|---|---|---|")
    errors, effects, orders = [], [], []
    for name, command in run_here.items():
        if options.only not in name:
            continue
        trace = keep / f"{name.replace(' ', '-').replace(',', '')}.iot"
        run([iolab, "record", "-o", trace, "--", *command], work)
        predicted, model = {}, {}
        for strategy in [None, *STRATEGIES]:
            apply = ["--apply", chosen(strategy, paths)] if strategy else []
            output = subprocess.run(
                [iolab, "simulate", "--trace", trace, "--platform", platform, "--json", *apply],
                check=True, capture_output=True, text=True).stdout
            result = json.loads(output)
            key = "predicted" if strategy else "plain"
            predicted[strategy] = result[key]["wall_ns"] / 1e6
            model[strategy] = result[f"{key}_by_model"]["wall_ns"] / 1e6
        times = {strategy: [] for strategy in predicted}
        for _ in range(options.runs):
            for strategy in times:
                prefix = applied(strategy) if strategy else []
                times[strategy].append(run([*prefix, *command], work) * 1e3)
        measured = {strategy: statistics.median(values) for strategy, values in times.items()}
        for one, other in itertools.combinations(times, 2):
            quick, slow = sorted((one, other), key=measured.get)
            if max(times[quick]) < min(times[slow]):
                orders.append(predicted[quick] < predicted[slow])
        for strategy in times:
            error = predicted[strategy] / measured[strategy] - 1
            gains = [values[None] / values[strategy] for values in (predicted, measured)]
            errors.append(abs(error))
            effects.append(abs(gains[0] / gains[1] - 1))
            print(f"| {name} | {strategy or 'plain'} | {predicted[strategy]:.1f} | {model[strategy]:.1f} "
                  f"| {measured[strategy]:.1f} | {error:+.0%} | {gains[0]:.2f} | {gains[1]:.2f} |", flush=True)
    print(f"\nmedian error of the run time {statistics.median(errors):.0%}, worst {max(errors):.0%}; "
          f"median error of the speed-up {statistics.median(effects):.0%}; "
          f"order right in {sum(orders)} of {len(orders)} pairs that are apart")


if __name__ == "__main__":
    main()
