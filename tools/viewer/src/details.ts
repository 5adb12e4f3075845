// What is known about one call, as words.

import type { Details, ProcessEntry, TraceData } from "./format.ts";
import type { LoadedRun } from "./loaded.ts";
import { bytes, count, duration, moment } from "./words.ts";

export interface Fact {
  name: string;
  text: string;
}

/** Names of the more common error numbers (Linux). */
export const ERRORS: Record<number, string> = {
  1: "EPERM", 2: "ENOENT", 4: "EINTR", 5: "EIO", 9: "EBADF", 11: "EAGAIN", 12: "ENOMEM", 13: "EACCES", 14: "EFAULT",
  16: "EBUSY", 17: "EEXIST", 18: "EXDEV", 20: "ENOTDIR", 21: "EISDIR", 22: "EINVAL", 24: "EMFILE", 27: "EFBIG",
  28: "ENOSPC", 29: "ESPIPE", 30: "EROFS", 32: "EPIPE", 36: "ENAMETOOLONG", 38: "ENOSYS", 39: "ENOTEMPTY",
  75: "EOVERFLOW", 95: "EOPNOTSUPP", 122: "EDQUOT",
};

const WHENCE = ["SEEK_SET", "SEEK_CUR", "SEEK_END", "SEEK_DATA", "SEEK_HOLE"];

/** The facts that can be told at once, while the pointer rests on a call. */
export function summary({ data, files, details }: LoadedRun, index: number): Fact[] {
  const entry = data.head.functions[data.functionOf[index]];
  const file = files?.[index];
  const facts = [
    { name: "function", text: entry.name },
    { name: "process", text: data.head.processes[processOf(data, index).process].name },
    { name: "start", text: moment(data.start[index]) },
    { name: "duration", text: duration(data.end[index] - data.start[index]) },
  ];
  if (file !== undefined && file >= 0) facts.splice(1, 0, { name: "file", text: data.head.files[file] });
  const gathered = details?.calls?.[index];
  if (gathered) return [...facts.slice(0, -1), ...sumOf(data, details, entry, index)];
  if (details && details.length[index] >= 0) facts.push({ name: lengthName(entry.kind), text: bytes(details.length[index]) });
  if (details && details.result[index] < 0) facts.push({ name: "result", text: resultText(entry.kind, details.result[index]) });
  return facts;
}

/** Everything about a call, in the order it is read. */
export function facts(data: TraceData, details: Details, files: Int32Array, index: number): Fact[] {
  const entry = data.head.functions[data.functionOf[index]];
  const process = data.head.processes[processOf(data, index).process];
  const found: Fact[] = [{ name: "function", text: `${entry.name} (${entry.layer})` }];
  if (files[index] >= 0) found.push({ name: "file", text: data.head.files[files[index]] });
  if (details.calls?.[index]) {
    found.push(...sumOf(data, details, entry, index), { name: "start", text: moment(data.start[index]) });
    found.push({ name: "run", text: data.head.label }, { name: "process", text: processText(process, processOf(data, index).thread) });
    found.push({ name: "row", text: `${count(details.row[index])}, of the first of them` });
    return found;
  }
  if (details.offset[index] >= 0) {
    const isMessage = entry.layer === "network";
    const told = { name: "offset", text: count(details.offset[index]) };
    found.push(isMessage ? { name: "held back", text: `${duration(details.offset[index])} by a receiver whose memory was full` } : told);
  }
  if (details.length[index] >= 0) found.push({ name: lengthName(entry.kind), text: bytes(details.length[index]) });
  found.push({ name: "result", text: resultText(entry.kind, details.result[index]) });
  found.push({ name: "start", text: moment(data.start[index]) });
  const calls = countedCalls(entry, details.argument[index]);
  if (calls) {
    found.push({ name: "calls", text: `${count(calls)}, only counted: from this moment on, for an unknown time` });
  } else {
    found.push({ name: "duration", text: duration(data.end[index] - data.start[index], 6) });
    const argument = argumentFact(entry, details.argument[index]);
    if (argument) found.push(argument);
  }
  if (details.fd[index] >= 0) {
    const isAccess = entry.layer === "device";
    const told = { name: "descriptor", text: String(details.fd[index]) };
    found.push(isAccess ? { name: "before its first byte", text: duration(details.fd[index]) } : told);
  }
  found.push({ name: "run", text: data.head.label });
  found.push({ name: "process", text: processText(process, processOf(data, index).thread) });
  found.push({ name: "row", text: count(details.row[index]) });
  return found;
}

/** What calls come to that are added up. */
function sumOf(data: TraceData, details: Details, entry: { kind: string; shape: string }, index: number): Fact[] {
  const calls = details.calls![index];
  const within = `within ${duration(data.head.cell_ns ?? 0)}`;
  return [
    { name: "calls", text: `${count(calls)} ${within}, added up: single ones did not fit the page` },
    { name: "time in them", text: duration(data.end[index] - data.start[index], 6) },
    ...(entry.shape === "data" ? [{ name: "moved", text: bytes(details.result[index]) }] : []),
  ];
}

function lengthName(kind: string): string {
  return kind === "open" ? "file size" : "length";
}

export function resultText(kind: string, result: number): string {
  if (result < 0) return `failed: ${ERRORS[-result] ?? `error ${-result}`}`;
  return kind === "read" || kind === "write" || kind === "copy" ? bytes(result) : count(result);
}

/** How many calls on a stream the row counts; 0 when it is a call. */
export function countedCalls(entry: { layer: string; kind: string }, argument: number): number {
  if (entry.layer !== "stdio" || argument < 1) return 0;
  if (entry.kind === "seek") return Math.floor(argument / 256);
  return ["read", "write", "sync"].includes(entry.kind) ? argument : 0;
}

const SEEKS = ["none", "near", "far"];

function argumentFact({ kind, layer }: { kind: string; layer: string }, argument: number): Fact | undefined {
  if (argument < 0) return undefined;
  if (layer === "device") return { name: "seek", text: SEEKS[argument] ?? String(argument) };
  if (kind === "seek") return { name: "whence", text: WHENCE[argument] ?? String(argument) };
  if (kind === "open") return { name: "flags", text: `0${argument.toString(8)}` };
  return { name: "argument", text: String(argument) };
}

function processText(process: ProcessEntry, thread: number): string {
  const parts = [process.name];
  if (process.pid) parts.push(`pid ${process.pid}`);
  if (process.host) parts.push(process.host);
  if (thread) parts.push(`thread ${thread}`);
  return parts.join(", ");
}

/** The row of the head a call belongs to. */
export function processOf(data: TraceData, index: number): { process: number; thread: number } {
  let first = 0;
  for (const row of data.head.rows) {
    if (index < first + row.count) return row;
    first += row.count;
  }
  throw new RangeError(`call ${index} is in no row`);
}
