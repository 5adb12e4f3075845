// What curves cover is what was moved, wherever one looks from.

import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, Cells, SERIES } from "../src/activity.ts";
import { open } from "../src/format.ts";
import { complete, load, shade, type LoadedRun } from "../src/loaded.ts";
import { cluster, random, timeline } from "./made-up.mjs";
import { taken } from "./taken.ts";

const [READ, WRITTEN, CALLS, REQUESTS, DEVICES, SENT] = SERIES.keys();

async function loaded(bytes: Uint8Array): Promise<LoadedRun> {
  const run = load(await open(new Uint8Array(bytes)));
  await complete(run);
  return run;
}

const sum = (values: Float64Array) => values.reduce((all, value) => all + value, 0);
const near = (found: number, expected: number, what: string) => assert.ok(Math.abs(found - expected) <= 1e-6 * Math.max(1, expected), `${what}: ${found} instead of ${expected}`);

/** Two ranks: one writes through another layer, one reads and copies; a failed write moves nothing. */
const two = () =>
  loaded(
    timeline({
      label: "two",
      functions: [
        { name: "H5Dwrite", layer: "hdf5", kind: "write" },
        { name: "pwrite", layer: "posix", kind: "write" },
        { name: "read", layer: "posix", kind: "read" },
        { name: "sendfile", layer: "posix", kind: "copy" },
        { name: "compute", layer: "program", kind: "compute" },
      ],
      files: ["/a"],
      processes: [{ name: "rank 0", rank: 0 }, { name: "rank 1", rank: 1 }],
      rows: [
        { process: 0, calls: [{ start: 0, end: 100, fn: 0, file: 0, offset: 0, length: 1000, result: 1000 }, { start: 100, end: 200, fn: 4 }, { start: 200, end: 300, fn: 1, file: 0, offset: 0, length: 500, result: -28 }] },
        { process: 0, depth: 1, calls: [{ start: 10, end: 90, fn: 1, file: 0, offset: 0, length: 1000, result: 1000, parent: 0 }] },
        { process: 1, calls: [{ start: 50, end: 250, fn: 2, file: 0, offset: 0, length: 4000, result: 4000 }, { start: 300, end: 300, fn: 3, file: 0, offset: 0, length: 70, result: 70 }, { start: 390, end: 400, fn: 4 }] },
      ],
    }),
  );

test("bytes count once, spread over their call; a copy is read and written", async () => {
  const cells = taken(activity(await two(), { start: 0, end: 400 }, 4));
  assert.deepEqual([...cells.amounts[WRITTEN]], [1000, 0, 0, 70]);
  assert.deepEqual([...cells.amounts[READ]], [1000, 2000, 1000, 70]);
  assert.deepEqual([...cells.values(READ)], [1e10, 2e10, 1e10, 7e8]);
});

test("calls under way are outermost ones that do not compute", async () => {
  const cells = taken(activity(await two(), { start: 0, end: 400 }, 4));
  assert.deepEqual([...cells.values(CALLS)], [1.5, 1, 1.5, 0]);
});

test("what is hidden or does not match is not in the curves", async () => {
  const run = await two();
  shade(run, new Set(), (at) => run.data.functionOf[at] === 2);
  const cells = taken(activity(run, { start: 0, end: 400 }, 8));
  assert.equal(sum(cells.amounts[READ]), 4000);
  assert.equal(sum(cells.amounts[WRITTEN]), 0);
});

test("parts of a view add up to the view, and cells of the whole say the same of it as its calls", async () => {
  const run = await loaded(cluster({ ranks: 9, servers: 3 }));
  const length = run.head.end_ns;
  const whole = taken(activity(run, { start: 0, end: length }, 1000));
  const pick = random(7);
  const present = [WRITTEN, CALLS, REQUESTS, DEVICES, SENT];
  for (const series of present) assert.ok(sum(whole.amounts[series]) > 0, SERIES[series].name);
  assert.equal(sum(whole.amounts[READ]), 0);
  for (let round = 0; round < 20; round++) {
    const middle = pick(length - 2) + 1;
    const halves = [{ start: 0, end: middle }, { start: middle, end: length }].map((view) => taken(activity(run, view, 1 + pick(500))));
    for (const series of present) near(sum(halves[0].amounts[series]) + sum(halves[1].amounts[series]), sum(whole.amounts[series]), SERIES[series].name);
    // On the bounds of cells nothing is smoothed.
    const [from, cells] = [pick(900), 1 + pick(90)];
    const view = { start: (from * length) / 1000, end: ((from + cells) * length) / 1000 };
    const [exact, drawn] = [taken(activity(run, view, cells)), whole.resampled(view, cells)];
    for (const series of present) drawn.amounts[series].forEach((amount, cell) => near(amount, exact.amounts[series][cell], `${SERIES[series].name} in ${cell} of ${cells} from ${from}`));
  }
});

test("an amount at one moment is in one stretch, and one outside in none", () => {
  const cells = new Cells({ start: 100, end: 200 }, 10);
  cells.add(READ, 150, 150, 7);
  cells.add(READ, 99, 99, 1);
  cells.add(READ, 200, 200, 1);
  assert.deepEqual([...cells.amounts[READ]], [0, 0, 0, 0, 0, 7, 0, 0, 0, 0]);
});
