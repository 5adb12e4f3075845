// What the calls of a range come to, per class, function, file and process. The one thing the viewer
// computes: only it knows the range. `iolab_report::page::range` says the same of the same range, to the
// last digit, and golden files hold the two together.
//
// A call belongs to a range when it overlaps it. Its whole duration counts as `time`, the part inside the
// range as `cut`; of that, what is not spent in calls made inside it (as far as their rows are chosen) is
// its `own`. Bytes are those that moved, once: a call inside one that moves data moves none of its own.

// Of a run whose sums are made (`prefix.ts`) only the calls at the edges of the range are read, and quantiles
// are looked up (`wavelet.ts`); until then, and in rows that have none, every call is.

import type { LoadedRun } from "./loaded.ts";
import { rowOfCall } from "./loaded.ts";
import { CLASSES, PIECE } from "./palette.ts";
import { amountsOf, BYTES, CALLS, countingOf, FAILURES, FIELDS, ROWS, TIME, type RowSums } from "./prefix.ts";
import type { Quantiles as OfWhole } from "./quantiles.ts";
import type { Range } from "./range.ts";

export interface Sum {
  name: string;
  calls: number;
  bytes: number;
  time: number;
  cut: number;
  own: number;
  failures: number;
  /** Of the durations, when they were asked for. */
  p50?: number;
  p99?: number;
  max?: number;
}

export interface Statistics {
  total: Sum;
  classes: Sum[];
  functions: Sum[];
  files: Sum[];
  processes: Sum[];
  /** Where the whole durations of ranks' calls went, in the order of the head's names; empty where nobody knows. */
  parts: number[];
}

/** Sums by slot. */
class Sums {
  readonly calls: Float64Array;
  readonly bytes: Float64Array;
  readonly time: Float64Array;
  readonly cut: Float64Array;
  readonly own: Float64Array;
  readonly failures: Float64Array;
  readonly rows: Float64Array;

  constructor(count: number) {
    const zeros = () => new Float64Array(count);
    [this.calls, this.bytes, this.time, this.rows] = [zeros(), zeros(), zeros(), zeros()];
    [this.cut, this.own, this.failures] = [zeros(), zeros(), zeros()];
  }

  add(slot: number, calls: number, bytes: number, time: number, cut: number, failed: number, rows = 1): void {
    this.calls[slot] += calls;
    this.bytes[slot] += bytes;
    this.time[slot] += time;
    this.cut[slot] += cut;
    this.own[slot] += cut;
    this.failures[slot] += failed;
    this.rows[slot] += rows;
  }

  /** These sums by coarser slots. */
  joined(count: number, slotOf: (slot: number) => number): Sums {
    const joined = new Sums(count);
    for (const name of ["calls", "bytes", "time", "cut", "own", "failures", "rows"] as const) {
      this[name].forEach((value, slot) => value && (joined[name][slotOf(slot)] += value));
    }
    return joined;
  }

  /** Those that have calls, most of their own time first, then by number of calls and name. */
  list(names: string[], durations: Durations | Looked | undefined, slotOf: (place: number) => number): Sum[] {
    const quantiles = durations?.quantiles(this.rows, slotOf);
    const found: Sum[] = [];
    names.forEach((name, slot) => {
      if (!this.rows[slot]) return;
      found.push({
        name,
        calls: this.calls[slot],
        bytes: this.bytes[slot],
        time: this.time[slot],
        cut: this.cut[slot],
        own: this.own[slot],
        failures: this.failures[slot],
        ...quantiles?.[slot],
      });
    });
    return found.sort((a, b) => b.own - a.own || b.calls - a.calls || (a.name < b.name ? -1 : 1));
  }
}

interface Quantiles {
  p50: number;
  p99: number;
  max: number;
}

/** The durations of all calls, with what they were counted under. */
class Durations {
  readonly time: Float64Array;
  readonly kind: Uint32Array;
  readonly file: Uint32Array;
  readonly process: Uint32Array;
  #count = 0;

  constructor(most: number) {
    this.time = new Float64Array(most);
    [this.kind, this.file, this.process] = [new Uint32Array(most), new Uint32Array(most), new Uint32Array(most)];
  }

  add(time: number, kind: number, file: number, process: number): void {
    const at = this.#count++;
    this.time[at] = time;
    this.kind[at] = kind;
    this.file[at] = file;
    this.process[at] = process;
  }

  /** By nearest rank: the smallest duration that so large a share does not exceed. */
  quantiles(rows: Float64Array, slotOf: (place: number) => number): (Quantiles | undefined)[] {
    const parts = Array.from(rows, (count) => new Float64Array(count));
    const filled = new Uint32Array(rows.length);
    for (let at = 0; at < this.#count; at++) {
      const slot = slotOf(at);
      parts[slot][filled[slot]++] = this.time[at];
    }
    return parts.map((part) => {
      const { length } = part.sort();
      if (!length) return undefined;
      return { p50: part[Math.ceil(length / 2) - 1], p99: part[Math.ceil((length * 99) / 100) - 1], max: part[length - 1] };
    });
  }
}

/** The durations of calls that are looked up: by row and slot the stretch of them in the matrix. */
class Looked {
  readonly kind: number[] = [];
  readonly file: number[] = [];
  readonly process: number[] = [];
  readonly from: number[] = [];
  readonly to: number[] = [];
  #whole: OfWhole;

  constructor(whole: OfWhole) {
    this.#whole = whole;
  }

  add(row: number, from: number, to: number, slots: RowSums["slots"], process: number): void {
    this.#whole.stretches(row, from, to, (slot, first, last) => {
      if (isPiece(slots[slot].kind)) return;
      this.kind.push(slots[slot].kind);
      this.file.push(slots[slot].file + 1);
      this.process.push(process);
      this.from.push(first);
      this.to.push(last);
    });
  }

  /** How much is to be looked up. */
  get count(): number {
    return this.from.length;
  }

  quantiles(rows: Float64Array, slotOf: (place: number) => number): (Quantiles | undefined)[] {
    const parts = Array.from(rows, () => ({ from: [] as number[], to: [] as number[] }));
    for (let place = 0; place < this.count; place++) {
      const part = parts[slotOf(place)];
      part.from.push(this.from[place]);
      part.to.push(this.to[place]);
    }
    return parts.map(({ from, to }, slot) => {
      const length = rows[slot];
      if (!length) return undefined;
      const nearest = (rank: number) => this.#whole.matrix.smallest({ from: from.slice(), to: to.slice() }, rank - 1);
      return { p50: nearest(Math.ceil(length / 2)), p99: nearest(Math.ceil((length * 99) / 100)), max: nearest(length) };
    });
  }
}

/** Whether what is counted under a function and class is no call. */
const isPiece = (kind: number) => kind % CLASSES.length === PIECE;

/** So many calls read take about as long as looking up one stretch. */
const CALLS_PER_STRETCH = 60;

export interface Chosen {
  row: number;
  /** Positions among all calls; `to` excluded. */
  from: number;
  to: number;
}

/** Rows that are chosen, with the calls of each that may belong to the range. */
export function callsIn(run: LoadedRun, range: Range): Chosen[] {
  return run.tracks.flatMap((track, row) => {
    if (range.tracks && !range.tracks.has(track)) return [];
    // A call without duration may stand at the beginning of the range; all times are whole.
    const from = track.firstEndingAfter(range.start - 1);
    const to = track.firstStartingFrom(range.end, from);
    return from < to ? [{ row, from: track.first + from, to: track.first + to }] : [];
  });
}

/** Whether a call that may belong to the range ends where it begins. */
export function isBefore({ data: { start, end } }: LoadedRun, range: Range, at: number): boolean {
  return end[at] <= range.start && (start[at] !== end[at] || start[at] < range.start);
}

/** The tables of a range while they are made. */
class Adding {
  readonly kinds: Sums;
  readonly byFile: Sums;
  readonly byProcess: Sums;
  readonly parts: number[];
  #run: LoadedRun;
  #range: Range;
  #counting: ReturnType<typeof countingOf>;
  #isChosen: Uint8Array;

  constructor(run: LoadedRun, range: Range, chosen: Chosen[]) {
    const { head } = run;
    [this.#run, this.#range, this.#counting] = [run, range, countingOf(run)];
    this.kinds = new Sums(head.functions.length * CLASSES.length);
    this.byFile = new Sums(head.files.length + 1);
    this.byProcess = new Sums(head.processes.length);
    this.parts = run.parts ? head.parts.map(() => 0) : [];
    this.#isChosen = new Uint8Array(run.tracks.length);
    for (const { row } of chosen) this.#isChosen[row] = 1;
  }

  /** Reads calls one by one; hands each that belongs to the range to `seen`. */
  read(row: number, from: number, to: number, seen?: (time: number, kind: number, file: number, process: number) => void): void {
    const { head, data, files, details, kindOf } = this.#run;
    const { start, end, functionOf } = data;
    const { process } = head.rows[row];
    const { start: rangeStart, end: rangeEnd } = this.#range;
    for (let at = from; at < to; at++) {
      if (isBefore(this.#run, this.#range, at) || kindOf[at] === PIECE) continue;
      const time = end[at] - start[at];
      const cut = Math.min(end[at], rangeEnd) - Math.max(start[at], rangeStart);
      const { calls, bytes } = amountsOf(this.#run, this.#counting, at);
      const failed = details!.result[at] < 0 ? 1 : 0;
      const [kind, file] = [functionOf[at] * CLASSES.length + kindOf[at], files![at] + 1];
      this.kinds.add(kind, calls, bytes, time, cut, failed);
      this.byFile.add(file, calls, bytes, time, cut, failed);
      this.byProcess.add(process, calls, bytes, time, cut, failed);
      this.#run.parts?.of(at)?.forEach((ns, part) => (this.parts[part] += ns));
      seen?.(time, kind, file, process);
      const parent = details!.parent[at];
      if (parent < 0 || !this.#isChosen[rowOfCall(this.#run, parent)] || end[parent] <= rangeStart || start[parent] >= rangeEnd) continue;
      this.#take(functionOf[parent] * CLASSES.length + kindOf[parent], files![parent] + 1, process, cut);
    }
  }

  #take(kind: number, file: number, process: number, cut: number): void {
    this.kinds.own[kind] -= cut;
    this.byFile.own[file] -= cut;
    this.byProcess.own[process] -= cut;
  }

  /** Adds the calls of a row by its sums: only those beside the first and the last note within are read. */
  look(sums: RowSums, { row, from, to }: Chosen): void {
    const { first: zero } = this.#run.tracks[row];
    // The first and the last call may stick out of the range; what is between lies in it.
    const whole = sums.within(from + 1 - zero, to - 1 - zero);
    if (!whole) return this.read(row, from, to);
    const { first, last } = whole;
    this.read(row, from, zero + first.place);
    this.read(row, zero + last.place, to);
    const { process } = this.#run.head.rows[row];
    sums.slots.forEach(({ kind, file }, slot) => {
      if (isPiece(kind)) return;
      const [calls, bytes, time, failures, rows] = [CALLS, BYTES, TIME, FAILURES, ROWS].map((field) => between(first.sums, last.sums, slot * FIELDS + field));
      if (!rows) return;
      this.kinds.add(kind, calls, bytes, time, time, failures, rows);
      this.byFile.add(file + 1, calls, bytes, time, time, failures, rows);
      this.byProcess.add(process, calls, bytes, time, time, failures, rows);
    });
    sums.takers.forEach(({ row: around, kind, file }, taker) => {
      if (this.#isChosen[around]) this.#take(kind, file + 1, process, between(first.taken, last.taken, taker));
    });
    this.parts.forEach((_, part) => (this.parts[part] += between(first.parts, last.parts, part)));
  }

  /** The first call of a row that belongs to the range. */
  firstOf({ from, to }: Chosen): number {
    let at = from;
    while (at < to && isBefore(this.#run, this.#range, at)) at++;
    return at;
  }
}

/** What was added between two notes; a slot that came later was nothing before. */
function between(first: Float64Array, last: Float64Array, at: number): number {
  return (last[at] ?? 0) - (first[at] ?? 0);
}

/** Whether durations of single calls are known. */
export function hasDurations({ head }: LoadedRun): boolean {
  return head.cell_ns === undefined;
}

/**
 * The statistics of a run within a range; quantiles take longer than the sums, and where calls are gathered there are none. They are looked up where that saves
 * reading at least `perStretch` calls for each stretch.
 */
export function statistics(run: LoadedRun, range: Range, wantsQuantiles: boolean, perStretch = CALLS_PER_STRETCH): Statistics {
  const { head, files, details, sums, quantiles } = run;
  const withQuantiles = wantsQuantiles && hasDurations(run);
  if (!files || !details) throw new Error("statistics need the details");
  const classCount = CLASSES.length;
  const chosen = callsIn(run, range);
  const adding = new Adding(run, range, chosen);
  const calls = chosen.reduce((sum, { from, to }) => sum + to - from, 0);
  const looked = withQuantiles && sums && quantiles ? new Looked(quantiles) : undefined;
  if (looked && chosen.every(({ row }) => sums!.rows[row])) {
    for (const part of chosen) looked.add(part.row, adding.firstOf(part), part.to, sums!.rows[part.row]!.slots, head.rows[part.row].process);
  }
  const isLooked = looked !== undefined && looked.count > 0 && looked.count * perStretch < calls;
  const read = withQuantiles && !isLooked ? new Durations(calls) : undefined;
  for (const part of chosen) {
    const rowSums = sums?.rows[part.row];
    if (read) adding.read(part.row, part.from, part.to, (...call) => read.add(...call));
    else if (rowSums) adding.look(rowSums, part);
    else adding.read(part.row, part.from, part.to);
  }
  const durations = isLooked ? looked : read;
  const { kinds, byFile, byProcess, parts } = adding;
  // A function's calls may be of several classes: accesses of a device by what was sought before.
  const byClass = kinds.joined(classCount, (slot) => slot % classCount);
  const byFunction = kinds.joined(head.functions.length, (slot) => Math.floor(slot / classCount));
  const total = byProcess.joined(1, () => 0);
  return {
    total: total.list(["all"], durations, () => 0)[0] ?? { name: "all", calls: 0, bytes: 0, time: 0, cut: 0, own: 0, failures: 0 },
    classes: byClass.list(CLASSES.map(({ name }) => name), durations, (at) => durations!.kind[at] % classCount),
    functions: byFunction.list(head.functions.map(({ name }) => name), durations, (at) => Math.floor(durations!.kind[at] / classCount)),
    files: byFile.list(["", ...head.files], durations, (at) => durations!.file[at]),
    processes: byProcess.list(head.processes.map(({ name }) => name), durations, (at) => durations!.process[at]),
    parts,
  };
}
