// The rows of all runs as a tree: run > application > node > rank > thread, and run > servers > node >
// {requests, cache, device, received, sent}, and run > links for nodes without a server. A level that
// would not part anything is left out; long lists are cut into ranges, so that every row is two steps
// away. Side by side, the same process of all runs stands together instead.

import type { Head, ProcessEntry } from "./format.ts";
import { byRank, isConcurrent, PART_NAMES, places, type Place, type PlaceKind } from "./place.ts";
import type { Track } from "./track.ts";
import { count } from "./words.ts";

/** Runs above each other, each by nodes; the same with servers first; without applications and nodes; or the same process of all runs together. */
export type Grouping = "run" | "servers" | "flat" | "process";

/** Which rows there are, and in which order. */
export interface Arrangement {
  grouping: Grouping;
  /** How much rows weigh together; groups with more come first. `undefined`: by place. */
  weigh: ((tracks: Track[]) => number) | undefined;
  /** Whether a row is left out. */
  isLeftOut: ((track: Track) => boolean) | undefined;
}

export const AS_THEY_ARE: Arrangement = { grouping: "run", weigh: undefined, isLeftOut: undefined };

/** Whether all runs have their own times, or those that can be are stretched to lie over the first. */
export type Axis = "common" | "stretched";

/** The runs that are shown on an axis, by their indices: of a run and the same one stretched, one. */
export function shownOn(axis: Axis, heads: Pick<Head, "stretches">[]): number[] {
  const replaced = new Set(heads.map(({ stretches }) => stretches));
  return [...heads.keys()].filter((run) => (axis === "stretched" ? !replaced.has(run) : heads[run].stretches === undefined));
}

/** A run as the tree needs it. `tracks[i]` belongs to `head.rows[i]`. */
export interface Run {
  head: Head;
  tracks: Track[];
}

export interface Branch {
  /** Grows by `/` for every level. */
  key: string;
  label: string;
  /** Second, quieter part of the label. */
  note: string;
  run: number;
  /** Index of the process, −1 for a group. */
  process: number;
  children: Branch[];
  /** Of a leaf, by depth: below the first are calls made inside, or of a lane what goes on at the same time. */
  tracks: Track[];
  isLane: boolean;
  /** Shows again, from another side, what other rows show. */
  isSecondary: boolean;
  /** Levels below: 0 for a leaf. */
  height: number;
}

/** Longer lists are cut into ranges. */
const LIST_MAX = 20;
/** So many ranges at most. */
const RANGES_MAX = 16;

interface Member {
  run: number;
  index: number;
  entry: ProcessEntry;
  place: Place;
  /** Tracks by thread, in order of appearance. */
  threads: Map<number, Track[]>;
}

/** The processes of a run that made calls, by rank, then in order of appearance; without those of which all rows are left out. */
function members(run: Run, runIndex: number, { isLeftOut }: Arrangement): Member[] {
  const found = new Map<number, Member>();
  const where = places(run.head);
  const kept = isLeftOut && new Set(run.head.rows.filter((_, at) => !isLeftOut(run.tracks[at])).map(({ process }) => process));
  run.head.rows.forEach((row, at) => {
    if (kept && !kept.has(row.process)) return;
    let member = found.get(row.process);
    if (!member) {
      member = { run: runIndex, index: row.process, entry: run.head.processes[row.process], place: where[row.process], threads: new Map() };
      found.set(row.process, member);
    }
    const tracks = member.threads.get(row.thread);
    if (tracks) tracks.push(run.tracks[at]);
    else member.threads.set(row.thread, [run.tracks[at]]);
  });
  return [...found.values()].sort((a, b) => byRank(a.entry, b.entry) || a.index - b.index);
}

export function groupBy<Item, Key>(list: Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of list) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

function group(key: string, label: string, run: number, children: Branch[], note = ""): Branch {
  const height = 1 + Math.max(0, ...children.map((child) => child.height));
  return { key, label, note, run, process: -1, children, tracks: [], isLane: false, isSecondary: children.some((child) => child.isSecondary), height };
}

function leafOf(member: Member, key: string, label: string, note = ""): Branch {
  const base = { note, run: member.run, process: member.index, children: [], isLane: isConcurrent(member.place.kind), isSecondary: false, height: 0 };
  const threads = [...member.threads];
  if (threads.length === 1) return { ...base, key, label, tracks: threads[0][1] };
  const children = threads.map(([thread, tracks]) => ({ ...base, note: "", key: `${key}/${thread}`, label: `thread ${thread}`, tracks }));
  return { ...base, key, label, tracks: [], children, height: 1 };
}

/** Siblings, heaviest first. */
function sorted(list: Branch[], { weigh }: Arrangement): Branch[] {
  if (!weigh) return list;
  const weights = new Map(list.map((branch) => [branch, weigh(leaves(branch).flatMap(({ tracks }) => tracks))]));
  return list.slice().sort((a, b) => weights.get(b)! - weights.get(a)!);
}

/** Cuts a long list of siblings into ranges that are called by their first and last, or by their places when they are sorted. */
function ranged(key: string, run: number, unsorted: Branch[], arrangement: Arrangement): Branch[] {
  const list = sorted(unsorted, arrangement);
  if (list.length <= LIST_MAX) return list;
  let size = 4;
  while (list.length / size > RANGES_MAX) size *= 2;
  const ranges: Branch[] = [];
  for (let first = 0; first < list.length; first += size) {
    const part = list.slice(first, first + size);
    const label = arrangement.weigh ? `rows ${first + 1}–${first + part.length}` : rangeLabel(part[0].label, part[part.length - 1].label);
    ranges.push(group(`${key}/range${first}`, label, run, part));
  }
  return ranges;
}

/** `rank 0` and `rank 63` are `rank 0–63`. */
export function rangeLabel(first: string, last: string): string {
  if (first === last) return first;
  const [, stem, low] = /^(.*?)(\d+)(?:–\d+)?$/.exec(first) ?? [];
  const [, lastStem, high] = /^(.*?)(?:\d+–)?(\d+)$/.exec(last) ?? [];
  return stem !== undefined && stem === lastStem ? `${stem}${low}–${high}` : `${first} … ${last}`;
}

/** Ranks and other processes: by application and by node where these part anything. */
function programs(key: string, run: number, list: Member[], arrangement: Arrangement): Branch[] {
  if (arrangement.grouping === "flat") return ranged(key, run, list.map((member) => leafOf(member, `${key}/${member.index}`, member.entry.name)), arrangement);
  const ranks = list.filter(({ place }) => place.kind === "rank");
  const applications = groupBy(ranks, ({ place }) => place.application);
  if (applications.size > 1 && ranks.length > applications.size) {
    const others = list.filter(({ place }) => place.kind !== "rank");
    const groups = [...applications].map(([name, part], at) => group(`${key}/app${at}`, name || "application", run, nodes(`${key}/app${at}`, run, part, arrangement)));
    return [...sorted(groups, arrangement), ...nodes(key, run, others, arrangement)];
  }
  return nodes(key, run, list, arrangement);
}

function nodes(key: string, run: number, list: Member[], arrangement: Arrangement): Branch[] {
  const leaf = (prefix: string) => (member: Member) => leafOf(member, `${prefix}/${member.index}`, member.entry.name);
  const byNode = groupBy(list, ({ place }) => place.node);
  if (byNode.size < 2 || byNode.size === list.length) return ranged(key, run, list.map(leaf(key)), arrangement);
  const groups = [...byNode].map(([node, part]) => {
    const inner = `${key}/node ${node}`;
    return group(inner, node || "unknown node", run, ranged(inner, run, part.map(leaf(inner)), arrangement));
  });
  return ranged(key, run, groups, arrangement);
}

const PART_ORDER: PlaceKind[] = ["server", "cache", "device", "nic-in", "nic-out"];

/** Servers, each with its parts, and the links of the other nodes. */
function cluster(key: string, run: number, parts: Member[], arrangement: Arrangement): Branch[] {
  const byNode = groupBy(parts, ({ place }) => place.node);
  const isServer = (list: Member[]) => list.some(({ place }) => place.kind === "server" || place.kind === "device");
  const servers: Branch[] = [];
  const links: Member[] = [];
  for (const [node, list] of byNode) {
    if (!isServer(list)) {
      links.push(...list);
      continue;
    }
    list.sort((a, b) => PART_ORDER.indexOf(a.place.kind) - PART_ORDER.indexOf(b.place.kind));
    const inner = `${key}/servers/${node}`;
    servers.push(group(inner, node, run, list.map((member) => leafOf(member, `${inner}/${member.index}`, PART_NAMES[member.place.kind]))));
  }
  const found: Branch[] = [];
  if (servers.length) found.push(group(`${key}/servers`, "servers", run, ranged(`${key}/servers`, run, servers, arrangement), `${count(servers.length)}`));
  if (links.length) found.push({ ...group(`${key}/links`, "links of clients", run, ways(`${key}/links`, run, links, arrangement)), isSecondary: false });
  return found;
}

function ways(key: string, run: number, links: Member[], arrangement: Arrangement): Branch[] {
  return [...groupBy(links, ({ place }) => place.kind)].map(([kind, list]) => {
    const inner = `${key}/${kind}`;
    const lanes = list.map((member) => ({ ...leafOf(member, `${inner}/${member.index}`, member.place.node), isSecondary: true }));
    return group(inner, PART_NAMES[kind], run, ranged(inner, run, lanes, arrangement));
  });
}

/** How a run came to be, where its label does not say it, and what it lacks. */
function noteOf(head: Head): string {
  const origin = head.label.includes(head.origin) ? "" : head.origin;
  const lost = head.lost_calls ? `${count(head.lost_calls)} calls missing` : "";
  const part = head.left_out ? `a part, ${count(head.left_out)} rows left out` : "";
  const gathered = head.cell_ns === undefined ? "" : "calls added up";
  return [origin, lost, part, gathered].filter(Boolean).join(", ");
}

function byRun(runs: Run[], shown: number[], arrangement: Arrangement): Branch[] {
  return shown.map((index) => {
    const run = runs[index];
    const key = `run ${index}`;
    const all = members(run, index, arrangement);
    const own = all.filter(({ place }) => !isConcurrent(place.kind));
    const parts = all.filter(({ place }) => isConcurrent(place.kind));
    const groups = [programs(key, index, own, arrangement), cluster(key, index, parts, arrangement)];
    if (arrangement.grouping === "servers") groups.reverse();
    return group(key, run.head.label, index, groups.flat(), noteOf(run.head));
  });
}

/** What makes two processes of different runs the same: the rank, else the name and its count. */
function identity({ entry }: Member, namesakes: Map<string, number>): string {
  if (entry.rank >= 0) return `rank ${entry.rank}`;
  const place = (namesakes.get(entry.name) ?? 0) + 1;
  namesakes.set(entry.name, place);
  return place > 1 ? `${entry.name} (${place})` : entry.name;
}

function byProcess(runs: Run[], shown: number[], arrangement: Arrangement): Branch[] {
  const groups = new Map<string, Member[]>();
  for (const index of shown) {
    const namesakes = new Map<string, number>();
    for (const member of members(runs[index], index, arrangement)) {
      const name = identity(member, namesakes);
      groups.set(name, [...(groups.get(name) ?? []), member]);
    }
  }
  const found = [...groups].map(([name, list]) => {
    const key = `group ${name}`;
    return group(key, name, -1, list.map((member) => leafOf(member, `${key}/${member.run}/${member.index}`, runs[member.run].head.label)));
  });
  return sorted(found, arrangement);
}

/** The rows of the runs with these indices, or of all. */
export function tree(runs: Run[], arrangement: Arrangement = AS_THEY_ARE, shown: number[] = [...runs.keys()]): Branch[] {
  return arrangement.grouping === "process" ? byProcess(runs, shown, arrangement) : byRun(runs, shown, arrangement);
}

/** The leaves of a branch, from top to bottom. */
export function leaves(branch: Branch): Branch[] {
  return branch.tracks.length ? [branch] : branch.children.flatMap(leaves);
}

/** The branches from a root down to the first that is meant. */
function pathWhere(roots: Branch[], isMeant: (branch: Branch) => boolean): Branch[] {
  for (const root of roots) {
    if (isMeant(root)) return [root];
    const below = pathWhere(root.children, isMeant);
    if (below.length) return [root, ...below];
  }
  return [];
}

/** The branches from a root down to the one that has a key. */
export function pathOf(roots: Branch[], key: string): Branch[] {
  return pathWhere(roots, (branch) => branch.key === key);
}

/** The branches from a root down to the leaf that has a track. */
export function pathTo(roots: Branch[], track: Track): Branch[] {
  return pathWhere(roots, ({ tracks }) => tracks.includes(track));
}

/** Whether a branch only cuts a long list. */
export function isRange(branch: Branch): boolean {
  return /\/range\d+$/.test(branch.key);
}
