#!/bin/bash
# Size of traces by kind and clock resolution, then time and memory of a report of 10^7 events.
# What came out on one machine: trace-size/README.md and report/README.md.
set -e
cd "$(dirname "$0")/.."
cargo build --release --quiet -p trace-size -p iolab-cli
benchmarks/price.sh
size=target/release/trace-size
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for kind in regular loop stdio mixed scattered; do
	$size make $kind 2000000 "$scratch/exact.iot"
	for resolution in 1 16; do
		$size round "$scratch/exact.iot" "$scratch/rounded.iot" $resolution
		echo "$kind at $resolution ns: $($size columns "$scratch/rounded.iot" | sed -n 1p)"
	done
done
$size make mixed 10000000 "$scratch/large.iot"
python3 - "$scratch/large.iot" <<'PYTHON'
import resource, subprocess, sys
subprocess.run(["target/release/iolab", "report", sys.argv[1]], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"report of 10,000,000 events: {used.ru_utime + used.ru_stime:.2f} s CPU, {used.ru_maxrss // 1024} MiB")
PYTHON
