// The decoder against bytes that Rust wrote.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FormatError, fromBase64, open, parse, Reader } from "../src/format.ts";

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
const expected = JSON.parse(readFileSync(join(golden, "small.json"), "utf8")) as { events: Expected[]; files: string[] };

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
