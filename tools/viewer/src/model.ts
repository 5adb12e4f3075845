// The state of a timeline: the runs, what is shown, what is selected. Everything that can be done to it
// with mouse, touch, keys or buttons is a method here; whoever displays it is told by `changed`.

import type { TraceData } from "./format.ts";
import { layout, totalHeight, type Grouping, type Line, type Run } from "./layout.ts";
import { KINDS, shadeOf } from "./palette.ts";
import { SHADE_DIM, SHADE_HIDDEN, Track } from "./track.ts";
import { View } from "./view.ts";

/** A call of a run, by its drawing position. */
export interface Call {
  run: number;
  index: number;
}

export interface Jump {
  timeline: number;
  start_ns: number;
  end_ns: number;
  event: number | null;
  filter: string;
}

export interface LoadedRun extends Run {
  data: TraceData;
  shade: Uint8Array;
  /** How many calls match the filter. */
  matches: number;
}

/** A trace with its calls cut into tracks. */
export function load(data: TraceData): LoadedRun {
  const { head, start, end } = data;
  const shade = new Uint8Array(head.count);
  let first = 0;
  const tracks = head.rows.map((row) => {
    const last = first + row.count;
    const track = new Track(first, start.subarray(first, last), end.subarray(first, last), shade.subarray(first, last));
    first = last;
    return track;
  });
  return { head, data, tracks, shade, matches: head.count };
}

export class Model {
  readonly runs: LoadedRun[];
  readonly view: View;
  /** Kinds that occur, as shades. */
  readonly kinds: number[];
  readonly hidden = new Set<number>();
  readonly folds = new Set<string>();
  grouping: Grouping = "run";
  lines: Line[] = [];
  height = 0;
  filter = "";
  selected: Call | undefined;
  /** Stretch of time being marked with the mouse. */
  marked: { start: number; end: number } | undefined;
  /** Grows whenever shades change. */
  shading = 0;
  changed: () => void = () => {};
  selectionChanged: () => void = () => {};

  constructor(data: TraceData[]) {
    this.runs = data.map(load);
    const lengths = data.map(({ head }) => head.end_ns - head.start_ns);
    this.view = new View(Math.max(1, ...lengths));
    const present = new Set(data.flatMap(({ head }) => head.functions.map((entry) => shadeOf(entry.kind))));
    this.kinds = KINDS.map((_, shade) => shade).filter((shade) => present.has(shade));
    this.#shadeAll(undefined);
    this.relayout();
  }

  relayout(): void {
    this.lines = layout(this.runs, this.grouping, this.folds);
    this.height = totalHeight(this.lines);
    this.changed();
  }

  fold(key: string): void {
    if (!this.folds.delete(key)) this.folds.add(key);
    this.relayout();
  }

  group(grouping: Grouping): void {
    this.grouping = grouping;
    this.relayout();
  }

  async toggle(shade: number): Promise<void> {
    if (!this.hidden.delete(shade)) this.hidden.add(shade);
    await this.search(this.filter);
  }

  /** Lets calls stand out whose function or file contains every word of the text. */
  async search(text: string): Promise<void> {
    this.filter = text;
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const files = words.length ? await Promise.all(this.runs.map((run) => run.data.files())) : undefined;
    if (this.filter !== text) return;
    this.#shadeAll(files && { words, files });
    this.changed();
  }

  #shadeAll(search: { words: string[]; files: Int32Array[] } | undefined): void {
    this.runs.forEach((run, index) => {
      const kinds = run.head.functions.map((entry) => {
        const shade = shadeOf(entry.kind);
        return this.hidden.has(shade) ? SHADE_HIDDEN : shade;
      });
      const { functionOf } = run.data;
      if (search) {
        shadeMatching(run, kinds, search.words, search.files[index]);
      } else {
        for (let at = 0; at < run.shade.length; at++) run.shade[at] = kinds[functionOf[at]];
        run.matches = run.head.count;
      }
      for (const track of run.tracks) track.forget();
    });
    this.shading++;
  }

  select(call: Call | undefined): void {
    this.selected = call;
    this.selectionChanged();
    this.changed();
  }

  trackOf(call: Call): Track {
    const tracks = this.runs[call.run].tracks;
    const found = tracks.findLast((track) => track.first <= call.index);
    if (!found) throw new RangeError(`call ${call.index} is before the first track`);
    return found;
  }

  /** Brings a call into view: opens folds, moves and if need be zooms the time axis. */
  reveal(call: Call, zoom: boolean): void {
    const { start, end } = this.runs[call.run].data;
    const [from, to] = [start[call.index], end[call.index]];
    if (zoom) this.view.focus(from, to, 3);
    else if (from < this.view.start || to > this.view.end) this.view.show(from - this.view.span / 2, from + this.view.span / 2);
    this.select(call);
  }

  /** The line a call is drawn in; folds around it are opened. */
  lineOf(call: Call): Line | undefined {
    const track = this.trackOf(call);
    const find = () => this.lines.find((line) => line.tracks.length === 1 && line.tracks[0] === track);
    const found = find();
    if (found || !this.folds.size) return found;
    const unfolded = layout(this.runs, this.grouping, new Set()).find((line) => line.tracks.length === 1 && line.tracks[0] === track);
    for (const key of this.folds) {
      if (unfolded && isWithin(unfolded.key, key)) this.folds.delete(key);
    }
    this.relayout();
    return find();
  }

  /** Selects the call before or after the selected one in its row, passing over those that do not match. */
  step(direction: 1 | -1): void {
    const from = this.selected;
    if (!from) return this.stepInto();
    const track = this.trackOf(from);
    let at = from.index - track.first + direction;
    while (at >= 0 && at < track.count && track.shade[at] >= SHADE_DIM) at += direction;
    if (at >= 0 && at < track.count) this.reveal({ run: from.run, index: track.first + at }, false);
  }

  /** With nothing selected: selects the first call in view. */
  stepInto(): void {
    for (const line of this.lines) {
      const [track] = line.tracks;
      if (line.tracks.length !== 1) continue;
      let at = track.firstEndingAfter(this.view.start);
      while (at < track.count && track.shade[at] >= SHADE_DIM) at++;
      if (at < track.count) return this.reveal({ run: line.run, index: track.first + at }, false);
    }
  }

  /** The next matching call of any row, after the selected one in time. */
  next(): void {
    const after = this.selected ? this.runs[this.selected.run].data.start[this.selected.index] : -1;
    let best: Call | undefined;
    let bestStart = Infinity;
    this.runs.forEach((run, runIndex) => {
      if (this.selected && runIndex !== this.selected.run) return;
      for (const track of run.tracks) {
        let at = track.firstStartingFrom(after + 1e-6);
        while (at < track.count && track.shade[at] >= SHADE_DIM) at++;
        if (at < track.count && track.start[at] < bestStart) {
          bestStart = track.start[at];
          best = { run: runIndex, index: track.first + at };
        }
      }
    });
    if (best) this.reveal(best, false);
  }

  /** Shows what a finding points at. */
  async jump(jump: Jump): Promise<void> {
    const zero = this.runs[jump.timeline]?.head.start_ns ?? 0;
    if (jump.filter !== this.filter) await this.search(jump.filter);
    this.view.focus(jump.start_ns - zero, jump.end_ns - zero);
    if (jump.event !== null) this.select({ run: jump.timeline, index: jump.event });
    this.changed();
  }
}

/** Whether a line stands in a group: keys grow by `/` for parts and `@` for depths. */
function isWithin(key: string, group: string): boolean {
  return key === group || key.startsWith(`${group}/`) || key.startsWith(`${group}@`);
}

function shadeMatching(run: LoadedRun, kinds: number[], words: string[], files: Int32Array): void {
  // Per word, whether each function and each file has it; slot 0 of the files is "none".
  const functions = words.map((word) => run.head.functions.map((entry) => entry.name.toLowerCase().includes(word)));
  const paths = words.map((word) => [false, ...run.head.files.map((path) => path.toLowerCase().includes(word))]);
  const { functionOf } = run.data;
  run.matches = 0;
  for (let at = 0; at < run.shade.length; at++) {
    let matches = true;
    for (let word = 0; word < words.length; word++) {
      matches &&= functions[word][functionOf[at]] || paths[word][files[at] + 1];
    }
    const shade = kinds[functionOf[at]];
    run.shade[at] = matches || shade === SHADE_HIDDEN ? shade : SHADE_DIM;
    if (matches) run.matches++;
  }
}
