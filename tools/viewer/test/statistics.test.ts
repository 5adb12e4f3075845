// The statistics of a range are those that Rust computes, to the last digit.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { open } from "../src/format.ts";
import { longest } from "../src/calls.ts";
import { facts } from "../src/details.ts";
import { distributions } from "../src/distributions.ts";
import { complete, load, type LoadedRun } from "../src/loaded.ts";
import { matcher, parseQuery } from "../src/query.ts";
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

for (const name of ["nested", "cluster", "bursts"]) {
  test(`calls of ${name} that are gathered come to the same as one by one`, async () => {
    const run = await runOf(name);
    const bytes = new Uint8Array(readFileSync(join(golden, `gathered-${name}.iotl`)));
    const gathered = load(await open(bytes));
    await complete(gathered);
    const everything = (of: LoadedRun): Range => ({ start: 0, end: of.head.end_ns - of.head.start_ns + 1, tracks: undefined });
    assert.equal(gathered.head.stands_for, run.head.count);
      assert.ok(gathered.head.count < run.head.count, `${gathered.head.count} of ${run.head.count}`);
    assert.equal(gathered.matches, run.head.count);
    // Durations of single calls, and where their time went, are told of whole traces alone.
    const plain = ({ p50: _, p99: __, max: ___, ...sum }: Statistics["total"]) => sum;
    const tables = ({ total, classes, functions, files, processes }: Statistics) => ({
      total: plain(total), classes: classes.map(plain), functions: functions.map(plain), files: files.map(plain), processes: processes.map(plain),
    });
    const [found, all] = [gathered, run].map((of) => statistics(of, everything(of), true));
    assert.deepEqual(tables(found), tables(all));
    assert.equal(found.total.p50, undefined);
    assert.deepEqual(tables(statistics(summed(gathered, 3), everything(gathered), false)), tables(all));
  });
}

test("what is said of several calls together is said of no single one", async () => {
  const functions = [{ name: "write", layer: "posix", kind: "write" }];
  const calls: MadeUpCall[] = [
    { start: 0, end: 4_000, fn: 0, file: 0, result: 640, calls: 10 },
    { start: 5_000, end: 7_000, fn: 0, file: 0, length: 64, offset: 640, result: 64 },
  ];
  const run = load(await open(timeline({ label: "x", cellNs: 10_000, standsFor: 11, functions, files: ["/f"], processes: [{ name: "p" }], rows: [{ process: 0, calls }] })));
  await complete(run);
  const everything = { start: 0, end: 10_000, tracks: undefined };
  assert.deepEqual(taken(longest([{ run, index: 0 }], everything)), [{ run: 0, index: 1 }]);
  const shapes = taken(distributions([run], everything));
  assert.equal(shapes.gathered, 10);
  assert.equal(shapes.durations.reduce((sum, { calls }) => sum + calls, 0), 1);
  const parsed = parseQuery("dur:>1us");
  assert.ok(!("message" in parsed));
  const matches = matcher(parsed.terms, run);
  assert.deepEqual([matches(0), matches(1)], [false, true]);
  const told = facts(run.data, run.details!, run.files!, 0).map(({ name, text }) => `${name}: ${text}`);
  assert.ok(told.includes("moved: 640 B") && told.some((line) => line.startsWith("calls: 10 within 10")), told.join("; "));
  assert.ok(!told.some((line) => /^(offset|descriptor|length)/.test(line)), told.join("; "));
});
