// What rows are sorted by, and which are left out.

import type { LoadedRun } from "./loaded.ts";
import { isConcurrent } from "./place.ts";
import { amountsOf, countingOf } from "./prefix.ts";
import { SHADE_DIM, type Track } from "./track.ts";

/** What rows are sorted by, most first; or by their place in the run. */
export type Order = "place" | "time" | "bytes" | "end";

export const ORDERS: [Order, string][] = [
  ["place", "by rank"],
  ["time", "by time"],
  ["bytes", "by bytes"],
  ["end", "by last end"],
];

/** How much rows weigh together; the details of the runs are unpacked. */
export function weighing(order: Order, runs: LoadedRun[]): ((tracks: Track[]) => number) | undefined {
  if (order === "place") return undefined;
  if (order === "end") return (tracks) => tracks.reduce((last, { count, end }) => Math.max(last, count ? end[count - 1] : 0), 0);
  const weights = new Map<Track, number>();
  for (const run of runs) {
    run.tracks.forEach((track, row) => weights.set(track, order === "time" ? timeIn(run, track, row) : bytesIn(run, track)));
  }
  return (tracks) => tracks.reduce((sum, track) => sum + (weights.get(track) ?? 0), 0);
}

/** What calls of a row took; those inside others are in the time of these. */
function timeIn({ head, places }: LoadedRun, { start, end, count }: Track, row: number): number {
  const { depth, process } = head.rows[row];
  if (depth > 0 && !isConcurrent(places[process].kind)) return 0;
  let sum = 0;
  for (let at = 0; at < count; at++) sum += end[at] - start[at];
  return sum;
}

function bytesIn(run: LoadedRun, { first, count }: Track): number {
  const counting = countingOf(run);
  let sum = 0;
  for (let at = first; at < first + count; at++) sum += amountsOf(run, counting, at).bytes;
  return sum;
}

/** Whether none of a row's calls is shown and matches the search. */
export function hasNoMatch({ shade }: Track): boolean {
  return shade.every((value) => value >= SHADE_DIM);
}
