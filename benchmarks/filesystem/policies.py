#!/usr/bin/env python3
"""What the policies of cache managers come to, simulated: the tables of policies.md.

    cargo build --release && benchmarks/filesystem/policies.py > benchmarks/filesystem/policies.md

Every figure is of one order of simultaneous events, so a second run gives the same page.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
IOLAB = os.environ.get("IOLAB", HERE.parents[1] / "target/release/iolab")
MIB = 1 << 20
PLATFORM = "classic-hdd"
MANAGERS, MEMORY = 4, "8m"


def simulate(workload, placement="modulo", replacement="lru", write_policy="delayed", memory=MEMORY):
    """The result of a workload of this folder on a platform with cache managers of those policies."""
    text = f"""
[[caches]]
count = {MANAGERS}
memory = "{memory}"
replacement = "{replacement}"
write_policy = "{write_policy}"
[layout]
placement = "{placement}"
"""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as configuration:
        configuration.write(text)
        configuration.flush()
        command = [IOLAB, "simulate", "--workload", HERE / f"{workload}.toml", "--platform", PLATFORM]
        command += ["--file-system", configuration.name, "--seeds", "1", "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def managers(result):
    return result["file_system"]["caches"]


def total(result, key):
    return sum(manager[key] for manager in managers(result))


def seconds(result):
    return result["end_ns"] / 1e9


def main():
    print(f"""# Policies of cache managers

Simulated on `{PLATFORM}` with {MANAGERS} cache managers, one order of simultaneous events. The workloads are beside this page, the command is

    cargo build --release && benchmarks/filesystem/policies.py

**`--replacement`**: four ranks read a table of 4 MiB in each of 16 rounds, and between the rounds 32 MiB of records once
(`scan.toml`); {MEMORY[:-1]} MiB in each manager.

| replacement | s | blocks found | MiB from servers |
|---|---|---|---|""")
    for name in ["lru", "two-queue", "clock", "fifo", "cruel"]:
        result = simulate("scan", replacement=name)
        hits, misses = total(result, "hits"), total(result, "misses")
        share = 100 * hits / (hits + misses)
        print(f"| `{name}` | {seconds(result):.3f} | {share:.1f} % | {total(result, 'fetched_bytes') / MIB:.0f} |")
    print("""
**`--write-policy`**: four ranks write 64 MiB each in pieces of 64 KiB, compute for 8 s, and do it again, four times (`burst.toml`). The seconds are those beyond the 32 s
of computing; memory is of each manager.

| write policy | memory | s | MiB to servers | most MiB dirty |
|---|---|---|---|---|""")
    for memory in ["256m", "16m"]:
        for name in ["delayed", "through", "on-sync", "cruel"]:
            result = simulate("burst", write_policy=name, memory=memory)
            dirty = total(result, "dirty_bytes_max") / MIB
            print(f"| `{name}` | {memory[:-1]} MiB | {seconds(result) - 32:.3f} | {total(result, 'flushed_bytes') / MIB:.0f} | {dirty:.0f} |")
    print("""
**`--placement`**: four ranks read every fourth stripe of a file (`strides.toml`).

| placement | s | requests of the busiest manager | of all |
|---|---|---|---|""")
    for name in ["modulo", "at-servers", "rendezvous", "local", "cruel"]:
        result = simulate("strides", placement=name)
        requests = [manager["requests"] for manager in managers(result)]
        print(f"| `{name}` | {seconds(result):.3f} | {max(requests)} | {sum(requests)} |")


if __name__ == "__main__":
    main()
