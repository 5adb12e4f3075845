#!/bin/sh
# What recording calls of MPI costs, as CPU time per call: a message of 64 bytes to oneself and a
# 64-byte write by MPI-IO on tmpfs, bare, recorded without the layer mpi, and with it.
#
#   benchmarks/record/mpi.sh [ROUNDS [CALLS]]
#
# Every round runs all three under both families, one after another; the table shows the medians and
# the medians of the rounds' differences to bare. Needs MPICH and Open MPI with their compilers.
set -eu
cd "$(dirname "$0")/../.."
rounds=${1:-5}
calls=${2:-300000}
cargo build --release --quiet -p iolab-intercept -p iolab-mpi -p iolab-cli
benchmarks/price.sh
work=$(mktemp -d /dev/shm/iolab-benchmark-XXXXXX)
trap 'rm -rf "$work"' EXIT
iolab=target/release/iolab
for family in mpich openmpi; do
    mpicc."$family" -O2 -o "$work/$family" benchmarks/record/mpi.c
    : >"$work/samples"
    for round in $(seq "$rounds"); do
        echo "$("$work/$family" "$work/f" "$calls")" \
            "$("$iolab" record -o "$work/r.iot" -- "$work/$family" "$work/f" "$calls" 2>/dev/null)" \
            "$("$iolab" record --layer posix,stdio,mpi -o "$work/r.iot" -- "$work/$family" "$work/f" "$calls" 2>/dev/null)" \
            >>"$work/samples"
    done
    python3 - "$family" "$calls" "$work/samples" <<'PYTHON'
import statistics, sys
family, calls, samples = sys.argv[1], sys.argv[2], open(sys.argv[3])
rows = [[float(word) for word in line.split()] for line in samples]
for name, at in (("message to oneself", 0), ("MPI_File_write_at", 1)):
    bare = statistics.median(row[at] for row in rows)
    print(f"{family}: {name}, {calls} calls, bare {bare:.0f} ns", end="")
    for what, column in (("posix,stdio", at + 2), ("posix,stdio,mpi", at + 4)):
        more = [row[column] - row[at] for row in rows]
        print(f"; {what} {statistics.median(more):+.0f} ns ({min(more):+.0f} to {max(more):+.0f})", end="")
    print()
PYTHON
done
