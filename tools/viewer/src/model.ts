// The state of a timeline: the runs, what is shown, what is selected. Everything that can be done to it
// with mouse, touch, keys or buttons is a method here; whoever displays it is told by `changed`.

import { fit, layout, pinnedHeight, ROW_HEIGHTS, totalHeight, type Line, type Sizing } from "./layout.ts";
import { classesOf, complete, graphOf, load, rowOfCall, shade, type Call, type LoadedRun } from "./loaded.ts";
import type { Web } from "./causes.ts";
import type { TraceData } from "./format.ts";
import { coloursOf, type Colouring } from "./colouring.ts";
import { CLASSES, type ClassStyle } from "./palette.ts";
import { matcher, needsDetails, parseQuery, type Term } from "./query.ts";
import { rangeOf, type Bookmark, type Range } from "./range.ts";
import { hasNoMatch, weighing, type Order } from "./order.ts";
import { pathOf, pathTo, shownOn, tree, type Axis, type Branch, type Grouping } from "./tree.ts";
import { SHADE_DIM, type Track } from "./track.ts";
import { View } from "./view.ts";

export type { Call, LoadedRun } from "./loaded.ts";

export interface Jump {
  timeline: number;
  start_ns: number;
  end_ns: number;
  event: number | null;
  filter: string;
}

/** Pinned rows stay in sight up to this share of the room there is; more of them scroll with the others. */
const PINNED_SHARE_MAX = 0.6;

export class Model {
  readonly runs: LoadedRun[];
  readonly view: View;
  /** Slots that are not drawn. */
  readonly hidden = new Set<number>();
  /** What the colours of calls mean, and how their slots are called and coloured. */
  colouring: Colouring = "class";
  styles: ClassStyle[] = CLASSES;
  /** Groups the user opened or collapsed. */
  readonly choices = new Map<string, boolean>();
  /** Rows and groups that stand above the others, by key. */
  pins: string[] = [];
  grouping: Grouping = "run";
  order: Order = "place";
  /** Whether processes without a call that matches the search are left out. */
  isOnlyMatching = false;
  axis: Axis = "common";
  roots: Branch[] = [];
  lines: Line[] = [];
  height = 0;
  /** So much at the top of the lines does not scroll. */
  fixed = 0;
  sizing: Sizing = { row: 20, collapsed: 0 };
  /** Height of rows the user asked for; otherwise what fits. */
  rowHeight: number | undefined;
  query = "";
  /** What is wrong with the query as it was typed last. */
  queryError: { message: string; at: number } | undefined;
  selected: Call | undefined;
  range: Range | undefined;
  /** In the order they were made. */
  bookmarks: Bookmark[] = [];
  /** What the selected call hangs together with, once it is known and unless it is not to be shown. */
  web: Web | undefined;
  /** Grows whenever shades change. */
  shading = 0;
  /** Grows whenever lines change. */
  arranged = 0;
  changed: () => void = () => {};
  selectionChanged: () => void = () => {};
  rangeChanged: () => void = () => {};
  queryChanged: () => void = () => {};
  webChanged: () => void = () => {};
  shadesChanged: () => void = () => {};
  coloursChanged: () => void = () => {};
  bookmarksChanged: () => void = () => {};
  #weigh: ReturnType<typeof weighing>;
  #terms: Term[] = [];
  #room = 600;
  #places = new Map<Track, { line: Line; row: number }>();
  #placesOf: Line[] | undefined;

  constructor(data: TraceData[]) {
    this.runs = data.map(load);
    const lengths = data.map(({ head }) => head.end_ns - head.start_ns);
    this.view = new View(Math.max(1, ...lengths));
    this.#plant();
  }

  /** Indices of the runs that are shown. */
  get shown(): number[] {
    return shownOn(this.axis, this.runs.map(({ head }) => head));
  }

  get shownRuns(): LoadedRun[] {
    return this.shown.map((run) => this.runs[run]);
  }

  /** Whether there is a run that can be stretched onto another one. */
  get canStretch(): boolean {
    return this.runs.some(({ head }) => head.stretches !== undefined);
  }

  /** Slots that occur. */
  get slots(): number[] {
    const present = new Set(this.colouring === "class" ? this.runs.flatMap(classesOf) : []);
    if (this.colouring !== "class") for (const { colourOf } of this.runs) for (const slot of colourOf) present.add(slot);
    return [...this.styles.keys()].filter((slot) => present.has(slot));
  }

  /** Lets colours mean something else; what was hidden is shown again. */
  async colour(colouring: Colouring): Promise<void> {
    if (colouring === this.colouring) return;
    this.colouring = colouring;
    await Promise.all(this.runs.map(complete));
    if (this.colouring !== colouring) return;
    const { styles, slots } = coloursOf(colouring, this.runs);
    this.styles = styles;
    this.runs.forEach((run, at) => (run.colourOf = slots[at]));
    this.hidden.clear();
    this.coloursChanged();
    await this.#shadeAll();
  }

  #plant(): void {
    // In another tree the same rows have other keys.
    const tracks = this.pins.map((key) => pathOf(this.roots, key).at(-1)?.tracks[0]);
    this.#grow();
    this.pins = this.pins.map((key, at) => (tracks[at] && pathTo(this.roots, tracks[at]).at(-1)?.key) ?? key);
    this.choices.clear();
    this.#fit();
  }

  #grow(): void {
    this.roots = tree(this.runs, { grouping: this.grouping, weigh: this.#weigh, isLeftOut: this.isOnlyMatching ? hasNoMatch : undefined }, this.shown);
  }

  /** After something else may be to be left out: what the user opened stays so. */
  #regrow(): void {
    this.#grow();
    this.#fit();
  }

  /** Sorts rows; ties stay in their places. */
  async sort(order: Order): Promise<void> {
    this.order = order;
    await Promise.all(this.runs.map(complete));
    if (this.order !== order) return;
    this.#weigh = weighing(order, this.runs);
    this.#plant();
  }

  /** Leaves out, or shows again, processes without a call that matches. */
  showOnlyMatching(isOnly: boolean): void {
    if (isOnly === this.isOnlyMatching) return;
    this.isOnlyMatching = isOnly;
    this.#regrow();
  }

  #fit(): void {
    const { rowHeight } = this;
    this.sizing = fit(this.roots, this.#room, this.pins);
    if (rowHeight !== undefined) this.sizing = { row: rowHeight, collapsed: rowHeight < 12 ? Math.max(1, this.sizing.collapsed) : 0 };
    this.relayout();
  }

  /** After heights, or what is open, were set from outside. */
  refit(): void {
    this.#fit();
  }

  relayout(): void {
    this.lines = layout(this.roots, this.sizing, this.choices, this.pins);
    this.height = totalHeight(this.lines);
    const pinned = pinnedHeight(this.lines);
    this.fixed = pinned <= this.#room * PINNED_SHARE_MAX ? pinned : 0;
    this.arranged++;
    this.changed();
  }

  /** Tells how much room there is for rows; they are made to fit. */
  set room(px: number) {
    if (px === this.#room) return;
    this.#room = px;
    if (this.rowHeight === undefined) this.#fit();
  }

  /** Makes rows higher (1) or lower (−1), whether they fit or not. */
  resizeRows(direction: 1 | -1): void {
    const current = this.rowHeight ?? this.sizing.row;
    const next = direction > 0 ? ROW_HEIGHTS.findLast((height) => height > current) : ROW_HEIGHTS.find((height) => height < current);
    if (next === undefined) return;
    this.rowHeight = next;
    this.#fit();
  }

  /** Back to what fits, with everything the user opened or collapsed forgotten. */
  fitRows(): void {
    this.rowHeight = undefined;
    this.choices.clear();
    this.#fit();
  }

  fold(line: Line): void {
    if (line.folded === undefined) return;
    // What was chosen before is taken back, so that what is below is as it was.
    if (!this.choices.delete(line.key)) this.choices.set(line.key, line.folded);
    this.relayout();
  }

  /** Puts a row or group above the others, before the pinned one at this place, or last. */
  pin(key: string, at = this.pins.length): void {
    const before = this.pins.slice(0, at).filter((pin) => pin !== key);
    this.pins = [...before, key, ...this.pins.slice(at).filter((pin) => pin !== key)];
    this.#fit();
  }

  /** Puts it back to where it belongs. */
  unpin(key: string): void {
    this.pins = this.pins.filter((pin) => pin !== key);
    this.#fit();
  }

  /** One or the other. */
  togglePin(key: string): void {
    if (this.pins.includes(key)) this.unpin(key);
    else this.pin(key);
  }

  /** The row of a call, as it can be pinned. */
  pinOf(call: Call): string | undefined {
    return pathTo(this.roots, this.trackOf(call)).at(-1)?.key;
  }

  group(grouping: Grouping): void {
    this.grouping = grouping;
    this.#plant();
  }

  /** Lays runs over each other by time, or by their calls; what is selected stays so in the run that takes its place. */
  stretch(axis: Axis): void {
    if (axis === this.axis || !this.canStretch) return;
    this.axis = axis;
    this.range = undefined;
    this.#plant();
    this.shading++;
    this.rangeChanged();
    const { selected } = this;
    if (selected && !this.shown.includes(selected.run)) this.select(this.#counterpart(selected));
  }

  /** The same call where its run is stretched, or is not. */
  #counterpart({ run, index }: Call): Call | undefined {
    const other = this.runs[run].head.stretches ?? this.runs.findIndex(({ head }) => head.stretches === run);
    const row = this.runs[run].details?.row[index];
    const found = row === undefined ? undefined : this.runs[other]?.details?.row.indexOf(row);
    return found === undefined || found < 0 ? undefined : { run: other, index: found };
  }

  /** Chooses the axis on which a run is shown. */
  #showRun(run: number): void {
    if (!this.shown.includes(run)) this.stretch(this.axis === "common" ? "stretched" : "common");
  }

  async toggle(shade: number): Promise<void> {
    if (!this.hidden.delete(shade)) this.hidden.add(shade);
    await this.#shadeAll();
    this.rangeChanged();
  }

  /** Lets calls stand out that match a query. */
  async search(text: string): Promise<void> {
    const parsed = parseQuery(text);
    this.query = text;
    this.queryError = "message" in parsed ? parsed : undefined;
    if (!("message" in parsed)) this.#terms = parsed.terms;
    await this.#shadeAll();
    this.queryChanged();
  }

  /** After details have come in: accesses of devices have their class by them, other calls at most a mark. */
  async reshade(): Promise<void> {
    const hasDevices = this.runs.some(({ head }) => head.functions.some(({ layer }) => layer === "device"));
    if (hasDevices || this.#terms.length) return this.#shadeAll();
    this.shading++;
    this.changed();
  }

  async #shadeAll(): Promise<void> {
    const terms = this.#terms;
    for (const run of this.runs) {
      if (terms.length) run.files ??= await run.data.files();
      if (needsDetails(terms)) await complete(run);
    }
    if (terms !== this.#terms) return;
    for (const run of this.runs) shade(run, this.hidden, terms.length ? matcher(terms, run) : undefined);
    this.shading++;
    if (this.isOnlyMatching) this.#regrow();
    this.shadesChanged();
    this.changed();
  }

  get matches(): number {
    return this.shownRuns.reduce((sum, run) => sum + run.matches, 0);
  }

  select(call: Call | undefined): void {
    if (call) this.#showRun(call.run);
    this.selected = call;
    this.web = undefined;
    if (call) void this.#weave(call);
    this.selectionChanged();
    this.changed();
  }

  async #weave(call: Call): Promise<void> {
    const graph = await graphOf(this.runs[call.run]);
    if (this.selected !== call || graph.isEmpty) return;
    const web = graph.web(call.index);
    if (web.hops.length === 0) return;
    this.web = web;
    this.webChanged();
    this.changed();
  }

  /** Shows or hides what the selected call hangs together with. */
  toggleWeb(): void {
    if (!this.selected) return;
    if (this.web) this.web = undefined;
    else void this.#weave(this.selected);
    this.webChanged();
    this.changed();
  }

  /** Selects the first cause (−1) or effect (1) of the selected call. */
  async hop(direction: 1 | -1): Promise<void> {
    const from = this.selected;
    if (!from) return;
    const { run } = from;
    const graph = await graphOf(this.runs[run]);
    const { start } = this.runs[run].data;
    const found = graph.neighbours(from.index, direction).sort((a, b) => start[a] - start[b]);
    const index = direction > 0 ? found[0] : found.at(-1);
    if (index !== undefined) this.reveal({ run, index }, false);
  }

  mark(range: Range | undefined): void {
    this.range = range;
    this.rangeChanged();
    this.changed();
  }

  /** What a bookmark made now would keep: the range, else the selected call, else the moment in the middle of the view. */
  get place(): { start: number; end: number } {
    const { range, selected, view } = this;
    if (range) return { start: range.start, end: range.end };
    const middle = Math.round((view.start + view.end) / 2);
    if (!selected) return { start: middle, end: middle };
    const { start, end } = this.runs[selected.run].data;
    return { start: start[selected.index], end: end[selected.index] };
  }

  /** Keeps bookmarks, these and no others. */
  keep(bookmarks: Bookmark[]): void {
    this.bookmarks = bookmarks;
    this.bookmarksChanged();
    this.changed();
  }

  /** Shows a bookmark; a stretch of time becomes the range. */
  visit({ start, end }: Bookmark): void {
    this.view.remember();
    if (end > start) {
      this.view.focus(start, end, 0.5);
      this.mark(rangeOf(start, end));
    } else this.view.show(start - this.view.span / 2, start + this.view.span / 2);
    this.changed();
  }

  zoomToRange(): void {
    if (!this.range) return;
    this.view.remember();
    this.view.focus(this.range.start, this.range.end, 0);
    this.changed();
  }

  fitAll(): void {
    this.view.remember();
    this.view.fit();
    this.changed();
  }

  trackOf(call: Call): Track {
    const run = this.runs[call.run];
    return run.tracks[rowOfCall(run, call.index)];
  }

  /** Brings a call into view: opens folds, moves and if need be zooms the time axis. */
  reveal(call: Call, zoom: boolean): void {
    const { start, end } = this.runs[call.run].data;
    const [from, to] = [start[call.index], end[call.index]];
    this.view.remember();
    if (zoom) this.view.focus(from, to, 3);
    else if (from < this.view.start || to > this.view.end) this.view.show(from - this.view.span / 2, from + this.view.span / 2);
    this.select(call);
  }

  /** The line a call is drawn in; what the user collapsed around it is opened. */
  lineOf(call: Call): Line | undefined {
    const track = this.trackOf(call);
    const path = pathTo(this.roots, track).slice(0, -1);
    const closed = path.filter(({ key }) => this.choices.get(key) === false);
    for (const { key } of closed) this.choices.delete(key);
    if (closed.length) this.relayout();
    return this.placeOf(track)?.line;
  }

  /** The line that shows a track best, by itself rather than among others, and the row within it. */
  placeOf(track: Track): { line: Line; row: number } | undefined {
    if (this.#placesOf !== this.lines) {
      this.#places.clear();
      for (const line of this.lines) {
        line.rows.forEach(({ tracks, all }, row) => {
          for (const drawn of tracks) {
            const known = this.#places.get(drawn);
            if (!known || line.rows.length < known.line.rows.length || tracks.length === 1) this.#places.set(drawn, { line, row });
          }
          for (const inner of all) if (!this.#places.has(inner)) this.#places.set(inner, { line, row });
        });
      }
      this.#placesOf = this.lines;
    }
    return this.#places.get(track);
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
      for (const track of line.rows[0]?.tracks ?? []) {
        let at = track.firstEndingAfter(this.view.start);
        while (at < track.count && track.shade[at] >= SHADE_DIM) at++;
        if (at < track.count) return this.reveal({ run: line.run, index: track.first + at }, false);
      }
    }
  }

  /** The next (1) or previous (−1) matching call of any row, in time from the selected one. */
  next(direction: 1 | -1): void {
    const { selected } = this;
    const own = selected && this.runs[selected.run].data.start[selected.index];
    let best: Call | undefined;
    let bestDistance = Infinity;
    const candidates = selected ? [selected.run] : this.shown;
    for (const run of candidates) {
      const origin = own ?? (direction > 0 ? -1 : Infinity);
      for (const track of this.runs[run].tracks) {
        // Calls that start together are told apart by their position, so that none is passed over.
        let at = direction > 0 ? track.firstStartingFrom(origin) : track.firstStartingFrom(origin + 0.5) - 1;
        while (at >= 0 && at < track.count && (track.shade[at] >= SHADE_DIM || !isBeyond(track.first + at, track.start[at]))) at += direction;
        if (at < 0 || at >= track.count) continue;
        const distance = own === undefined ? track.start[at] * direction : Math.abs(track.start[at] - origin);
        const index = track.first + at;
        const isNearer = distance < bestDistance || (distance === bestDistance && best && (index - best.index) * direction < 0);
        if (isNearer) [best, bestDistance] = [{ run, index }, distance];
      }
    }
    if (best) this.reveal(best, false);
    function isBeyond(index: number, start: number): boolean {
      if (own === undefined || !selected) return true;
      return start === own ? (index - selected.index) * direction > 0 : (start - own) * direction > 0;
    }
  }

  /** Shows what a finding points at. */
  async jump(jump: Jump): Promise<void> {
    const zero = this.runs[jump.timeline]?.head.start_ns ?? 0;
    const query = wordsOf(jump.filter);
    if (query !== this.query) await this.search(query);
    this.#showRun(jump.timeline);
    this.view.remember();
    this.view.focus(jump.start_ns - zero, jump.end_ns - zero);
    if (jump.event !== null) this.select({ run: jump.timeline, index: jump.event });
    this.changed();
  }
}

/** Words that a query does not take for something else: paths may hold anything. */
function wordsOf(text: string): string {
  const quoted = (word: string) => (/^-|:|^error$/.test(word) && !word.includes('"') ? `"${word}"` : word);
  return text.split(/\s+/).filter(Boolean).map(quoted).join(" ");
}
