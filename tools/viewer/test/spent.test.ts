// Where the time of calls went, on the trace of a simulated checkpoint of 8 ranks on 10 servers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { decodeParts, open, type Head } from "../src/format.ts";
import { complete, load, rowOfCall } from "../src/loaded.ts";
import { statistics } from "../src/statistics.ts";

const file = join(process.cwd(), "test/golden/checkpoint.iotl");

async function checkpoint() {
  const run = load(await open(new Uint8Array(readFileSync(file))));
  await complete(run);
  return run;
}

const sum = (parts: ArrayLike<number>) => Array.from(parts).reduce((all, ns) => all + ns, 0);

test("the parts of every call of a rank add up to its duration, and nothing else has any", async () => {
  const run = await checkpoint();
  const { head, data, parts } = run;
  assert.equal(head.parts.length, 10);
  let calls = 0;
  for (let at = 0; at < head.count; at++) {
    const { layer } = head.functions[data.functionOf[at]];
    const found = parts!.of(at);
    const isCall = layer === "mpiio" && data.end[at] > data.start[at];
    assert.equal(found !== undefined, isCall, `${at}: ${layer}`);
    if (!found) continue;
    calls++;
    assert.equal(head.processes[head.rows[rowOfCall(run, at)].process].kind, "rank");
    assert.equal(sum(found), data.end[at] - data.start[at]);
  }
  assert.ok(calls >= 16, `${calls}`);
});

test("a range comes to the parts of the calls that overlap it", async () => {
  const run = await checkpoint();
  const { head, data, parts } = run;
  const [start, end] = [30_000_000, 50_000_000];
  const expected = head.parts.map(() => 0);
  for (let at = 0; at < head.count; at++) {
    if (data.end[at] > start && data.start[at] < end) parts!.of(at)?.forEach((ns, part) => (expected[part] += ns));
  }
  assert.deepEqual(statistics(run, { start, end, tracks: undefined }, false).parts, expected);
  assert.ok(sum(expected) > 0);
});

test("a part without a name is refused", () => {
  const head = { count: 1, parts: ["one", "other"] } as Head;
  assert.deepEqual([...decodeParts(head, Uint8Array.of(2, 7)).of(0)!], [0, 7]);
  assert.throws(() => decodeParts(head, Uint8Array.of(4, 7)), /without a name/);
});
