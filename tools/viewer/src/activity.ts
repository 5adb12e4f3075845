// What goes on over time: how fast data is moved, how much is under way. The bytes of a call are spread evenly over
// its duration, so that what a curve covers is what was moved. As the calls of a row do not overlap, a row touches
// each column about once, however long its calls are.

import type { LoadedRun } from "./loaded.ts";
import { CLASSES } from "./palette.ts";
import type { Span } from "./paint.ts";
import { isConcurrent } from "./place.ts";
import { amountsOf, countingOf } from "./prefix.ts";
import { SHADE_DIM } from "./track.ts";
import { visit } from "./visit.ts";

export interface SeriesStyle {
  name: string;
  title: string;
  /** Of the class of calls whose colour it has. */
  shade: number;
  isRate: boolean;
}

const shadeNamed = (name: string) => CLASSES.findIndex((style) => style.name === name);

/** What is drawn, from top to bottom. Rates are bytes per second, the others how many on average. */
export const SERIES: SeriesStyle[] = [
  { name: "read", title: "Bytes that programs read per second, once: not again inside a call that reads them", shade: shadeNamed("read"), isRate: true },
  { name: "written", title: "Bytes that programs write per second, once", shade: shadeNamed("write"), isRate: true },
  { name: "calls under way", title: "Calls of programs, those that compute and those inside others aside", shade: shadeNamed("process"), isRate: false },
  { name: "requests at servers", title: "Requests that servers have and have not answered", shade: shadeNamed("serve-write"), isRate: false },
  { name: "device accesses", title: "Accesses that devices work at", shade: shadeNamed("device"), isRate: false },
  { name: "messages sent", title: "Messages on their way out of a node", shade: shadeNamed("sent"), isRate: false },
];
const [READ, WRITTEN, CALLS, REQUESTS, DEVICES, SENT] = SERIES.keys();

/** Cells of a whole run; a view of fewer of them than it has columns is read from the calls. */
export const CELLS = 1 << 14;

/** Amounts by series and stretch of time, all stretches of one length. */
export class Cells implements Span {
  readonly start: number;
  readonly end: number;
  readonly count: number;
  readonly amounts: Float64Array[];

  constructor({ start, end }: Span, count: number) {
    [this.start, this.end, this.count] = [start, end, count];
    this.amounts = SERIES.map(() => new Float64Array(count));
  }

  /** Nanoseconds of each. */
  get width(): number {
    return (this.end - this.start) / this.count;
  }

  /** Spreads an amount evenly over a stretch of time; what is outside is left out. */
  add(series: number, from: number, to: number, amount: number): void {
    const cells = this.amounts[series];
    const scale = this.count / (this.end - this.start);
    const [left, right] = [(from - this.start) * scale, (to - this.start) * scale];
    const first = Math.max(0, Math.floor(left));
    const last = Math.min(this.count - 1, Math.floor(right));
    if (first > last) return;
    if (first === last && left >= first && right <= first + 1) {
      cells[first] += amount;
      return;
    }
    const each = amount / (right - left);
    for (let cell = first; cell <= last; cell++) cells[cell] += each * (Math.min(right, cell + 1) - Math.max(left, cell));
  }

  /** The same over another stretch of time. */
  resampled(view: Span, count: number): Cells {
    const found = new Cells(view, count);
    const { width } = this;
    const first = Math.max(0, Math.floor((view.start - this.start) / width));
    const beyond = Math.min(this.count, Math.ceil((view.end - this.start) / width));
    this.amounts.forEach((amounts, series) => {
      for (let cell = first; cell < beyond; cell++) {
        if (amounts[cell]) found.add(series, this.start + cell * width, this.start + (cell + 1) * width, amounts[cell]);
      }
    });
    return found;
  }

  /** Of each stretch bytes per second, or how many on average. */
  values(series: number): Float64Array {
    const unit = SERIES[series].isRate ? 1e9 / this.width : 1 / this.width;
    return this.amounts[series].map((amount) => amount * unit);
  }
}

/** Under what the time of calls in rows of parts of a cluster counts. */
const OF_PARTS: Record<string, number | undefined> = { server: REQUESTS, device: DEVICES, "nic-out": SENT };

/**
 * What goes on within a view of a run whose details are unpacked, read call by call in steps of a few milliseconds.
 * What is hidden or does not match a search is left out.
 */
export function* activity(run: LoadedRun, view: Span, count: number): Generator<undefined, Cells> {
  const cells = new Cells(view, count);
  const counting = countingOf(run);
  const reads = CLASSES.map(({ name }) => name === "read" || name === "copy");
  const writes = CLASSES.map(({ name }) => name === "write" || name === "copy");
  const computes = CLASSES.map(({ name }) => name === "compute");
  const { kindOf, shade } = run;
  const { start, end } = run.data;
  const { parent } = run.details!;
  const kindAt = (row: number) => run.places[run.head.rows[row].process].kind;
  const isDrawn = (row: number) => !isConcurrent(kindAt(row)) || OF_PARTS[kindAt(row)] !== undefined;
  const reading = visit(run, { start: view.start, end: view.end, tracks: undefined }, (at, row) => {
    if (shade[at] >= SHADE_DIM) return;
    const [from, to] = [start[at], end[at]];
    const ofPart = OF_PARTS[kindAt(row)];
    if (ofPart !== undefined) return cells.add(ofPart, from, to, to - from);
    const own = kindOf[at];
    if (!computes[own] && parent[at] < 0) cells.add(CALLS, from, to, to - from);
    if (!reads[own] && !writes[own]) return;
    const { bytes } = amountsOf(run, counting, at);
    if (bytes && reads[own]) cells.add(READ, from, to, bytes);
    if (bytes && writes[own]) cells.add(WRITTEN, from, to, bytes);
  }, isDrawn);
  yield* reading;
  return cells;
}
