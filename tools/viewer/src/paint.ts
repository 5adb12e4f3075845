// Draws rows into a plain array of pixels. A call wider than two pixels is a rectangle; where calls
// are narrower, a pixel column shows by its height how much of its time was spent in calls, and by
// its colours in which. Writing pixels directly is several times faster than a rectangle per call.

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

/** Draws several rows as one: columns show the mean over them. */
export function paintMerged(
  picture: Picture,
  tracks: Track[],
  view: Span,
  box: Box,
  palette: Uint32Array,
): void {
  const perPixel = (view.end - view.start) / box.width;
  const hints = tracks.map((track) => track.firstEndingAfter(view.start));
  for (let x = 0; x < box.width; x++) {
    const t0 = view.start + x * perPixel;
    sums.fill(0);
    let firstShade = SHADE_HIDDEN;
    tracks.forEach((track, index) => {
      const [first, beyond] = track.measure(sums, t0, t0 + perPixel, hints[index]);
      hints[index] = first;
      if (beyond > first && firstShade === SHADE_HIDDEN) firstShade = track.shade[first];
    });
    if (firstShade === SHADE_HIDDEN && sums.every((sum) => sum <= 0)) continue;
    paintColumn(picture, box, x, sums, perPixel * tracks.length, firstShade, palette);
  }
}
