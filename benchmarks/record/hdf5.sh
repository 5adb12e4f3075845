#!/bin/sh
# What recording calls of HDF5 costs, as CPU time per H5Dwrite of 16 KiB: bare, recorded without the
# layer hdf5, and with it, in a directory on tmpfs and in another one.
#
#   benchmarks/record/hdf5.sh [ROUNDS [CALLS [DIRECTORY]]]
#
# Every round runs all three, one after another; the table shows the least of each and the ratios to bare.
# Needs the headers of HDF5 (libhdf5-dev).
set -eu
cd "$(dirname "$0")/../.."
rounds=${1:-9}
calls=${2:-20000}
directory=${3:-/var/tmp}
profile=${PROFILE:-release}
[ "$profile" = release ] && cargo build --release --quiet -p iolab-intercept -p iolab-hdf5 -p iolab-cli
for place in /dev/shm "$directory"; do
    work=$(mktemp -d "$place/iolab-benchmark-XXXXXX")
    gcc -O2 -o "$work/writes" benchmarks/record/hdf5.c -I/usr/include/hdf5/serial \
        -L/usr/lib/x86_64-linux-gnu/hdf5/serial -lhdf5
    for round in $(seq "$rounds"); do
        echo "$("$work/writes" "$work/f" "$calls")" \
            "$("target/$profile/iolab" record --layer posix,stdio -o "$work/r.iot" -- "$work/writes" "$work/f" "$calls" 2>/dev/null)" \
            "$("target/$profile/iolab" record --layer posix,stdio,hdf5 -o "$work/r.iot" -- "$work/writes" "$work/f" "$calls" 2>/dev/null)" \
            >>"$work/samples"
    done
    python3 - "$place" "$work/samples" <<'PYTHON'
import sys
place, samples = sys.argv[1], open(sys.argv[2])
bare, posix, hdf5 = (min(column) for column in zip(*(map(float, line.split()) for line in samples)))
print(f"{place}: bare {bare:.0f} ns; posix,stdio {posix / bare:.3f}; posix,stdio,hdf5 {hdf5 / bare:.3f}")
PYTHON
    rm -rf "$work"
done
