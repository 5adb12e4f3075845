// Lines, folds, the view and how times are written.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Head, ProcessEntry, ProcessKind } from "../src/format.ts";
import { fit, layout, lineAt, pinnedHeight, strips, totalHeight, type Line, type Sizing } from "../src/layout.ts";
import { leaves, pathTo, AS_THEY_ARE, rangeLabel, tree, type Grouping, type Run, shownOn } from "../src/tree.ts";
import { Track } from "../src/track.ts";
import { View } from "../src/view.ts";
import { bytes, duration, moment, share, size, ticks } from "../src/words.ts";
import { countedCalls, resultText } from "../src/details.ts";

const COMFORTABLE: Sizing = { row: 20, collapsed: 0 };
type RowOf = [process: number, thread: number, depth: number];

function runOf(label: string, processes: Partial<ProcessEntry>[], rows: RowOf[]): Run {
  const head = {
    label,
    origin: label,
    processes: processes.map((entry) => ({ kind: (entry.rank ?? -1) < 0 ? "process" : "rank", rank: -1, node: entry.host ?? "", application: entry.command ?? "", host: "", command: "", ...entry })),
    rows: rows.map(([process, thread, depth]) => ({ process, thread, depth, count: 1 })),
  } as unknown as Head;
  const one = () => new Track(0, Float64Array.of(0), Float64Array.of(1), Uint8Array.of(0));
  return { head, tracks: rows.map(one) };
}

function run(label: string, ranks: number[], rows: RowOf[]): Run {
  return runOf(label, ranks.map((rank) => ({ name: rank < 0 ? "tool" : `rank ${rank}`, rank, host: "node" })), rows);
}

/** A simulated cluster with one rank per node. */
function cluster(ranks: number, servers: number, requests = 1, perNode = 1): Run {
  const processes: Partial<ProcessEntry>[] = [];
  for (let rank = 0; rank < ranks; rank++) processes.push({ name: `rank ${rank}`, rank, host: `client${Math.floor(rank / perNode)}`, command: "model" });
  const kinds: Record<string, ProcessKind> = { requests: "server", device: "device", sent: "nic-out", received: "nic-in" };
  const part = (host: string, what: string) => processes.push({ name: `${host} ${what}`, host, kind: kinds[what] });
  for (let server = 0; server < servers; server++) for (const what of ["requests", "device", "sent", "received"]) part(`server${server}`, what);
  for (let node = 0; node < ranks / perNode; node++) for (const what of ["sent", "received"]) part(`client${node}`, what);
  const rows = processes.flatMap(({ name }, at) => Array.from({ length: name!.endsWith("requests") ? requests : 1 }, (_, depth): RowOf => [at, 0, depth]));
  return runOf("simulated", processes, rows);
}

function lines(runs: Run[], grouping: Grouping, choices: [string, boolean][] = [], sizing = COMFORTABLE): Line[] {
  return layout(tree(runs, { ...AS_THEY_ARE, grouping }), sizing, new Map(choices));
}

const names = (list: Line[]) => list.map((line) => line.label || line.note);

const two = [
  run("recorded", [1, 0], [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 3, 0]]),
  run("simulated", [0, 1], [[0, 0, 0], [1, 0, 0]]),
];

test("runs stand below each other, ranks in order, nesting below its calls", () => {
  assert.deepEqual(names(lines(two, "run")), ["recorded", "rank 0", "thread 0", "thread 3", "rank 1", "nested", "simulated", "rank 0", "rank 1"]);
});

test("side by side, the same rank of all runs stands together", () => {
  assert.deepEqual(
    names(lines(two, "process")),
    ["rank 0", "recorded", "thread 0", "thread 3", "simulated", "rank 1", "recorded", "nested", "simulated"],
  );
});

test("a collapsed group becomes one block in which all its rows are", () => {
  const found = lines(two, "run", [["run 0", false]]);
  assert.deepEqual(names(found), ["recorded", "simulated", "rank 0", "rank 1"]);
  assert.equal(found[0].rows.length, 3);
  assert.equal(found[0].mode, "block");
  assert.equal(found[0].folded, true);
  assert.equal(found[0].rows.flatMap(({ all }) => all).length, 4, "nested calls are in it, so that a failure among them shows");
});

test("a run says where it comes from unless its name does, and what it lacks", () => {
  const [plain, other] = ["recorded", "measured"].map((label) => run(label, [0], [[0, 0, 0]]));
  other.head.origin = "recorded";
  other.head.lost_calls = 1200;
  const notes = lines([plain, other], "run").filter((line) => line.level === 0).map((line) => line.note);
  assert.deepEqual(notes, ["", "recorded, 1,200 calls missing"]);
});

test("a part of a trace says how much of it is not there", () => {
  const part = run("recorded", [0], [[0, 0, 0]]);
  part.head = { ...part.head, left_out: 12_345 };
  assert.equal(tree([part])[0].note, "a part, 12,345 rows left out");
});

test("a run without any call is a heading", () => {
  assert.deepEqual(lines([run("recorded", [0], [])], "run").map(({ label, mode }) => [label, mode]), [["recorded", "heading"]]);
});

test("servers stand by themselves, each with its requests, device and links", () => {
  assert.deepEqual(names(lines([cluster(2, 1)], "run")), [
    "simulated", "rank 0", "rank 1", "servers", "server0", "requests", "device", "received", "sent",
    "links of clients", "sent", "client0", "client1", "received", "client0", "client1",
  ]);
});

test("ranks are grouped by node where nodes have several, and long lists into ranges", () => {
  const [shared] = tree([cluster(16, 0, 1, 4)], AS_THEY_ARE);
  assert.deepEqual(shared.children.slice(0, 4).map(({ label }) => label), ["client0", "client1", "client2", "client3"]);
  const [alone] = tree([cluster(1000, 0)], AS_THEY_ARE);
  assert.deepEqual(alone.children.slice(0, 2).map(({ label }) => label), ["rank 0–63", "rank 64–127"]);
  assert.equal(leaves(alone).length, 3000);
  assert.equal(rangeLabel("sh", "cp"), "sh … cp");
  assert.equal(rangeLabel("rank 0–63", "rank 64–127"), "rank 0–127");
});

test("what requests of a server overlap is one lane, opened at most sixteen lines", () => {
  const servers = [cluster(1, 1, 64)];
  const lane = lines(servers, "run").find(({ label }) => label === "requests")!;
  assert.deepEqual([lane.mode, lane.folded, lane.rows[0].tracks.length], ["lane", true, 64]);
  const opened = lines(servers, "run", [[lane.key, true]]).filter(({ key }) => key.startsWith(`${lane.key}@`));
  assert.equal(opened.length, 16);
  assert.deepEqual([opened[14].mode, opened[15].mode, opened[15].rows[0].tracks.length, opened[15].note], ["calls", "lane", 49, "16 to 64"]);
});

test("a thousand ranks and twenty servers are in sight at once, every row three steps away at most", () => {
  const room = 600;
  const roots = tree([cluster(1000, 20, 12)], AS_THEY_ARE);
  const sizing = fit(roots, room);
  const all = layout(roots, sizing, new Map());
  assert.ok(totalHeight(all) <= room, `${totalHeight(all)} px`);
  const drawn = new Set(all.flatMap(({ rows }) => rows.flatMap((row) => row.tracks)));
  for (const leaf of roots.flatMap(leaves)) assert.ok(leaf.tracks.every((track) => drawn.has(track)), `${leaf.key} is drawn`);
  const shown = names(all);
  for (let server = 0; server < 20; server++) assert.ok(shown.includes(`server${server}`));
  const some = roots.flatMap(leaves).filter((_, at) => at % 101 === 0);
  for (const leaf of [...some, ...leaves(roots[0].children.find(({ label }) => label === "servers")!)]) {
    const choices = new Map<string, boolean>();
    const line = () => layout(roots, sizing, choices).find(({ key }) => key === leaf.key);
    const path = pathTo(roots, leaf.tracks[0]);
    // Opening the lowest group in sight around a row, until the row has a line of its own.
    for (let step = 0; step < 3 && !line(); step++) {
      const open = layout(roots, sizing, choices);
      const block = path.findLast(({ key }) => open.some((candidate) => candidate.key === key && candidate.folded))!;
      choices.set(block.key, true);
    }
    assert.ok(line() && line()!.height >= 12, `${leaf.key} is reached`);
  }
});

test("with room to spare rows are comfortable, and what does not fit at all is collapsed furthest", () => {
  const roots = tree([cluster(2, 1)], AS_THEY_ARE);
  assert.deepEqual(fit(roots, 1000), COMFORTABLE);
  assert.equal(fit(roots, 10).row, 0);
});

test("a block has a strip per row where there is room, and merges neighbours where there is none", () => {
  assert.deepEqual(strips(2, 20), [{ first: 0, beyond: 1, top: 0, bottom: 10 }, { first: 1, beyond: 2, top: 10, bottom: 20 }]);
  const tight = strips(1000, 12);
  assert.equal(tight.length, 12);
  assert.deepEqual([tight[0].first, tight[11].beyond], [0, 1000]);
  tight.slice(1).forEach((strip, at) => assert.deepEqual([strip.first, strip.top], [tight[at].beyond, tight[at].bottom]));
});

test("lines do not overlap and are found by their height", () => {
  const found = lines(two, "run");
  found.slice(1).forEach((line, at) => assert.ok(line.y >= found[at].y + found[at].height));
  for (const line of found) assert.equal(lineAt(found, line.y + 1), line);
  assert.equal(lineAt(found, totalHeight(found) + 1), undefined);
  assert.equal(lineAt(found, found[0].height + 1), undefined, "nothing is between lines");
});

test("zooming keeps the moment under the pointer in place", () => {
  const view = new View(1_000_000);
  view.show(200_000, 600_000);
  view.zoom(4, 300_000);
  assert.ok(Math.abs((300_000 - view.start) / view.span - 0.25) < 1e-9);
  assert.ok(Math.abs(view.span - 100_000) < 1e-6);
});

test("a leap can be taken back, one after the other", () => {
  const view = new View(1000);
  view.remember();
  view.show(100, 200);
  view.remember();
  view.show(120, 150);
  view.back();
  assert.deepEqual([view.start, view.end], [100, 200]);
  view.back();
  assert.ok(view.start <= 0 && view.end >= 1000);
  view.back();
  assert.ok(view.end >= 1000, "there is nothing before the first");
});

test("no move leaves the trace or goes below a few nanoseconds", () => {
  const view = new View(1000);
  for (let round = 0; round < 100; round++) view.zoom(3, 500);
  assert.ok(view.span >= 20);
  view.pan(1e12);
  assert.ok(view.end <= 1000 * 1.03);
  for (let round = 0; round < 100; round++) view.zoom(0.5, 0);
  assert.ok(view.span <= 1000 * 1.05 && view.start <= 0 && view.end >= 1000);
  view.show(900, 100);
  assert.ok(view.span >= 20);
});

test("ticks are round, inside the view, and relative far in", () => {
  const far = ticks(0, 1e9, 10);
  assert.deepEqual(far.ticks.slice(0, 3).map((tick) => tick.text), ["0", "100 ms", "200 ms"]);
  const near = ticks(12_345_678_000, 12_345_679_000, 5);
  assert.ok(near.base > 0);
  assert.ok(near.ticks.every((tick) => tick.text.startsWith("+")));
  for (const { time } of near.ticks) assert.ok(time >= 12_345_678_000 && time <= 12_345_679_000);
});

test("times, sizes and results are written for people and exactly", () => {
  assert.equal(duration(437), "437 ns");
  assert.equal(duration(1_250_000), "1.25 ms");
  assert.equal(moment(12_345_678), "0.012\u202f345\u202f678 s");
  assert.equal(bytes(64), "64 B");
  assert.equal(bytes(4096), "4,096 B (4 KiB)");
  assert.equal(resultText("write", -28), "failed: ENOSPC");
  assert.deepEqual([share(0.12345), share(0.00001), share(1), share(0.0213)], ["12.3 %", "< 0.1 %", "100 %", "2.1 %"]);
  assert.deepEqual([size(1023), size(1536), size(3 * 2 ** 30)], ["1023 B", "1.5 KiB", "3 GiB"]);
});

test("a row that counts calls on a stream says how many, and no other row does", () => {
  assert.equal(countedCalls({ layer: "stdio", kind: "write" }, 4095), 4095);
  assert.equal(countedCalls({ layer: "stdio", kind: "seek" }, 3 * 256), 3);
  assert.equal(countedCalls({ layer: "stdio", kind: "seek" }, 2), 0);
  assert.equal(countedCalls({ layer: "stdio", kind: "write" }, -1), 0);
  assert.equal(countedCalls({ layer: "posix", kind: "sync" }, 4), 0);
});

test("a run and the same one stretched are never shown together", () => {
  const heads = [{}, {}, { stretches: 1 }];
  assert.deepEqual(shownOn("common", heads), [0, 1]);
  assert.deepEqual(shownOn("stretched", heads), [0, 2]);
  assert.deepEqual(shownOn("stretched", [{}, {}]), [0, 1]);
});

test("pinned rows stand above all others, in their order, and nowhere else", () => {
  const roots = tree([cluster(8, 2)]);
  const keyOf = (label: string) => layout(roots, COMFORTABLE, new Map()).find((line) => line.label === label)!.key;
  const [rank, server] = [keyOf("rank 5"), keyOf("server1")];
  const found = layout(roots, COMFORTABLE, new Map(), [server, "no such key", rank]);
  assert.deepEqual(found.filter(({ isPinned }) => isPinned).map(({ label, note }) => [label, note]), [["server1", "servers"], ["rank 5", ""]]);
  assert.deepEqual(found.slice(2, 4).map(({ label }) => label), ["simulated", "rank 0"]);
  assert.equal(found.filter(({ label }) => label === "rank 5" || label === "server1").length, 2);
  assert.equal(pinnedHeight(found) <= found[2].y, true);
  assert.equal(pinnedHeight(layout(roots, COMFORTABLE, new Map())), 0);
  const all = new Set(leaves({ ...roots[0] }).flatMap(({ tracks }) => tracks));
  const drawn = layout(roots, { row: 1, collapsed: 9 }, new Map(), [server, rank]).flatMap(({ rows }) => rows.flatMap(({ tracks }) => tracks));
  assert.deepEqual([new Set(drawn).size, drawn.length], [all.size, all.size]);
});

test("a group of which all is pinned is not there, and what is pinned can be opened", () => {
  const roots = tree([cluster(2, 2)]);
  const servers = roots[0].children.find(({ label }) => label === "servers")!;
  const keys = servers.children.map(({ key }) => key);
  const closed = layout(roots, COMFORTABLE, new Map(), keys);
  assert.equal(closed.some(({ key }) => key === servers.key), false);
  const open = layout(roots, COMFORTABLE, new Map([[keys[0], true]]), keys);
  const [opened, device] = [open.findIndex(({ key }) => key === keys[0]), open.findIndex(({ label }) => label === "device")];
  assert.equal(open[opened].mode === "heading" && open[device].isPinned && device > opened, true);
});
