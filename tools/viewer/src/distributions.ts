// How the sizes and durations of a range's calls are distributed: so many calls by powers of two, by class.

import { countingOf } from "./prefix.ts";
import type { LoadedRun } from "./loaded.ts";
import { CLASSES } from "./palette.ts";
import type { Range } from "./range.ts";
import { countedCalls } from "./details.ts";
import { visit } from "./visit.ts";

/** Powers of two that a number in a trace can have, and 0 before them. */
const BINS = 65;

export interface Bin {
  /** Values from `low` to below `high`; both 0 for 0. */
  low: number;
  high: number;
  calls: number;
  /** Calls by class. */
  classes: number[];
}

export interface Distributions {
  /** Nanoseconds from beginning to end. */
  durations: Bin[];
  /** Bytes asked for by calls that move data. */
  sizes: Bin[];
  /** Calls that were only counted: of them neither is known. */
  onlyCounted: number;
  /** Calls that are added up on this page: nor of these. */
  gathered: number;
}

/** The calls of a range, of several runs together, by powers of two; read in steps of a few milliseconds. */
export function* distributions(runs: LoadedRun[], range: Range): Generator<undefined, Distributions> {
  const durations = new Counts();
  const sizes = new Counts();
  let [onlyCounted, gathered] = [0, 0];
  for (const run of runs) {
    const { start, end, functionOf } = run.data;
    const { length, argument, calls } = run.details!;
    const { movesData, mayCount } = countingOf(run);
    yield* visit(run, range, (at) => {
      const own = functionOf[at];
      if (calls?.[at]) {
        gathered += calls[at];
        return;
      }
      const counted = mayCount[own] ? countedCalls(run.head.functions[own], argument[at]) : 0;
      onlyCounted += counted;
      if (counted) return;
      durations.add(end[at] - start[at], run.kindOf[at]);
      if (movesData[own] && length[at] >= 0) sizes.add(length[at], run.kindOf[at]);
    });
  }
  return { durations: durations.bins(), sizes: sizes.bins(), onlyCounted, gathered };
}

/** Index of the bin of a whole number. */
export function binOf(value: number): number {
  if (value < 1) return 0;
  const power = Math.floor(Math.log2(value));
  // The logarithm may be rounded across a power of two.
  return 1 + (2 ** power > value ? power - 1 : 2 ** (power + 1) <= value ? power + 1 : power);
}

class Counts {
  readonly #counts = new Float64Array(BINS * CLASSES.length);

  add(value: number, kind: number): void {
    this.#counts[binOf(value) * CLASSES.length + kind]++;
  }

  /** From the first to the last bin that has calls. */
  bins(): Bin[] {
    const all = Array.from({ length: BINS }, (_, bin) => {
      const classes = [...this.#counts.subarray(bin * CLASSES.length, (bin + 1) * CLASSES.length)];
      const [low, high] = bin ? [2 ** (bin - 1), 2 ** bin] : [0, 0];
      return { low, high, calls: classes.reduce((sum, calls) => sum + calls, 0), classes };
    });
    const first = all.findIndex(({ calls }) => calls);
    return first < 0 ? [] : all.slice(first, all.findLastIndex(({ calls }) => calls) + 1);
  }
}
