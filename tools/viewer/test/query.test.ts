// What is typed into the search field: what it finds, and what is said about what it cannot mean.

import assert from "node:assert/strict";
import { test } from "node:test";
import { complete, load, type LoadedRun } from "../src/loaded.ts";
import { open } from "../src/format.ts";
import { matcher, parseQuery } from "../src/query.ts";
import { timeline } from "./made-up.mjs";

const FUNCTIONS = [
  { name: "pwrite", layer: "posix", kind: "write" },
  { name: "pread", layer: "posix", kind: "read" },
  { name: "device write", layer: "device", kind: "write" },
  { name: "MPI_Barrier", layer: "mpi", kind: "message" },
];
const CALLS = [
  [
    { start: 0, end: 500, fn: 0, file: 0, offset: 0, length: 100, result: 100 },
    { start: 600, end: 2_000_600, fn: 1, file: 1, offset: 4096, length: 8192, result: 8192 },
    { start: 3_000_000, end: 3_000_001, fn: 0, file: 0, offset: 100, length: 4096, result: -28 },
  ],
  [{ start: 0, end: 10, fn: 3, result: -5 }],
  [
    { start: 0, end: 10, fn: 2, file: 0, offset: 0, length: 100, result: 100, argument: 0 },
    { start: 20, end: 30, fn: 2, file: 0, offset: 0, length: 100, result: 100, argument: 2 },
  ],
];

async function loaded(): Promise<LoadedRun> {
  const run = load(
    await open(
      timeline({
        label: "simulated",
        origin: "simulated",
        functions: FUNCTIONS,
        files: ["/data/a.h5", "/data/b c.dat"],
        processes: [
          { name: "rank 0", rank: 0, host: "n0", command: "app" },
          { name: "rank 12", rank: 12, host: "n1", command: "app" },
          { name: "s0 device", host: "s0" },
        ],
        rows: CALLS.map((calls, process) => ({ process, calls })),
      }),
    ),
  );
  await complete(run);
  return run;
}

async function found(text: string): Promise<number[]> {
  const run = await loaded();
  const parsed = parseQuery(text);
  if ("message" in parsed) throw new Error(parsed.message);
  const matches = matcher(parsed.terms, run);
  return Array.from({ length: run.head.count }, (_, at) => at).filter(matches);
}

const FINDS: [query: string, calls: number[]][] = [
  ["", [0, 1, 2, 3, 4, 5]],
  ["WRITE", [0, 2, 4, 5]],
  ["write h5", [0, 2, 4, 5]],
  ["op:pwrite", [0, 2]],
  ["op:p*,MPI_*", [0, 1, 2, 3]],
  ["file:*.h5", [0, 2, 4, 5]],
  ["file:/data/*.h5", [0, 2, 4, 5]],
  ['file:"b c.dat"', [1]],
  ['"b c"', [1]],
  ["rank:0", [0, 1, 2]],
  ["rank:1-63", [3]],
  ["rank:>=0", [0, 1, 2, 3]],
  ["process:s0*", [4, 5]],
  ["node:n1,s0", [3, 4, 5]],
  ["size:<4k", [0, 4, 5]],
  ["size:<=4k", [0, 2, 4, 5]],
  ["size:4-8k", [1, 2]],
  ["size:100", [0, 4, 5]],
  ["offset:>0", [1, 2]],
  ["dur:>1ms", [1]],
  ["dur:<1.5us", [0, 2, 3, 4, 5]],
  ["dur:<0.01us", [2]],
  ["error", [2, 3]],
  ["error:ENOSPC", [2]],
  ["error:5", [3]],
  ["-error op:pwrite", [0]],
  ["seek:far", [5]],
  ["seek:none,near", [4]],
  ["class:write", [0, 2]],
  ["class:device*", [4, 5]],
  ["class:device-far", [5]],
  ["layer:mpi", [3]],
];

for (const [query, calls] of FINDS) {
  test(`“${query}” finds what it says`, async () => assert.deepEqual(await found(query), calls));
}

const REFUSED: [query: string, at: number, message: RegExp][] = [
  ["write sise:3", 6, /no “sise”; there are op, file.*In quotes it is a word/],
  ["op:", 3, /“op:” needs a value/],
  ["rank:a", 5, /“a” is no such number; write 3, 0-63/],
  ["size:4x", 6, /“x” is no unit here; there are b, k/],
  ["rank:3k", 6, /“k” is no unit here; there are none/],
  ["dur:3ms-1ms", 4, /ends before it begins/],
  ["dur:>1ms-2ms", 4, /no such number/],
  ["seek:wide", 5, /“wide” is none of none, near, far/],
  ["rank:1,", 7, /nothing beside this comma/],
  ["op:x error:EFOO", 11, /“EFOO” is no error; write ENOSPC or 28/],
  ['file:"a', 5, /quote is not closed/],
  ["class:wrte", 6, /none of read, write/],
  ["-nonsense:1", 1, /no “nonsense”/],
];

for (const [query, at, message] of REFUSED) {
  test(`“${query}” is refused where it goes wrong`, () => {
    const parsed = parseQuery(query);
    assert.ok("message" in parsed, "it is accepted");
    assert.match(parsed.message, message);
    assert.equal(parsed.at, at);
  });
}

test("no text makes the parser stumble", () => {
  const pieces = ["op:", "rank:", '"', "-", ",", "<", "9", "k", " ", "*", "error", "[", "\\", "µ", ":"];
  let state = 7;
  for (let round = 0; round < 3000; round++) {
    let text = "";
    for (let at = 0; at < 6; at++) text += pieces[(state = (state * 48271) % 2147483647) % pieces.length];
    const parsed = parseQuery(text);
    if ("message" in parsed) assert.ok(parsed.at >= 0 && parsed.at <= text.length, text);
  }
});
