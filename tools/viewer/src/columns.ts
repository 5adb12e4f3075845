// How much of each pixel column was spent in which class, summed over any number of tracks. Calls that
// cover whole columns are entered as a difference at both ends, so a call costs the same however wide it
// is, and a column with many calls costs as much as their blocks: about the lesser of calls and columns
// per track.

import type { Span } from "./paint.ts";
import { SHADE_COUNT_MAX, SHADE_HIDDEN, type Track } from "./track.ts";

/** Share of a column that any call has at least: none disappears. */
const SHARE_MIN = 1e-4;
/** More calls than this in a column are summed up by blocks. */
const DENSE = 12;

const sums = new Float64Array(SHADE_COUNT_MAX);

export class Columns {
  readonly count: number;
  /** By shade, then column: time in units of a column. */
  readonly share: Float32Array;
  /** Shades that occur. */
  shades: number[] = [];
  #steps: Float32Array;
  #isUsed = new Uint8Array(SHADE_COUNT_MAX);

  constructor(count: number) {
    this.count = count;
    this.share = new Float32Array(count * SHADE_COUNT_MAX);
    this.#steps = new Float32Array((count + 1) * SHADE_COUNT_MAX);
  }

  clear(): void {
    for (const shade of this.shades) this.share.fill(0, shade * this.count, (shade + 1) * this.count);
    this.shades = [];
    this.#isUsed.fill(0);
  }

  /** Sums up tracks; what was there before is gone. */
  sum(tracks: Iterable<Track>, view: Span): void {
    this.clear();
    for (const track of tracks) this.#add(track, view);
    this.#settle();
  }

  #add(track: Track, view: Span): void {
    const { start, end, shade, count } = track;
    const scale = this.count / (view.end - view.start);
    let at = track.firstEndingAfter(view.start);
    while (at < count && start[at] < view.end) {
      const left = (start[at] - view.start) * scale;
      const right = (end[at] - view.start) * scale;
      const column = Math.max(0, Math.floor(left));
      if (right < column + 1 && at + DENSE < count && start[at + DENSE] < view.start + (column + 1) / scale) {
        at = this.#addDense(track, at, column, view.start + (column + 1) / scale, scale, view.start);
      } else {
        this.#addCall(shade[at++], left, right);
      }
    }
  }

  /** All calls that start before `until`, the end of a column. */
  #addDense(track: Track, at: number, column: number, until: number, scale: number, zero: number): number {
    const last = track.firstStartingFrom(until, at) - 1;
    sums.fill(0);
    track.add(sums, at, last);
    for (let shade = 0; shade < SHADE_HIDDEN; shade++) {
      if (sums[shade] <= 0) continue;
      this.#isUsed[shade] = 1;
      this.share[shade * this.count + column] += sums[shade] * scale;
    }
    this.#addCall(track.shade[last], (track.start[last] - zero) * scale, (track.end[last] - zero) * scale);
    return last + 1;
  }

  #addCall(shade: number, left: number, right: number): void {
    if (shade === SHADE_HIDDEN) return;
    this.#isUsed[shade] = 1;
    const from = Math.max(0, left);
    const to = Math.min(this.count, right);
    const first = Math.min(this.count - 1, Math.floor(from));
    const last = Math.min(this.count - 1, Math.floor(to));
    const base = shade * this.count;
    if (first === last) {
      this.share[base + first] += Math.max(to - from, SHARE_MIN);
      return;
    }
    this.share[base + first] += Math.max(first + 1 - from, SHARE_MIN);
    this.share[base + last] += to - last;
    if (last === first + 1) return;
    const steps = shade * (this.count + 1);
    this.#steps[steps + first + 1] += 1;
    this.#steps[steps + last] -= 1;
  }

  #settle(): void {
    for (let shade = 0; shade < SHADE_HIDDEN; shade++) {
      if (!this.#isUsed[shade]) continue;
      this.shades.push(shade);
      const steps = shade * (this.count + 1);
      const base = shade * this.count;
      let covering = 0;
      for (let column = 0; column < this.count; column++) {
        covering += this.#steps[steps + column];
        if (covering) this.share[base + column] += covering;
      }
      this.#steps.fill(0, steps, steps + this.count + 1);
    }
  }

  /** All classes of a column together. */
  total(column: number): number {
    let total = 0;
    for (const shade of this.shades) total += this.share[shade * this.count + column];
    return total;
  }
}
