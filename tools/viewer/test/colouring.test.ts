// What colours mean besides classes, what rows are sorted by, and where a typed place is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { COLOURINGS, coloursOf } from "../src/colouring.ts";
import { open } from "../src/format.ts";
import { goalOf } from "../src/goto.ts";
import { complete, load, type LoadedRun } from "../src/loaded.ts";
import { hasNoMatch, weighing } from "../src/order.ts";
import { SHADE_DIM } from "../src/track.ts";
import { cluster, random, timeline, type MadeUpCall } from "./made-up.mjs";

async function loaded(bytes: Uint8Array): Promise<LoadedRun> {
  const run = load(await open(new Uint8Array(bytes)));
  await complete(run);
  return run;
}

/** Ranks that write to many files, in all sizes, now and then slowly, short or in vain. */
function writers(ranks: number, files: string[]): Promise<LoadedRun> {
  const pick = random(ranks + files.length);
  const rows = Array.from({ length: ranks }, (_, process) => {
    let at = process;
    const calls: MadeUpCall[] = Array.from({ length: 300 }, () => {
      const start = at + pick(50);
      const length = 2 ** pick(26) - pick(2);
      const end = start + (pick(20) ? 900 + pick(200) : 900 * 10 ** (1 + pick(3)));
      at = end;
      const result = [length, length, length, Math.floor(length / 2), -5][pick(5)];
      return { start, end, fn: 0, file: pick(pick(files.length) + 1), length, offset: 0, result };
    });
    return { process, calls };
  });
  const functions = [{ name: "pwrite", layer: "posix", kind: "write" }];
  return loaded(timeline({ label: "writers", functions, files, processes: rows.map((_, rank) => ({ name: `rank ${rank}`, rank })), rows }));
}

const nameOf = (run: LoadedRun, colouring: (typeof COLOURINGS)[number][0]) => {
  const { styles, slots } = coloursOf(colouring, [run]);
  return (at: number) => styles[slots[0][at]].name;
};

test("every call has a slot with a name and colours, and none that is kept for dimmed or hidden ones", async () => {
  const files = Array.from({ length: 60 }, (_, at) => `/data/${at % 2 ? "a" : "b"}/${at >> 1}`);
  const runs = [await writers(40, files), await writers(3, files.slice(20)), await loaded(cluster({ ranks: 5, servers: 2 }))];
  for (const [colouring] of COLOURINGS) {
    const { styles, slots } = coloursOf(colouring, runs);
    assert.ok(styles.length <= SHADE_DIM, `${colouring}: ${styles.length}`);
    assert.equal(new Set(styles.map(({ name }) => name)).size, styles.length, colouring);
    for (const { light, dark } of styles) for (const colour of [light, dark]) assert.match(colour, /^#[0-9a-f]{6}$/);
    runs.forEach((run, at) => {
      assert.equal(slots[at].length, run.head.count);
      assert.ok(slots[at].every((slot) => slot < styles.length), colouring);
    });
  }
});

test("a file has the same colour in all runs, the most used ones their own", async () => {
  const [one, other] = [await writers(4, ["/x/out", "/y/out", "/z"]), await writers(2, ["/z", "/y/out"])];
  const { styles, slots } = coloursOf("file", [one, other]);
  const slotOf = (run: LoadedRun, at: number, path: string) => slots[at][run.files!.findIndex((file) => run.head.files[file] === path)];
  for (const path of ["/z", "/y/out"]) assert.equal(slotOf(one, 0, path), slotOf(other, 1, path));
  assert.equal(styles[slotOf(one, 0, "/z")].text, "z");
  // Two files of one name are told apart by their paths.
  assert.equal(styles[slotOf(one, 0, "/x/out")].text, "/x/out");
});

test("calls that are added up are coloured by what one of them took, and by no result that is not known", async () => {
  const functions = [{ name: "write", layer: "posix", kind: "write" }];
  const calls = [
    { start: 0, end: 10_000, fn: 0, file: 0, result: 6400, calls: 100 },
    { start: 10_000, end: 15_000, fn: 0, file: 0, length: 64, offset: 0, result: 64 },
  ];
  const bytes = timeline({ label: "x", cellNs: 20_000, standsFor: 101, functions, files: ["/f"], processes: [{ name: "p" }], rows: [{ process: 0, calls }] });
  const run = load(await open(bytes));
  await complete(run);
  assert.deepEqual([0, 1].map(nameOf(run, "duration")), ["about the median", "10 to 100 times"]);
  assert.deepEqual([0, 1].map(nameOf(run, "result")), ["added up, none failed", "as asked for"]);
});

test("sizes, results and durations are put where their names say", async () => {
  const run = await writers(6, ["/a"]);
  const { start, end } = run.data;
  const { length, result } = run.details!;
  const median = [...start.keys()].map((at) => end[at] - start[at]).sort((a, b) => a - b)[start.length >> 1];
  const [bySize, byResult, byDuration] = (["size", "result", "duration"] as const).map((colouring) => nameOf(run, colouring));
  for (const at of start.keys()) {
    const ratio = (end[at] - start[at]) / median;
    if (length[at] < 1024) assert.equal(bySize(at), "below 1 KiB");
    if (length[at] === 1024) assert.equal(bySize(at), "1 to 4 KiB");
    if (length[at] >= 2 ** 24) assert.equal(bySize(at), "16 MiB and more");
    assert.equal(byResult(at), result[at] < 0 ? "failed" : result[at] < length[at] ? "moved less than asked for" : "as asked for");
    if (ratio > 0.8 && ratio < 1.3) assert.equal(byDuration(at), "about the median");
    if (ratio > 110) assert.equal(byDuration(at), "100 times and more");
  }
});

test("rows weigh what their outermost calls took, or moved, or when the last one ended", async () => {
  const run = await loaded(
    timeline({
      label: "nested",
      functions: [{ name: "MPI_File_write", layer: "mpiio", kind: "write" }, { name: "pwrite", layer: "posix", kind: "write" }],
      files: ["/a"],
      processes: [{ name: "rank 0", rank: 0 }],
      rows: [
        { process: 0, calls: [{ start: 0, end: 50, fn: 0, file: 0, length: 10, offset: 0, result: 10 }, { start: 60, end: 70, fn: 1, file: 0, length: 5, offset: 0, result: 3 }] },
        { process: 0, depth: 1, calls: [{ start: 1, end: 90, fn: 1, file: 0, length: 10, offset: 0, result: 10, parent: 0 }] },
      ],
    }),
  );
  const weights = (["time", "bytes", "end"] as const).map((order) => weighing(order, [run])!(run.tracks));
  assert.deepEqual(weights, [60, 13, 90]);
  assert.equal(weighing("place", [run]), undefined);
  assert.equal(hasNoMatch(run.tracks[0]), false);
  run.tracks[0].shade.fill(SHADE_DIM);
  assert.equal(hasNoMatch(run.tracks[0]), true);
});

test("a place is a time with its unit or a row of the trace", () => {
  assert.deepEqual(goalOf("12.5ms"), { time: 12_500_000 });
  assert.deepEqual(goalOf(" 1 s"), { time: 1e9 });
  assert.deepEqual(goalOf("312,164"), { row: 312_164 });
  assert.deepEqual(goalOf("row 7"), { row: 7 });
  for (const text of ["", "row 1ms", "7.5", "5 parsecs", "-3", "1e9"]) assert.equal(goalOf(text), undefined, text);
});
