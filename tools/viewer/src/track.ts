// One row of a timeline, and how a million calls become a few hundred pixels.
//
// Calls of a row do not overlap and are sorted, so any moment is found by bisection. For pixels that
// hold many calls, the time spent per shade is summed from blocks of 64 and of 4,096 calls that are
// summed up once: a frame touches about a hundred numbers per pixel, however long the trace is.

/** Shades are the classes of calls, then these two. */
export const SHADE_COUNT_MAX = 24;
export const SHADE_DIM = 22;
export const SHADE_HIDDEN = 23;

const NONE = new Uint32Array(0);
const SMALL = 64;
const LARGE = 64 * 64;
const LOOKED_AT_MAX = 10_000;

export class Track {
  readonly count: number;
  /** Position of its first call among those of the trace. */
  readonly first: number;
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly shade: Uint8Array;
  /** Positions of calls that failed, ascending; known once the results are unpacked. */
  failures: Uint32Array = NONE;
  #small: Float32Array | undefined;
  #large: Float64Array | undefined;

  constructor(first: number, start: Float64Array, end: Float64Array, shade: Uint8Array) {
    this.first = first;
    this.count = start.length;
    this.start = start;
    this.end = end;
    this.shade = shade;
  }

  /** To be called when shades have changed. */
  forget(): void {
    this.#small = this.#large = undefined;
  }

  /** The first call that ends after `time`, searched from `from` on. */
  firstEndingAfter(time: number, from = 0): number {
    return bisect(this.end, time, from, true);
  }

  /** The first call that starts at `time` or later, searched from `from` on. */
  firstStartingFrom(time: number, from = 0): number {
    return bisect(this.start, time, from, false);
  }

  /** The longest call that is not hidden between two moments, and how many there are. */
  longest(from: number, to: number): { index: number; count: number } | undefined {
    const first = this.firstEndingAfter(from);
    const beyond = this.firstStartingFrom(to, first);
    let found = -1;
    // A pixel may hold a million calls; the longest of the first ten thousand is as good to show.
    for (let at = first; at < Math.min(beyond, first + LOOKED_AT_MAX); at++) {
      if (this.shade[at] === SHADE_HIDDEN) continue;
      if (found < 0 || this.end[at] - this.start[at] > this.end[found] - this.start[found]) found = at;
    }
    return found < 0 ? undefined : { index: found, count: beyond - first };
  }

  /** Adds the durations of calls `from` to `to` (excluded) to the sums of their shades. */
  add(sums: Float64Array, from: number, to: number): void {
    let at = from;
    while (at < to && at % SMALL !== 0) this.#addCall(sums, at++);
    if (to - at >= SMALL) at = this.#addBlocks(sums, at, to);
    while (at < to) this.#addCall(sums, at++);
  }

  #addCall(sums: Float64Array, at: number): void {
    sums[this.shade[at]] += this.end[at] - this.start[at];
  }

  #addBlocks(sums: Float64Array, from: number, to: number): number {
    const small = (this.#small ??= this.#sumSmall());
    const large = (this.#large ??= this.#sumLarge(small));
    let at = from;
    while (at + SMALL <= to) {
      const isLarge = at % LARGE === 0 && at + LARGE <= to;
      const blocks = isLarge ? large : small;
      const base = (at / (isLarge ? LARGE : SMALL)) * SHADE_COUNT_MAX;
      for (let shade = 0; shade < SHADE_COUNT_MAX; shade++) sums[shade] += blocks[base + shade];
      at += isLarge ? LARGE : SMALL;
    }
    return at;
  }

  #sumSmall(): Float32Array {
    const { start, end, shade, count } = this;
    const sums = new Float32Array(Math.ceil(count / SMALL) * SHADE_COUNT_MAX);
    for (let at = 0; at < count; at++) {
      sums[((at / SMALL) | 0) * SHADE_COUNT_MAX + shade[at]] += end[at] - start[at];
    }
    return sums;
  }

  #sumLarge(small: Float32Array): Float64Array {
    const sums = new Float64Array(Math.ceil(this.count / LARGE) * SHADE_COUNT_MAX);
    const span = SHADE_COUNT_MAX * (LARGE / SMALL);
    for (let at = 0; at < small.length; at++) {
      sums[((at / span) | 0) * SHADE_COUNT_MAX + (at % SHADE_COUNT_MAX)] += small[at];
    }
    return sums;
  }

  /**
   * Adds the time spent per shade between two moments, calls that stick out cut off.
   * Returns the calls concerned; `hint` is a position at or before the first of them.
   */
  measure(sums: Float64Array, from: number, to: number, hint = 0): [number, number] {
    const first = this.firstEndingAfter(from, hint);
    const beyond = this.firstStartingFrom(to, first);
    if (beyond <= first) return [first, first];
    this.add(sums, first, beyond);
    const { start, end, shade } = this;
    sums[shade[first]] -= Math.max(0, from - start[first]);
    sums[shade[beyond - 1]] -= Math.max(0, end[beyond - 1] - to);
    return [first, beyond];
  }
}

/**
 * First index from `from` on whose value is above `limit` (`above`) or at least `limit`.
 * Gallops first: the answer is usually near.
 */
function bisect(values: Float64Array, limit: number, from: number, above: boolean): number {
  const passes = (at: number) => (above ? values[at] > limit : values[at] >= limit);
  let low = from;
  let step = 1;
  while (low + step <= values.length && !passes(low + step - 1)) {
    low += step;
    step *= 2;
  }
  let high = Math.min(values.length, low + step - 1);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (passes(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
