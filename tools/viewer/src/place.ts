// What a process is and where it stands: a rank, a plain process, or a part of a simulated cluster, and
// its node. Everything else asks here.

import type { Head, ProcessEntry } from "./format.ts";

export type PlaceKind = "rank" | "process" | "server" | "device" | "nic-out" | "nic-in" | "cache";

export interface Place {
  kind: PlaceKind;
  node: string;
  application: string;
}

/** The parts of a simulated cluster end their names with what they are. */
const PARTS: [ending: string, kind: PlaceKind][] = [
  [" requests", "server"],
  [" cache", "cache"],
  [" device", "device"],
  [" received", "nic-in"],
  [" sent", "nic-out"],
];

export function placeOf(process: ProcessEntry, origin: string): Place {
  const node = process.host;
  if (process.rank >= 0) return { kind: "rank", node, application: process.command };
  const part = origin === "simulated" && !process.command && PARTS.find(([ending]) => process.name === node + ending);
  return { kind: part ? part[1] : "process", node, application: process.command };
}

export function places(head: Head): Place[] {
  return head.processes.map((process) => placeOf(process, head.origin));
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
