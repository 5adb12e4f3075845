// Draws rows into a plain array of pixels. A call wider than two pixels is a rectangle; where calls
// are narrower, a pixel column shows by its height how much of its time was spent in calls, and by
// its colours in which. Writing pixels directly is several times faster than a rectangle per call.

import type { Columns } from "./columns.ts";
import type { Theme } from "./palette.ts";
import { SHADE_COUNT_MAX, SHADE_HIDDEN, type Track } from "./track.ts";

/** A picture being drawn; colours are 0xAABBGGRR as a little-endian canvas stores them. */
export interface Picture {
  pixels: Uint32Array;
  width: number;
  height: number;
}

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A rectangle wide enough for a name. */
export interface Spot {
  track: Track;
  index: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Span {
  start: number;
  end: number;
}

export function fill(picture: Picture, x: number, y: number, width: number, height: number, colour: number): void {
  const left = Math.max(0, x);
  const right = Math.min(picture.width, x + width);
  const bottom = Math.min(picture.height, y + height);
  if (right <= left) return;
  for (let line = Math.max(0, y); line < bottom; line++) {
    const base = line * picture.width;
    picture.pixels.fill(colour, base + left, base + right);
  }
}

const sums = new Float64Array(SHADE_COUNT_MAX);

/** Draws one row; calls at least `nameWidth` pixels wide are handed back for their names. */
export function paintTrack(
  picture: Picture,
  track: Track,
  view: Span,
  box: Box,
  palette: Uint32Array,
  nameWidth: number,
): Spot[] {
  const spots: Spot[] = [];
  const scale = box.width / (view.end - view.start);
  const { start, end, shade, count } = track;
  let at = track.firstEndingAfter(view.start);
  let x = 0;
  while (at < count && start[at] < view.end) {
    const right = (end[at] - view.start) * scale;
    const from = Math.max(x, Math.floor((start[at] - view.start) * scale));
    if (from >= box.width) break;
    if (x > 0 && right <= x) {
      at = track.firstEndingAfter(view.start + x / scale, at);
      continue;
    }
    if (right - from >= 2) {
      x = Math.min(box.width, Math.round(right));
      paintCall(picture, box, from, x, palette[shade[at]], shade[at]);
      if (x - from >= nameWidth && shade[at] !== SHADE_HIDDEN) {
        spots.push({ track, index: at, x: box.x + from, y: box.y, width: x - from, height: box.height });
      }
      at++;
    } else {
      const t0 = view.start + from / scale;
      const t1 = view.start + (from + 1) / scale;
      sums.fill(0);
      const [first, beyond] = track.measure(sums, t0, t1, at);
      paintColumn(picture, box, from, sums, t1 - t0, shade[beyond > first ? first : at], palette);
      x = from + 1;
      // A call that goes on beyond this pixel is seen again by the next one.
      at = Math.max(at, beyond > first && end[beyond - 1] > t1 ? beyond - 1 : beyond);
      if (beyond <= first) at++;
    }
  }
  return spots;
}

function paintCall(picture: Picture, box: Box, from: number, to: number, colour: number, shade: number): void {
  if (shade === SHADE_HIDDEN) return;
  const gap = to - from >= 5 ? 1 : 0;
  fill(picture, box.x + from, box.y, to - from - gap, box.height, colour);
}

/** A column whose height is the share of time covered, at least a few pixels: no call disappears. */
function paintColumn(
  picture: Picture,
  box: Box,
  x: number,
  sums: Float64Array,
  span: number,
  firstShade: number,
  palette: Uint32Array,
): void {
  let total = 0;
  for (let shade = 0; shade < SHADE_HIDDEN; shade++) total += Math.max(0, sums[shade]);
  if (total <= 0) {
    if (firstShade === SHADE_HIDDEN || sums[SHADE_HIDDEN] > 0) return;
    total = sums[firstShade] = span * 1e-9;
  }
  const height = Math.max(Math.min(4, box.height), Math.round(Math.min(1, total / span) * box.height));
  let covered = 0;
  let bottom = box.y + box.height;
  for (let shade = 0; shade < SHADE_HIDDEN; shade++) {
    if (sums[shade] <= 0) continue;
    covered += sums[shade];
    const top = box.y + box.height - Math.round((covered / total) * height);
    fill(picture, box.x + x, top, 1, bottom - top, palette[shade]);
    bottom = top;
  }
}

/**
 * Draws the sum of several tracks: by its height how much of `capacity` is under way, by its colours what.
 * Each column is `step` pixels wide.
 */
export function paintStack(picture: Picture, columns: Columns, capacity: number, box: Box, palette: Uint32Array, step: number): void {
  for (let column = 0; column < columns.count; column++) {
    const total = columns.total(column);
    if (total <= 0) continue;
    const height = Math.max(Math.min(3, box.height), Math.round(Math.min(1, total / capacity) * box.height));
    let covered = 0;
    let bottom = box.y + box.height;
    for (const shade of columns.shades) {
      const share = columns.share[shade * columns.count + column];
      if (share <= 0) continue;
      covered += share;
      const top = box.y + box.height - Math.round((covered / total) * height);
      fill(picture, box.x + column * step, top, step, bottom - top, palette[shade]);
      bottom = top;
    }
  }
}

/** What a call that covers next to nothing of a column still has of its colour. */
const FAINTEST = 0.4;

/** Draws the sum of several tracks where there is no height to speak of: the fuller, the stronger. */
export function paintBlend(picture: Picture, columns: Columns, capacity: number, box: Box, palette: Uint32Array, ground: number, step: number): void {
  const { count, share, shades } = columns;
  for (let column = 0; column < count; column++) {
    let [red, green, blue, total] = [0, 0, 0, 0];
    for (const shade of shades) {
      const part = share[shade * count + column];
      if (part <= 0) continue;
      const colour = palette[shade];
      red += part * (colour & 0xff);
      green += part * ((colour >> 8) & 0xff);
      blue += part * ((colour >> 16) & 0xff);
      total += part;
    }
    if (total <= 0) continue;
    const strength = FAINTEST + (1 - FAINTEST) * Math.min(1, total / capacity);
    const mix = (sum: number, shift: number) => Math.round((sum / total) * strength + ((ground >> shift) & 0xff) * (1 - strength));
    const colour = (0xff000000 | (mix(blue, 16) << 16) | (mix(green, 8) << 8) | mix(red, 0)) >>> 0;
    fill(picture, box.x + column * step, box.y, step, box.height, colour);
  }
}

/** Marks the failed calls of tracks with an edge on top, whatever else is drawn there. */
export function paintFailures(picture: Picture, tracks: Track[], view: Span, box: Box, colour: number, thickness: number): void {
  const scale = box.width / (view.end - view.start);
  for (const { failures, start, end } of tracks) {
    if (!failures.length) continue;
    let drawn = -1;
    for (let at = firstFailure(failures, end, view.start); at < failures.length; at++) {
      const index = failures[at];
      if (start[index] >= view.end) break;
      const left = Math.max(0, Math.floor((start[index] - view.start) * scale));
      const right = Math.max(left + thickness, Math.min(box.width, Math.round((end[index] - view.start) * scale)));
      if (right <= drawn) continue;
      fill(picture, box.x + left, box.y, right - left, Math.min(thickness, box.height), colour);
      drawn = right;
    }
  }
}

function firstFailure(failures: Uint32Array, end: Float64Array, time: number): number {
  let low = 0;
  let high = failures.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (end[failures[middle]] >= time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Diagonal lines over what is drawn in hatched classes, so that they can be told apart without colour. */
export function hatch(picture: Picture, box: Box, { styles, shades }: Theme, pitch: number): void {
  const lighter = new Map(styles.flatMap(({ isHatched }, shade) => (isHatched ? [[shades[shade], lightened(shades[shade])] as const] : [])));
  if (!lighter.size) return;
  const bottom = Math.min(picture.height, box.y + box.height);
  for (let y = Math.max(0, box.y); y < bottom; y++) {
    const base = y * picture.width;
    for (let x = pitch - 1 - (y % pitch); x < picture.width; x += pitch) {
      const light = lighter.get(picture.pixels[base + x]);
      if (light !== undefined) picture.pixels[base + x] = light;
    }
  }
}

function lightened(colour: number): number {
  const part = (shift: number) => Math.round(((colour >> shift) & 0xff) * 0.55 + 255 * 0.45) << shift;
  return (0xff000000 | part(16) | part(8) | part(0)) >>> 0;
}
