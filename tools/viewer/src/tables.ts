// The statistics of a range as a table: by class, function, file or process, sorted by any column.

import { lines } from "./csv.ts";
import { element } from "./element.ts";
import type { Statistics, Sum } from "./statistics.ts";
import { count, duration, share, size } from "./words.ts";

export type Grouped = "classes" | "functions" | "files" | "processes";

interface Column {
  name: string;
  title: string;
  value: (sum: Sum) => number;
  text: (sum: Sum, total: Sum, span: number, isComing: boolean) => string;
}

const COLUMNS: Column[] = [
  { name: "calls", title: "Calls that overlap the range", value: ({ calls }) => calls, text: ({ calls }) => count(calls) },
  { name: "bytes", title: "Bytes moved, once: not again inside a call that moved them", value: ({ bytes }) => bytes, text: ({ bytes }) => (bytes ? size(bytes) : "") },
  {
    name: "rate", title: "Bytes over the length of the range", value: ({ bytes }) => bytes,
    text: ({ bytes }, _, span) => (bytes ? `${size(Math.round(bytes / (span / 1e9)))}/s` : ""),
  },
  { name: "time", title: "Whole durations, added up", value: ({ time }) => time, text: ({ time }) => duration(time) },
  { name: "in range", title: "Durations cut to the range", value: ({ cut }) => cut, text: ({ cut }) => duration(cut) },
  { name: "own", title: "Of that, not in calls made inside", value: ({ own }) => own, text: ({ own }) => duration(own) },
  { name: "share", title: "Own time, of all in this table", value: ({ own }) => own, text: ({ own }, total) => (total.own ? share(own / total.own) : "") },
  ...(["p50", "p99", "max"] as const).map((name) => ({
    name,
    title: name === "max" ? "Longest call" : `${name.slice(1)} % of the calls take at most so long`,
    value: (sum: Sum) => sum[name] ?? 0,
    text: (sum: Sum, _: Sum, __: number, isComing: boolean) => (sum[name] !== undefined ? duration(sum[name]!) : isComing ? "…" : "–"),
  })),
  { name: "failed", title: "Calls that failed", value: ({ failures }) => failures, text: ({ failures }) => (failures ? count(failures) : "") },
];

const ROWS_MAX = 200;

export class Tables {
  readonly element = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Statistics of the range" });
  grouped: Grouped = "classes";
  #sort: Column = COLUMNS[5];
  #isAscending = false;
  #isComing = true;
  /** Called with what a row is about. */
  chosen: (grouped: Grouped, name: string) => void = () => {};

  /** `isComing`: whether what is not there yet will be. */
  draw(statistics: Statistics, span: number, isComing = true): void {
    this.#isComing = isComing;
    const sums = statistics[this.grouped].slice();
    const direction = this.#isAscending ? 1 : -1;
    sums.sort((a, b) => (this.#sort.value(a) - this.#sort.value(b)) * direction);
    const head = element("tr", {}, element("th", { scope: "col" }, NAMES[this.grouped]));
    for (const column of COLUMNS) {
      const isSorted = column === this.#sort;
      const sorted = isSorted ? (this.#isAscending ? "ascending" : "descending") : "none";
      const label = element("button", { type: "button", title: column.title }, column.name);
      label.addEventListener("click", () => {
        this.#isAscending = isSorted && !this.#isAscending;
        this.#sort = column;
        this.draw(statistics, span, this.#isComing);
      });
      head.append(element("th", { scope: "col", class: "number", "aria-sort": sorted }, label));
    }
    const body = element("tbody", {});
    for (const sum of sums.slice(0, ROWS_MAX)) body.append(this.#row(sum, statistics.total, span));
    const foot = element("tfoot", {}, this.#cells(element("tr", {}, element("td", {}, "all")), statistics.total, statistics.total, span));
    const left = sums.length - ROWS_MAX;
    const caption = left > 0 ? [element("caption", {}, `${count(left)} more are left out: sort by another column or choose a smaller range`)] : [];
    this.element.replaceChildren(element("table", {}, ...caption, element("thead", {}, head), body, foot));
  }

  #row(sum: Sum, total: Sum, span: number): HTMLTableRowElement {
    const name = element("button", { type: "button", class: "link", title: "Find these calls" }, sum.name || "no file");
    name.disabled = this.grouped === "files" && !sum.name;
    name.addEventListener("click", () => this.chosen(this.grouped, sum.name));
    return this.#cells(element("tr", {}, element("td", {}, name)), sum, total, span);
  }

  #cells(row: HTMLTableRowElement, sum: Sum, total: Sum, span: number): HTMLTableRowElement {
    for (const column of COLUMNS) row.append(element("td", { class: "number" }, column.text(sum, total, span, this.#isComing)));
    return row;
  }
}

export const NAMES: Record<Grouped, string> = { classes: "class", functions: "function", files: "file", processes: "process" };

/** The tables as comma-separated values, times in nanoseconds. */
export function csv(statistics: Statistics, parts: string[]): string {
  const rows: (string | number)[][] = [["by", "name", "calls", "bytes", "time_ns", "in_range_ns", "own_ns", "p50_ns", "p99_ns", "max_ns", "failed"]];
  for (const grouped of Object.keys(NAMES) as Grouped[]) {
    for (const { name, calls, bytes, time, cut, own, p50, p99, max, failures } of statistics[grouped]) {
      rows.push([NAMES[grouped], name, calls, bytes, time, cut, own, p50 ?? "", p99 ?? "", max ?? "", failures]);
    }
  }
  statistics.parts.forEach((ns, part) => rows.push(["part", parts[part], "", "", ns, "", "", "", "", "", ""]));
  return lines(rows);
}
