// What a call hangs together with.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Graph, inverted } from "../src/causes.ts";
import { Links } from "../src/format.ts";

function links(of: number[][]): Links {
  let end = 0;
  return new Links(Uint32Array.from(of, (list) => (end += list.length)), Uint32Array.from(of.flat()));
}

// Two writes (0, 1) whose requests (2, 3) one device access (4) serves; the answers (5, 6) end the writes.
const begunBy = links([[], [], [0], [1], [2, 3], [4], [4]]);
const endedBy = links([[5], [6], [], [], [], [], []]);
const graph = new Graph({ begunBy, endedBy }, 7);

test("the other way round, every cause is an effect", () => {
  const turned = inverted(begunBy, 7);
  assert.deepEqual([...turned.of(4)], [5, 6]);
  const back = inverted(turned, 7);
  for (let at = 0; at < 7; at++) assert.deepEqual([...back.of(at)], [...begunBy.of(at)]);
});

test("a write hangs together with its request, the access, and the answer that ended it", () => {
  const web = graph.web(0);
  for (const call of [0, 2, 4, 5]) assert.ok(web.calls.has(call), `${call}`);
  assert.ok(web.hops.some(({ from, to, kind }) => from === 5 && to === 0 && kind === "ends"));
  assert.ok(web.hops.some(({ from, to, kind }) => from === 0 && to === 2 && kind === "begins"));
  assert.equal(web.isCut, false);
});

test("an access names the requests of all it served", () => {
  assert.deepEqual([...graph.web(4).calls].sort(), [0, 1, 2, 3, 4, 5, 6]);
});

test("a hop goes to what began or ended a call, or to what it brought about", () => {
  assert.deepEqual(graph.neighbours(0, -1), [5]);
  assert.deepEqual(graph.neighbours(4, -1), [2, 3]);
  assert.deepEqual(graph.neighbours(4, 1), [5, 6]);
  assert.deepEqual(graph.neighbours(0, 1), [2]);
});

test("a call that everything hangs on is cut off somewhere, and says so", () => {
  const many = links([[], ...Array.from({ length: 10_000 }, () => [0])]);
  const none = links(Array.from({ length: 10_001 }, () => []));
  const web = new Graph({ begunBy: many, endedBy: none }, 10_001).web(0);
  assert.ok(web.isCut && web.calls.size <= 3000);
  assert.equal(new Graph({ begunBy: none, endedBy: none }, 10_001).isEmpty, true);
});
