// Which calls are accesses to a file: where programs say what they read or write, each byte once.

import { rowOfCall, type LoadedRun } from "./loaded.ts";
import { isConcurrent } from "./place.ts";

/** Calls are not nested deeper than a trace's rows. */
const DEPTH_MAX = 64;

export interface AccessList {
  run: number;
  file: number;
  /** Positions of its accesses, in drawing order. */
  calls: Uint32Array;
  /** The same, row by row: each part is sorted by time, and nothing in it overlaps. */
  parts: Uint32Array[];
  /** The byte behind the last one touched. */
  end: number;
}

/** Calls of programs that moved bytes at a known place: once, not again inside such a call. */
export function forAccesses(run: LoadedRun, act: (at: number) => void): void {
  const { offset, result, parent } = run.details!;
  const { functionOf } = run.data;
  const moves = run.head.functions.map(({ shape }) => shape === "data");
  const isAccess = (at: number) => moves[functionOf[at]] && result[at] > 0 && offset[at] >= 0 && run.files![at] >= 0;
  const isInside = (at: number) => {
    for (let outer = parent[at], hops = 0; outer >= 0 && hops < DEPTH_MAX; outer = parent[outer], hops++) {
      if (isAccess(outer)) return true;
    }
    return false;
  };
  run.head.rows.forEach((row, index) => {
    if (isConcurrent(run.places[row.process].kind)) return;
    const { first, count } = run.tracks[index];
    for (let at = first; at < first + count; at++) if (isAccess(at) && !isInside(at)) act(at);
  });
}

export function accessesTo(run: LoadedRun, runIndex: number, file: number): AccessList | undefined {
  let [found, end] = [0, 1];
  const { offset, result } = run.details!;
  forAccesses(run, (at) => {
    if (run.files![at] !== file) return;
    found++;
    end = Math.max(end, offset[at] + result[at]);
  });
  if (!found) return undefined;
  const calls = new Uint32Array(found);
  let filled = 0;
  forAccesses(run, (at) => run.files![at] === file && (calls[filled++] = at));
  const parts: Uint32Array[] = [];
  for (let first = 0; first < found; ) {
    const track = run.tracks[rowOfCall(run, calls[first])];
    const beyond = first + firstFrom(calls.subarray(first), track.first + track.count);
    parts.push(calls.subarray(first, beyond));
    first = beyond;
  }
  return { run: runIndex, file, calls, parts, end };
}

/** The first place of an ascending list whose value is `limit` or more. */
function firstFrom(list: Uint32Array, limit: number): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (list[middle] >= limit) high = middle;
    else low = middle + 1;
  }
  return low;
}
