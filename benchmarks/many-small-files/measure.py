#!/usr/bin/env python3
"""Many small files where each open of one takes a millisecond: made bare, with `write-back`, and with `defer-close`,
unpacked at the end or never; and read, bare or from the container that was left.

    benchmarks/many-small-files/measure.py DIRECTORY [IOLAB]

Slow storage is `iolab mount --apply throttle:open=1ms` over DIRECTORY (a run's own mount lies on that). The program makes
FILES files as an HDF5 library does: made, five small writes out of order, closed; with h5py at hand, by it as well.
Each way in turn, ROUNDS times, in a fresh directory; prints medians, ratios to bare within a round, and opens
of the slow storage. Needs root and /dev/fuse.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

FILES = int(os.environ.get("FILES", "2000"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
OPEN = os.environ.get("OPEN", "1ms")

LIKE_HDF5 = """
import os, sys
directory, count = sys.argv[1], int(sys.argv[2])
os.mkdir(directory)
head, data = bytes(96), bytes(range(256)) * 8
for number in range(count):
    fd = os.open(f"{directory}/{number:06}.h5", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    os.pwrite(fd, head, 0)
    os.pwrite(fd, data, 2048)
    os.pwrite(fd, data[:544], 800)
    os.pwrite(fd, data[:120], 96)
    os.pwrite(fd, head, 0)
    os.close(fd)
"""

BY_H5PY = """
import os, sys, h5py, numpy
directory, count = sys.argv[1], int(sys.argv[2])
os.mkdir(directory)
data = numpy.arange(256)
for number in range(count):
    with h5py.File(f"{directory}/{number:06}.h5", "w") as file:
        file["a"] = data
"""


READ = """
import os, sys
directory, bytes_read = sys.argv[1], 0
for name in sorted(os.listdir(directory)):
    fd = os.open(f"{directory}/{name}", os.O_RDONLY)
    bytes_read += len(os.pread(fd, 96, 0)) + len(os.pread(fd, 4096, 96))
    os.close(fd)
assert bytes_read == int(sys.argv[2]) * 4096, bytes_read
"""


class Slow:
    """Storage whose opens take their time, and are counted."""

    def __init__(self, iolab, place):
        self.below, self.seen = place / "below", place / "seen"
        self.below.mkdir(), self.seen.mkdir()
        apply = f"count:name=opens,paths=** + throttle:open={OPEN},paths=**"
        command = [iolab, "mount", "--apply", apply, self.below, self.seen]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if not self.server.stdout.readline().startswith("ready: "):
            sys.exit(f"no mount: {self.server.stderr.read()}")

    def end(self):
        self.server.terminate()
        return self.server.communicate()[1]


def ways(iolab, out):
    run = [iolab, "run", "--allow", "late-visibility", "--quiet"]
    deferred = f"defer-close:exclusive=yes,paths={out}/**,unpack="
    return {
        "bare": [],
        "write-back": [iolab, "run", "--quiet", "--apply", f"write-back:paths={out}/**", "--"],
        "defer-close, unpack=end": [*run, "--apply", f"{deferred}end", "--"],
        "defer-close, unpack=never": [*run, "--apply", f"{deferred}never", "--"],
    }


def once(iolab, program, name):
    """Seconds that the program took, those with unpacking, and files of the slow storage afterwards."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as place:
        slow = Slow(iolab, pathlib.Path(place))
        try:
            out = slow.seen / "out"
            out.mkdir()
            stamp = pathlib.Path(place, "stamp")
            # The program's own end is told by a file beside.
            words = [sys.executable, "-c", program + f"\nopen({str(stamp)!r}, 'w').close()", f"{out}/r", str(FILES)]
            begin, began = time.monotonic(), time.time()
            subprocess.run([*ways(iolab, out)[name], *words], check=True)
            whole = time.monotonic() - begin
            visible = stamp.stat().st_mtime - began
            files = sum(len(files) for _, _, files in os.walk(slow.below))
        finally:
            slow.end()
    return visible, whole, files


def read_once(iolab, name):
    """Seconds that a program takes to read what another one has made, its start through `iolab` included."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as place:
        slow = Slow(iolab, pathlib.Path(place))
        try:
            out, home = slow.seen / "out", slow.below / "out"
            out.mkdir()
            made = [sys.executable, "-c", LIKE_HDF5]
            if name == "bare":
                subprocess.run([*made, f"{home}/r", str(FILES)], check=True)
                way = []
            else:
                left = ways(iolab, out)["defer-close, unpack=never"]
                subprocess.run([*left, *made, f"{out}/r", str(FILES)], check=True)
                way = left
            words = [sys.executable, "-c", READ, f"{out}/r", str(FILES)]
            begin = time.monotonic()
            subprocess.run([*way, *words], check=True, stderr=subprocess.DEVNULL)
            return time.monotonic() - begin
        finally:
            slow.end()


def reading(iolab):
    rounds = [{name: read_once(iolab, name) for name in ("bare", "from the container")} for _ in range(ROUNDS)]
    print(f"\nA program that reads them, {FILES} files, {OPEN} per open, median of {ROUNDS}\n")
    print("| way | program, s | ratio |\n|---|---|---|")
    for name in rounds[0]:
        ratios = [it["bare"] / it[name] for it in rounds]
        middle, least, most = statistics.median(ratios), min(ratios), max(ratios)
        seconds = statistics.median(it[name] for it in rounds)
        print(f"| {name} | {seconds:.2f} | {middle:.2f} ({least:.2f}…{most:.2f}) |", flush=True)


def table(iolab, title, program):
    names = list(ways(iolab, ""))
    rounds = [{name: once(iolab, program, name) for name in names} for _ in range(ROUNDS)]
    print(f"\n{title}, {FILES} files, {OPEN} per open, median of {ROUNDS} (ratio to bare: median, least, most)\n")
    print("| way | program, s | ratio | with unpacking, s | ratio | files made |")
    print("|---|---|---|---|---|---|")
    for name in names:
        cells = []
        for at in (0, 1):
            ratios = [it["bare"][at] / it[name][at] for it in rounds]
            middle, least, most = statistics.median(ratios), min(ratios), max(ratios)
            cells += [f"{statistics.median(it[name][at] for it in rounds):.2f}", f"{middle:.2f} ({least:.2f}…{most:.2f})"]
        print(f"| {name} | {' | '.join(cells)} | {rounds[0][name][2]} |", flush=True)


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    iolab = sys.argv[2] if len(sys.argv) > 2 else "iolab"
    price = subprocess.run([here / "price.sh"], capture_output=True, text=True)
    print("this machine:", price.stdout.strip() or "see benchmarks/price.sh")
    reading(iolab)
    table(iolab, "A program that makes files as HDF5 does", LIKE_HDF5)
    if subprocess.run([sys.executable, "-c", "import h5py"], capture_output=True).returncode == 0:
        table(iolab, "h5py", BY_H5PY)


main()
