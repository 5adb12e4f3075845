// The durations of a run in an order in which every question is about a few stretches: by row, within it by
// slot (what a call is counted under), within that by time.

import type { LoadedRun } from "./loaded.ts";
import { FIELDS, ROWS, type Prefixes } from "./prefix.ts";
import { WaveletMatrix, type Levels } from "./wavelet.ts";

/** Where the calls of each slot begin: by row, then slot. Rows without sums have none. */
function beginnings(run: LoadedRun, { rows }: Prefixes): Uint32Array[] {
  let before = 0;
  return run.tracks.map((track, row) => {
    const sums = rows[row];
    if (!sums) return Uint32Array.of((before += track.count) - track.count);
    const last = sums.before(track.count).sums;
    return Uint32Array.from(sums.slots, (_, slot) => (before += last[slot * FIELDS + ROWS]) - last[slot * FIELDS + ROWS]);
  });
}

export interface Durations {
  values: Float64Array;
  /** Where each stands in that order. */
  placeOf: Uint32Array;
}

/** Calls looked at before others get their turn. */
const STEP = 1 << 16;

/** The durations of all calls, in steps of a few milliseconds. */
export function* durationsOf(run: LoadedRun, prefixes: Prefixes): Generator<undefined, Durations> {
  const { start, end } = run.data;
  const values = new Float64Array(run.head.count);
  const placeOf = new Uint32Array(run.head.count);
  const next = beginnings(run, prefixes);
  for (const [row, { first, count }] of run.tracks.entries()) {
    const free = next[row];
    const isSorted = prefixes.rows[row] !== undefined;
    for (let at = first; at < first + count; at++) {
      if (at % STEP === STEP - 1) yield;
      values[at] = end[at] - start[at];
      placeOf[at] = free[isSorted ? prefixes.slotOf[at] : 0]++;
    }
  }
  return { values, placeOf };
}

/** The durations of a whole run, ready for questions about parts of it. */
export class Quantiles {
  readonly matrix: WaveletMatrix;
  #run: LoadedRun;
  #prefixes: Prefixes;
  #beginnings: Uint32Array[];

  constructor(run: LoadedRun, prefixes: Prefixes, levels: Levels) {
    this.matrix = new WaveletMatrix(levels);
    [this.#run, this.#prefixes, this.#beginnings] = [run, prefixes, beginnings(run, prefixes)];
  }

  /** Where the durations of the calls `from` to `to` (excluded) of a row stand, slot by slot. */
  stretches(row: number, from: number, to: number, found: (slot: number, first: number, last: number) => void): void {
    const [first, last] = [this.#countsTill(row, from), this.#countsTill(row, to)];
    const begin = this.#beginnings[row];
    for (let slot = 0; slot < first.length; slot++) {
      if (first[slot] < last[slot]) found(slot, begin[slot] + first[slot], begin[slot] + last[slot]);
    }
  }

  /** How many calls of each slot of a row are before a position. */
  #countsTill(row: number, at: number): Uint32Array {
    const { rows, slotOf } = this.#prefixes;
    const sums = rows[row]!;
    const { first: zero } = this.#run.tracks[row];
    const note = sums.before(at - zero);
    const counts = Uint32Array.from(sums.slots, (_, slot) => note.sums[slot * FIELDS + ROWS] ?? 0);
    for (let next = zero + note.place; next < at; next++) counts[slotOf[next]]++;
    return counts;
  }
}
