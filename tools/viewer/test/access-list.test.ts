// Which calls count as accesses to a file.

import assert from "node:assert/strict";
import { test } from "node:test";
import { accessesTo, bytesOf, timeOf } from "../src/access-list.ts";
import { open } from "../src/format.ts";
import { complete, load } from "../src/loaded.ts";
import { rangeOf } from "../src/range.ts";
import { statistics } from "../src/statistics.ts";
import { timeline } from "./made-up.mjs";

const functions = [
  { name: "MPI_File_write", layer: "mpiio", kind: "write" },
  { name: "fflush", layer: "stdio", kind: "sync" },
  { name: "pwrite", layer: "posix", kind: "write" },
  { name: "serve write", layer: "server", kind: "write" },
];

test("an access counts once, at the outermost call that says where, and not again at a server", async () => {
  const write = (start: number, end: number, fn: number, more: object) => ({ start, end, fn, file: 0, length: 100, result: 100, ...more });
  const run = load(
    await open(
      timeline({
        label: "nested",
        origin: "simulated",
        functions,
        files: ["a", "b"],
        processes: [{ name: "rank 0", rank: 0, command: "model" }, { name: "server0 requests", host: "server0" }],
        rows: [
          // Positions 0 to 3: one that says where, one that does not, one that failed, one of another file.
          { process: 0, calls: [write(0, 10, 0, { offset: 0 }), write(20, 30, 0, { offset: -1 }), write(40, 50, 0, { offset: 0, result: -5 }), write(60, 70, 0, { offset: 0, file: 1 })] },
          // 4 and 5: between an access and its pieces there may be calls that move nothing.
          { process: 0, depth: 1, calls: [{ start: 1, end: 9, fn: 1, parent: 0 }, write(22, 28, 2, { offset: 500, parent: 1 })] },
          { process: 0, depth: 2, calls: [write(2, 8, 2, { offset: 0, parent: 4 })] },
          { process: 1, calls: [write(3, 7, 3, { offset: 0 })] },
        ],
      }),
    ),
  );
  await complete(run);
  const shown = accessesTo(run, 0, 0)!;
  assert.deepEqual([...shown.calls], [0, 5]);
  assert.equal(shown.end, 600);
  assert.deepEqual([...accessesTo(run, 0, 1)!.calls], [3]);
  assert.equal(accessesTo(run, 0, 7), undefined);
});

test("the extents of a call stand in its place, at its time; what a copy wrote is an access of its own", async () => {
  const extent = (parent: number, start: number, file: number, offset: number, length: number) => ({ start, end: start, fn: 4, file, offset, length, parent });
  const run = load(
    await open(
      timeline({
        label: "extents",
        functions: [...functions, { name: "piece", layer: "mpiio", kind: "piece" }, { name: "sendfile", layer: "posix", kind: "copy" }],
        files: ["a", "b"],
        processes: [{ name: "rank 0", rank: 0 }],
        rows: [
          // 0: in two extents; 1: failed, so that nothing was at its extent; 2: copies from a to b.
          {
            process: 0,
            calls: [
              { start: 0, end: 100, fn: 0, file: 0, offset: 0, length: 20, result: 20 },
              { start: 200, end: 300, fn: 0, file: 0, offset: 0, length: 20, result: -5 },
              { start: 400, end: 500, fn: 5, file: 0, offset: 64, length: 8, result: 8 },
            ],
          },
          { process: 0, depth: 1, calls: [extent(0, 0, 0, 0, 10), extent(0, 0, 0, 1000, 10), { start: 10, end: 90, fn: 2, file: 0, offset: 0, length: 20, result: 20, parent: 0 }, extent(1, 200, 0, 0, 20), extent(2, 400, 1, 32, 8)] },
        ],
      }),
    ),
  );
  await complete(run);
  const shown = accessesTo(run, 0, 0)!;
  assert.deepEqual([...shown.calls], [2, 3, 4]);
  assert.deepEqual(shown.parts.map((part) => [...part]), [[2], [3, 4]]);
  assert.equal(shown.end, 1010);
  assert.deepEqual(timeOf(run, 4), { start: 0, end: 100 });
  assert.equal(bytesOf(run, 4), 10);
  const copied = accessesTo(run, 0, 1)!;
  assert.deepEqual([...copied.calls], [7]);
  assert.deepEqual(timeOf(run, 7), { start: 400, end: 500 });
  // No calls, no time.
  const { total } = statistics(run, rangeOf(0, 1000), true);
  assert.deepEqual([total.calls, total.time, total.own, total.bytes, total.p50], [4, 380, 300, 28, 100]);
});
