// The statistics of a range are those that Rust computes, to the last digit.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { open } from "../src/format.ts";
import { complete, load, type LoadedRun } from "../src/loaded.ts";
import type { Range } from "../src/range.ts";
import { statistics, type Statistics } from "../src/statistics.ts";
import { csv } from "../src/tables.ts";

interface Golden {
  trace: string;
  from: number;
  to: number;
  processes: number[] | null;
  tables: Statistics;
}

const golden = join(process.cwd(), "test/golden");
const ranges = JSON.parse(readFileSync(join(golden, "ranges.json"), "utf8")) as Golden[];
const runs = new Map<string, LoadedRun>();

async function runOf(name: string): Promise<LoadedRun> {
  const known = runs.get(name);
  if (known) return known;
  const run = load(await open(new Uint8Array(readFileSync(join(golden, `ranges-${name}.iotl`)))));
  await complete(run);
  runs.set(name, run);
  return run;
}

function rangeIn(run: LoadedRun, { from, to, processes }: Golden): Range {
  const zero = run.head.start_ns;
  const tracks = processes && new Set(run.tracks.filter((_, row) => processes.includes(run.head.rows[row].process)));
  return { start: from - zero, end: to - zero, tracks: tracks ?? undefined };
}

test("there are twenty ranges of three traces", () => {
  assert.equal(ranges.length, 60);
  assert.ok(ranges.some(({ tables }) => tables.total.failures > 0) && ranges.some(({ tables }) => tables.total.own !== tables.total.cut));
});

for (const [at, range] of ranges.entries()) {
  test(`range ${at % 20} of ${range.trace} comes to what Rust says`, async () => {
    const run = await runOf(range.trace);
    const found = statistics(run, rangeIn(run, range), true);
    if (!range.tables.total.calls) assert.equal(found.total.calls, 0);
    else assert.deepEqual(found, range.tables);
  });
}

test("without quantiles the sums are the same", async () => {
  for (const range of ranges) {
    const run = await runOf(range.trace);
    const within = rangeIn(run, range);
    const [quick, whole] = [statistics(run, within, false), statistics(run, within, true)];
    const sums = ({ functions }: Statistics) => functions.map(({ name, calls, bytes, time, cut, own, failures }) => [name, calls, bytes, time, cut, own, failures]);
    assert.deepEqual(sums(quick), sums(whole));
  }
});

test("saved as comma-separated values every number is there", async () => {
  const run = await runOf("nested");
  const found = statistics(run, { start: 0, end: 1e9, tracks: undefined }, true);
  const lines = csv(found, run.head.parts).trim().split("\n");
  assert.equal(lines.length, 1 + found.classes.length + found.functions.length + found.files.length + found.processes.length);
  assert.equal(lines[1], ["class", found.classes[0].name, ...["calls", "bytes", "time", "cut", "own", "p50", "p99", "max", "failures"].map((key) => found.classes[0][key as "calls"])].join(","));
});
