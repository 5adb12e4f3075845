// Which line of the timeline shows what, at which height. A group is either open, with its rows below
// its heading, or collapsed into one block in which all its rows are still drawn, each as high as there
// is room. What the user has not opened or collapsed himself is collapsed as far as it takes to have
// everything in sight: first the rows get lower, then groups become blocks, from the leaves upward.

import { isRange, leaves, pathOf, type Branch } from "./tree.ts";
import type { Track } from "./track.ts";

/** One row as it is drawn in a block: what is shown, and everything that is in it. */
export interface Row {
  branch: Branch;
  /** Drawn: of a thread its outermost calls, of a lane everything. */
  tracks: Track[];
  /** With what is nested. */
  all: Track[];
}

/** How a line is drawn: not at all, call by call, as much as is under way, or one row above the other. */
export type Mode = "heading" | "calls" | "lane" | "block";

export interface Line {
  key: string;
  label: string;
  note: string;
  level: number;
  y: number;
  height: number;
  mode: Mode;
  rows: Row[];
  run: number;
  process: number;
  /** `undefined`: nothing to open. */
  folded?: boolean;
  /** Stands above those that scroll. */
  isPinned: boolean;
  /** The branch that it shows, unless it shows a part of one: what can be pinned. */
  pin?: string;
}

/** How high rows are, and how many levels above the leaves are collapsed. */
export interface Sizing {
  row: number;
  collapsed: number;
}

/** What the user has opened (`true`) or collapsed, by key. */
export type Choices = ReadonlyMap<string, boolean>;

export const COMFORTABLE_PX = 20;
const HEADING_PX = 24;
const SMALL_HEADING_PX = 20;
/** A name needs so much. */
const LABEL_PX = 12;
const INNER_PX = 13;
const GAP_PX = 3;
/** Between rows that are pinned and those that scroll. */
const PIN_GAP_PX = 7;
const LANE_LINES_MAX = 16;
/** Links of clients repeat what their ranks do: many of them do not take room from others. */
const SECONDARY_PX_MAX = 40;
/** Heights the user can choose; whatever is lower is chosen by what there is room for. */
export const ROW_HEIGHTS = [COMFORTABLE_PX, 8, 3, 1];
const LOWER_HEIGHTS = [0.75, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0];

class Stack {
  lines: Line[] = [];
  #y = 0;
  readonly #sizing: Sizing;
  readonly #choices: Choices;
  readonly #pinned: ReadonlySet<string>;
  #isPinning = false;

  constructor(sizing: Sizing, choices: Choices, pinned: ReadonlySet<string>) {
    this.#sizing = sizing;
    this.#choices = choices;
    this.#pinned = pinned;
  }

  /** Adds a branch that is pinned, as if its group were open. */
  pin(branch: Branch): void {
    this.#isPinning = true;
    this.#put(branch, 1, true);
  }

  /** What is added from here on is not pinned. */
  endPins(): void {
    this.#isPinning = false;
    if (this.lines.length) this.#y += PIN_GAP_PX;
  }

  #add(line: Omit<Line, "y" | "isPinned">, gap: number): void {
    this.#y += this.lines.length ? gap : 0;
    this.lines.push({ ...line, y: this.#y, isPinned: this.#isPinning });
    this.#y += line.height;
  }

  /** Adds a branch that is not pinned, with what is left of it; `isChosen` when it stands in a group that the user opened. */
  branch(branch: Branch, level: number, isChosen: boolean): void {
    if (!this.#isPinned(branch)) this.#put(branch, level, isChosen);
  }

  /** Whether nothing is left of a branch here, since it, or all that is in it, is pinned. */
  #isPinned({ key, children }: Branch): boolean {
    if (!this.#pinned.size) return false;
    return this.#pinned.has(key) || (children.length > 0 && children.every((child) => this.#isPinned(child)));
  }

  /** The leaves of a branch that are not pinned, by themselves or with others. */
  #rest(branch: Branch): Branch[] {
    if (!this.#pinned.size) return leaves(branch);
    if (this.#pinned.has(branch.key)) return [];
    return branch.tracks.length ? [branch] : branch.children.flatMap((child) => this.#rest(child));
  }

  #put(branch: Branch, level: number, isChosen: boolean): void {
    if (branch.tracks.length) return this.#leaf(branch, level, isChosen);
    const choice = this.#choices.get(branch.key);
    const isCollapsed = !(choice ?? !this.#collapses(branch, isChosen));
    const pin = level > 0 ? { pin: branch.key } : {};
    const base = { key: branch.key, label: branch.label, note: branch.note, level, run: branch.run, process: branch.process, ...pin };
    if (isCollapsed) {
      const rows = branch.children.flatMap((child) => this.#rest(child)).map(rowOf);
      const height = this.#blockHeight(rows.length, choice === false, isChosen, branch.isSecondary);
      return this.#add({ ...base, folded: true, mode: "block", rows, height }, level === 0 ? 8 : this.#gap());
    }
    const height = level === 0 ? HEADING_PX : SMALL_HEADING_PX;
    this.#add({ ...base, folded: false, mode: "heading", rows: [], height }, level === 0 ? 8 : this.#gap());
    for (const child of branch.children) this.branch(child, level + 1, choice === true);
  }

  #gap(): number {
    return this.#sizing.row >= LABEL_PX ? GAP_PX : 1;
  }

  #collapses(branch: Branch, isChosen: boolean): boolean {
    if (isChosen) return true;
    return branch.height <= this.#sizing.collapsed || (branch.isSecondary && this.#sizing.collapsed > 0);
  }

  #blockHeight(rows: number, isUserCollapsed: boolean, isChosen: boolean, isSecondary: boolean): number {
    if (isUserCollapsed || isChosen) return Math.max(COMFORTABLE_PX, Math.min(rows, 40));
    const height = Math.max(LABEL_PX, Math.round(rows * this.#sizing.row));
    return isSecondary ? Math.min(height, Math.max(LABEL_PX, SECONDARY_PX_MAX)) : height;
  }

  #leaf(branch: Branch, level: number, isChosen: boolean): void {
    const height = isChosen ? COMFORTABLE_PX : Math.max(LABEL_PX, Math.min(COMFORTABLE_PX, this.#sizing.row));
    const base = { note: branch.note, level, run: branch.run, process: branch.process };
    const hasInner = branch.tracks.length > 1;
    // Nested calls are shown unless the user says otherwise, of a lane the single requests only on demand.
    const isOpen = this.#choices.get(branch.key) ?? (!branch.isLane && height >= COMFORTABLE_PX);
    const fold = hasInner ? { folded: !isOpen } : {};
    const mode = branch.isLane ? "lane" : "calls";
    this.#add({ ...base, ...fold, key: branch.key, label: branch.label, height, mode, rows: [rowOf(branch)], pin: branch.key }, this.#gap());
    if (!hasInner || !isOpen) return;
    const inner = branch.isLane ? branch.tracks : branch.tracks.slice(1);
    const single = inner.length > LANE_LINES_MAX ? inner.slice(0, LANE_LINES_MAX - 1) : inner;
    const note = branch.isLane ? "" : "nested";
    const line = (tracks: Track[], depth: number, extra: string) => {
      const mode = tracks.length > 1 ? "lane" : "calls";
      this.#add({ ...base, level, note: extra, key: `${branch.key}@${depth + 1}`, label: "", height: INNER_PX, mode, rows: [{ branch, tracks, all: tracks }] }, 1);
    };
    single.forEach((track, depth) => line([track], depth, branch.isLane ? String(depth + 1) : note));
    const rest = inner.slice(single.length);
    if (rest.length) line(rest, single.length, `${single.length + 1} to ${inner.length}`);
  }
}

function rowOf(branch: Branch): Row {
  return { branch, tracks: branch.isLane ? branch.tracks : branch.tracks.slice(0, 1), all: branch.tracks };
}

/** All lines of a tree: first the branches with these keys, in their order, then the others. */
export function layout(roots: Branch[], sizing: Sizing, choices: Choices, pins: readonly string[] = []): Line[] {
  const paths = pins.map((key) => pathOf(roots, key)).filter((path) => path.length);
  const stack = new Stack(sizing, choices, new Set(paths.map((path) => path.at(-1)!.key)));
  for (const path of paths) stack.pin({ ...path.at(-1)!, note: origin(path, roots.length > 1) });
  stack.endPins();
  for (const root of roots) stack.branch(root, 0, false);
  return stack.lines;
}

/** Where a pinned branch comes from: its group, and its run where there are several. */
function origin(path: Branch[], hasRuns: boolean): string {
  const above = path.slice(hasRuns ? 0 : 1, -1).filter((branch) => !isRange(branch));
  return above.map(({ label }) => label).join(" · ");
}

/** How much of the height the pinned lines take. */
export function pinnedHeight(lines: Line[]): number {
  const last = lines.findLast(({ isPinned }) => isPinned);
  return last ? last.y + last.height + GAP_PX : 0;
}

/** The most comfortable sizing in which everything is within `room`; the smallest when nothing is. */
export function fit(roots: Branch[], room: number, pins: readonly string[] = []): Sizing {
  let tried = { row: COMFORTABLE_PX, collapsed: 0 };
  for (tried of sizings(roots)) {
    if (totalHeight(layout(roots, tried, new Map(), pins)) <= room) return tried;
  }
  return tried;
}

/** From comfortable to small: names for all rows as long as there is room for them, then blocks. */
function* sizings(roots: Branch[]): Generator<Sizing> {
  yield { row: COMFORTABLE_PX, collapsed: 0 };
  yield { row: LABEL_PX, collapsed: 0 };
  const levels = Math.max(1, ...roots.flatMap((root) => root.children.map((child) => child.height)));
  for (let collapsed = 1; collapsed <= levels; collapsed++) {
    for (const row of [COMFORTABLE_PX, 14, 10, 8, 6, 4, 3, 2, 1, ...LOWER_HEIGHTS]) yield { row, collapsed };
  }
}

export function totalHeight(lines: Line[]): number {
  const last = lines[lines.length - 1];
  return last ? last.y + last.height + GAP_PX : 0;
}

/** The line at a height, if there is one. */
export function lineAt(lines: Line[], y: number): Line | undefined {
  const at = firstBelow(lines, y);
  return at < lines.length && lines[at].y <= y ? lines[at] : undefined;
}

/** Index of the first line that ends below a height. */
export function firstBelow(lines: Line[], y: number): number {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (lines[middle].y + lines[middle].height > y) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Where the rows of a block stand: each at least `pixel` high, merged with its neighbours where there is no room. */
export function strips(rowCount: number, height: number, pixel = 1): { first: number; beyond: number; top: number; bottom: number }[] {
  const count = Math.max(1, Math.min(rowCount, Math.floor(height / pixel)));
  return Array.from({ length: count }, (_, at) => ({
    first: Math.floor((at * rowCount) / count),
    beyond: Math.floor(((at + 1) * rowCount) / count),
    top: Math.round((at * height) / count),
    bottom: Math.round(((at + 1) * height) / count),
  }));
}

/** Which of the strips of a block shows a row. */
export function stripOf(rowCount: number, height: number, row: number): number {
  const count = Math.max(1, Math.min(rowCount, Math.floor(height)));
  return Math.ceil(((row + 1) * count) / rowCount) - 1;
}
