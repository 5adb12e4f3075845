// The calls of a range one by one, for what is neither summed beforehand nor wanted at once.

import type { LoadedRun } from "./loaded.ts";
import { PIECE } from "./palette.ts";
import type { Range } from "./range.ts";
import { callsIn, isBefore } from "./statistics.ts";

/** A step of reading: calls before others get their turn. */
const STEP = 1 << 15;

/** Hands the calls of a range to `act`, of rows that are wanted, row by row, in steps of a few milliseconds. Extents of calls are none. */
export function* visit(run: LoadedRun, range: Range, act: (at: number, row: number) => void, isWanted: (row: number) => boolean = () => true): Generator<undefined, void> {
  let read = 0;
  for (const { row, from, to } of callsIn(run, range)) {
    if (!isWanted(row)) continue;
    for (let at = from; at < to; at++) {
      if (++read % STEP === 0) yield;
      if (run.kindOf[at] !== PIECE && !isBefore(run, range, at)) act(at, row);
    }
  }
}
