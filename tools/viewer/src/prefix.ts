// What the calls of a row come to from its beginning to any place, so that a range costs the difference of two
// places and a look at the calls beside them, however many are between. At every few thousand calls the sums
// so far are noted, by slot: what a call is counted under, its function and class and its file. What calls
// inside take away from the own time of those around them is noted by the row, slot of the latter.
//
// Exact only where the calls of a row follow each other and calls inside others end before these do. A row
// in which one does not has no sums and is read call by call.

import { countedCalls } from "./details.ts";
import { rowOfCall, standsFor, type LoadedRun } from "./loaded.ts";
import { CLASSES } from "./palette.ts";

/** Calls between two notes, at least; more where there are many slots, so that notes stay smaller than calls. */
export const SPACING = 4096;
const CALLS_PER_SLOT = 8;
const SLOTS_MAX = 0xffff;
/** A step of the making: calls read before others get their turn. */
const STEP = 1 << 16;

/** What is summed per slot, in this order. */
export const [CALLS, BYTES, TIME, FAILURES, ROWS] = [0, 1, 2, 3, 4];
export const FIELDS = 5;

/** How the functions of a run count. */
export interface Counting {
  movesData: boolean[];
  mayCount: boolean[];
}

export function countingOf({ head }: LoadedRun): Counting {
  return { movesData: head.functions.map(({ shape }) => shape === "data"), mayCount: head.functions.map(({ layer }) => layer === "stdio") };
}

/** How many calls a row of a trace stands for, and what it moved: a call inside one that moves data moves none of its own. */
export function amountsOf(run: LoadedRun, { movesData, mayCount }: Counting, at: number): { calls: number; bytes: number } {
  const { functionOf } = run.data;
  const { parent, result, argument } = run.details!;
  const own = functionOf[at];
  const moves = movesData[own] && result[at] > 0 && !isInsideData(parent, movesData, functionOf, parent[at]);
  const calls = mayCount[own] ? countedCalls(run.head.functions[own], argument[at]) || standsFor(run, at) : standsFor(run, at);
  return { calls, bytes: moves ? result[at] : 0 };
}

function isInsideData(parents: Int32Array, movesData: boolean[], functionOf: Uint8Array, parent: number): boolean {
  for (let at = parent, hops = 0; at >= 0 && hops < 64; at = parents[at], hops++) {
    if (movesData[functionOf[at]]) return true;
  }
  return false;
}

/** Under what the calls of a slot are counted. */
export interface Slot {
  /** Function and class, `function * classes + class`. */
  kind: number;
  /** −1 for none. */
  file: number;
  /** Of what is taken from: the row it is in. */
  row: number;
}

/** Numbers for combinations of row, kind and file, in order of appearance. */
class Slots {
  readonly list: Slot[] = [];
  #numbers = new Map<number, number>();
  #files: number;
  #kinds: number;
  #last = -1;
  #lastKey = -1;

  constructor(files: number, kinds: number) {
    this.#files = files + 1;
    this.#kinds = kinds;
  }

  numberOf(row: number, kind: number, file: number): number {
    const key = (row * this.#kinds + kind) * this.#files + file + 1;
    if (key === this.#lastKey) return this.#last;
    let number = this.#numbers.get(key);
    if (number === undefined) {
      number = this.list.push({ row, kind, file }) - 1;
      this.#numbers.set(key, number);
    }
    [this.#lastKey, this.#last] = [key, number];
    return number;
  }
}

/** Sums that grow with the number of slots. */
function grown(sums: Float64Array, length: number): Float64Array {
  if (length <= sums.length) return sums;
  const more = new Float64Array(Math.max(length, sums.length * 2));
  more.set(sums);
  return more;
}

interface Note {
  /** Position in the row: of the calls before it. */
  place: number;
  sums: Float64Array;
  taken: Float64Array;
  parts: Float64Array;
}

/** The notes of one row. */
export class RowSums {
  readonly slots: Slot[];
  /** What is taken from calls around: by whom, row, kind and file. */
  readonly takers: Slot[];
  #notes: Note[];

  constructor(slots: Slot[], takers: Slot[], notes: Note[]) {
    [this.slots, this.takers, this.#notes] = [slots, takers, notes];
  }

  /** The longest stretch between two notes within `from` to `to`; `undefined` when there is none. */
  within(from: number, to: number): { first: Note; last: Note } | undefined {
    const first = this.#notes[this.#after(from)];
    const last = this.#notes[this.#after(to + 1) - 1];
    return first && last && first.place < last.place ? { first, last } : undefined;
  }

  /** The last note at or before a place. */
  before(place: number): Note {
    return this.#notes[this.#after(place + 1) - 1];
  }

  /** Index of the first note at `place` or behind it. */
  #after(place: number): number {
    let [low, high] = [0, this.#notes.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#notes[middle].place >= place) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

export interface Prefixes {
  /** By row; `undefined`: to be read call by call. */
  rows: (RowSums | undefined)[];
  /** The slot of each call among those of its row. */
  slotOf: Uint16Array;
}

/** Makes the sums of a run, whose details are unpacked, in steps of a few milliseconds. */
export function* prefixes(run: LoadedRun, spacing = SPACING): Generator<undefined, Prefixes> {
  const slotOf = new Uint16Array(run.head.count);
  const counting = countingOf(run);
  const rows: (RowSums | undefined)[] = [];
  for (let row = 0; row < run.tracks.length; row++) rows.push(yield* rowSums(run, counting, row, slotOf, spacing));
  return { rows, slotOf };
}

function* rowSums(run: LoadedRun, counting: Counting, row: number, slotOf: Uint16Array, spacing: number): Generator<undefined, RowSums | undefined> {
  const { head, data, files, kindOf, tracks } = run;
  const { start, end, functionOf } = data;
  const { parent: parents, result } = run.details!;
  const kinds = head.functions.length * CLASSES.length;
  const [slots, takers] = [new Slots(head.files.length, kinds), new Slots(head.files.length, kinds)];
  const { first, count } = tracks[row];
  const width = run.parts ? head.parts.length : 0;
  const parts = new Float64Array(width);
  let sums: Float64Array = new Float64Array(FIELDS);
  let taken: Float64Array = new Float64Array(0);
  const notes: Note[] = [{ place: 0, sums: sums.slice(), taken, parts: parts.slice() }];
  let before = -Infinity;
  let noted = 0;
  let [around, aroundFirst, aroundEnd] = [0, 0, 0];
  for (let place = 0; place < count; place++) {
    if (place % STEP === STEP - 1) yield;
    const at = first + place;
    if (place - noted >= spacing && place - noted >= slots.list.length * CALLS_PER_SLOT) {
      notes.push({ place, sums: sums.slice(0, slots.list.length * FIELDS), taken: taken.slice(0, takers.list.length), parts: parts.slice() });
      noted = place;
    }
    const time = end[at] - start[at];
    if (start[at] < before) return undefined;
    before = end[at];
    const slot = slots.numberOf(0, functionOf[at] * CLASSES.length + kindOf[at], files![at]);
    if (slot > SLOTS_MAX) return undefined;
    slotOf[at] = slot;
    sums = grown(sums, (slot + 1) * FIELDS);
    const { calls, bytes } = amountsOf(run, counting, at);
    const base = slot * FIELDS;
    sums[base + CALLS] += calls;
    sums[base + BYTES] += bytes;
    sums[base + TIME] += time;
    sums[base + FAILURES] += result[at] < 0 ? 1 : 0;
    sums[base + ROWS]++;
    if (width) run.parts!.of(at)?.forEach((ns, part) => (parts[part] += ns));
    const parent = parents[at];
    if (parent < 0) continue;
    if (start[parent] > start[at] || end[parent] < end[at]) return undefined;
    if (parent < aroundFirst || parent >= aroundEnd) {
      around = rowOfCall(run, parent);
      [aroundFirst, aroundEnd] = [tracks[around].first, tracks[around].first + tracks[around].count];
    }
    const taker = takers.numberOf(around, functionOf[parent] * CLASSES.length + kindOf[parent], files![parent]);
    taken = grown(taken, taker + 1);
    taken[taker] += time;
  }
  notes.push({ place: count, sums: sums.slice(0, slots.list.length * FIELDS), taken: taken.slice(0, takers.list.length), parts: parts.slice() });
  return new RowSums(slots.list, takers.list, notes);
}
