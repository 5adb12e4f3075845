#!/usr/bin/env python3
"""What the benchmark's own harness costs, beside a bare C loop and fio.

    cargo build --release -p iolab-cli && benchmarks/bench/run.py [DIRECTORY]

CPU time per operation (user + system), start-up not counted, the best of several passes; the
contestants take turns, so that other load meets all alike. Prints a Markdown table.
"""
import json, os, resource, shutil, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
IOLAB = os.environ.get("IOLAB", os.path.join(HERE, "../../target/release/iolab"))
ROUNDS, BYTES, COUNT = 7, 512, 131072


def iolab(folder, *arguments):
    """CPU ns per operation of every measurement, by phase."""
    command = [IOLAB, "bench", "--json", "-o", os.path.join(folder, "data"), *arguments]
    outcome = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    found = {}
    for m in outcome["measurements"]:
        found.setdefault(m["phase"], []).append(m["cpu_ns"] / max(m["operations"], 1))
    return {phase: min(values) for phase, values in found.items()}


def fio(folder, *arguments):
    """CPU ns per operation: a long run less a short one."""
    def cpu(loops):
        command = ["fio", "--name=x", f"--bs={BYTES}", f"--loops={loops}", "--thread",
                   "--output=/dev/null", *arguments]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, cwd=folder, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (cpu(9) - cpu(1)) * 1e9 / (8 * COUNT)


def billion(folder):
    """Wall seconds and peak MiB of a run over a plan of 10⁹ operations that is stopped at once."""
    command = [IOLAB, "bench", "-a", "null", "-p", "random-blocks:block=4k,count=1000000000",
               "--temporal", "write", "-i", "1", "-D", "0.001", "-o", os.path.join(folder, "data")]
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    return time.monotonic() - start, usage.ru_maxrss / 1024


def main():
    folder = tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None)
    try:
        bare = os.path.join(folder, "bare")
        subprocess.run(["cc", "-O2", "-o", bare, os.path.join(HERE, "bare.c")], check=True)
        cached = os.path.join(folder, "cached")
        with open(cached, "wb") as file:
            file.write(os.urandom(BYTES * COUNT))
        samples = {}

        def take(name, value):
            samples.setdefault(name, []).append(value)

        null = ["-a", "null", "-p", f"strided:strip={BYTES},stripes=4m", "--temporal", "write", "-i", "3"]
        read = ["-p", f"segmented:request={BYTES},count={COUNT}", "--temporal", "re-read", "-i", "3"]
        for _ in range(ROUNDS):
            take("bare", float(subprocess.run([bare, cached, str(BYTES), str(COUNT), "3"], check=True,
                                              capture_output=True, text=True).stdout))
            take("pread+histogram", iolab(folder, *read)["re-read"])
            take("pread", iolab(folder, "--no-latencies", *read)["re-read"])
            take("null", iolab(folder, "--no-latencies", *null)["write"])
            take("null+histogram", iolab(folder, *null)["write"])
            if shutil.which("fio"):
                take("fio psync", fio(folder, "--ioengine=psync", "--rw=read", f"--filename={cached}",
                                      f"--size={BYTES * COUNT}", "--invalidate=0"))
                take("fio null", fio(folder, "--ioengine=null", "--rw=write", f"--size={BYTES * COUNT}"))
        best = {name: min(values) for name, values in samples.items()}
        spread = {name: sorted(values)[len(values) // 2] for name, values in samples.items()}
        seconds, mebibytes = min(billion(folder) for _ in range(3))
        base = best["bare"]
        price = os.path.join(HERE, "../price.sh")
        print(subprocess.run([price], check=True, capture_output=True, text=True).stdout)
        print("| case | CPU ns per operation, best (median) | over the bare loop | goal |\n|---|---|---|---|")

        def line(title, name, goal, over=False):
            if name in best:
                extra = f"{best[name] - base:+.0f} ns" if over else "–"
                print(f"| {title} | {best[name]:.1f} ({spread[name]:.1f}) | {extra} | {goal} |")

        line("null back end, no statistics", "null", "≤ 25 ns")
        line("null back end, full ns histogram", "null+histogram", "≤ 60 ns")
        line("fio, null engine", "fio null", "peer")
        line("512 B pread, cached: bare C loop", "bare", "–")
        line("the same by iolab, no statistics", "pread", "–", True)
        line("the same by iolab, full ns histogram", "pread+histogram", "≤ +60 ns", True)
        line("the same by fio, psync", "fio psync", "peer", True)
        print(f"\nPlan of 10⁹ operations, stopped after 1 ms: {seconds * 1000:.0f} ms from start to end of the "
              f"whole command, {mebibytes:.0f} MiB at most.")
    finally:
        shutil.rmtree(folder)


main()
