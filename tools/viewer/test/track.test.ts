// What a row answers for a pixel must be what adding up its calls one by one gives.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fill, paintMerged, paintTrack, type Picture } from "../src/paint.ts";
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
  paintMerged(drawn, [row, row], view, box, palette);
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
