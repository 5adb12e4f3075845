// A stretch of time, of all rows or of some.

import type { Track } from "./track.ts";

export interface Range {
  /** Whole nanoseconds on the common axis; `end` does not belong to it. */
  start: number;
  end: number;
  /** `undefined`: all rows. */
  tracks: ReadonlySet<Track> | undefined;
}

/** A range that is kept under a name. */
export interface Bookmark {
  name: string;
  start: number;
  end: number;
}

export function rangeOf(a: number, b: number, tracks?: ReadonlySet<Track>): Range {
  const [start, end] = [Math.round(Math.min(a, b)), Math.round(Math.max(a, b))];
  return { start, end: Math.max(end, start + 1), tracks };
}
