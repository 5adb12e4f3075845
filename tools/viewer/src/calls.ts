// The calls of a range one by one: the longest as a table, all as comma-separated values.

import { lines } from "./csv.ts";
import { resultText } from "./details.ts";
import { element } from "./element.ts";
import { rowOfCall, standsFor, type Call, type LoadedRun } from "./loaded.ts";
import type { Range } from "./range.ts";
import { SHADE_DIM } from "./track.ts";
import { visit } from "./visit.ts";
import { count, duration, moment, size } from "./words.ts";

export const LONGEST_MAX = 100;
/** So many rows a spreadsheet takes. */
const ROWS_MAX = 1_000_000;

/** Hands the calls of a range that are not hidden and match the search to `act`. */
function shownIn(run: LoadedRun, range: Range, act: (at: number, row: number) => void): Generator<undefined, void> {
  return visit(run, range, (at, row) => run.shade[at] < SHADE_DIM && act(at, row));
}

/** The longest calls of a range that are not hidden and match the search, longest first. */
export function* longest(runs: { run: LoadedRun; index: number }[], range: Range): Generator<undefined, Call[]> {
  let kept: { call: Call; time: number }[] = [];
  const order = () => {
    kept.sort((a, b) => b.time - a.time || a.call.run - b.call.run || a.call.index - b.call.index);
    kept = kept.slice(0, LONGEST_MAX);
  };
  let least = -1;
  for (const { run, index: runIndex } of runs) {
    const { start, end } = run.data;
    const gathered = run.details?.calls;
    yield* shownIn(run, range, (at) => {
      const time = end[at] - start[at];
      if (time <= least || gathered?.[at]) return;
      kept.push({ call: { run: runIndex, index: at }, time });
      if (kept.length < LONGEST_MAX * 8) return;
      order();
      least = kept[LONGEST_MAX - 1].time;
    });
  }
  order();
  return kept.map(({ call }) => call);
}

/** What is told of a call in a line. */
function factsOf(run: LoadedRun, at: number, row: number) {
  const { head, data, details, files } = run;
  const file = files![at];
  const known = (value: number) => (value < 0 ? undefined : value);
  return {
    process: head.processes[head.rows[row].process].name,
    entry: head.functions[data.functionOf[at]],
    file: file < 0 ? "" : head.files[file],
    offset: known(details!.offset[at]),
    length: known(details!.length[at]),
    result: details!.result[at],
    start: data.start[at],
    end: data.end[at],
    row: details!.row[at],
    calls: standsFor(run, at),
  };
}

/** A table of calls; `chosen` is told which one was clicked. */
export function callTable(runs: LoadedRun[], calls: Call[], chosen: (call: Call) => void): HTMLElement {
  if (!calls.length) return element("p", { class: "quiet" }, "No call in the range matches.");
  const several = new Set(calls.map(({ run }) => run)).size > 1;
  const names = [...(several ? ["run"] : []), "call", "process", "file"];
  const numbers = ["duration", "start", "offset", "length", "result"];
  const head = element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)), ...numbers.map((name) => element("th", { scope: "col", class: "number" }, name)));
  const body = element("tbody", {});
  for (const call of calls) {
    const run = runs[call.run];
    const { process, entry, file, offset, length, result, start, end } = factsOf(run, call.index, rowOfCall(run, call.index));
    const link = element("button", { type: "button", class: "link", title: "Select this call" }, entry.name);
    link.addEventListener("click", () => chosen(call));
    const texts = [duration(end - start), moment(start), offset === undefined ? "" : count(offset), length === undefined ? "" : size(length), resultText(entry.kind, result)];
    body.append(
      element("tr", {}, ...(several ? [element("td", {}, run.head.label)] : []), element("td", {}, link), element("td", {}, process), element("td", {}, file), ...texts.map((text) => element("td", { class: "number" }, text))),
    );
  }
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Longest calls" }, element("table", {}, element("thead", {}, head), body));
}

/** The calls of a range that are shown as comma-separated values, row by row of the timeline; times in nanoseconds. */
export function callsCsv(run: LoadedRun, range: Range): string {
  const rows: (string | number)[][] = [["row", "process", "layer", "function", "file", "start_ns", "end_ns", "offset", "length", "result", "calls"]];
  const reading = shownIn(run, range, (at, ofRow) => {
    if (rows.length > ROWS_MAX) return;
    const { process, entry, file, offset, length, result, start, end, row, calls } = factsOf(run, at, ofRow);
    rows.push([row, process, entry.layer, entry.name, file, start, end, offset ?? "", length ?? "", result, calls]);
  });
  while (!reading.next().done);
  return lines(rows);
}
