// Lines, folds, the view and how times are written.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Head, ProcessEntry } from "../src/format.ts";
import { layout, lineAt, totalHeight, type Run } from "../src/layout.ts";
import { Track } from "../src/track.ts";
import { View } from "../src/view.ts";
import { bytes, duration, moment, ticks } from "../src/words.ts";
import { countedCalls, resultText } from "../src/details.ts";

function run(label: string, ranks: number[], rows: [process: number, thread: number, depth: number][]): Run {
  const processes = ranks.map((rank) => ({ name: rank < 0 ? "tool" : `rank ${rank}`, rank }) as ProcessEntry);
  const head = {
    label,
    origin: "recorded",
    processes,
    rows: rows.map(([process, thread, depth]) => ({ process, thread, depth, count: 1 })),
  } as unknown as Head;
  const one = () => new Track(0, Float64Array.of(0), Float64Array.of(1), Uint8Array.of(0));
  return { head, tracks: rows.map(one) };
}

const two = [
  run("recorded", [1, 0], [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 3, 0]]),
  run("simulated", [0, 1], [[0, 0, 0], [1, 0, 0]]),
];

test("runs stand below each other, ranks in order, nesting below its calls", () => {
  const lines = layout(two, "run", new Set());
  assert.deepEqual(
    lines.map((line) => line.label || line.note),
    ["recorded", "rank 0", "thread 0", "thread 3", "rank 1", "inside", "simulated", "rank 0", "rank 1"],
  );
});

test("side by side, the same rank of all runs stands together", () => {
  const lines = layout(two, "process", new Set());
  assert.deepEqual(
    lines.map((line) => line.label || line.note),
    ["rank 0", "recorded", "thread 0", "thread 3", "simulated", "rank 1", "recorded", "inside", "simulated"],
  );
});

test("a folded group becomes one line that merges what is in it", () => {
  const lines = layout(two, "run", new Set(["run 0"]));
  assert.deepEqual(lines.map((line) => line.label), ["recorded", "simulated", "rank 0", "rank 1"]);
  assert.equal(lines[0].tracks.length, 3);
  assert.equal(lines[0].folded, true);
});

test("a run says where it comes from unless its name does, and what it lacks", () => {
  const [plain, other] = ["recorded", "measured"].map((label) => run(label, [0], [[0, 0, 0]]));
  other.head.lost_calls = 1200;
  const notes = layout([plain, other], "run", new Set()).filter((line) => line.level === 0).map((line) => line.note);
  assert.deepEqual(notes, ["", "recorded, 1,200 calls missing"]);
});

test("lines do not overlap and are found by their height", () => {
  const lines = layout(two, "run", new Set());
  lines.slice(1).forEach((line, at) => assert.ok(line.y >= lines[at].y + lines[at].height));
  for (const line of lines) assert.equal(lineAt(lines, line.y + 1), line);
  assert.equal(lineAt(lines, totalHeight(lines) + 1), undefined);
});

test("zooming keeps the moment under the pointer in place", () => {
  const view = new View(1_000_000);
  view.show(200_000, 600_000);
  view.zoom(4, 300_000);
  assert.ok(Math.abs((300_000 - view.start) / view.span - 0.25) < 1e-9);
  assert.ok(Math.abs(view.span - 100_000) < 1e-6);
});

test("no move leaves the trace or goes below a few nanoseconds", () => {
  const view = new View(1000);
  for (let round = 0; round < 100; round++) view.zoom(3, 500);
  assert.ok(view.span >= 20);
  view.pan(1e12);
  assert.ok(view.end <= 1000 * 1.03);
  for (let round = 0; round < 100; round++) view.zoom(0.5, 0);
  assert.ok(view.span <= 1000 * 1.05 && view.start <= 0 && view.end >= 1000);
  view.show(900, 100);
  assert.ok(view.span >= 20);
});

test("ticks are round, inside the view, and relative far in", () => {
  const far = ticks(0, 1e9, 10);
  assert.deepEqual(far.ticks.slice(0, 3).map((tick) => tick.text), ["0", "100 ms", "200 ms"]);
  const near = ticks(12_345_678_000, 12_345_679_000, 5);
  assert.ok(near.base > 0);
  assert.ok(near.ticks.every((tick) => tick.text.startsWith("+")));
  for (const { time } of near.ticks) assert.ok(time >= 12_345_678_000 && time <= 12_345_679_000);
});

test("times, sizes and results are written for people and exactly", () => {
  assert.equal(duration(437), "437 ns");
  assert.equal(duration(1_250_000), "1.25 ms");
  assert.equal(moment(12_345_678), "0.012\u202f345\u202f678 s");
  assert.equal(bytes(64), "64 B");
  assert.equal(bytes(4096), "4,096 B (4 KiB)");
  assert.equal(resultText("write", -28), "failed: ENOSPC");
});

test("a row that counts calls on a stream says how many, and no other row does", () => {
  assert.equal(countedCalls({ layer: "stdio", kind: "write" }, 4095), 4095);
  assert.equal(countedCalls({ layer: "stdio", kind: "seek" }, 3 * 256), 3);
  assert.equal(countedCalls({ layer: "stdio", kind: "seek" }, 2), 0);
  assert.equal(countedCalls({ layer: "stdio", kind: "write" }, -1), 0);
  assert.equal(countedCalls({ layer: "posix", kind: "sync" }, 4), 0);
});
