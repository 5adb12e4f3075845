"""E4: several processes that write one file. E6: the same by NetCDF, independently and collectively."""

import shutil
import subprocess
import sys
import tempfile

from house import BENCHMARKS, HERE, MIB, NETWORK, build, rounds, run, said, seconds, shown, storage, table

LATE = ["--allow", "late-visibility"]


def e4():
    print(f"Interleaved pieces of one file on slow storage (`{NETWORK}`); speed beside bare.\n")
    with tempfile.TemporaryDirectory() as made, storage(NETWORK) as (place, below):
        program = build(BENCHMARKS / "aggregate/ranks.c", made, "ranks")
        here = f"paths={place}/**"
        ways = {
            "bare": [],
            "`write-back`": run("write-back"),
            "`write-back + align`": run("write-back", "align"),
            "`aggregate`": run(f"aggregate:{here}", more=LATE),
            "`aggregate + single-writer`": run(f"aggregate:{here}", f"single-writer:{here}", more=LATE),
        }
        rows = []
        for ranks in (1, 2, 4):
            for piece, all_ in ((4 << 10, 2 * MIB), (64 << 10, 8 * MIB), (MIB, 16 * MIB)):
                count = all_ // piece // ranks

                def once(way):
                    took = seconds([*ways[way], program, place / "file", piece, count, ranks, "interleaved", 0])
                    written = (below / "file").read_bytes()
                    if sorted(set(written)) != list(b"abcd"[:ranks]) or len(written) != piece * count * ranks:
                        sys.exit(f"{way}: not what {ranks} processes have written")
                    (place / "file").unlink()
                    return took

                took = rounds(ways, once)
                cells = (shown(took[way], took["bare"]) for way in list(ways)[1:])
                rows.append((ranks, f"{piece >> 10} KiB", *cells))
        table(["processes", "piece", *list(ways)[1:]], rows)


def e6():
    print(f"Each of the processes writes its blocks of a variable of four dimensions, on slow storage (`{NETWORK}`), by parallel")
    print("NetCDF-4 under Open MPI; MB/s of bare independent writes, and speed beside them.\n")
    if not shutil.which("mpicc.openmpi") or subprocess.run(["pkg-config", "--exists", "netcdf-mpi"]).returncode:
        print("Open MPI or libnetcdf-mpi-dev is not installed.\n")
        return
    mpiexec = "mpiexec.openmpi --allow-run-as-root --oversubscribe --mca btl_vader_single_copy_mechanism none".split()
    with tempfile.TemporaryDirectory() as made, storage(NETWORK) as (place, _):
        asked = lambda *words: said(["pkg-config", *words, "netcdf-mpi"]).split()
        # What Debian's package gives for `--cflags` is a directory without its headers.
        flags = [*asked("--cflags", "--libs"), f"-I{asked('--variable=prefix')[0]}/include"]
        program = build(HERE / "climate.c", made, "climate", *flags, compiler="mpicc.openmpi")
        here = f"paths={place}/**"
        ways = {
            "independent": ([], "independent"),
            "`single-writer`": (run(f"single-writer:{here}", more=LATE), "independent"),
            "`aggregate + single-writer`": (run(f"aggregate:{here}", f"single-writer:{here}", more=LATE), "independent"),
            "`collect`": (run(f"collect:{here}", more=LATE), "independent"),
            "collective": ([], "collective"),
        }
        rows = []
        for ranks in (1, 2, 4):
            for levels, columns, rows_, steps in ((16, 32, 4, 64), (32, 256, 16, 8)):
                each = levels * columns * rows_ * 8
                sums = set()

                def once(way):
                    words, how = ways[way]
                    file = place / "climate.nc"
                    took = seconds([*words, *mpiexec, "-n", ranks, program, file, how, levels, columns, rows_, steps])
                    sums.add(file.stat().st_size)
                    file.unlink()
                    return took

                took = rounds(ways, once)
                if len(sums) != 1:
                    sys.exit(f"files of {sorted(sums)} bytes")
                rate = each * steps * ranks / 1e6 / sorted(took["independent"])[len(took["independent"]) // 2]
                cells = (shown(took[way], took["independent"]) for way in list(ways)[1:])
                rows.append((ranks, f"{each >> 10} KiB", f"{rate:.1f}", *cells))
        table(["processes", "block", "independent, MB/s", *list(ways)[1:]], rows)
