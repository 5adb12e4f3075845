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
import { prefixes } from "../src/prefix.ts";
import { durationsOf, Quantiles } from "../src/quantiles.ts";
import { levelsOf, WaveletMatrix } from "../src/wavelet.ts";
import { random, timeline, type MadeUpCall } from "./made-up.mjs";
import { taken } from "./taken.ts";

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

/** The same run with its sums made, noted at every few calls. */
function summed(plain: LoadedRun, spacing: number): LoadedRun {
  const run = { ...plain };
  run.sums = taken(prefixes(run, spacing));
  const { values, placeOf } = taken(durationsOf(run, run.sums));
  run.quantiles = new Quantiles(run, run.sums, levelsOf(values, placeOf));
  return run;
}

test("from sums at every third call the ranges come to the same, to the last digit", async () => {
  let stretches = 0;
  for (const range of ranges) {
    const run = summed(await runOf(range.trace), 3);
    const within = rangeIn(run, range);
    stretches += run.sums!.rows.filter((row) => row?.within(1, 1e9)).length;
    const { quantiles: _, ...sumsOnly } = run;
    const quick = statistics(sumsOnly, within, false);
    const exact = statistics(await runOf(range.trace), within, false);
    assert.deepEqual(quick, exact);
    const found = statistics(run, within, true, 0);
    if (range.tables.total.calls) assert.deepEqual(found, range.tables);
    else assert.equal(found.total.calls, 0);
  }
  assert.ok(stretches > 100, "most rows have sums");
});

test("a row whose calls overlap, or are not inside those said to be around them, is read call by call", async () => {
  const run = { ...(await runOf("nested")) };
  const withSums = ({ rows }: { rows: unknown[] }) => rows.filter(Boolean).length;
  const made = (changed: LoadedRun) => taken(prefixes(changed, 3));
  const whole = withSums(made(run));
  const child = run.details!.parent.findIndex((parent) => parent >= 0);
  const end = run.data.end.slice();
  end[run.details!.parent[child]] = run.data.end[child] - 1;
  const broken = { ...run, data: { ...run.data, end } };
  const sums = made(broken);
  assert.equal(withSums(sums), whole - 1);
  const range = { start: 0, end: 1e9, tracks: undefined };
  assert.deepEqual(statistics({ ...broken, sums }, range, false), statistics(broken, range, false));
});

test("of thousands of calls with others inside, twenty ranges are the same looked up and read", async () => {
  const pick = random(5);
  const functions = [{ name: "fwrite", layer: "stdio", kind: "write" }, { name: "write", layer: "posix", kind: "write" }, { name: "fsync", layer: "posix", kind: "sync" }];
  const rows: { process: number; depth: number; calls: MadeUpCall[] }[] = [];
  let position = 0;
  for (const process of [0, 1]) {
    const [outer, inner]: MadeUpCall[][] = [[], []];
    for (let at = 0, now = 0; at < 3000; at++) {
      const start = now + pick(50);
      const end = start + pick(40);
      const fn = pick(3);
      const file = pick(2);
      outer.push({ start, end, fn, file, length: 10, result: pick(20) ? 10 : -5, argument: fn ? -1 : 1 + pick(3) });
      if (end - start > 8) inner.push({ start: start + pick(4), end: end - pick(4), fn: 1 + pick(2), file, length: 7, result: 7, parent: position + at });
      now = end;
    }
    rows.push({ process, depth: 0, calls: outer }, { process, depth: 1, calls: inner });
    position += outer.length + inner.length;
  }
  const bytes = timeline({ label: "many", functions, files: ["/a", "/b"], processes: [{ name: "p" }, { name: "q" }], rows });
  const read = load(await open(new Uint8Array(bytes)));
  await complete(read);
  const looked = summed(read, 64);
  const within = looked.sums!.rows.map((row) => row?.within(100, 1000));
  assert.ok(within.length === 4 && within.every(Boolean), "all rows have sums");
  const length = Math.max(...read.data.end);
  for (let round = 0; round < 20; round++) {
    const [a, b] = [pick(length), pick(length)];
    const chosen = read.tracks.filter(() => pick(4) > 0);
    const range = { start: Math.min(a, b), end: Math.max(a, b) + 1, tracks: round % 3 ? new Set(chosen) : undefined };
    assert.deepEqual(statistics(looked, range, false), statistics(read, range, false), `sums of ${range.start} to ${range.end}`);
    assert.deepEqual(statistics(looked, range, true, 0), statistics(read, range, true), `quantiles of ${range.start} to ${range.end}`);
  }
});

test("order statistics of stretches are those of the sorted values", () => {
  const pick = random(7);
  for (const [length, below] of [[1, 1], [256, 2], [1000, 1], [3000, 7], [5000, 2 ** 31], [512, 2 ** 32]] as const) {
    const values = Float64Array.from({ length }, () => pick(below) + (below > 2 ** 31 ? 2 ** 40 * pick(3) : 0));
    const places = Uint32Array.from({ length }, (_, at) => length - 1 - at);
    const matrix = new WaveletMatrix(levelsOf(values, places));
    const sequence = values.slice().reverse();
    for (let round = 0; round < 50; round++) {
      const [middle, first, last] = [pick(length + 1), pick(length + 1), pick(length + 1)];
      const from = [Math.min(first, middle), middle];
      const to = [middle, Math.max(last, middle)];
      const sorted = [...sequence.subarray(from[0], to[0]), ...sequence.subarray(from[1], to[1])].sort((a, b) => a - b);
      for (const rank of sorted.length ? [0, sorted.length >> 1, sorted.length - 1] : []) {
        assert.equal(matrix.smallest({ from: from.slice(), to: to.slice() }, rank), sorted[rank], `${length} values below ${below}, rank ${rank}`);
      }
    }
  }
});

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
