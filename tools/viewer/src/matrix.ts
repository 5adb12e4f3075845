// Who did how much where: processes by files, or by servers where a trace tells which request is whose.

import type { Causes, Head } from "./format.ts";
import { rowOfCall, type LoadedRun } from "./loaded.ts";
import { byRank, isConcurrent } from "./place.ts";
import { amountsOf, countingOf } from "./prefix.ts";
import type { Range } from "./range.ts";
import { visit } from "./visit.ts";

/** Nanoseconds: of a file what calls spent at it and not in calls inside them, of a server what requests took. */
export const MEASURES = ["bytes", "calls", "time"] as const;
export type Measure = (typeof MEASURES)[number];

export interface Matrix {
  /** Those that have anything: ranks in their order, then others, of most bytes first. */
  processes: string[];
  /** The files, or servers, of most bytes first, then of most calls. */
  columns: string[];
  /** By process, then column. */
  cells: Record<Measure, Float64Array>;
}

/** What stands in place of a file. */
export const NO_FILE = "no file";
/** A request is made within so many hops from a call. */
const HOPS_MAX = 16;

/** Sums by process and column, as they appear. */
class Sums {
  #cells = new Map<number, Record<Measure, number>>();
  #columns: number;

  constructor(columns: number) {
    this.#columns = columns;
  }

  add(process: number, column: number, bytes: number, calls: number, time: number): void {
    const key = process * this.#columns + column;
    const cell = this.#cells.get(key);
    if (cell) {
      cell.bytes += bytes;
      cell.calls += calls;
      cell.time += time;
    } else this.#cells.set(key, { bytes, calls, time });
  }

  /** Numbers of rows or columns, of most bytes first, then of most calls. */
  #ordered(numberOf: (key: number) => number): number[] {
    const totals = new Map<number, { bytes: number; calls: number }>();
    for (const [key, { bytes, calls }] of this.#cells) {
      const total = totals.get(numberOf(key)) ?? { bytes: 0, calls: 0 };
      totals.set(numberOf(key), { bytes: total.bytes + bytes, calls: total.calls + calls });
    }
    return [...totals].sort(([a, one], [b, other]) => other.bytes - one.bytes || other.calls - one.calls || a - b).map(([number]) => number);
  }

  matrix({ processes: entries }: Head, columnNames: string[]): Matrix {
    const columns = this.#ordered((key) => key % this.#columns);
    // Sorting keeps the order of equals.
    const processes = this.#ordered((key) => Math.floor(key / this.#columns)).sort((a, b) => byRank(entries[a], entries[b]));
    const empty = () => new Float64Array(processes.length * columns.length);
    const cells = { bytes: empty(), calls: empty(), time: empty() };
    const [rowOf, placeOf] = [processes, columns].map((list) => new Map(list.map((value, at) => [value, at])));
    for (const [key, cell] of this.#cells) {
      const at = rowOf.get(Math.floor(key / this.#columns))! * columns.length + placeOf.get(key % this.#columns)!;
      for (const measure of MEASURES) cells[measure][at] = cell[measure];
    }
    return { processes: processes.map((at) => entries[at].name), columns: columns.map((at) => columnNames[at]), cells };
  }
}

/** What processes did at files within a range. */
export function* byFile(run: LoadedRun, range: Range): Generator<undefined, Matrix> {
  const { head, files, data, details } = run;
  const { start, end } = data;
  const counting = countingOf(run);
  const sums = new Sums(head.files.length + 1);
  const columnOf = (at: number) => (files![at] < 0 ? head.files.length : files![at]);
  const isProgram = (row: number) => !isConcurrent(run.places[head.rows[row].process].kind);
  const isChosen = (row: number) => !range.tracks || range.tracks.has(run.tracks[row]);
  const reading = visit(run, range, (at, row) => {
    const { process } = head.rows[row];
    const cut = Math.min(end[at], range.end) - Math.max(start[at], range.start);
    const { calls, bytes } = amountsOf(run, counting, at);
    sums.add(process, columnOf(at), bytes, calls, cut);
    const parent = details!.parent[at];
    const isInside = parent >= 0 && isChosen(rowOfCall(run, parent)) && end[parent] > range.start && start[parent] < range.end;
    if (isInside) sums.add(process, columnOf(parent), 0, 0, -cut);
  }, isProgram);
  yield* reading;
  return sums.matrix(head, [...head.files, NO_FILE]);
}

/** What servers did for processes within a range: requests whose row is chosen, or that of the call they were made by. */
export function* byServer(run: LoadedRun, causes: Causes, range: Range): Generator<undefined, Matrix> {
  const { head, tracks, data, details, places } = run;
  const { start, end } = data;
  const nodes = [...new Set(places.flatMap(({ kind, node }) => (kind === "server" ? [node] : [])))];
  const sums = new Sums(nodes.length);
  const isChosen = (row: number) => !range.tracks || range.tracks.has(tracks[row]);
  const placeOf = (row: number) => places[head.rows[row].process];
  const reading = visit(run, { ...range, tracks: undefined }, (at, row) => {
    const caller = callerOf(run, causes, at);
    if (caller === undefined || !(isChosen(row) || isChosen(caller))) return;
    const cut = Math.min(end[at], range.end) - Math.max(start[at], range.start);
    sums.add(head.rows[caller].process, nodes.indexOf(placeOf(row).node), Math.max(0, details!.result[at]), 1, cut);
  }, (row) => placeOf(row).kind === "server");
  yield* reading;
  return sums.matrix(head, nodes);
}

/** The row of the program's call that a request goes back to. */
function callerOf(run: LoadedRun, { begunBy }: Causes, request: number): number | undefined {
  let at: number | undefined = request;
  for (let hops = 0; at !== undefined && hops < HOPS_MAX; hops++) {
    const row = rowOfCall(run, at);
    if (!isConcurrent(run.places[run.head.rows[row].process].kind)) return row;
    at = begunBy.of(at)[0];
  }
  return undefined;
}

/** Whether a trace tells which requests are whose. */
export function knowsCallers(run: LoadedRun, causes: Causes): boolean {
  return causes.begunBy.count > 0 && run.places.some(({ kind }) => kind === "server");
}
