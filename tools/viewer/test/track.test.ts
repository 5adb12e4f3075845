// What a row answers for a pixel must be what adding up its calls one by one gives.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Columns } from "../src/columns.ts";
import { fill, hatch, paintBlend, paintFailures, paintStack, paintTrack, type Picture } from "../src/paint.ts";
import { CLASSES, theme } from "../src/palette.ts";
import { SHADE_COUNT_MAX, SHADE_HIDDEN, Track } from "../src/track.ts";

/** A repeatable random number in [0, 1). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function track(count: number, seed = 1): Track {
  const next = random(seed);
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  const shade = new Uint8Array(count);
  for (let at = 0, now = 0; at < count; at++) {
    start[at] = now + Math.floor(next() * 50);
    now = end[at] = start[at] + Math.floor(next() * 100);
    shade[at] = Math.floor(next() * 3);
  }
  return new Track(0, start, end, shade);
}

function bruteForce({ start, end, shade, count }: Track, from: number, to: number): number[] {
  const sums = new Array<number>(SHADE_COUNT_MAX).fill(0);
  for (let at = 0; at < count; at++) {
    sums[shade[at]] += Math.max(0, Math.min(end[at], to) - Math.max(start[at], from));
  }
  return sums;
}

test("time per shade is exact for spans of every length and place", () => {
  const row = track(20_000);
  const total = row.end[row.count - 1];
  const next = random(7);
  for (let round = 0; round < 400; round++) {
    const from = next() * total;
    const to = from + next() ** 4 * total;
    const sums = new Float64Array(SHADE_COUNT_MAX);
    row.measure(sums, from, to);
    const expected = bruteForce(row, from, to);
    expected.forEach((sum, shade) => assert.ok(Math.abs(sum - sums[shade]) < 1e-3, `${from} to ${to}: ${sum}, ${sums[shade]}`));
  }
});

test("bisection finds the same call from any hint before it", () => {
  const row = track(3000, 3);
  const time = row.start[2000] + 0.5;
  const found = row.firstEndingAfter(time);
  for (const hint of [0, 1, 17, 1999, found]) assert.equal(row.firstEndingAfter(time, hint), found);
  assert.equal(row.firstStartingFrom(Infinity), row.count);
  assert.equal(row.firstEndingAfter(-1), 0);
});

test("sums follow when shades change", () => {
  const row = track(1000);
  row.measure(new Float64Array(SHADE_COUNT_MAX), 0, Infinity);
  row.shade.fill(5);
  row.forget();
  const sums = new Float64Array(SHADE_COUNT_MAX);
  row.measure(sums, 0, Infinity);
  assert.equal(sums[0], 0);
  assert.ok(sums[5] > 0);
});

const palette = Uint32Array.from({ length: SHADE_COUNT_MAX }, (_, shade) => shade + 1);

function picture(width: number, height: number): Picture {
  return { pixels: new Uint32Array(width * height), width, height };
}

function columns({ pixels, width, height }: Picture): number {
  let found = 0;
  for (let x = 0; x < width; x++) {
    for (let y = 0; y < height; y++) {
      if (pixels[y * width + x]) {
        found++;
        break;
      }
    }
  }
  return found;
}

test("a call shorter than a pixel is still seen, wherever the view begins", () => {
  for (let shift = 0; shift < 50; shift++) {
    const start = Float64Array.of(5000 + shift * 13.7);
    const lone = new Track(0, start, start.slice(), Uint8Array.of(1));
    const drawn = picture(100, 20);
    paintTrack(drawn, lone, { start: 0, end: 10_000 }, { x: 0, y: 0, width: 100, height: 20 }, palette, 40);
    assert.equal(columns(drawn), 1, `at ${start[0]}`);
  }
});

test("a call wider than the view fills it and gets its name", () => {
  const long = new Track(0, Float64Array.of(0), Float64Array.of(1000), Uint8Array.of(2));
  const drawn = picture(100, 20);
  const spots = paintTrack(drawn, long, { start: 400, end: 500 }, { x: 0, y: 0, width: 100, height: 20 }, palette, 40);
  assert.equal(columns(drawn), 99);
  assert.equal(spots.length, 1);
  assert.equal(drawn.pixels[0], 3);
});

test("hidden calls leave no pixel, alone or merged", () => {
  const row = track(500);
  row.shade.fill(SHADE_HIDDEN);
  row.forget();
  const view = { start: 0, end: row.end[499] };
  const box = { x: 0, y: 0, width: 80, height: 20 };
  const drawn = picture(80, 20);
  paintTrack(drawn, row, view, box, palette, 40);
  const summed = new Columns(80);
  summed.sum([row, row], view);
  paintStack(drawn, summed, 2, box, palette, 1);
  paintBlend(drawn, summed, 2, box, palette, 0, 1);
  assert.equal(columns(drawn), 0);
});

test("the height of a column is the share of time in calls", () => {
  // Every 10 ns a call of 5 ns: half of the height.
  const start = Float64Array.from({ length: 10_000 }, (_, at) => at * 10);
  const row = new Track(0, start, start.map((time) => time + 5), new Uint8Array(10_000));
  const drawn = picture(50, 20);
  paintTrack(drawn, row, { start: 0, end: 100_000 }, { x: 0, y: 0, width: 50, height: 20 }, palette, 40);
  const filled = drawn.pixels.filter((colour) => colour !== 0).length;
  assert.equal(filled, 50 * 10);
});

test("nothing is drawn outside the picture", () => {
  const drawn = picture(4, 4);
  fill(drawn, -5, -5, 100, 100, 9);
  fill(drawn, 3, 3, -2, 1, 7);
  assert.ok(drawn.pixels.every((colour) => colour === 9));
});

test("summed up, every column has the time each class spent in it, whatever the zoom", () => {
  const rows = [track(5000), track(777)];
  const end = Math.max(...rows.map((row) => row.end[row.count - 1]));
  for (const view of [{ start: 0, end }, { start: end / 3, end: end / 3 + 5000 }, { start: -500, end: 90 }]) {
    const summed = new Columns(64);
    summed.sum([track(10)], view);
    summed.sum(rows, view);
    const width = (view.end - view.start) / 64;
    for (let column = 0; column < 64; column++) {
      const wanted = new Float64Array(CLASSES.length);
      const [from, to] = [view.start + column * width, view.start + (column + 1) * width];
      for (const row of rows) {
        for (let at = 0; at < row.count; at++) wanted[row.shade[at]] += Math.max(0, Math.min(row.end[at], to) - Math.max(row.start[at], from)) / width;
      }
      wanted.forEach((share, shade) => {
        const found = summed.share[shade * 64 + column];
        assert.ok(Math.abs(found - share) < 2e-3 + share * 1e-3, `column ${column}, shade ${shade}: ${found} instead of ${share}`);
      });
    }
  }
});

test("the height of a lane is how much is under way", () => {
  const start = Float64Array.of(0);
  const busy = [0, 1, 2].map(() => new Track(0, start, Float64Array.of(1000), new Uint8Array(1)));
  const idle = new Track(0, start, Float64Array.of(10), new Uint8Array(1));
  const summed = new Columns(10);
  summed.sum([...busy, idle], { start: 0, end: 1000 });
  const drawn = picture(10, 20);
  paintStack(drawn, summed, 4, { x: 0, y: 0, width: 10, height: 20 }, palette, 1);
  const height = (x: number) => drawn.pixels.filter((colour, at) => at % 10 === x && colour !== 0).length;
  assert.equal(height(5), 15);
  assert.ok(height(0) >= 15);
});

test("one call among a thousand merged rows is still seen", () => {
  const rows = Array.from({ length: 1000 }, () => new Track(0, new Float64Array(0), new Float64Array(0), new Uint8Array(0)));
  rows[500] = new Track(0, Float64Array.of(500), Float64Array.of(501), Uint8Array.of(1));
  const summed = new Columns(100);
  summed.sum(rows, { start: 0, end: 10_000 });
  const drawn = picture(100, 1);
  paintBlend(drawn, summed, 1000, { x: 0, y: 0, width: 100, height: 1 }, palette, 0xff000000, 1);
  const strongest = (drawn.pixels[5] >> 0) & 0xff;
  assert.ok(drawn.pixels[5] !== 0 && strongest >= (palette[1] & 0xff) * 0.39, `${drawn.pixels[5].toString(16)}`);
  assert.equal(drawn.pixels.filter((colour) => colour !== 0).length, 1);
});

test("a failed call has its edge at every zoom, and none has one it does not deserve", () => {
  const row = track(100_000);
  row.failures = Uint32Array.of(17, 50_000, 99_999);
  const red = 0xff0000ff;
  const marked = (start: number, end: number) => {
    const drawn = picture(100, 3);
    paintFailures(drawn, [row], { start, end }, { x: 0, y: 0, width: 100, height: 3 }, red, 2);
    return [...drawn.pixels.subarray(0, 100)].flatMap((colour, at) => (colour === red ? [at] : []));
  };
  const end = row.end[99_999];
  assert.ok(marked(0, end).length >= 3 && marked(0, end).length <= 7);
  for (const failed of row.failures) assert.ok(marked(row.start[failed], row.end[failed] + 1).includes(0), `call ${failed}`);
  assert.deepEqual(marked(row.start[18], row.end[49_999]), []);
});

test("what servers do is hatched, what programs do is not", () => {
  const shades = Uint32Array.from(CLASSES, (_, shade) => 0xff000100 + shade);
  const hatched = CLASSES.findIndex(({ name }) => name === "serve-write");
  const drawn = picture(20, 10);
  fill(drawn, 0, 0, 20, 10, shades[hatched]);
  fill(drawn, 0, 0, 20, 5, shades[0]);
  hatch(drawn, { x: 0, y: 0, width: 20, height: 10 }, { ...theme(false), shades }, 5);
  assert.ok(drawn.pixels.subarray(0, 100).every((colour) => colour === shades[0]));
  const lines = drawn.pixels.subarray(100).filter((colour) => colour !== shades[hatched]).length;
  assert.equal(lines, 20);
});

test("the longest call between two moments is found, hidden ones are passed over", () => {
  const row = new Track(0, Float64Array.of(0, 10, 30), Float64Array.of(5, 25, 33), Uint8Array.of(0, 1, 0));
  assert.deepEqual(row.longest(0, 100), { index: 1, count: 3 });
  row.shade[1] = SHADE_HIDDEN;
  assert.equal(row.longest(0, 100)?.index, 0);
  assert.equal(row.longest(50, 100), undefined);
});

test("the longest of very many calls is found wherever it is", () => {
  const row = track(50_000);
  for (const at of [0, 9_999, 10_001, 20_480, 49_999]) {
    const [calls, from] = [row.end.slice(), row.start.slice()];
    calls[at] = from[at] + 1e6;
    // What follows moves along.
    for (let later = at + 1; later < calls.length; later++) [from[later], calls[later]] = [from[later] + 1e6, calls[later] + 1e6];
    const changed = new Track(0, from, calls, row.shade.slice());
    assert.deepEqual(changed.longest(-1, Infinity), { index: at, count: 50_000 });
    changed.shade[at] = SHADE_HIDDEN;
    changed.forget();
    assert.notEqual(changed.longest(-1, Infinity)?.index, at);
  }
});
