// Which line of the timeline shows what. Runs stand above each other, or, side by side, the same
// process of all runs together. Groups fold into one line that shows the mean of what is in them.

import type { Head } from "./format.ts";
import type { Track } from "./track.ts";

export type Grouping = "run" | "process";

/** A run as the layout needs it. `tracks[i]` belongs to `head.rows[i]`. */
export interface Run {
  head: Head;
  tracks: Track[];
}

export interface Line {
  key: string;
  label: string;
  /** Second, quieter part of the label. */
  note: string;
  level: number;
  y: number;
  height: number;
  /** One track is drawn call by call, several are merged; none makes a heading. */
  tracks: Track[];
  run: number;
  process: number;
  /** `undefined`: nothing to fold. */
  folded?: boolean;
}

const HEADING_PX = 26;
const CALLS_PX = 20;
const INNER_PX = 13;
const GAP_PX = 3;

interface Thread {
  thread: number;
  /** By depth. */
  tracks: Track[];
}

interface Process {
  run: number;
  index: number;
  name: string;
  rank: number;
  threads: Thread[];
}

/** The processes of a run that made calls, by rank, then in order of appearance. */
function processes(run: Run, runIndex: number): Process[] {
  const found = new Map<number, Process>();
  run.head.rows.forEach((row, at) => {
    const entry = run.head.processes[row.process];
    let process = found.get(row.process);
    if (!process) {
      process = { run: runIndex, index: row.process, name: entry.name, rank: entry.rank, threads: [] };
      found.set(row.process, process);
    }
    let thread = process.threads.find((candidate) => candidate.thread === row.thread);
    if (!thread) process.threads.push((thread = { thread: row.thread, tracks: [] }));
    thread.tracks.push(run.tracks[at]);
  });
  const rankOf = (process: Process) => (process.rank < 0 ? Infinity : process.rank);
  return [...found.values()].sort((a, b) => rankOf(a) - rankOf(b) || a.index - b.index);
}

/** Lays lines below each other. */
class Stack {
  lines: Line[] = [];
  #y = 0;
  readonly folds: ReadonlySet<string>;

  constructor(folds: ReadonlySet<string>) {
    this.folds = folds;
  }

  add(line: Omit<Line, "y">, gap = 0): void {
    this.#y += this.lines.length ? gap : 0;
    this.lines.push({ ...line, y: this.#y });
    this.#y += line.height;
  }

  /** Adds a heading that can be folded; tells whether what is below it is to be shown. */
  heading(line: Omit<Line, "y" | "height">, merged: Track[], gap: number): boolean {
    const folded = this.folds.has(line.key);
    this.add({ ...line, folded, height: folded ? CALLS_PX : HEADING_PX, tracks: folded ? merged : [] }, gap);
    return !folded;
  }

  /** Adds a process: its calls, and one line below for every depth of nesting. */
  process(process: Process, key: string, label: string, note: string, level: number): void {
    const base = { note, level, run: process.run, process: process.index };
    const outer = process.threads.map((thread) => thread.tracks[0]);
    if (process.threads.length > 1) {
      if (!this.heading({ ...base, key, label, tracks: [] }, outer, GAP_PX)) return;
      for (const thread of process.threads) {
        this.thread(thread, `${key}/${thread.thread}`, `thread ${thread.thread}`, { ...base, note: "", level: level + 1 });
      }
    } else {
      this.thread(process.threads[0], key, label, base);
    }
  }

  thread(thread: Thread, key: string, label: string, base: Pick<Line, "note" | "level" | "run" | "process">): void {
    const [outer, ...inner] = thread.tracks;
    const folded = this.folds.has(key);
    const fold = inner.length ? { folded } : {};
    this.add({ ...base, ...fold, key, label, height: CALLS_PX, tracks: [outer] }, GAP_PX);
    if (folded) return;
    inner.forEach((track, depth) => {
      this.add({ ...base, key: `${key}@${depth + 1}`, label: "", note: "inside", height: INNER_PX, tracks: [track] }, 1);
    });
  }
}

function outerTracks(list: Process[]): Track[] {
  return list.flatMap((process) => process.threads.map((thread) => thread.tracks[0]));
}

/** How a run came to be, where its label does not say it, and what it lacks. */
function noteOf(head: Head): string {
  const origin = head.label.includes(head.origin) ? "" : head.origin;
  const lost = head.lost_calls ? `${head.lost_calls.toLocaleString("en-US")} calls missing` : "";
  return [origin, lost].filter(Boolean).join(", ");
}

function byRun(stack: Stack, runs: Run[]): void {
  runs.forEach((run, index) => {
    const list = processes(run, index);
    const head = { key: `run ${index}`, label: run.head.label, note: noteOf(run.head), level: 0, run: index, process: -1 };
    if (!stack.heading({ ...head, tracks: [] }, outerTracks(list), 8)) return;
    for (const process of list) {
      stack.process(process, `run ${index}/${process.index}`, process.name, "", 1);
    }
  });
}

/** What makes two processes of different runs the same: the rank, else the name and its count. */
function identity(process: Process, list: Process[]): string {
  if (process.rank >= 0) return `rank ${process.rank}`;
  const namesakes = list.filter((other) => other.rank < 0 && other.name === process.name);
  const place = namesakes.indexOf(process);
  return place > 0 ? `${process.name} (${place + 1})` : process.name;
}

function byProcess(stack: Stack, runs: Run[]): void {
  const groups = new Map<string, Process[]>();
  runs.forEach((run, index) => {
    const list = processes(run, index);
    for (const process of list) {
      const key = identity(process, list);
      groups.set(key, [...(groups.get(key) ?? []), process]);
    }
  });
  for (const [name, members] of groups) {
    const head = { key: `group ${name}`, label: name, note: "", level: 0, run: -1, process: -1 };
    if (!stack.heading({ ...head, tracks: [] }, outerTracks(members), 8)) continue;
    for (const process of members) {
      const key = `group ${name}/${process.run}/${process.index}`;
      stack.process(process, key, runs[process.run].head.label, "", 1);
    }
  }
}

/** All lines for these runs. */
export function layout(runs: Run[], grouping: Grouping, folds: ReadonlySet<string>): Line[] {
  const stack = new Stack(folds);
  if (grouping === "run") byRun(stack, runs);
  else byProcess(stack, runs);
  return stack.lines;
}

export function totalHeight(lines: Line[]): number {
  const last = lines[lines.length - 1];
  return last ? last.y + last.height + GAP_PX : 0;
}

/** The line at a height, if there is one. */
export function lineAt(lines: Line[], y: number): Line | undefined {
  return lines.find((line) => y >= line.y && y < line.y + line.height);
}
