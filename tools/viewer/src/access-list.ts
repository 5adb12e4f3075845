// Which calls are accesses to a file: where programs say what they read or write, each byte once.

import { rowOfCall, type LoadedRun } from "./loaded.ts";
import { PIECE } from "./palette.ts";
import { isConcurrent } from "./place.ts";

/** Calls are not nested deeper than a trace's rows. */
const DEPTH_MAX = 64;

export interface AccessList {
  run: number;
  file: number;
  /** Positions of its accesses, row by row. */
  calls: Uint32Array;
  /** The same in parts, each sorted by time; calls of a part do not overlap, nor do those that extents are of. */
  parts: Uint32Array[];
  /** The byte behind the last one touched. */
  end: number;
}

/** How many bytes an access or an extent of one touched. */
export function bytesOf({ kindOf, details }: LoadedRun, at: number): number {
  return kindOf[at] === PIECE ? details!.length[at] : details!.result[at];
}

/** The call whose time and colour an access has: of an extent the one it is of. */
export function ownerOf({ kindOf, details }: LoadedRun, at: number): number {
  const parent = kindOf[at] === PIECE ? details!.parent[at] : -1;
  return parent < 0 ? at : parent;
}

/** When an access was. */
export function timeOf(run: LoadedRun, at: number): { start: number; end: number } {
  const owner = ownerOf(run, at);
  return { start: run.data.start[owner], end: run.data.end[owner] };
}

/**
 * Calls of programs that moved bytes at a known place: once, not again inside such a call. In place of a call whose
 * extents are told stand these; what a copy wrote is told by a row of its own. Row by row, a row's extents last.
 */
export function forAccesses(run: LoadedRun, act: (at: number) => void): void {
  const { kindOf, files, details, data } = run;
  const { offset, result, parent } = details!;
  const moves = run.head.functions.map(({ shape }) => shape === "data");
  const isKnown = (at: number) => offset[at] >= 0 && files![at] >= 0;
  const isCall = (at: number) => moves[data.functionOf[at]] && result[at] > 0 && isKnown(at);
  const isExtent = (at: number) => kindOf[at] === PIECE && isKnown(at) && bytesOf(run, at) > 0 && parent[at] >= 0 && moves[data.functionOf[parent[at]]] && result[parent[at]] > 0;
  const isTold = new Set<number>();
  for (let at = 0; at < kindOf.length; at++) if (isExtent(at) && files![parent[at]] === files![at]) isTold.add(parent[at]);
  const isInside = (at: number) => {
    for (let outer = parent[at], hops = 0; outer >= 0 && hops < DEPTH_MAX; outer = parent[outer], hops++) {
      if (isCall(outer)) return true;
    }
    return false;
  };
  run.head.rows.forEach((row, index) => {
    if (isConcurrent(run.places[row.process].kind)) return;
    const { first, count } = run.tracks[index];
    for (let at = first; at < first + count; at++) if (isCall(at) && !isTold.has(at) && !isInside(at)) act(at);
    for (let at = first; at < first + count; at++) if (isExtent(at) && !isInside(parent[at])) act(at);
  });
}

export function accessesTo(run: LoadedRun, runIndex: number, file: number): AccessList | undefined {
  let [found, end] = [0, 1];
  const { offset } = run.details!;
  forAccesses(run, (at) => {
    if (run.files![at] !== file) return;
    found++;
    end = Math.max(end, offset[at] + bytesOf(run, at));
  });
  if (!found) return undefined;
  const calls = new Uint32Array(found);
  let filled = 0;
  forAccesses(run, (at) => run.files![at] === file && (calls[filled++] = at));
  const parts: Uint32Array[] = [];
  const partOf = (call: number) => `${rowOfCall(run, call)} ${run.kindOf[call] === PIECE}`;
  for (let first = 0; first < found; ) {
    const track = run.tracks[rowOfCall(run, calls[first])];
    let beyond = first + 1;
    const own = partOf(calls[first]);
    while (beyond < found && calls[beyond] < track.first + track.count && calls[beyond] > calls[beyond - 1] && partOf(calls[beyond]) === own) beyond++;
    parts.push(calls.subarray(first, beyond));
    first = beyond;
  }
  return { run: runIndex, file, calls, parts, end };
}
