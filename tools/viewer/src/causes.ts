// What a call hangs together with: calls without which it would not have begun or ended, and those that
// it brought about. Followed backwards over both kinds of cause, forwards over what was begun.

import { Links, type Causes } from "./format.ts";

export interface Hop {
  from: number;
  to: number;
  /** Whether `from` let `to` begin, or end. */
  kind: "begins" | "ends";
}

/** What a call hangs together with. */
export interface Web {
  calls: Set<number>;
  hops: Hop[];
  /** Whether there would be more. */
  isCut: boolean;
}

const CALLS_MAX = 3000;

/** The same relation the other way round, among so many calls. */
export function inverted(links: Links, calls: number): Links {
  const ends = new Uint32Array(calls);
  for (let at = 0; at < calls; at++) for (const cause of links.of(at)) ends[cause]++;
  // First where each list begins; filling it moves that to where it ends.
  let before = 0;
  for (let at = 0; at < calls; at++) {
    const length = ends[at];
    ends[at] = before;
    before += length;
  }
  const positions = new Uint32Array(links.count);
  for (let at = 0; at < calls; at++) for (const cause of links.of(at)) positions[ends[cause]++] = at;
  return new Links(ends, positions);
}

export class Graph {
  readonly #causes: Causes;
  readonly #count: number;
  #begun: Links | undefined;
  #ended: Links | undefined;

  constructor(causes: Causes, calls: number) {
    this.#causes = causes;
    this.#count = calls;
  }

  get isEmpty(): boolean {
    return this.#causes.begunBy.count + this.#causes.endedBy.count === 0;
  }

  /** What each call lets begin. */
  get #begins(): Links {
    return (this.#begun ??= inverted(this.#causes.begunBy, this.#count));
  }

  get #ends(): Links {
    return (this.#ended ??= inverted(this.#causes.endedBy, this.#count));
  }

  /** One hop: what the call began or ended by, or what it lets begin and end. */
  neighbours(at: number, direction: 1 | -1): number[] {
    const { begunBy, endedBy } = this.#causes;
    const [one, other] = direction < 0 ? [begunBy, endedBy] : [this.#begins, this.#ends];
    return [...new Set([...one.of(at), ...other.of(at)])];
  }

  /** All that a call brought about, and all that brought it about. */
  web(at: number): Web {
    const calls = new Set([at]);
    const begins = this.#begins;
    const { begunBy, endedBy } = this.#causes;
    const isForwardCut = spread(calls, [at], (call) => begins.of(call));
    // What its effects were joined with is not its cause: only from the call itself it goes back.
    const isBackwardCut = spread(calls, [at], (call) => [...begunBy.of(call), ...endedBy.of(call)]);
    const hops: Hop[] = [];
    for (const to of calls) {
      for (const from of begunBy.of(to)) if (calls.has(from)) hops.push({ from, to, kind: "begins" });
      for (const from of endedBy.of(to)) if (calls.has(from)) hops.push({ from, to, kind: "ends" });
    }
    return { calls, hops, isCut: isForwardCut || isBackwardCut };
  }
}

/** Adds what is reached from `start`; tells whether it stopped before the end. */
function spread(calls: Set<number>, start: number[], next: (call: number) => Iterable<number>): boolean {
  const seen = new Set(start);
  const waiting = start.slice();
  for (let at = 0; at < waiting.length; at++) {
    for (const reached of next(waiting[at])) {
      if (seen.has(reached)) continue;
      if (calls.size >= CALLS_MAX) return true;
      seen.add(reached);
      calls.add(reached);
      waiting.push(reached);
    }
  }
  return false;
}
