// What the colours of calls mean: their class, or else the file, the process, the size, the duration beside what is
// usual, the result. Each gives every call a slot and every slot a name and a colour.

import { standsFor, type LoadedRun } from "./loaded.ts";
import { CLASSES, type ClassStyle } from "./palette.ts";
import { byRank, isConcurrent } from "./place.ts";

export type Colouring = "class" | "file" | "process" | "size" | "duration" | "result";

export const COLOURINGS: [Colouring, string][] = [
  ["class", "class"],
  ["file", "file"],
  ["process", "rank"],
  ["size", "size"],
  ["duration", "duration"],
  ["result", "result"],
];

export interface Colours {
  styles: ClassStyle[];
  /** The slot of each call of a run, by the run's place in the list. */
  slots: Uint8Array[];
}

/** Told apart by hue and lightness; by the order of use. */
const KINDS: [light: string, dark: string][] = [
  ["#2f7fd1", "#5aa5f0"], ["#e8892b", "#f39a3e"], ["#1f9d74", "#37c08f"], ["#c92f3c", "#f0605c"], ["#8a5cd1", "#a98bee"], ["#9a6236", "#c98b5a"], ["#c8408f", "#ec74b8"],
  ["#8d8f1f", "#bfc13f"], ["#1397ab", "#3fc6db"], ["#156a80", "#2a93ad"], ["#b5851c", "#d6b04a"], ["#4b3f99", "#8276d6"], ["#5f7d2c", "#9bc05a"], ["#7a1f3d", "#c25a7c"],
];
const NEUTRAL: [string, string] = ["#8795a1", "#74818d"];
const PALE: [string, string] = ["#b6c0ca", "#56636f"];
const BAD: [string, string] = ["#c92f3c", "#f0605c"];

/** From little to much, `share` between 0 and 1: from blue over violet to a warm red, always darker on white and lighter on black. */
function ramp(share: number): [string, string] {
  const mix = (stops: number[][]) => {
    const place = share * (stops.length - 1);
    const at = Math.min(stops.length - 2, Math.floor(place));
    const parts = stops[at].map((value, part) => Math.round(value + (stops[at + 1][part] - value) * (place - at)));
    return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
  };
  return [mix([[110, 178, 222], [72, 97, 178], [122, 47, 142], [160, 24, 62]]), mix([[40, 92, 140], [96, 116, 206], [196, 112, 204], [255, 150, 130]])];
}

const style = (name: string, [light, dark]: [string, string]): ClassStyle => ({ name, text: name, light, dark });

/** The colours of runs whose details are unpacked. */
export function coloursOf(colouring: Colouring, runs: LoadedRun[]): Colours {
  switch (colouring) {
    case "class":
      return { styles: CLASSES, slots: runs.map(({ kindOf }) => kindOf) };
    case "file":
      return byFile(runs);
    case "process":
      return byProcess(runs);
    case "size":
      return bySize(runs);
    case "duration":
      return byDuration(runs);
    case "result":
      return byResult(runs);
  }
}

/** The slot of each call, as `slotOf` tells. */
function slotsOf(run: LoadedRun, slotOf: (at: number) => number): Uint8Array {
  const slots = new Uint8Array(run.head.count);
  for (let at = 0; at < slots.length; at++) slots[at] = slotOf(at);
  return slots;
}

/** The files with most calls have colours of their own, the same in all runs. */
function byFile(runs: LoadedRun[]): Colours {
  const calls = new Map<string, number>();
  for (const run of runs) {
    const { head, files } = run;
    const counts = new Float64Array(head.files.length);
    files!.forEach((file, at) => file >= 0 && (counts[file] += standsFor(run, at)));
    head.files.forEach((path, file) => counts[file] && calls.set(path, (calls.get(path) ?? 0) + counts[file]));
  }
  const named = [...calls].sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1)).slice(0, KINDS.length).map(([path]) => path);
  const shorts = named.map((path) => path.slice(path.lastIndexOf("/") + 1) || path);
  const styles = named.map((path, at) => ({ ...style(path, KINDS[at]), text: shorts.indexOf(shorts[at]) === shorts.lastIndexOf(shorts[at]) ? shorts[at] : path }));
  const [other, none] = [named.length, named.length + 1];
  const slots = runs.map((run) => {
    const slotOfFile = run.head.files.map((path) => (named.includes(path) ? named.indexOf(path) : other));
    return slotsOf(run, (at) => (run.files![at] < 0 ? none : slotOfFile[run.files![at]]));
  });
  return { styles: [...styles, style("other files", NEUTRAL), style("no file", PALE)], slots };
}

const RAMP_STEPS = 12;

/** From the first rank to the last, or the first process; parts of a cluster are pale. */
function byProcess(runs: LoadedRun[]): Colours {
  const listed = runs.map(({ head, places }) => {
    const own = [...head.processes.keys()].filter((at) => !isConcurrent(places[at].kind));
    return own.sort((a, b) => byRank(head.processes[a], head.processes[b]) || a - b);
  });
  const most = Math.max(1, ...listed.map(({ length }) => length));
  const steps = Math.min(RAMP_STEPS, most);
  const longest = listed.findIndex(({ length }) => length === most);
  const nameAt = (place: number) => (longest < 0 ? "" : runs[longest].head.processes[listed[longest][place]]?.name ?? "");
  const styles = Array.from({ length: steps }, (_, step) => {
    const [first, last] = [Math.ceil((step * most) / steps), Math.ceil(((step + 1) * most) / steps) - 1];
    return style(first === last ? nameAt(first) : `${nameAt(first)} to ${nameAt(last)}`, ramp(steps > 1 ? step / (steps - 1) : 0));
  });
  const slots = runs.map((run, at) => {
    const slotOfProcess = new Uint8Array(run.head.processes.length).fill(steps);
    listed[at].forEach((process, place) => (slotOfProcess[process] = Math.floor((place * steps) / most)));
    const found = new Uint8Array(run.head.count);
    run.head.rows.forEach(({ process }, row) => found.fill(slotOfProcess[process], run.tracks[row].first, run.tracks[row].first + run.tracks[row].count));
    return found;
  });
  return { styles: [...styles, style("parts of the cluster", PALE)], slots };
}

const [KIB, MIB] = [2 ** 10, 2 ** 20];
const SIZES: [below: number, name: string][] = [
  [KIB, "below 1 KiB"], [4 * KIB, "1 to 4 KiB"], [64 * KIB, "4 to 64 KiB"], [MIB, "64 KiB to 1 MiB"], [16 * MIB, "1 to 16 MiB"], [Infinity, "16 MiB and more"],
];

/** By what calls that move data ask for. */
function bySize(runs: LoadedRun[]): Colours {
  const styles = SIZES.map(([, name], at) => style(name, ramp(1 - at / (SIZES.length - 1))));
  const slots = runs.map((run) => {
    const moves = run.head.functions.map(({ shape }) => shape === "data");
    const { length } = run.details!;
    return slotsOf(run, (at) => (moves[run.data.functionOf[at]] && length[at] >= 0 ? SIZES.findIndex(([below]) => length[at] < below) : SIZES.length));
  });
  return { styles: [...styles, style("no size", PALE)], slots };
}

const RATIOS: [below: number, name: string][] = [
  [0.5, "below half the median"], [2, "about the median"], [10, "2 to 10 times"], [100, "10 to 100 times"], [Infinity, "100 times and more"],
];
/** Parts of a power of two in which durations are counted: a median is right to 5 %. */
const FINE = 16;

/** By how long a call took beside the median of its function in its run; of calls that are added up, by what one of them took on average. */
function byDuration(runs: LoadedRun[]): Colours {
  const styles = RATIOS.map(([, name], at) => style(name, ramp(at / (RATIOS.length - 1))));
  const slots = runs.map((run) => {
    const { start, end, functionOf } = run.data;
    const medians = mediansOf(run);
    return slotsOf(run, (at) => {
      const ratio = (end[at] - start[at]) / standsFor(run, at) / medians[functionOf[at]];
      return RATIOS.findIndex(([below]) => ratio < below);
    });
  });
  return { styles, slots };
}

/** The median duration of each function, not below a nanosecond. */
function mediansOf(run: LoadedRun): number[] {
  const { head, data } = run;
  const counts = head.functions.map(() => new Float64Array(64 * FINE));
  const calls = new Float64Array(head.functions.length);
  for (let at = 0; at < head.count; at++) {
    const several = standsFor(run, at);
    const time = Math.max(1, (data.end[at] - data.start[at]) / several);
    counts[data.functionOf[at]][Math.floor(Math.log2(time) * FINE)] += several;
    calls[data.functionOf[at]] += several;
  }
  return counts.map((own, of) => {
    let before = 0;
    const bin = own.findIndex((count) => (before += count) * 2 >= calls[of]);
    return 2 ** ((bin + 0.5) / FINE);
  });
}

/** By how calls ended. */
function byResult(runs: LoadedRun[]): Colours {
  const slots = runs.map((run) => {
    const moves = run.head.functions.map(({ shape }) => shape === "data");
    const { length, result, calls } = run.details!;
    return slotsOf(run, (at) => (calls?.[at] ? 3 : result[at] < 0 ? 2 : moves[run.data.functionOf[at]] && result[at] < length[at] ? 1 : 0));
  });
  return { styles: [style("as asked for", PALE), style("moved less than asked for", KINDS[1]), style("failed", BAD), style("added up, none failed", NEUTRAL)], slots };
}
