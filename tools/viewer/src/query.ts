// What is typed into the search field: words that the function or file must have, and `key:value` for
// what a call must be. All of it must hold; `-` before a term turns it around.
//   op:pwrite file:*.h5 rank:0-63 size:<4k dur:>1ms error seek:far server:3

import { ERRORS } from "./details.ts";
import type { Details } from "./format.ts";
import type { LoadedRun } from "./loaded.ts";
import { CLASSES } from "./palette.ts";
import { rowOfCall } from "./loaded.ts";

/** Between two numbers, both included. */
export interface Interval {
  low: number;
  high: number;
}

export type Value =
  | { key: "word" | "op" | "file" | "node" | "process" | "class" | "layer"; patterns: RegExp[] }
  | { key: "rank" | "server" | "size" | "dur" | "offset"; intervals: Interval[] }
  | { key: "seek"; distances: number[] }
  | { key: "error"; number: number | undefined };

export type Term = Value & { isNegated: boolean };

export interface QueryError {
  message: string;
  /** Position in the text. */
  at: number;
}

const KEYS = ["op", "file", "rank", "process", "node", "server", "class", "layer", "size", "offset", "dur", "seek", "error"];
const SEEKS = ["none", "near", "far"];
const SIZE_UNITS: Record<string, number> = { "": 1, b: 1, k: 2 ** 10, kib: 2 ** 10, m: 2 ** 20, mib: 2 ** 20, g: 2 ** 30, gib: 2 ** 30, t: 2 ** 40, tib: 2 ** 40 };
const TIME_UNITS: Record<string, number> = { "": 1, ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 };
const NUMBER_UNITS: Record<string, number> = { "": 1 };

class Refused extends Error {
  readonly at: number;

  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

/** The terms of a query, or what is wrong with it and where. */
export function parseQuery(text: string): { terms: Term[] } | QueryError {
  try {
    return { terms: [...text.matchAll(/(?:"[^"]*"?|\S)+/g)].map((match) => term(match[0], match.index)) };
  } catch (error) {
    if (error instanceof Refused) return { message: error.message, at: error.at };
    throw error;
  }
}

function term(raw: string, at: number): Term {
  const isNegated = raw.startsWith("-") && raw.length > 1;
  const text = isNegated ? raw.slice(1) : raw;
  const place = at + (isNegated ? 1 : 0);
  if ((text.split('"').length - 1) % 2) throw new Refused("this quote is not closed", place + text.indexOf('"'));
  const colon = text.startsWith('"') ? -1 : text.indexOf(":");
  const key = text.slice(0, colon < 0 ? text.length : colon);
  const value = text.slice(colon + 1).replaceAll('"', "");
  if (colon < 0 && text !== "error") return { key: "word", patterns: [new RegExp(escaped(value), "i")], isNegated };
  if (!KEYS.includes(key)) throw new Refused(`there is no “${key}”; there are ${KEYS.join(", ")}. In quotes it is a word`, place);
  if (colon >= 0 && !value) throw new Refused(`“${key}:” needs a value`, place + text.length);
  return { ...valueOf(key, colon < 0 ? "" : value, place + colon + 1), isNegated };
}

function valueOf(key: string, value: string, at: number): Value {
  switch (key) {
    case "error": {
      const known = Object.entries(ERRORS).find(([, name]) => name === value.toUpperCase());
      const number = known ? Number(known[0]) : /^\d+$/.test(value) ? Number(value) : undefined;
      if (value && number === undefined) throw new Refused(`“${value}” is no error; write ENOSPC or 28`, at);
      return { key, number };
    }
    case "seek":
      return { key, distances: parts(value, at).map(({ text, place }) => oneOf(SEEKS, text, place)) };
    case "class": {
      const names = CLASSES.map(({ name }) => name);
      for (const { text, place } of parts(value, at)) if (!text.includes("*")) oneOf(names, text, place);
      return { key, patterns: parts(value, at).map(({ text }) => glob(text)) };
    }
    case "size":
    case "offset":
      return { key, intervals: intervals(value, at, SIZE_UNITS, "4k, <4k, 4k-1m") };
    case "dur":
      return { key, intervals: intervals(value, at, TIME_UNITS, "1ms, >1ms, 10us-1ms") };
    case "rank":
    case "server":
      return { key, intervals: intervals(value, at, NUMBER_UNITS, "3, 0-63, >7") };
    default:
      return { key: key as "op", patterns: parts(value, at).map(({ text }) => glob(text)) };
  }
}

function parts(value: string, at: number): { text: string; place: number }[] {
  let place = at;
  return value.split(",").map((text) => {
    const part = { text, place };
    place += text.length + 1;
    if (!text) throw new Refused("there is nothing beside this comma", part.place);
    return part;
  });
}

function oneOf(known: string[], text: string, at: number): number {
  const found = known.indexOf(text.toLowerCase());
  if (found < 0) throw new Refused(`“${text}” is none of ${known.join(", ")}`, at);
  return found;
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

function glob(text: string): RegExp {
  return new RegExp(`^${escaped(text).replaceAll("\\*", ".*").replaceAll("\\?", ".")}$`, "i");
}

function intervals(value: string, at: number, units: Record<string, number>, examples: string): Interval[] {
  return parts(value, at).map(({ text, place }) => {
    const [, relation, low, lowUnit, high, highUnit] =
      /^(<=|>=|<|>|=)?(\d+(?:\.\d+)?)([a-zµ]*)(?:-(\d+(?:\.\d+)?)([a-zµ]*))?$/i.exec(text) ?? [];
    if (low === undefined || (relation && high !== undefined)) throw new Refused(`“${text}” is no such number; write ${examples}`, place);
    const amount = (digits: string, unit: string) => {
      const factor = units[unit.toLowerCase()];
      if (factor === undefined) throw new Refused(`“${unit}” is no unit here; there are ${Object.keys(units).filter(Boolean).join(", ") || "none"}`, place + text.lastIndexOf(unit));
      return Number(digits) * factor;
    };
    const first = amount(low, lowUnit);
    if (high !== undefined) {
      // The unit of the end holds for the beginning as well: 1-4k.
      const [from, to] = [lowUnit ? first : amount(low, highUnit), amount(high, highUnit)];
      if (from > to) throw new Refused(`“${text}” ends before it begins`, place);
      return { low: from, high: to };
    }
    // All values are whole, so below a number is at most the one before it.
    if (relation === "<") return { low: -Infinity, high: Math.ceil(first) - 1 };
    if (relation === "<=") return { low: -Infinity, high: first };
    if (relation === ">") return { low: Math.floor(first) + 1, high: Infinity };
    if (relation === ">=") return { low: first, high: Infinity };
    return { low: first, high: first };
  });
}

export function needsDetails(terms: Term[]): boolean {
  return terms.some(({ key }) => ["size", "offset", "error", "seek", "class", "dur"].includes(key));
}

type Test = (at: number) => boolean;

/** Tells of each call of a run whether it matches; files, and details when they are needed, are unpacked. */
export function matcher(terms: Term[], run: LoadedRun): Test {
  const tests = terms.map((term) => {
    const test = testOf(term, run);
    return term.isNegated ? (at: number) => !test(at) : test;
  });
  return (at) => tests.every((test) => test(at));
}

function testOf(term: Term, run: LoadedRun): Test {
  const { head, data, files, details } = run;
  const { functionOf, start, end } = data;
  const within = (intervals: Interval[], value: number) => intervals.some(({ low, high }) => value >= low && value <= high);
  const fits = (patterns: RegExp[], text: string) => patterns.some((pattern) => pattern.test(text));
  const byFunction = (test: (entry: LoadedRun["head"]["functions"][number]) => boolean): Test => {
    const answers = head.functions.map(test);
    return (at) => answers[functionOf[at]];
  };
  const byFile = (test: (path: string) => boolean): Test => {
    const answers = [false, ...head.files.map(test)];
    return (at) => answers[(files?.[at] ?? -1) + 1];
  };
  const detail = (test: (details: Details, at: number) => boolean): Test => (at) => details !== undefined && test(details, at);
  switch (term.key) {
    case "word": {
      const [named, lies] = [byFunction(({ name }) => fits(term.patterns, name)), byFile((path) => fits(term.patterns, path))];
      return (at) => named(at) || lies(at);
    }
    case "op":
      return byFunction(({ name }) => fits(term.patterns, name));
    case "layer":
      return byFunction(({ layer }) => fits(term.patterns, layer));
    case "class": {
      const answers = CLASSES.map(({ name }) => fits(term.patterns, name));
      return (at) => answers[run.kindOf[at]];
    }
    case "file":
      return byFile((path) => fits(term.patterns, path) || fits(term.patterns, path.slice(path.lastIndexOf("/") + 1)));
    case "process":
      return byProcess(run, (at) => fits(term.patterns, head.processes[at].name));
    case "node":
      return byProcess(run, (at) => fits(term.patterns, run.places[at].node));
    case "rank":
      return byProcess(run, (at) => head.processes[at].rank >= 0 && within(term.intervals, head.processes[at].rank));
    case "server": {
      const nodes = [...new Set(run.places.flatMap(({ kind, node }) => (kind === "server" ? [node] : [])))];
      const chosen = new Set(nodes.filter((_, number) => within(term.intervals, number)));
      return byProcess(run, (at) => chosen.has(run.places[at].node) && head.processes[at].rank < 0);
    }
    case "dur":
      // How long each of several calls took is not known.
      return (at) => !details?.calls?.[at] && within(term.intervals, end[at] - start[at]);
    case "size":
      return detail(({ length }, at) => length[at] >= 0 && within(term.intervals, length[at]));
    case "offset": {
      // A message's is a time, see docs/format/trace.md.
      const isMessage = byFunction(({ layer }) => layer === "network");
      return detail(({ offset }, at) => offset[at] >= 0 && !isMessage(at) && within(term.intervals, offset[at]));
    }
    case "error":
      return detail(({ result }, at) => result[at] < 0 && (term.number === undefined || result[at] === -term.number));
    case "seek": {
      const isDevice = byFunction(({ layer }) => layer === "device");
      return detail(({ argument }, at) => isDevice(at) && term.distances.includes(argument[at]));
    }
  }
}

function byProcess(run: LoadedRun, test: (process: number) => boolean): Test {
  const answers = run.head.processes.map((_, at) => test(at));
  let row = -1;
  let [first, beyond] = [0, 0];
  // Calls are asked about row by row.
  return (at) => {
    if (row < 0 || at < first || at >= beyond) {
      row = rowOfCall(run, at);
      first = run.tracks[row].first;
      beyond = first + run.tracks[row].count;
    }
    return answers[run.head.rows[row].process];
  };
}
