// A run as the page holds it: its data, its rows as tracks, and how its calls are shaded.

import { Graph, type Where } from "./causes.ts";
import type { Details, PartColumn, TraceData } from "./format.ts";
import { seekShade, shadeOf } from "./palette.ts";
import { isConcurrent, places, type Place } from "./place.ts";
import type { Prefixes } from "./prefix.ts";
import type { Quantiles } from "./quantiles.ts";
import type { Run } from "./tree.ts";
import { SHADE_COUNT_MAX, SHADE_DIM, SHADE_HIDDEN, Track } from "./track.ts";

/** A call of a run, by its drawing position. */
export interface Call {
  run: number;
  index: number;
}

export interface LoadedRun extends Run {
  data: TraceData;
  places: Place[];
  /** Class of each call. */
  kindOf: Uint8Array;
  /** The slot of each call among the colours that are shown: its class, unless others were chosen. */
  colourOf: Uint8Array;
  /** What each call is drawn in: its slot, dimmed or hidden. */
  shade: Uint8Array;
  /** How many calls match the query. */
  matches: number;
  /** Unpacked in a quiet moment. */
  files?: Int32Array;
  details?: Details;
  parts?: PartColumn;
  graph?: Graph;
  /** Of many calls, some time later: what makes statistics of ranges quick. */
  sums?: Prefixes;
  quantiles?: Quantiles;
}

/** A trace with its calls cut into tracks. */
export function load(data: TraceData): LoadedRun {
  const { head, start, end, functionOf } = data;
  const shades = Uint8Array.from(head.functions, shadeOf);
  const kindOf = new Uint8Array(head.count);
  for (let at = 0; at < kindOf.length; at++) kindOf[at] = shades[functionOf[at]];
  const shade = kindOf.slice();
  let first = 0;
  const tracks = head.rows.map((row) => {
    const last = first + row.count;
    const track = new Track(first, start.subarray(first, last), end.subarray(first, last), shade.subarray(first, last));
    first = last;
    return track;
  });
  return { head, data, places: places(head), tracks, kindOf, colourOf: kindOf, shade, matches: head.stands_for ?? head.count };
}

/** Unpacks what only details, marks and statistics need. */
export async function complete(run: LoadedRun): Promise<void> {
  run.files ??= await run.data.files();
  if (run.details) return;
  const [details, parts] = await Promise.all([run.data.details(), run.data.parts()]);
  if (run.details) return;
  if (parts) run.parts = parts;
  run.details = details;
  const { functions } = run.head;
  const isDevice = functions.map(({ layer }) => layer === "device");
  for (const track of run.tracks) {
    const failures: number[] = [];
    for (let at = track.first; at < track.first + track.count; at++) {
      if (details.result[at] < 0) failures.push(at - track.first);
      if (isDevice[run.data.functionOf[at]]) run.kindOf[at] = seekShade(details.argument[at]);
    }
    if (failures.length) track.failures = Uint32Array.from(failures);
  }
}

/** The classes of a run's calls; of devices all there may be, until the details are there. */
export function classesOf(run: LoadedRun): number[] {
  const shades = new Set(run.head.functions.map(shadeOf));
  const isDevice = run.head.functions.map(({ layer }) => layer === "device");
  if (!run.details || !isDevice.includes(true)) return [...shades];
  const present = new Uint8Array(SHADE_COUNT_MAX);
  for (const kind of run.kindOf) present[kind] = 1;
  return [...present.keys()].filter((shade) => present[shade]);
}

/** What caused what in a run; empty when its trace does not say. */
export async function graphOf(run: LoadedRun): Promise<Graph> {
  const causes = await run.data.causes();
  return (run.graph ??= new Graph(causes, run.head.count, whereOf(run)));
}

/** Where the calls of a run happen. */
function whereOf(run: LoadedRun): Where {
  const { head, places, data } = run;
  const nodes = new Map<string, number>();
  const nodeOfProcess = places.map(({ node }) => nodes.get(node) ?? (nodes.set(node, nodes.size), nodes.size - 1));
  const programs = new Uint32Array(nodes.size);
  places.forEach(({ kind }, process) => isConcurrent(kind) || programs[nodeOfProcess[process]]++);
  const processAt = (call: number) => head.rows[rowOfCall(run, call)].process;
  return {
    nodeOf: (call) => nodeOfProcess[processAt(call)],
    isProgram: (call) => !isConcurrent(places[processAt(call)].kind),
    isRequest: (call) => places[processAt(call)].kind === "server",
    isDevice: (call) => places[processAt(call)].kind === "device",
    programsOn: (node) => programs[node],
    start: data.start,
    end: data.end,
  };
}

/** Shades all calls: hidden slots are not drawn, those that do not match are dimmed. */
export function shade(run: LoadedRun, hidden: ReadonlySet<number>, matches: ((at: number) => boolean) | undefined): void {
  const { colourOf, shade } = run;
  run.matches = 0;
  for (let at = 0; at < shade.length; at++) {
    const slot = colourOf[at];
    const isMatch = !matches || matches(at);
    if (isMatch) run.matches += standsFor(run, at);
    shade[at] = hidden.has(slot) ? SHADE_HIDDEN : isMatch ? slot : SHADE_DIM;
  }
  for (const track of run.tracks) track.forget();
}

/** How many calls one is: several where they are added up. Before the details are there, one. */
export function standsFor({ details }: LoadedRun, at: number): number {
  return details?.calls?.[at] || 1;
}

/** Index of the track, and of the head's row, that a call is in. */
export function rowOfCall(run: Run, index: number): number {
  let low = 0;
  let high = run.tracks.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (run.tracks[middle].first <= index) low = middle;
    else high = middle - 1;
  }
  if (index < 0 || index >= run.head.count) throw new RangeError(`call ${index} is in no row`);
  return low;
}
