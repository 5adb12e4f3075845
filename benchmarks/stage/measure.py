#!/usr/bin/env python3
"""Checkpoint cycles: time that a program waits for its checkpoints, written to a fast place, to storage of
100 MB/s, and to that storage by way of the fast place (strategy `stage`).

    benchmarks/stage/measure.py FAST HOME [IOLAB]

Slow storage is `iolab mount --apply throttle:rate=100m` over HOME. Each way in turn, ROUNDS times; prints the
median of the visible times and their ratio to writing to the fast place.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

CYCLES = int(os.environ.get("CYCLES", "4"))
MIB = int(os.environ.get("MIB", "64"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
COMPUTE_S = float(os.environ.get("COMPUTE_S", "0.8"))

PROGRAM = """
import os, sys, time
directory, cycles, mib, compute, is_synced = sys.argv[1], *map(float, sys.argv[2:])
block, visible = os.urandom(1 << 20), 0.0
for cycle in range(int(cycles)):
    end = time.monotonic() + compute
    while time.monotonic() < end:
        pass
    begin = time.monotonic()
    fd = os.open(f"{directory}/{cycle}.chk", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for _ in range(int(mib)):
        os.write(fd, block)
    if is_synced:
        os.fsync(fd)
    os.close(fd)
    visible += time.monotonic() - begin
print(visible)
"""


def program(directory, is_synced=0):
    return [sys.executable, "-c", PROGRAM, str(directory), *map(str, (CYCLES, MIB, COMPUTE_S, is_synced))]


def measured(command):
    begin = time.monotonic()
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(told.stdout), time.monotonic() - begin


def main():
    fast, home = (pathlib.Path(it).resolve() for it in sys.argv[1:3])
    iolab = sys.argv[3] if len(sys.argv) > 3 else "iolab"
    with tempfile.TemporaryDirectory(dir=home) as place, tempfile.TemporaryDirectory(dir=fast) as quick:
        below, above = pathlib.Path(place, "below"), pathlib.Path(place, "above")
        below.mkdir(), above.mkdir()
        mount = subprocess.Popen(
            [iolab, "mount", "--apply", "throttle:rate=100m", str(below), str(above)], stderr=subprocess.DEVNULL
        )
        while not os.path.ismount(above):
            time.sleep(0.02)
        staged = [iolab, "run", "--quiet", "--allow", "late-visibility"]
        staged += ["--apply", f"stage:to={quick},paths={above}/**", "--"]
        ways = {
            "fast place": program(quick),
            "100 MB/s": program(above),
            "100 MB/s, staged": staged + program(above),
            "100 MB/s, fsync": program(above, 1),
            "100 MB/s, staged, fsync": staged + program(above, 1),
        }
        times = {way: [] for way in ways}
        try:
            for _ in range(ROUNDS):
                for way, command in ways.items():
                    times[way].append(measured(command))
                    written = [path for top in (quick, below) for path in pathlib.Path(top).glob("*.chk")]
                    assert len(written) == CYCLES and all(p.stat().st_size == MIB << 20 for p in written), way
                    for path in pathlib.Path(quick).glob("*.chk"):
                        path.unlink()
                    for path in above.glob("*.chk"):
                        path.unlink()
        finally:
            subprocess.run(["umount", str(above)], check=False)
            mount.wait()
    median = {way: [statistics.median(column) for column in zip(*rows)] for way, rows in times.items()}
    peer = median["fast place"][0]
    print(f"{CYCLES} checkpoints of {MIB} MiB, {COMPUTE_S} s of computation before each, medians of {ROUNDS}\n")
    print("| written to | visible, s | ÷ fast place | until all is there, s |\n|---|---|---|---|")
    for way, (visible, whole) in median.items():
        print(f"| {way} | {visible:.3f} | {visible / peer:.2f} | {whole:.2f} |")


main()
