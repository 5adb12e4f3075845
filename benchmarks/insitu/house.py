"""What the tables of this folder share: storages, ways to run a program, rounds that take turns, intervals.

A figure is a ratio within one round, given as the median of the rounds and, in brackets, the least and the greatest of
them: with six rounds (the least there are) that interval holds the true median with 96.9 %.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCHMARKS = HERE.parent
IOLAB = os.environ.get("IOLAB", str(BENCHMARKS.parent / "target/release/iolab"))
ROUNDS = max(6, int(os.environ.get("ROUNDS", "6")))
QUICK = os.environ.get("TMPFS", "/dev/shm")
NETWORK = "throttle:rate=100m,latency=1ms"
DISK = "throttle:rate=100m,seek=7ms"
MIB = 1 << 20


@contextlib.contextmanager
def mounted(source, point, *stages, iolab=IOLAB):
    """`point` shows `source` by a mount with these stages."""
    point.mkdir()
    apply = [word for stage in stages for word in ("--apply", stage)]
    command = [iolab, "mount", *apply, "--allow", "late-visibility", source, point]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        if not server.stdout.readline().startswith("ready: "):
            sys.exit(f"no mount of {stages}: {' '.join(map(str, command))}")
        yield point
    finally:
        server.terminate()
        server.wait()


@contextlib.contextmanager
def storage(*stages):
    """A directory on tmpfs, or a mount over one; where it lies below, too."""
    with tempfile.TemporaryDirectory(dir=QUICK) as place:
        below = Path(place, "below")
        below.mkdir()
        if not stages:
            yield below, below
            return
        with mounted(below, Path(place, "above"), *stages) as above:
            yield above, below


def run(*stages, more=()):
    """The words before a command that have it run under these stages."""
    return [IOLAB, "run", "--quiet", *more, *(word for stage in stages for word in ("--apply", stage)), "--"]


def build(source, into, name, *flags, compiler="cc"):
    program = Path(into, name)
    subprocess.run([compiler, "-O2", "-w", "-o", program, source, *flags], check=True, cwd=into)
    return program


def said(command, **options):
    """What a command prints; that it failed ends all."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def seconds(command, **options):
    """The seconds that a program prints of itself, in its last line."""
    return float(said(command, **options).split()[-1])


def elapsed(command, **options):
    begin = time.perf_counter()
    said(command, **options)
    return time.perf_counter() - begin


def rounds(ways, once):
    """Seconds of each way in each round; all ways take turns, in another order each round."""
    names = list(ways)
    rows = {name: [] for name in names}
    for number in range(ROUNDS):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            rows[name].append(once(name))
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return rows


def ratio(own, peer):
    """How many times as fast as the peer: median, least, greatest."""
    each = [theirs / ours for ours, theirs in zip(own, peer)]
    return statistics.median(each), min(each), max(each)


def shown(own, peer):
    middle, least, most = ratio(own, peer)
    return f"{middle:.2f} ({least:.2f} … {most:.2f})"


def table(heads, rows):
    print("| " + " | ".join(heads) + " |")
    print("|---" * len(heads) + "|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    print()


def contents(bytes_, count):
    """What `blocks` leaves."""
    return b"".join(bytes([(at * 37 + 1) & 255]) * bytes_ for at in range(count))


def same(path, bytes_, count):
    if path.read_bytes() != contents(bytes_, count):
        sys.exit(f"{path}: not what the program has written")
