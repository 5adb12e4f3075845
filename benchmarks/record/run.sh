#!/bin/sh
# What recording costs, as CPU time per 64-byte pwrite on tmpfs: bare, with the library loaded and
# idle (pass-through), recorded with the time-stamp counter, recorded with CLOCK_MONOTONIC.
#
#   benchmarks/record/run.sh [ROUNDS [CALLS]]
#
# Every round runs all four one after another, so that a disturbance hits them alike; the table
# shows the median of the rounds' differences to bare. Needs gcc; builds what else it needs.
set -eu
cd "$(dirname "$0")/../.."
rounds=${1:-9}
calls=${2:-1000000}
cargo build --release --quiet -p iolab-intercept -p iolab-cli
benchmarks/price.sh
work=$(mktemp -d /dev/shm/iolab-benchmark-XXXXXX)
trap 'rm -rf "$work"' EXIT
gcc -O2 -pthread -o "$work/loop" benchmarks/record/loop.c
iolab=target/release/iolab
library=target/release/libiolab_intercept.so

recorded() { # CLOCK THREADS CALLS
    "$iolab" record -o "$work/run.iot" --clock "$1" -- "$work/loop" "$2" "$3" "$work" 2>"$work/said"
}

for threads in 1 4; do
    each=$((calls / threads))
    : >"$work/samples"
    for round in $(seq "$rounds"); do
        bare=$("$work/loop" "$threads" "$each" "$work")
        pass=$(LD_PRELOAD=$library "$work/loop" "$threads" "$each" "$work")
        tsc=$(recorded tsc "$threads" "$each")
        size=$(stat -c %s "$work/run.iot")
        monotonic=$(recorded monotonic "$threads" "$each")
        echo "$bare $pass $tsc $monotonic $size" >>"$work/samples"
        ! grep -q 'calls lost' "$work/said" || { cat "$work/said"; exit 1; }
    done
    python3 - "$threads" "$((each * threads))" "$work/samples" <<'PYTHON'
import statistics, sys
threads, calls, samples = int(sys.argv[1]), int(sys.argv[2]), open(sys.argv[3])
rows = [[float(word) for word in line.split()] for line in samples]
bare = statistics.median(row[0] for row in rows)
print(f"{threads} thread(s), bare {bare:.0f} ns, {len(rows)} rounds of {calls} calls")
for column, (name, goal) in enumerate([("pass-through", 10), ("recorded, tsc", 25), ("recorded, monotonic", 70)], 1):
    extra = sorted(row[column] - row[0] for row in rows)
    ratio = statistics.median(row[column] / row[0] for row in rows)
    print(f"  {name:20} {statistics.median(extra):+6.1f} ns (from {extra[0]:+.1f} to {extra[-1]:+.1f}; goal {goal}), {ratio:.3f} of bare")
print(f"  stored {statistics.median(row[4] for row in rows) / calls:.2f} B per call")
PYTHON
done
