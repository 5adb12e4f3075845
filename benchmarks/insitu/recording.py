"""E2: recording by interface and order of accesses, the trace on the same storage. E13: what each way of seeing sees."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from house import HERE, IOLAB, MIB, NETWORK, build, rounds, said, seconds, shown, storage, table

INTERFACES = {
    "POSIX": ("cc", [], "posix,stdio"),
    "MPI-IO (MPICH)": ("mpicc.mpich", ["-DMPIIO"], "posix,stdio,mpi"),
    "MPI-IO (Open MPI)": ("mpicc.openmpi", ["-DMPIIO"], "posix,stdio,mpi"),
    "HDF5": ("h5cc", ["-DHDF5", "-shlib"], "posix,stdio,hdf5"),
}


def e2():
    print(f"Speed under `iolab record`, all layers on, beside bare; 256 blocks of 16 KiB on slow storage (`{NETWORK}`), trace on it, too.\n")
    rows = []
    with tempfile.TemporaryDirectory() as made, storage(NETWORK) as (place, _):
        for interface, (compiler, flags, layers) in INTERFACES.items():
            if not shutil.which(compiler):
                print(f"{compiler} is not installed: no row of {interface}\n")
                continue
            program = build(HERE / "blocks.c", made, compiler, *flags, compiler=compiler)
            for direction in ("write", "read"):
                for order in ("sequential", "random"):
                    file, trace = place / "file", place / "run.iot"
                    own = [program, direction, order, file, 16 << 10, 256]
                    seconds([program, "write", *own[2:]])
                    ways = {"bare": own, "recorded": [IOLAB, "record", "--layer", layers, "-o", trace, "--", *own]}

                    def once(way):
                        if direction == "write":
                            file.unlink(missing_ok=True)
                        took = seconds(ways[way])
                        trace.unlink(missing_ok=True)
                        return took

                    took = rounds(ways, once)
                    rows.append((interface, direction, order, shown(took["recorded"], took["bare"])))
    table(["interface", "direction", "order", "recorded ÷ bare"], rows)


MAPPED = """
import mmap, sys
with open(sys.argv[1], "w+b") as file:
    file.truncate(1 << 20)
    with mmap.mmap(file.fileno(), 1 << 20) as bytes_:
        bytes_[:] = b"x" * (1 << 20)
"""
GO = """package main
import "os"
func main() {
	file, _ := os.Create(os.Args[1])
	block := make([]byte, 4096)
	for i := 0; i < 256; i++ { file.Write(block) }
	file.Close()
}
"""


POSIX = "posix,stdio"


def writers(made):
    """Programs that write 1 MiB each, by other ways to the kernel, and the layers to record of them."""
    blocks = ["write", "sequential", "FILE", 4096, 256]
    yield "C, POSIX", [build(HERE / "blocks.c", made, "dynamic"), *blocks], POSIX
    yield "C, static", [build(HERE / "blocks.c", made, "static", "-static"), *blocks], POSIX
    yield "shell", ["bash", "-c", 'head -c 1048576 /dev/zero > "$0"', "FILE"], POSIX
    yield "python3", [sys.executable, "-c", "import sys; open(sys.argv[1], 'wb').write(bytes(1 << 20))", "FILE"], POSIX
    yield "python3, mapped file", [sys.executable, "-c", MAPPED, "FILE"], POSIX
    for interface, (compiler, flags, layers) in INTERFACES.items():
        if compiler != "cc" and shutil.which(compiler):
            yield interface, [build(HERE / "blocks.c", made, compiler, *flags, compiler=compiler), *blocks], layers
    if shutil.which("go"):
        source = Path(made, "main.go")
        source.write_text(GO)
        subprocess.run(["go", "build", "-o", Path(made, "goer"), source], check=True, cwd=made)
        yield "Go", [Path(made, "goer"), "FILE"], POSIX
    if shutil.which("fio"):
        words = "--name=one --rw=write --bs=4k --size=1m --ioengine=io_uring --output=/dev/null --filename=FILE"
        yield "fio, io_uring", ["fio", *words.split()], POSIX


def e13():
    print("Bytes of 1 MiB written that are in the trace, and the layers whose calls are, by way of recording.\n")
    ways = {"library": [], "mount": ["--via", "mount"], "`--via auto`": ["--via", "auto"]}
    rows = []
    with tempfile.TemporaryDirectory() as made, storage() as (place, _):
        for name, command, layers in writers(made):
            row = [name]
            for more in ways.values():
                file, trace = place / "written", Path(made, "run.iot")
                words = [str(word).replace("FILE", str(file)) for word in command]
                over = ["--over", place] if more else ["--layer", layers]
                said([IOLAB, "record", *more, *over, "-o", trace, "--", *words])
                told = json.loads(said([IOLAB, "report", trace, "--json"]))
                seen = sum(it["written_bytes"] for it in told["files"] if it["path"] == str(file))
                layers = ", ".join(sorted({layer["layer"] for layer in told["layers"]})) if told["layers"] else ""
                row.append(f"{min(seen, file.stat().st_size) / file.stat().st_size:.0%}" + (f" ({layers})" if layers else ""))
                trace.unlink()
                file.unlink()
            rows.append(row)
    table(["program", *ways], rows)
    print("What a call costs more: `benchmarks/record/README.md` (library), `benchmarks/mount/results.md` (mount).\n")


def e14():
    told = json.loads(said([IOLAB, "strategies", "--json"]))["strategies"]
    keys = ["layer", "scope", "interference", "state", "semantics", "visibility"]
    print("Classes of all strategies, generated from the catalogue.\n")
    rows = []
    for strategy in told:
        classes = strategy["classes"]
        lists = [", ".join(classes[key]) or "–" for key in ("needs", "owns")]
        rows.append([f"`{strategy['name']}`", *(classes[key] for key in keys), *lists])
    table(["strategy", *keys, "needs", "owns"], rows)
