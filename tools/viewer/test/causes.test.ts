// What a call hangs together with.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Graph, inverted, type Lists } from "../src/causes.ts";

function lists(of: number[][]): Lists {
  const first = new Uint32Array(of.length + 1);
  of.forEach((list, at) => (first[at + 1] = first[at] + list.length));
  return { first, items: Uint32Array.from(of.flat()) };
}

// Two writes (0, 1) whose requests (2, 3) one device access (4) serves; the answers (5, 6) end the writes.
const begunBy = lists([[], [], [0], [1], [2, 3], [4], [4]]);
const endedBy = lists([[5], [6], [], [], [], [], []]);
const graph = new Graph({ begunBy, endedBy });

test("the other way round, every cause is an effect", () => {
  const turned = inverted(begunBy);
  assert.deepEqual([...turned.items.subarray(turned.first[4], turned.first[5])], [5, 6]);
  assert.deepEqual(inverted(turned), begunBy);
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
  const many = lists([[], ...Array.from({ length: 10_000 }, () => [0])]);
  const none = lists(Array.from({ length: 10_001 }, () => []));
  const web = new Graph({ begunBy: many, endedBy: none }).web(0);
  assert.ok(web.isCut && web.calls.size <= 3000);
  assert.equal(new Graph({ begunBy: none, endedBy: none }).isEmpty, true);
});
