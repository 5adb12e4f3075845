// What is shown, as the fragment of the page's address: whoever opens it sees the same.
//   #t=0..1500000&call=0.312164&range=100..2000&rows=0.3-5&q=op%3Apwrite&hide=compute&open=…&shut=…&pin=…&h=8&by=process&axis=stretched&file=0.3&curves=on&show=longest&mark=100..2000:slow

import { complete } from "./loaded.ts";
import type { Model } from "./model.ts";
import { ORDERS } from "./order.ts";
import { COLOURINGS } from "./colouring.ts";
import { rangeOf, type Bookmark } from "./range.ts";
import type { Track } from "./track.ts";

/** What is open beside the rows, by key; empty where it is as at the beginning. */
export type Panels = Record<"file" | "curves" | "show", string>;

export function encode(model: Model, panels: Panels): string {
  const state = new URLSearchParams();
  const { view, selected, range, query, hidden, choices, rowHeight, grouping } = model;
  if (view.start > 0 || view.end < view.length) state.set("t", `${Math.round(view.start)}..${Math.round(view.end)}`);
  if (selected) {
    const { details } = model.runs[selected.run];
    // Row numbers of the trace, as reports name them.
    if (details) state.set("call", `${selected.run}.${details.row[selected.index]}`);
  }
  if (range) {
    state.set("range", `${range.start}..${range.end}`);
    if (range.tracks) state.set("rows", rowsOf(model, range.tracks));
  }
  if (query) state.set("q", query);
  if (hidden.size) state.set("hide", [...hidden].map((slot) => encodeURIComponent(model.styles[slot].name)).join(","));
  for (const [key, isOpen] of choices) state.append(isOpen ? "open" : "shut", key);
  for (const key of model.pins) state.append("pin", key);
  if (rowHeight !== undefined) state.set("h", String(rowHeight));
  if (model.order !== "place") state.set("order", model.order);
  if (model.isOnlyMatching) state.set("only", "matching");
  if (model.colouring !== "class") state.set("colour", model.colouring);
  if (grouping !== "run") state.set("by", grouping);
  if (model.axis !== "common") state.set("axis", model.axis);
  for (const { start, end, name } of model.bookmarks) state.append("mark", `${start}..${end}:${name}`);
  for (const [key, value] of Object.entries(panels)) if (value) state.set(key, value);
  return state.toString();
}

/** Rows of the head by run, neighbours as a range: `0.3-5,0.9`. */
function rowsOf(model: Model, tracks: ReadonlySet<Track>): string {
  const parts: string[] = [];
  model.runs.forEach((run, index) => {
    for (let row = 0; row < run.tracks.length; row++) {
      if (!tracks.has(run.tracks[row])) continue;
      const first = row;
      while (row + 1 < run.tracks.length && tracks.has(run.tracks[row + 1])) row++;
      parts.push(first === row ? `${index}.${row}` : `${index}.${first}-${row}`);
    }
  });
  return parts.join(",");
}

/** Shows what a fragment says; what it says wrongly or of another trace is passed over. */
export async function apply(model: Model, fragment: string): Promise<void> {
  const state = new URLSearchParams(fragment);
  const by = oneOf(["run", "servers", "flat", "process"], state.get("by"));
  if (by !== model.grouping) model.group(by);
  const order = oneOf(ORDERS.map(([known]) => known), state.get("order"));
  if (order !== model.order) await model.sort(order);
  model.stretch(state.get("axis") === "stretched" ? "stretched" : "common");
  const height = Number(state.get("h"));
  model.rowHeight = height >= 1 && height <= 20 ? height : undefined;
  model.choices.clear();
  for (const key of state.getAll("open")) model.choices.set(key, true);
  for (const key of state.getAll("shut")) model.choices.set(key, false);
  model.pins = state.getAll("pin");
  model.refit();
  await model.colour(oneOf(COLOURINGS.map(([known]) => known), state.get("colour")));
  model.isOnlyMatching = state.get("only") === "matching";
  model.hidden.clear();
  for (const name of state.get("hide")?.split(",") ?? []) {
    const slot = model.styles.findIndex((style) => encodeURIComponent(style.name) === name);
    if (slot >= 0) model.hidden.add(slot);
  }
  await model.search(state.get("q") ?? "");
  const time = interval(state.get("t"));
  if (time) model.view.show(...time);
  else model.view.fit();
  const range = interval(state.get("range"));
  model.mark(range && rangeOf(...range, tracksOf(model, state.get("rows"))));
  model.keep(state.getAll("mark").flatMap(bookmark));
  await select(model, state.get("call"));
  model.changed();
}

function bookmark(text: string): Bookmark[] {
  const [, start, end, name] = /^(\d+)\.\.(\d+):(.+)$/s.exec(text) ?? [];
  return name === undefined || Number(start) > Number(end) ? [] : [{ name, start: Number(start), end: Number(end) }];
}

/** A value that is known; the first where it is not. */
function oneOf<Value extends string>(known: Value[], value: string | null): Value {
  return known.find((candidate) => candidate === value) ?? known[0];
}

function interval(text: string | null): [number, number] | undefined {
  const [, start, end] = /^(-?\d+)\.\.(-?\d+)$/.exec(text ?? "") ?? [];
  return start === undefined || Number(start) >= Number(end) ? undefined : [Number(start), Number(end)];
}

function tracksOf(model: Model, text: string | null): Set<Track> | undefined {
  const found = new Set<Track>();
  for (const [, run, first, last] of (text ?? "").matchAll(/(\d+)\.(\d+)(?:-(\d+))?/g)) {
    const tracks = model.runs[Number(run)]?.tracks ?? [];
    for (const track of tracks.slice(Number(first), Number(last ?? first) + 1)) found.add(track);
  }
  return found.size ? found : undefined;
}

async function select(model: Model, text: string | null): Promise<void> {
  const [, runText, rowText] = /^(\d+)\.(\d+)$/.exec(text ?? "") ?? [];
  const run = model.runs[Number(runText)];
  if (!run || rowText === undefined) return model.select(undefined);
  await complete(run);
  const index = run.details!.row.indexOf(Number(rowText));
  model.select(index < 0 ? undefined : { run: Number(runText), index });
}
