// Reads the exchange form of a trace (docs/format/timeline.md): a JSON head, then columns of
// differences, each compressed. What is needed to draw is decoded at once; what only the details
// of a single call need is decoded when first asked for. Who decodes, this thread or another one (workers.ts), is told.

export const VERSION = 2;

export type Shape = "data" | "seek" | "plain";

export interface FunctionEntry {
  name: string;
  layer: string;
  kind: string;
  shape: Shape;
}

export type ProcessKind = "rank" | "process" | "server" | "device" | "nic-out" | "nic-in";

export interface ProcessEntry {
  name: string;
  kind: ProcessKind;
  rank: number;
  /** The node it ran on; empty when not known. */
  node: string;
  /** The program it belongs to; empty for parts of a cluster. */
  application: string;
  pid: number;
  host: string;
  command: string;
  start_ns: number;
  end_ns: number;
  ending: string;
}

export interface PhaseEntry {
  name: string;
  application: string;
  start_ns: number;
  end_ns: number;
}

export interface RowEntry {
  process: number;
  thread: number;
  depth: number;
  /** Whether its events are inside those of the row above, or some only overlap others. */
  placement: "nested" | "concurrent";
  count: number;
}

export interface Head {
  label: string;
  origin: string;
  strategies: string[];
  count: number;
  /** Of an overview, and where calls are gathered: how many calls the trace has. */
  stands_for?: number;
  /** Where calls are gathered: how long the cells are in which they are, in nanoseconds. */
  cell_ns?: number;
  /** Of a part of a trace: how many rows of it are not here. */
  left_out?: number;
  start_ns: number;
  end_ns: number;
  lost_calls: number;
  functions: FunctionEntry[];
  files: string[];
  processes: ProcessEntry[];
  phases: PhaseEntry[];
  /** Of which run this is another one, with its time stretched so that calls stand below those of the first. */
  stretches?: number;
  /** What the parts of a call are called; empty where they are not known. */
  parts: string[];
  rows: RowEntry[];
  columns: { name: string; bytes: number; raw_bytes: number }[];
}

/** What the details of a call show; index by drawing position. */
export interface Details {
  length: Float64Array;
  offset: Float64Array;
  result: Float64Array;
  argument: Float64Array;
  fd: Int32Array;
  /** Drawing position of the enclosing call, -1 for none. */
  parent: Int32Array;
  /** Row number in the trace; of a sum that of its first call. */
  row: Uint32Array;
  /** How many calls one stands for that is a sum of them, 0 where it is a call itself; not there where all are. */
  calls?: Float64Array;
}

/** Lists of drawing positions by drawing position. */
export class Links {
  #ends: Uint32Array;
  #positions: Uint32Array;

  constructor(ends: Uint32Array, positions: Uint32Array) {
    this.#ends = ends;
    this.#positions = positions;
  }

  of(at: number): Uint32Array {
    return this.#positions.subarray(at === 0 ? 0 : this.#ends[at - 1], this.#ends[at] ?? 0);
  }

  /** How many there are in all lists. */
  get count(): number {
    return this.#positions.length;
  }
}

/** What caused what. */
export interface Causes {
  /** Calls without which one would not have begun. */
  begunBy: Links;
  /** Calls without which it would not have ended. */
  endedBy: Links;
}

/** Where the time of calls went, in the order of the head's names. */
export class PartColumn {
  #slots: Int32Array;
  #values: Float64Array;
  #width: number;

  /** `slots`: by call which of the lists is its own, −1 for none. */
  constructor(slots: Int32Array, values: Float64Array, width: number) {
    this.#slots = slots;
    this.#values = values;
    this.#width = width;
  }

  /** Nanoseconds of each part; `undefined` for what is no call of a rank. */
  of(at: number): Float64Array | undefined {
    const first = this.#slots[at] * this.#width;
    return first < 0 ? undefined : this.#values.subarray(first, first + this.#width);
  }
}

/** What of a head the columns are decoded by. */
export interface Outline {
  count: number;
  rows: { count: number }[];
  functions: { shape: Shape }[];
  files: { length: number };
}

/** A column as it stands in the form, and its length unpacked. */
export interface Packed {
  name: string;
  bytes: Uint8Array;
  size: number;
}

/** What is needed to draw. */
export interface Times {
  start: Float64Array;
  end: Float64Array;
  functionOf: Uint8Array;
}

export interface Described {
  files: Int32Array;
  details: Details;
}

/** Decodes columns, here or elsewhere. */
export interface Decoder {
  /** Whether it has time for what is not needed yet. */
  isAhead: boolean;
  times(outline: Outline, columns: Packed[]): Promise<Times>;
  described(outline: Outline, columns: Packed[]): Promise<Described>;
}

/** A trace ready to draw. Times are nanoseconds since the earliest moment of the trace. */
export interface TraceData {
  head: Head;
  start: Float64Array;
  end: Float64Array;
  /** Index into `head.functions`. */
  functionOf: Uint8Array;
  /** Index into `head.files`, -1 for none. */
  files(): Promise<Int32Array>;
  details(): Promise<Details>;
  /** Empty lists where the trace knows none. */
  causes(): Promise<Causes>;
  /** `undefined` where the trace does not tell. */
  parts(): Promise<PartColumn | undefined>;
}

/** Walks over the variable-length integers of a column. */
export class Reader {
  #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  unsigned(): number {
    const bytes = this.#bytes;
    let byte = bytes[this.#at++];
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    // Above 28 bits the shift operators of the language would wrap: multiply instead.
    let factor = 0x80;
    do {
      byte = bytes[this.#at++];
      value += (byte & 0x7f) * factor;
      factor *= 0x80;
    } while (byte >= 0x80);
    return value;
  }

  signed(): number {
    const byte = this.#bytes[this.#at];
    // Most guesses are right or nearly so.
    if (byte < 0x80) {
      this.#at++;
      return (byte >>> 1) ^ -(byte & 1);
    }
    const value = this.unsigned();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}

export class FormatError extends Error {}

/** Splits the form into its head and its compressed columns. */
export function parse(bytes: Uint8Array): { head: Head; columns: Map<string, Uint8Array> } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 12 || String.fromCharCode(...bytes.subarray(0, 4)) !== "IOTL") {
    throw new FormatError("this is not a timeline");
  }
  const version = view.getUint32(4, true);
  if (version !== VERSION) {
    throw new FormatError(`this timeline has version ${version}, the viewer reads ${VERSION}`);
  }
  let at = 12 + view.getUint32(8, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(12, at))) as Head;
  const columns = new Map<string, Uint8Array>();
  for (const column of head.columns) {
    if (at + column.bytes > bytes.length) throw new FormatError(`column ${column.name} is cut off`);
    columns.set(column.name, bytes.subarray(at, at + column.bytes));
    at += column.bytes;
  }
  return { head, columns };
}

/** Undoes deflate with what the browser (and Node) brings along. */
export async function inflate(bytes: Uint8Array, size: number): Promise<Uint8Array> {
  const source = new Blob([bytes as BlobPart]).stream();
  const reader = source.pipeThrough(new DecompressionStream("deflate")).getReader();
  const out = new Uint8Array(size);
  let at = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    out.set(value, at);
    at += value.length;
  }
  if (at !== size) throw new FormatError(`a column has ${at} bytes instead of ${size}`);
  return out;
}

const TIMES = ["gap", "duration", "function"];
const DESCRIBED = ["function", "file", "length", "offset", "result", "argument", "fd", "parent", "row"];
/** Where calls are gathered. */
const GATHERED = "calls";

/** Decodes on this thread. */
export const HERE: Decoder = {
  isAhead: false,
  async times(outline, columns) {
    const [gap, duration, functionOf] = await Promise.all(columns.map(({ bytes, size }) => inflate(bytes, size)));
    return { ...decodeTimes(outline, gap, duration), functionOf };
  },
  async described(outline, columns) {
    const [functionOf, file, ...raw] = await Promise.all(columns.map(({ bytes, size }) => inflate(bytes, size)));
    const files = decodeFiles(outline, file);
    return { files, details: decodeDetails(outline, functionOf, files, raw) };
  },
};

/** Opens a trace: after this the times and functions of all its calls are at hand. */
export async function open(bytes: Uint8Array, decoder: Decoder = HERE): Promise<TraceData> {
  const { head, columns } = parse(bytes);
  const packed = (name: string): Packed => {
    const entry = head.columns.find((candidate) => candidate.name === name);
    const found = columns.get(name);
    if (!entry || !found) throw new FormatError(`column ${name} is missing`);
    return { name, bytes: found, size: entry.raw_bytes };
  };
  const column = async (name: string): Promise<Uint8Array> => {
    const { bytes, size } = packed(name);
    return inflate(bytes, size);
  };
  const times = decoder.times(head, TIMES.map(packed));
  const once = <T>(decode: () => Promise<T>) => {
    let pending: Promise<T> | undefined;
    return () => (pending ??= decode());
  };
  const names = columns.has(GATHERED) ? [...DESCRIBED, GATHERED] : DESCRIBED;
  const described = once(async () => decoder.described(head, names.map(packed)));
  // Behind the times of the traces that are opened with this one. What goes wrong is told to who asks for them.
  if (decoder.isAhead) void Promise.resolve().then(described).catch(() => {});
  const files = async () => (await described()).files;
  const details = async () => (await described()).details;
  const causes = once(async () => {
    const links = async (name: string) =>
      columns.has(name) ? decodeLinks(head.count, await column(name)) : new Links(new Uint32Array(head.count), new Uint32Array(0));
    return { begunBy: await links("begun_by"), endedBy: await links("ended_by") };
  });
  const parts = once(async () => (columns.has("parts") ? decodeParts(head, await column("parts")) : undefined));
  return { head, ...(await times), files, details, causes, parts };
}

export function decodeTimes(head: Outline, gap: Uint8Array, duration: Uint8Array) {
  const start = new Float64Array(head.count);
  const end = new Float64Array(head.count);
  const gaps = new Reader(gap);
  const durations = new Reader(duration);
  let at = 0;
  for (const row of head.rows) {
    let before = 0;
    for (const last = at + row.count; at < last; at++) {
      start[at] = before + gaps.signed();
      end[at] = before = start[at] + durations.unsigned();
    }
  }
  return { start, end };
}

export function decodeFiles(head: Outline, raw: Uint8Array): Int32Array {
  const files = new Int32Array(head.count);
  const reader = new Reader(raw);
  let slot = 0;
  for (let at = 0; at < head.count; at++) {
    slot += reader.signed();
    files[at] = slot - 1;
  }
  return files;
}

/** For each event how many, then each as the difference from the place behind the last one. */
export function decodeLinks(count: number, raw: Uint8Array): Links {
  const ends = new Uint32Array(count);
  const positions: number[] = [];
  const reader = new Reader(raw);
  let expected = 0;
  for (let at = 0; at < count; at++) {
    for (let left = reader.unsigned(); left > 0; left--) {
      const position = expected + reader.signed();
      if (!(position >= 0 && position < count)) throw new FormatError("a cause is not in the trace");
      positions.push(position);
      expected = position + 1;
    }
    ends[at] = positions.length;
  }
  return new Links(ends, Uint32Array.from(positions));
}

/** For each event which parts took time, as bits, then how long each of them took. */
export function decodeParts({ count, parts }: Head, raw: Uint8Array): PartColumn {
  const slots = new Int32Array(count).fill(-1);
  const values: number[] = [];
  const reader = new Reader(raw);
  for (let at = 0; at < count; at++) {
    const bits = reader.unsigned();
    if (bits === 0) continue;
    if (bits >= 2 ** parts.length) throw new FormatError("a call has a part without a name");
    slots[at] = values.length / parts.length;
    for (let bit = 0; bit < parts.length; bit++) values.push(bits & (1 << bit) ? reader.unsigned() : 0);
  }
  return new PartColumn(slots, Float64Array.from(values), parts.length);
}

const [DATA, SEEK, PLAIN] = [0, 1, 2];

/** Each value is the difference from a guess; the guesses are those of the format document. */
export function decodeDetails(
  head: Outline,
  functionOf: Uint8Array,
  files: Int32Array,
  raw: Uint8Array[],
): Details {
  const { count } = head;
  const [lengths, offsets, results, args, fds, parents, rows, calls] = raw.map((bytes) => new Reader(bytes));
  const out: Details = {
    length: new Float64Array(count),
    offset: new Float64Array(count),
    result: new Float64Array(count),
    argument: new Float64Array(count),
    fd: new Int32Array(count),
    parent: new Int32Array(count),
    row: new Uint32Array(count),
  };
  const shapes = Uint8Array.from(head.functions, ({ shape }) => (shape === "data" ? DATA : shape === "seek" ? SEEK : PLAIN));
  // What was seen of each function last.
  const [lastOffset, lastLength, lastArgument] = [-1, -1, -1].map((none) => new Float64Array(shapes.length).fill(none));
  const lastResult = new Float64Array(shapes.length);
  const expected = new Float64Array(head.files.length + 1);
  const lastFd = new Int32Array(head.files.length + 1).fill(-1);
  let parent = 0;
  let row = 0;
  for (let at = 0; at < count; at++) {
    const own = functionOf[at];
    const shape = shapes[own];
    const slot = files[at] + 1;
    const length = lastLength[own] + lengths.signed();
    const offset = (shape === PLAIN ? lastOffset[own] : expected[slot]) + offsets.signed();
    const guess = shape === DATA ? length : shape === SEEK ? offset : lastResult[own];
    const result = guess + results.signed();
    const argument = lastArgument[own] + args.signed();
    if (shape === DATA) expected[slot] = offset + Math.max(result, 0);
    if (shape === SEEK) expected[slot] = result;
    lastFd[slot] += fds.signed();
    parent += parents.signed();
    row += rows.signed();
    out.length[at] = lastLength[own] = length;
    out.offset[at] = lastOffset[own] = offset;
    out.result[at] = lastResult[own] = result;
    out.argument[at] = lastArgument[own] = argument;
    out.fd[at] = lastFd[slot];
    out.parent[at] = parent - 1;
    out.row[at] = row++;
  }
  if (calls) out.calls = Float64Array.from({ length: count }, () => calls.unsigned());
  return out;
}

/** Bytes of base64 text. */
export function fromBase64(text: string): Uint8Array {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
