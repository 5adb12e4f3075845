// What the calls of a range come to, per class, function, file and process. The one thing the viewer
// computes: only it knows the range. `iolab_report::page::range` says the same of the same range, to the
// last digit, and golden files hold the two together.
//
// A call belongs to a range when it overlaps it. Its whole duration counts as `time`, the part inside the
// range as `cut`; of that, what is not spent in calls made inside it (as far as their rows are chosen) is
// its `own`. Bytes are those that moved, once: a call inside one that moves data moves none of its own.

import { countedCalls } from "./details.ts";
import type { LoadedRun } from "./loaded.ts";
import { rowOfCall } from "./loaded.ts";
import { CLASSES } from "./palette.ts";
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

  add(slot: number, calls: number, bytes: number, time: number, cut: number, failed: number): void {
    this.calls[slot] += calls;
    this.bytes[slot] += bytes;
    this.time[slot] += time;
    this.cut[slot] += cut;
    this.own[slot] += cut;
    this.failures[slot] += failed;
    this.rows[slot]++;
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
  list(names: string[], durations: Durations | undefined, slotOf: (place: number) => number): Sum[] {
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

/** Rows that are chosen, with the calls of each that may belong to the range. */
function callsIn(run: LoadedRun, range: Range): [row: number, from: number, to: number][] {
  return run.tracks.flatMap((track, row) => {
    if (range.tracks && !range.tracks.has(track)) return [];
    // A call without duration may stand at the beginning of the range; all times are whole.
    const from = track.firstEndingAfter(range.start - 1);
    const to = track.firstStartingFrom(range.end, from);
    return from < to ? [[row, track.first + from, track.first + to] as [number, number, number]] : [];
  });
}

/** The statistics of a run within a range; quantiles take several times as long as the sums. */
export function statistics(run: LoadedRun, range: Range, withQuantiles: boolean): Statistics {
  const { head, data, files, details, kindOf } = run;
  if (!files || !details) throw new Error("statistics need the details");
  const { start, end, functionOf } = data;
  const { parent: parents, result, argument } = details;
  const movesData = head.functions.map(({ shape }) => shape === "data");
  const mayCount = head.functions.map(({ layer }) => layer === "stdio");
  // A function's calls may be of several classes: accesses of a device by what was sought before.
  const classCount = CLASSES.length;
  const kinds = new Sums(head.functions.length * classCount);
  const byFile = new Sums(head.files.length + 1);
  const byProcess = new Sums(head.processes.length);
  const kindAt = (at: number) => functionOf[at] * classCount + kindOf[at];
  const parts: number[] = run.parts ? head.parts.map(() => 0) : [];
  const chosen = callsIn(run, range);
  const isChosen = new Uint8Array(run.tracks.length);
  for (const [row] of chosen) isChosen[row] = 1;
  const durations = withQuantiles ? new Durations(chosen.reduce((sum, [, from, to]) => sum + to - from, 0)) : undefined;
  for (const [row, from, to] of chosen) {
    const { process } = head.rows[row];
    for (let at = from; at < to; at++) {
      const [begin, finish] = [start[at], end[at]];
      if (finish <= range.start && (begin !== finish || begin < range.start)) continue;
      const time = finish - begin;
      const cut = Math.min(finish, range.end) - Math.max(begin, range.start);
      const parent = parents[at];
      const moves = movesData[functionOf[at]] && result[at] > 0 && !isInsideData(parents, movesData, functionOf, parent);
      const calls = mayCount[functionOf[at]] ? countedCalls(head.functions[functionOf[at]], argument[at]) || 1 : 1;
      const bytes = moves ? result[at] : 0;
      const failed = result[at] < 0 ? 1 : 0;
      kinds.add(kindAt(at), calls, bytes, time, cut, failed);
      byFile.add(files[at] + 1, calls, bytes, time, cut, failed);
      byProcess.add(process, calls, bytes, time, cut, failed);
      run.parts?.of(at)?.forEach((ns, part) => (parts[part] += ns));
      durations?.add(time, kindAt(at), files[at] + 1, process);
      if (parent < 0 || !isChosen[rowOfCall(run, parent)] || end[parent] <= range.start || start[parent] >= range.end) continue;
      kinds.own[kindAt(parent)] -= cut;
      byFile.own[files[parent] + 1] -= cut;
      byProcess.own[process] -= cut;
    }
  }
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

function isInsideData(parents: Int32Array, movesData: boolean[], functionOf: Uint8Array, parent: number): boolean {
  for (let at = parent, hops = 0; at >= 0 && hops < 64; at = parents[at], hops++) {
    if (movesData[functionOf[at]]) return true;
  }
  return false;
}
