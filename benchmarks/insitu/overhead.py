"""E1: what standing between a program and tmpfs costs. E3: random writes, and the two ways to have them one after another."""

import contextlib
import tempfile
from pathlib import Path

from house import DISK, MIB, build, mounted, rounds, run, same, seconds, shown, storage, table, HERE, IOLAB


def e1():
    print("Speed beside bare; own file of 64 MiB on tmpfs, overwritten or read in order.\n")
    cells = [(direction, bytes_) for bytes_ in (16 << 10, MIB) for direction in ("read", "write")]
    with tempfile.TemporaryDirectory() as made, storage() as (place, _), contextlib.ExitStack() as mounts:
        program = build(HERE / "blocks.c", made, "blocks")
        heard = mounts.enter_context(mounted(place, Path(made, "heard"), "null"))
        unheard = mounts.enter_context(mounted(place, Path(made, "unheard"), "null:paths=*.none"))
        trace = Path(made, "run.iot")
        ways = {
            "bare": ([], place),
            "record": ([IOLAB, "record", "-o", trace, "--"], place),
            "not chosen": (run("null:paths=*.none"), place),
            "`null`": (run("null"), place),
            "mount, not chosen": ([], unheard),
            "mount, `null`": ([], heard),
        }
        figures = {}
        for direction, bytes_ in cells:
            count = 64 * MIB // bytes_
            seconds([program, "write", "sequential", place / "file", bytes_, count])

            def once(way):
                words, where = ways[way]
                trace.unlink(missing_ok=True)
                return seconds([*words, program, direction, "sequential", where / "file", bytes_, count])

            figures[direction, bytes_] = rounds(ways, once)
            same(place / "file", bytes_, count)
    heads = ["way", *(f"{direction} {bytes_ >> 10} KiB" for direction, bytes_ in cells)]
    table(heads, ([way, *(shown(figures[cell][way], figures[cell]["bare"]) for cell in cells)] for way in list(ways)[1:]))


def e3():
    print(f"New file of 16 MiB written in random order on storage that is slow in going elsewhere (`{DISK}`); speed beside")
    print("the same blocks written in order, bare. `seek-free` destroys the file by design: it is the bound.\n")
    destroyed = ["--i-know-this-destroys-data"]
    figures, sizes = {}, (16 << 10, MIB)
    with tempfile.TemporaryDirectory() as made, storage(DISK) as (place, below):
        program = build(HERE / "blocks.c", made, "blocks")
        through = run(f"write-back:buffer=16m,paths={place}/**", more=["--via", "mount"])
        ways = {
            "in order, bare": ("sequential", [], True),
            "random, bare": ("random", [], True),
            "random, `seek-free`": ("random", run(f"seek-free:paths={place}/**", more=destroyed), False),
            "random, `write-back`": ("random", run("write-back"), True),
            "random, `write-back:buffer=16m`": ("random", run("write-back:buffer=16m"), True),
            "random, `write-back:buffer=16m`, `--via mount`": ("random", through, True),
        }
        for bytes_ in sizes:
            count = 16 * MIB // bytes_

            def once(way):
                order, words, is_kept = ways[way]
                took = seconds([*words, program, "write", order, place / "file", bytes_, count])
                if is_kept:
                    same(below / "file", bytes_, count)
                (place / "file").unlink()
                return took

            figures[bytes_] = rounds(ways, once)
    heads = ["way", *(f"{bytes_ >> 10} KiB" for bytes_ in sizes)]
    rows = ([way, *(shown(figures[it][way], figures[it]["in order, bare"]) for it in sizes)] for way in list(ways)[1:])
    table(heads, rows)
