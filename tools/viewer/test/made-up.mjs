// Pages of made-up traces, for tests: the exchange form (docs/format/timeline.md) written in JavaScript,
// so that a thousand ranks cost no simulation and no compiler.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { deflateSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));

class Column {
  #bytes = [];

  byte(value) {
    this.#bytes.push(value);
  }

  unsigned(value) {
    while (value >= 128) {
      this.#bytes.push((value % 128) + 128);
      value = Math.floor(value / 128);
    }
    this.#bytes.push(value);
  }

  signed(value) {
    this.unsigned(value >= 0 ? value * 2 : -value * 2 - 1);
  }

  packed(name) {
    const raw = Buffer.from(this.#bytes);
    return { name, raw_bytes: raw.length, data: deflateSync(raw) };
  }
}

const SHAPES = { read: "data", write: "data", copy: "data", seek: "seek" };

/**
 * The form of a trace: `functions` (name, layer, kind), `files`, `processes`, and `rows` of calls, each
 * `{ start, end, fn, file, length, offset, result, argument, parent, begunBy, endedBy }` with indices into
 * these; `parent` and causes are positions among all calls. With `cellNs`, `calls` is how many one stands for.
 */
export function timeline({ label, origin = "recorded", stretches, standsFor, cellNs, leftOut, functions, files = [], processes, phases = [], rows }) {
  const names = ["gap", "duration", "function", "file", "length", "offset", "result", "argument", "fd", "parent", "row"];
  const knowsCauses = rows.some(({ calls }) => calls.some(({ begunBy, endedBy }) => begunBy || endedBy));
  if (knowsCauses) names.push("begun_by", "ended_by");
  if (cellNs) names.push("calls");
  const columns = Object.fromEntries(names.map((name) => [name, new Column()]));
  const last = functions.map(() => ({ offset: -1, length: -1, argument: -1, result: 0 }));
  const shapes = functions.map(({ kind, layer, shape }) => shape ?? (kind === "seek" && layer !== "posix" ? "plain" : (SHAPES[kind] ?? "plain")));
  const expected = new Array(files.length + 1).fill(0);
  let [slotBefore, end] = [0, 0];
  let parentBefore = 0;
  const behind = { begun_by: 0, ended_by: 0 };
  const causes = (name, list = []) => {
    columns[name].unsigned(list.length);
    for (const cause of list) {
      columns[name].signed(cause - behind[name]);
      behind[name] = cause + 1;
    }
  };
  for (const row of rows) {
    let before = 0;
    for (const call of row.calls) {
      const slot = (call.file ?? -1) + 1;
      const seen = last[call.fn];
      const shape = shapes[call.fn];
      const { length = -1, offset = -1, argument = -1, result = 0, parent = -1 } = call;
      columns.gap.signed(call.start - before);
      columns.duration.unsigned(call.end - call.start);
      columns.function.byte(call.fn);
      columns.file.signed(slot - slotBefore);
      columns.length.signed(length - seen.length);
      columns.offset.signed(offset - (shape === "plain" ? seen.offset : expected[slot]));
      columns.result.signed(result - (shape === "data" ? length : shape === "seek" ? offset : seen.result));
      columns.argument.signed(argument - seen.argument);
      columns.fd.signed(0);
      columns.parent.signed(parent + 1 - parentBefore);
      columns.row.signed(0);
      if (cellNs) columns.calls.unsigned(call.calls ?? 0);
      if (knowsCauses) {
        causes("begun_by", call.begunBy);
        causes("ended_by", call.endedBy);
      }
      if (shape === "data") expected[slot] = offset + Math.max(result, 0);
      if (shape === "seek") expected[slot] = result;
      Object.assign(seen, { length, offset, argument, result });
      parentBefore = parent + 1;
      slotBefore = slot;
      before = call.end;
      end = Math.max(end, call.end);
    }
  }
  const packed = names.map((name) => columns[name].packed(name));
  const process = (entry) => {
    const { rank = -1, host = "", command = "", kind = rank < 0 ? "process" : "rank" } = entry;
    return { kind, rank, node: host, application: command, pid: 0, host, command, start_ns: 0, end_ns: end, ending: "exited", ...entry };
  };
  const head = Buffer.from(
    JSON.stringify({
      label, origin, stretches, stands_for: standsFor, cell_ns: cellNs, left_out: leftOut, strategies: [], start_ns: 0, end_ns: end, lost_calls: 0, files,
      count: rows.reduce((sum, { calls }) => sum + calls.length, 0),
      functions: functions.map((entry, at) => ({ ...entry, shape: shapes[at] })),
      processes: processes.map(process), phases, parts: [],
      rows: rows.map(({ process, thread = 0, depth = 0, placement = "nested", calls }) => ({ process, thread, depth, placement, count: calls.length })),
      columns: packed.map(({ name, raw_bytes, data }) => ({ name, bytes: data.length, raw_bytes })),
    }),
  );
  const sizes = Buffer.alloc(8);
  sizes.writeUInt32LE(2, 0);
  sizes.writeUInt32LE(head.length, 4);
  return Buffer.concat([Buffer.from("IOTL"), sizes, head, ...packed.map(({ data }) => data)]);
}

/** A page of timelines, and of overviews of them, as `iolab view` lays it out. */
export function page(timelines, title = "made up", overviews = []) {
  const dist = (name) => readFileSync(join(here, "../dist", name), "utf8");
  const policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; worker-src blob:";
  const scripts = (what, forms) => forms.map((bytes) => `<script type="application/x-iolab-${what}">${bytes.toString("base64")}</script>`).join("\n");
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>${title}</title><style>${dist("viewer.css")}</style></head>
<body><main><header class="opening"><h1>${title}</h1><p class="headline">${title}</p></header>
<section class="wide" aria-labelledby="timeline-heading"><h2 id="timeline-heading">Timeline</h2><div id="timeline"></div></section></main>
<script type="application/json" id="jumps">[]</script>
${scripts("overview", overviews)}
<script>${dist("viewer.js")}</script>
${scripts("timeline", timelines)}</body></html>`;
}

/** Numbers that are the same each time. */
export function random(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const FUNCTIONS = [
  { name: "MPI_File_write", layer: "mpiio", kind: "write" },
  { name: "MPI_Allreduce", layer: "mpi", kind: "message" },
  { name: "compute", layer: "program", kind: "compute" },
  { name: "serve write", layer: "server", kind: "write" },
  { name: "device write", layer: "device", kind: "write" },
  { name: "send", layer: "network", kind: "message", shape: "plain" },
  { name: "receive", layer: "network", kind: "message", shape: "plain" },
];

/** A simulated cluster: ranks that compute and write, servers that are busy, links between them. */
export function cluster({ ranks, servers, perNode = 1, phases = 4, failing = [], waiting = 12 }) {
  const pick = random(42);
  const processes = [];
  const rows = [];
  const hosts = Math.ceil(ranks / perNode);
  const span = 1_000_000_000 / phases;
  for (let rank = 0; rank < ranks; rank++) {
    processes.push({ name: `rank ${rank}`, rank, host: `client${Math.floor(rank / perNode)}`, command: "model" });
    const calls = [];
    for (let phase = 0; phase < phases; phase++) {
      let at = phase * span;
      const step = (fn, length, more = {}) => {
        calls.push({ start: at, end: at + length, fn, ...more });
        at += length;
      };
      step(2, Math.floor(span * 0.4) + pick(span / 50));
      step(1, Math.floor(span * 0.05));
      for (let write = 0; write < 4; write++) {
        const failed = failing.includes(rank) && phase === 1 && write === 2;
        step(0, Math.floor(span * 0.08) + pick(span / 30), { file: 0, offset: (rank * 4 + write) * 65536, length: 65536, result: failed ? -28 : 65536 });
      }
    }
    rows.push({ process: rank, calls });
  }
  const busy = (name, host, lanes, fns, gap) => {
    processes.push({ name: `${host} ${name}`, host, kind: { requests: "server", device: "device", sent: "nic-out", received: "nic-in" }[name] });
    for (let depth = 0; depth < lanes; depth++) {
      const calls = [];
      for (let phase = 0; phase < phases; phase++) {
        let at = Math.floor(phase * span + span * 0.45 + pick(span / 20));
        while (at < (phase + 0.9) * span) {
          const length = Math.floor(span / 60) + pick(span / 30);
          const fn = fns[pick(fns.length)];
          calls.push({ start: at, end: at + length, fn, ...(fn < 5 ? { file: 0, length: 65536, offset: 0, result: 65536 } : {}), argument: fn === 4 ? pick(3) : -1 });
          at += length + pick(gap + depth * gap);
        }
      }
      rows.push({ process: processes.length - 1, depth, placement: depth ? "concurrent" : "nested", calls });
    }
  };
  for (let server = 0; server < servers; server++) busy("requests", `server${server}`, waiting, [3], Math.floor(span / 40));
  for (let server = 0; server < servers; server++) busy("device", `server${server}`, 1, [4], Math.floor(span / 200));
  for (let host = 0; host < hosts; host++) {
    busy("sent", `client${host}`, 1, [5], Math.floor(span / 20));
    busy("received", `client${host}`, 1, [6], Math.floor(span / 20));
  }
  for (let server = 0; server < servers; server++) {
    busy("sent", `server${server}`, 1, [5], Math.floor(span / 60));
    busy("received", `server${server}`, 2, [6], Math.floor(span / 60));
  }
  return timeline({ label: "simulated", origin: "simulated", functions: FUNCTIONS, files: ["checkpoints"], processes, rows });
}

/** Two runs of the same writes, the second slower, and the second once more with the times of the first. */
export function compared() {
  const functions = [{ name: "write", layer: "posix", kind: "write" }];
  const processes = [{ name: "rank 0", rank: 0 }, { name: "rank 1", rank: 1 }];
  const run = (label, took, stretches) => {
    const calls = Array.from({ length: 40 }, (_, at) => ({ start: 2 * took * at, end: 2 * took * at + took, fn: 0, file: 0, length: 4096, offset: 4096 * at, result: 4096 }));
    return timeline({ label, stretches, functions, files: ["/data/out"], processes, rows: processes.map((_, process) => ({ process, calls })) });
  };
  return [run("A: before", 1000), run("B: after", 3000), run("B stretched", 1000, 1)];
}

/**
 * A run of so many calls and an overview of it: two ranks write 100 bytes in 5 ns every 10, each tenth time it is an
 * fsync of 9 ns; in the overview half of the time is spent in writes.
 */
export function large(count) {
  const functions = [{ name: "write", layer: "posix", kind: "write" }, { name: "fsync", layer: "posix", kind: "sync" }];
  const processes = [0, 1].map((rank) => ({ name: `rank ${rank}`, rank, kind: "rank" }));
  const rows = (calls) => processes.map((_, process) => ({ process, calls: calls(process) }));
  const call = (at, file) =>
    at % 10 ? { start: at * 10, end: at * 10 + 5, fn: 0, file, length: 100, result: 100 } : { start: at * 10, end: at * 10 + 9, fn: 1, file };
  const cell = (count * 5) / 1000;
  const stretch = (at) => ({ start: at * cell, end: at * cell + cell / 2, fn: 0 });
  const shared = { label: "large", functions, processes };
  return {
    calls: timeline({ ...shared, files: ["/a", "/b"], rows: rows((process) => Array.from({ length: count / 2 }, (_, at) => call(at, process))) }),
    overview: timeline({ ...shared, standsFor: count, rows: rows(() => Array.from({ length: 1000 }, (_, at) => stretch(at))) }),
  };
}
