// What a call hangs together with: calls without which it would not have begun or ended, and those that
// it brought about. Followed backwards over both kinds of cause, forwards over what was begun.

/** For each call a list of others, one behind the other. */
export interface Lists {
  /** Where the list of each call begins, and behind the last where it ends. */
  first: Uint32Array;
  /** Drawing positions. */
  items: Uint32Array;
}

export interface Causes {
  begunBy: Lists;
  endedBy: Lists;
}

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

export function listOf({ first, items }: Lists, at: number): Uint32Array {
  return items.subarray(first[at], first[at + 1]);
}

/** The same relation the other way round. */
export function inverted({ first, items }: Lists): Lists {
  const count = first.length - 1;
  const starts = new Uint32Array(count + 1);
  for (const item of items) starts[item + 1]++;
  for (let at = 0; at < count; at++) starts[at + 1] += starts[at];
  const filled = starts.slice();
  const turned = new Uint32Array(items.length);
  for (let at = 0; at < count; at++) {
    for (let place = first[at]; place < first[at + 1]; place++) turned[filled[items[place]]++] = at;
  }
  return { first: starts, items: turned };
}

export class Graph {
  readonly #causes: Causes;
  #begins: Lists | undefined;
  #ends: Lists | undefined;

  constructor(causes: Causes) {
    this.#causes = causes;
  }

  get isEmpty(): boolean {
    return this.#causes.begunBy.items.length + this.#causes.endedBy.items.length === 0;
  }

  /** One hop: what the call began or ended by, or what it lets begin and end. */
  neighbours(at: number, direction: 1 | -1): number[] {
    if (direction < 0) return [...new Set([...listOf(this.#causes.begunBy, at), ...listOf(this.#causes.endedBy, at)])];
    const begins = (this.#begins ??= inverted(this.#causes.begunBy));
    const ends = (this.#ends ??= inverted(this.#causes.endedBy));
    return [...new Set([...listOf(begins, at), ...listOf(ends, at)])];
  }

  /** All that a call brought about, and all that brought it about. */
  web(at: number): Web {
    const calls = new Set([at]);
    const begins = (this.#begins ??= inverted(this.#causes.begunBy));
    const { begunBy, endedBy } = this.#causes;
    const isForwardCut = spread(calls, [at], (call) => listOf(begins, call));
    // What its effects were joined with is not its cause: only from the call itself it goes back.
    const isBackwardCut = spread(calls, [at], (call) => [...listOf(begunBy, call), ...listOf(endedBy, call)]);
    const hops: Hop[] = [];
    for (const to of calls) {
      for (const from of listOf(begunBy, to)) if (calls.has(from)) hops.push({ from, to, kind: "begins" });
      for (const from of listOf(endedBy, to)) if (calls.has(from)) hops.push({ from, to, kind: "ends" });
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
