// What is under a point of the rows.

import { lineAt, strips, type Line, type Row } from "./layout.ts";
import type { Call, Model } from "./model.ts";
import type { Track } from "./track.ts";

export interface Hit {
  line: Line;
  call: Call;
  /** How many calls share the place. */
  count: number;
}

/** The rows at a height of the layout: of a block those that are drawn there. */
export function rowsAt(line: Line, y: number): Row[] {
  if (line.mode !== "block") return line.rows;
  const strip = strips(line.rows.length, line.height).find(({ top, bottom }) => y - line.y >= top && y - line.y < bottom);
  return strip ? line.rows.slice(strip.first, strip.beyond) : [];
}

/** The tracks between two heights, with what is nested in them. */
export function tracksBetween(lines: Line[], top: number, bottom: number): Set<Track> {
  const found = new Set<Track>();
  for (const line of lines) {
    if (line.y >= bottom || line.y + line.height <= top) continue;
    const isWhole = line.mode !== "block" || (line.y >= top && line.y + line.height <= bottom);
    const chosen = isWhole ? line.rows : blockRows(line, top, bottom);
    for (const row of chosen) for (const track of row.all) found.add(track);
  }
  return found;
}

function blockRows(line: Line, top: number, bottom: number): Row[] {
  return strips(line.rows.length, line.height)
    .filter((strip) => line.y + strip.top < bottom && line.y + strip.bottom > top)
    .flatMap((strip) => line.rows.slice(strip.first, strip.beyond));
}

/** The longest call between two moments at a height. */
export function hit(model: Model, y: number, from: number, to: number): Hit | undefined {
  const line = lineAt(model.lines, y);
  if (!line) return undefined;
  let best: { track: Track; index: number; run: number; length: number } | undefined;
  let count = 0;
  for (const row of rowsAt(line, y)) {
    for (const track of row.tracks) {
      const found = track.longest(from, to);
      if (!found) continue;
      count += found.count;
      const length = track.end[found.index] - track.start[found.index];
      if (!best || length > best.length) best = { track, index: found.index, run: row.branch.run, length };
    }
  }
  return best && { line, call: { run: best.run, index: best.track.first + best.index }, count };
}
