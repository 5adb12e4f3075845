#!/bin/sh
# What recording calls on streams costs, from the start of the command to the end of the writing of its
# trace, as a multiple of the bare run: counted (the default), and every call by itself.
#
#   benchmarks/record/streams.sh [ROUNDS [DIRECTORY]]
#
# DIRECTORY has `iolab` and its library; default: a release build. CPU time (user and system, of all
# processes), which other work on the machine disturbs less than the clock on the wall. Needs gcc.
set -eu
cd "$(dirname "$0")/../.."
rounds=${1:-3}
built=$(realpath "${2:-target/release}")
[ $# -gt 1 ] || cargo build --release --quiet -p iolab-intercept -p iolab-cli
work=$(mktemp -d /dev/shm/iolab-benchmark-XXXXXX)
trap 'rm -rf "$work"' EXIT
gcc -O2 -w -o "$work/streams" benchmarks/record/streams.c
IOLAB_LIBRARY=$built/libiolab_intercept.so
export IOLAB_LIBRARY
seq 1 500000 >"$work/lines"
head -c 50000000 /dev/zero >"$work/bytes"

python3 - "$work" "$built/iolab" "$rounds" <<'PYTHON'
import os, statistics, subprocess, sys
work, iolab, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
loops = [("fputc", 50_000_000, 500_000, "out"), ("fgetc", 50_000_000, 500_000, "bytes"),
         ("copy", 20_000_000, 500_000, "bytes"), ("fputs", 10_000_000, 500_000, "out"),
         ("fgets", 500_000, 500_000, "lines"), ("fprintf", 5_000_000, 500_000, "out"),
         ("unbuffered", 300_000, 300_000, "out"), ("write", 300_000, 300_000, "out")]
def seconds(command):
    before = os.times()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    after = os.times()
    return (after[2] + after[3]) - (before[2] + before[3])
print("| loop | bare | counted | each call |\n|---|---|---|---|")
for name, calls, fewer, file in loops:
    rows = []
    for _ in range(rounds):
        row = []
        for how, count in [(None, calls), ("auto", calls), ("calls", fewer)]:
            guest = [f"{work}/streams", name, str(count), f"{work}/{file}", f"{work}/copy"]
            record = [iolab, "record", "--stdio", how, "-o", f"{work}/run.iot", "--"] if how else []
            row.append(seconds(record + guest) / count * 1e9)
        rows.append(row)
    bare, counted, each = (statistics.median(row[i] for row in rows) for i in range(3))
    ratio = lambda at: statistics.median(row[at] / row[0] for row in rows)
    print(f"| {name} | {bare:.1f} ns | {counted:.1f} ns, {ratio(1):.1f} × | {each:.0f} ns, {ratio(2):.0f} × |", flush=True)
PYTHON
