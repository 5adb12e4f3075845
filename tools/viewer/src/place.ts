// What a process is and where it stands: a rank, a plain process, or a part of a simulated cluster, and
// its node. Everything else asks here.

import type { Head, ProcessEntry, ProcessKind } from "./format.ts";

export type PlaceKind = ProcessKind | "cache";

export interface Place {
  kind: PlaceKind;
  node: string;
  application: string;
}

/** Parts of a simulated cluster end their names with what they are; traces of before have only that. */
const PARTS: [ending: string, kind: PlaceKind][] = [
  [" requests", "server"],
  [" cache", "cache"],
  [" device", "device"],
  [" received", "nic-in"],
  [" sent", "nic-out"],
];

export function placeOf(process: ProcessEntry, origin: string): Place {
  const { node, application } = process;
  return { kind: kindOf(process, origin), node, application };
}

function kindOf({ kind, name, node, command }: ProcessEntry, origin: string): PlaceKind {
  const isNamed = kind === "server" || (kind === "process" && origin === "simulated" && !command);
  const part = isNamed && PARTS.find(([ending]) => name === node + ending);
  return part ? part[1] : kind;
}

export function places(head: Head): Place[] {
  return head.processes.map((process) => placeOf(process, head.origin));
}

/** Ranks in their order, before others. */
export function byRank(a: { rank: number }, b: { rank: number }): number {
  const [one, other] = [a, b].map(({ rank }) => (rank < 0 ? Infinity : rank));
  return one === other ? 0 : one - other;
}

/** Parts serve many at once: their calls overlap and do not nest. */
export function isConcurrent(kind: PlaceKind): boolean {
  return kind !== "rank" && kind !== "process";
}

/** What the row of a part is called below its node. */
export const PART_NAMES: Record<PlaceKind, string> = {
  rank: "",
  process: "",
  server: "requests",
  cache: "cache",
  device: "device",
  "nic-in": "received",
  "nic-out": "sent",
};
