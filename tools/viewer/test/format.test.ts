// The decoder against bytes that Rust wrote.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { decodeLinks, FormatError, fromBase64, open, parse, Reader } from "../src/format.ts";

interface Expected {
  process: number;
  thread: number;
  function: string;
  file: number;
  fd: number;
  offset: number;
  length: number;
  argument: number;
  start: number;
  end: number;
  result: number;
  parent: number;
}

const golden = join(process.cwd(), "test/golden");
const bytes = new Uint8Array(readFileSync(join(golden, "small.iotl")));
const expected = JSON.parse(readFileSync(join(golden, "small.json"), "utf8")) as {
  events: Expected[];
  files: string[];
  phases: unknown[];
  begun_by: number[][];
  ended_by: number[][];
};

test("every field of every event is what Rust put in", async () => {
  const data = await open(bytes);
  const details = await data.details();
  const files = await data.files();
  const { head } = data;
  assert.equal(head.count, expected.events.length);
  assert.deepEqual(head.files, expected.files);
  let at = 0;
  const seen = new Set<number>();
  for (const row of head.rows) {
    for (let last = at + row.count; at < last; at++) {
      const event = expected.events[details.row[at]];
      seen.add(details.row[at]);
      assert.deepEqual(
        {
          process: row.process,
          thread: row.thread,
          function: head.functions[data.functionOf[at]].name,
          file: files[at],
          fd: details.fd[at],
          offset: details.offset[at],
          length: details.length[at],
          argument: details.argument[at],
          start: data.start[at] + head.start_ns,
          end: data.end[at] + head.start_ns,
          result: details.result[at],
          parent: details.parent[at] < 0 ? -1 : details.row[details.parent[at]],
        },
        event,
      );
    }
  }
  assert.equal(seen.size, head.count);
});

test("causes are those that Rust put in, at the places where they are drawn", async () => {
  const data = await open(bytes);
  const [causes, details] = await Promise.all([data.causes(), data.details()]);
  const rows = (positions: Uint32Array) => [...positions].map((at) => details.row[at]).sort((a, b) => a - b);
  for (let at = 0; at < data.head.count; at++) {
    assert.deepEqual(rows(causes.begunBy.of(at)), expected.begun_by[details.row[at]]);
    assert.deepEqual(rows(causes.endedBy.of(at)), expected.ended_by[details.row[at]]);
  }
  assert.equal(causes.begunBy.count, expected.begun_by.flat().length);
});

test("a trace without causes has empty lists, and a cause outside the trace is refused", async () => {
  const view = new DataView(bytes.buffer.slice(0));
  const length = view.getUint32(8, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(12, 12 + length)));
  for (const column of head.columns.slice(-2)) column.name = `${column.name}_of_old`;
  const text = new TextEncoder().encode(JSON.stringify(head));
  const other = new Uint8Array([...bytes.subarray(0, 12), ...text, ...bytes.subarray(12 + length)]);
  new DataView(other.buffer).setUint32(8, text.length, true);
  const causes = await (await open(other)).causes();
  assert.equal(causes.begunBy.count + causes.endedBy.of(3).length, 0);
  assert.throws(() => decodeLinks(2, Uint8Array.of(1, 8, 0)), /not in the trace/);
});

test("the head tells what processes are, where they ran, phases, and how lines came about", async () => {
  const { head } = await open(bytes);
  assert.deepEqual(
    head.processes.map(({ kind, node, application }) => [kind, node, application]),
    [["rank", "node", "solver"], ["rank", "node", "solver"]],
  );
  assert.deepEqual(head.phases, expected.phases);
  const lines = head.rows.map(({ process, depth, placement }) => `${process} ${depth} ${placement}`);
  assert.deepEqual(lines, ["0 0 nested", "0 1 nested", "1 0 nested", "1 1 concurrent", "1 0 nested"]);
});

test("calls within a row are sorted and do not overlap", async () => {
  const { head, start, end } = await open(bytes);
  let at = 0;
  for (const row of head.rows) {
    for (let last = at + row.count, before = 0; at < last; before = end[at++]) assert.ok(start[at] >= before);
  }
  assert.ok(head.rows.some((row) => row.depth === 1));
});

test("numbers beyond 32 bits are read exactly", () => {
  const reader = new Reader(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x01, 0x80, 0x80, 0x80, 0x80, 0x20));
  assert.equal(reader.unsigned(), 2 ** 53 - 1);
  assert.equal(reader.signed(), -1);
  assert.equal(reader.signed(), 2 ** 32);
});

test("what is no timeline, another version or cut off is refused by name", async () => {
  assert.throws(() => parse(Uint8Array.of(1, 2, 3)), FormatError);
  const other = bytes.slice();
  other[4] = 9;
  assert.throws(() => parse(other), /version 9/);
  assert.throws(() => parse(bytes.subarray(0, bytes.length - 1)), /cut off/);
});

test("base64 becomes the bytes it stands for", () => {
  assert.deepEqual([...fromBase64("AAH+/w==")], [0, 1, 254, 255]);
});
