#!/usr/bin/env python3
"""What a mount costs per transfer, and what stages in one mount save against mounts upon mounts.

measure.py [DIRECTORY]   a directory on tmpfs, /dev/shm by default; needs root and /dev/fuse.

Every way is measured in turn, ROUNDS times; the least wall time per transfer counts. Times of a mount
are those of two processes that wake each other up, so the machine must have nothing else to do for
the figures themselves; the ratios are of one run.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
IOLAB = pathlib.Path(os.environ.get("IOLAB", HERE.parent.parent / "target" / "release" / "iolab"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
SIZES = {16 << 10: 16 << 20, 1 << 20: 64 << 20}
STAGES = (1, 2, 3, 4)


class Mounts:
    """Mounts upon mounts; the last one is where files are seen."""

    def __init__(self, place, stacks):
        self.servers = []
        self.points = [place / "source"]
        for number, stack in enumerate(stacks):
            point = place / f"seen{number}"
            point.mkdir()
            apply = [word for strategy in stack for word in ("--apply", strategy)]
            command = [IOLAB, "mount", *apply, self.points[-1], point]
            server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            if not server.stdout.readline().startswith("ready: "):
                sys.exit(f"no mount of {stack}")
            self.servers.append(server)
            self.points.append(point)

    def end(self):
        for server in reversed(self.servers):
            server.terminate()
            server.wait()


def measure(program, ways):
    """The least time per transfer of each way, in ns, by direction and block."""
    times = {}
    for _ in range(ROUNDS):
        for name, stacks in ways.items():
            place = pathlib.Path(tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else "/dev/shm"))
            (place / "source").mkdir()
            mounts = Mounts(place, stacks)
            try:
                for block, size in SIZES.items():
                    for direction in ("read", "write"):
                        file = mounts.points[-1] / "file"
                        words = [program, direction, file, str(block), str(size), "2"]
                        took = float(subprocess.run(words, check=True, capture_output=True).stdout)
                        key = (name, direction, block)
                        times[key] = min(took, times.get(key, took))
            finally:
                mounts.end()
                shutil.rmtree(place)
    return times


def main():
    with tempfile.TemporaryDirectory() as home:
        program = pathlib.Path(home) / "transfer"
        subprocess.run(["cc", "-O2", "-o", program, HERE / "transfer.c"], check=True)
        ways = {"bare": [], "not chosen": [["null:paths=*.none"]]}
        ways |= {f"{k} in one": [["null"] * k] for k in STAGES}
        ways |= {f"{k} mounts": [["null"]] * k for k in STAGES[1:]}
        times = measure(program, ways)
    cells = [(direction, block) for block in SIZES for direction in ("read", "write")]
    print("| way | " + " | ".join(f"{d} {b >> 10} KiB, µs (of bare)" for d, b in cells) + " |")
    print("|---" * (len(cells) + 1) + "|")
    for name in ways:
        row = [times[name, *cell] for cell in cells]
        bare = [times["bare", *cell] for cell in cells]
        texts = [f"{time / 1000:.1f} ({base / time:.2f})" for time, base in zip(row, bare)]
        print(f"| {name} | " + " | ".join(texts) + " |")
    for k in STAGES[1:]:
        gains = [times[f"{k} mounts", *cell] / times[f"{k} in one", *cell] for cell in cells]
        words = ", ".join(f"{d} {b >> 10} KiB {g:.1f}×" for (d, b), g in zip(cells, gains))
        print(f"\n{k} stages in one mount against {k} mounts: {words}")


main()
