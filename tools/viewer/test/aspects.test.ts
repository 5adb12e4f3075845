// Distributions, matrices and lists of calls say the same as the tables of the range.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { callsCsv, longest, LONGEST_MAX } from "../src/calls.ts";
import { binOf, distributions } from "../src/distributions.ts";
import { open } from "../src/format.ts";
import { matrixCsv } from "../src/heat-map.ts";
import { complete, load, shade, type LoadedRun } from "../src/loaded.ts";
import { byFile, byServer, NO_FILE, type Matrix, type Measure } from "../src/matrix.ts";
import { PIECE } from "../src/palette.ts";
import { rangeOf, type Range } from "../src/range.ts";
import { statistics } from "../src/statistics.ts";
import { random } from "./made-up.mjs";
import { taken } from "./taken.ts";

const golden = join(process.cwd(), "test/golden");

async function runOf(name: string): Promise<LoadedRun> {
  const run = load(await open(new Uint8Array(readFileSync(join(golden, `${name}.iotl`)))));
  await complete(run);
  return run;
}

/** Ranges of all rows and of some. */
function ranges(run: LoadedRun, seed: number): Range[] {
  const pick = random(seed);
  const length = run.head.end_ns - run.head.start_ns;
  const some = () => new Set(run.tracks.filter(() => pick(2)));
  return [rangeOf(0, length + 1), ...Array.from({ length: 12 }, (_, at) => rangeOf(pick(length), pick(length), at % 2 ? some() : undefined))];
}

const NAMES = ["checkpoint", "ranges-bursts", "ranges-cluster", "ranges-nested"];
for (const name of NAMES) {
  test(`every call of a range of ${name} is in one bar`, async () => {
    const run = await runOf(name);
    for (const range of ranges(run, 3)) {
      const { durations, onlyCounted } = taken(distributions([run], range));
      const { classes, total } = statistics(run, range, true);
      const counted = durations.reduce((sum, { calls }) => sum + calls, 0);
      assert.equal(counted + onlyCounted, classes.reduce((sum, { calls }) => sum + calls, 0));
      if (!counted) continue;
      const last = durations[durations.length - 1];
      assert.ok(last.low <= total.max! && (last.high > total.max! || total.max === 0));
      assert.ok(durations[0].calls && last.calls);
    }
  });

  test(`what processes of ${name} did at files adds up to the tables by process and by file`, async () => {
    const run = await runOf(name);
    for (const range of ranges(run, 5)) {
      const matrix = taken(byFile(run, range));
      const { files, processes } = statistics(run, range, false);
      const isProgram = new Set(run.head.processes.filter((_, at) => ["rank", "process"].includes(run.places[at].kind)).map(({ name }) => name));
      assert.deepEqual(new Set(matrix.processes), new Set(processes.map(({ name }) => name).filter((name) => isProgram.has(name))));
      if (!run.places.some(({ kind }) => kind === "server")) {
        for (const { name, bytes, own } of files) {
          const column = matrix.columns.indexOf(name || NO_FILE);
          const of = (measure: Measure) => matrix.processes.reduce((sum, _, row) => sum + matrix.cells[measure][row * matrix.columns.length + column], 0);
          assert.deepEqual([of("bytes"), of("time")], [bytes, own], name);
        }
      }
      matrix.processes.forEach((process, row) => {
        const part = matrix.cells.bytes.subarray(row * matrix.columns.length, (row + 1) * matrix.columns.length);
        assert.equal(part.reduce((a, b) => a + b, 0), processes.find((sum) => sum.name === process)!.bytes, process);
      });
    }
  });

  test(`the longest calls of ${name} are those that sorting all of them puts first`, async () => {
    const run = await runOf(name);
    shade(run, new Set(), (at) => run.data.functionOf[at] !== 0);
    const { start, end, functionOf } = run.data;
    const [range] = ranges(run, 7);
    const all = [...start.keys()].filter((at) => functionOf[at] !== 0 && run.kindOf[at] !== PIECE).sort((a, b) => end[b] - start[b] - (end[a] - start[a]) || a - b);
    const found = taken(longest([{ run, index: 0 }], range));
    assert.equal(found.length, Math.min(LONGEST_MAX, all.length));
    assert.deepEqual(found.map(({ index }) => end[index] - start[index]), all.slice(0, LONGEST_MAX).map((at) => end[at] - start[at]));
    const csv = callsCsv(run, range).trimEnd().split("\n");
    assert.equal(csv.length - 1, all.length);
  });
}

const total = ({ cells }: Matrix, measure: Measure) => cells[measure].reduce((a, b) => a + b, 0);

test("each request of a simulated checkpoint is somebody's, and ranks find theirs when they are chosen", async () => {
  const run = await runOf("checkpoint");
  const causes = await run.data.causes();
  const all = taken(byServer(run, causes, rangeOf(0, run.head.end_ns + 1)));
  const served = statistics(run, rangeOf(0, run.head.end_ns + 1), false).classes.filter(({ name }) => name.startsWith("serve"));
  assert.equal(total(all, "calls"), served.reduce((sum, { calls }) => sum + calls, 0));
  assert.equal(total(all, "bytes"), served.reduce((sum, { bytes }) => sum + bytes, 0));
  assert.equal(total(all, "time"), served.reduce((sum, { time }) => sum + time, 0));
  const ofRank = (rank: number) => new Set(run.tracks.filter((_, row) => run.head.processes[run.head.rows[row].process].rank === rank));
  const own = taken(byServer(run, causes, rangeOf(0, run.head.end_ns + 1, ofRank(3))));
  assert.deepEqual(own.processes, ["rank 3"]);
  const row = all.processes.indexOf("rank 3");
  assert.equal(total(own, "bytes"), all.cells.bytes.subarray(row * all.columns.length, (row + 1) * all.columns.length).reduce((a, b) => a + b, 0));
  assert.equal(matrixCsv(own, "server").trimEnd().split("\n").length, 1 + own.columns.length);
});

test("a power of two begins a bar", () => {
  for (let power = 0; power < 53; power++) {
    const value = 2 ** power;
    assert.equal(binOf(value), power + 1);
    assert.equal(binOf(value * 2 - 1), power + 1);
  }
  assert.equal(binOf(0), 0);
});
