// What a call hangs together with: what it brought about, and what it waited for.
//
// Servers join what many callers want: an access of a device serves several requests, and memory that it
// frees lets others go on. So effects are followed through a server only to answers for the same caller,
// and causes of an access only to the requests the call itself has made.

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

/** Where calls happen. A trace of a single machine needs none of it. */
export interface Where {
  /** Number of the node; calls of programs and of parts of a cluster share them. */
  nodeOf(at: number): number;
  /** Whether a program made it, rather than a part of a cluster. */
  isProgram(at: number): boolean;
  isDevice(at: number): boolean;
  /** Whether it is a request that a server works at. */
  isRequest(at: number): boolean;
  /** How many processes of programs are on a node. */
  programsOn(node: number): number;
  start: ArrayLike<number>;
  end: ArrayLike<number>;
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
  readonly #where: Where | undefined;
  #begun: Links | undefined;
  #ended: Links | undefined;
  #arrivals: Map<number, number[]> | undefined;

  constructor(causes: Causes, calls: number, where?: Where) {
    this.#causes = causes;
    this.#count = calls;
    this.#where = where;
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

  /** How many calls let this one begin or end, whoever waited for them. */
  causeCount(at: number): number {
    return this.neighbours(at, -1).length;
  }

  /** All that a call brought about, and all that it waited for. */
  web(at: number): Web {
    const { begunBy, endedBy } = this.#causes;
    const own = new Set([at]);
    const callers = this.#callers(at);
    const isForwardCut = spread(own, at, (call) => this.#onward(call, at, callers));
    const calls = new Set(own);
    const isBackwardCut = spread(calls, at, (call) => this.#back(call, at, own));
    const hops: Hop[] = [];
    for (const to of calls) {
      for (const from of begunBy.of(to)) if (calls.has(from)) hops.push({ from, to, kind: "begins" });
      for (const from of endedBy.of(to)) if (calls.has(from)) hops.push({ from, to, kind: "ends" });
    }
    return { calls, hops, isCut: isForwardCut || isBackwardCut };
  }

  /** From an effect of the selected call to further ones, and to what they waited for. */
  #onward(call: number, selected: number, callers: number[]): number[] {
    // Another program's call was waited for, but what it did else is its own affair.
    if (call !== selected && this.#isProgram(call)) return [];
    const effects = [...this.#begins.of(call)];
    if (call === selected && !this.#isProgram(call)) return effects;
    const waitedFor = call === selected ? [] : this.#causes.endedBy.of(call);
    return [...effects.filter((effect) => this.#isFor(callers, call, effect)), ...waitedFor, ...this.#answers(callers, call)];
  }

  /** From a cause of the selected call to earlier ones. */
  #back(call: number, selected: number, own: ReadonlySet<number>): number[] {
    const [begun, ended] = [[...this.#causes.begunBy.of(call)], [...this.#causes.endedBy.of(call)]];
    if (call === selected) return [...begun, ...ended];
    if (this.#isProgram(call)) return [];
    const ownOnes = begun.filter((cause) => own.has(cause));
    // It waited for the access, not for those who wanted it.
    const others = this.#where?.isDevice(call) ? [] : begun;
    return [...(ownOnes.length ? ownOnes : others), ...ended];
  }

  #isProgram(call: number): boolean {
    return this.#where?.isProgram(call) ?? false;
  }

  /** Whether what a cause lets a server send is for one of the callers; everything else is. */
  #isFor(callers: number[], cause: number, effect: number): boolean {
    const where = this.#where;
    if (!where || where.isDevice(effect) || where.programsOn(where.nodeOf(effect)) > 0) return true;
    const arrivals = [...this.#begins.of(effect)].filter((arrival) => where.programsOn(where.nodeOf(arrival)) > 0);
    // Of several callers on a node, an access does not say whose the answer is; the request does.
    const isClear = (arrival: number) => !where.isDevice(cause) || where.programsOn(where.nodeOf(arrival)) === 1;
    return arrivals.length === 0 || arrivals.some((arrival) => isClear(arrival) && this.#isAwaited(callers, arrival));
  }

  #isAwaited(callers: number[], arrival: number): boolean {
    const { nodeOf, start, end } = this.#where!;
    return callers.some((caller) => nodeOf(caller) === nodeOf(arrival) && start[caller] <= start[arrival] && end[arrival] <= end[caller]);
  }

  /**
   * The answers to a request, and what let them begin: whatever let the server go on just then. Where one
   * program waits on a node, it waits for all that comes from there; among several it is known by its moment.
   */
  #answers(callers: number[], request: number): number[] {
    const where = this.#where;
    if (!where?.isRequest(request)) return [];
    const { begunBy } = this.#causes;
    const found: number[] = [];
    for (const node of new Set(callers.map((caller) => where.nodeOf(caller)))) {
      const isOnlyCaller = where.programsOn(node) === 1;
      const sends = this.#arrivalsAt(node)
        .filter((arrival) => this.#isAwaited(callers, arrival))
        .map((arrival) => begunBy.of(arrival)[0])
        .filter((send) => where.nodeOf(send) === where.nodeOf(request))
        .filter((send) => isOnlyCaller || where.start[send] === where.end[request]);
      // Two at once, for two callers on one node, cannot be told apart.
      if (isOnlyCaller || sends.length === 1) found.push(...sends);
    }
    return found.flatMap((send) => [send, ...begunBy.of(send)]);
  }

  /** What has come from servers to a node with programs. */
  #arrivalsAt(node: number): number[] {
    const where = this.#where!;
    if (!this.#arrivals) {
      this.#arrivals = new Map();
      for (let at = 0; at < this.#count; at++) {
        const [send] = this.#causes.begunBy.of(at);
        if (send === undefined) continue;
        const to = where.nodeOf(at);
        if (where.programsOn(to) === 0 || where.programsOn(where.nodeOf(send)) > 0) continue;
        const list = this.#arrivals.get(to);
        if (list) list.push(at);
        else this.#arrivals.set(to, [at]);
      }
    }
    return this.#arrivals.get(node) ?? [];
  }

  /** The program calls on whose behalf a call is made: itself, or what its beginning leads back to. */
  #callers(selected: number): number[] {
    if (this.#isProgram(selected)) return [selected];
    const before = new Set([selected]);
    spread(before, selected, (call) => this.#causes.begunBy.of(call));
    return [...before].filter((call) => this.#isProgram(call));
  }
}

/** Adds what is reached from `start`; tells whether it stopped before the end. */
function spread(calls: Set<number>, start: number, next: (call: number) => Iterable<number>): boolean {
  const seen = new Set([start]);
  const waiting = [start];
  for (let at = 0; at < waiting.length; at++) {
    for (const reached of next(waiting[at])) {
      if (seen.has(reached)) continue;
      if (calls.size >= CALLS_MAX && !calls.has(reached)) return true;
      seen.add(reached);
      calls.add(reached);
      waiting.push(reached);
    }
  }
  return false;
}
