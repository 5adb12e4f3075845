// Starts the timeline of a page: unpacks its traces, builds the elements, connects them.

import { Accesses } from "./accesses.ts";
import { ask } from "./ask.ts";
import { Curves } from "./curves.ts";
import { summary } from "./details.ts";
import { element } from "./element.ts";
import { fromBase64, open, type Decoder, type TraceData } from "./format.ts";
import { apply, encode, type Panels } from "./fragment.ts";
import { Gestures } from "./gestures.ts";
import { goTo } from "./goto.ts";
import { Gutter } from "./gutter.ts";
import { helpDialog } from "./help.ts";
import { complete, type LoadedRun } from "./loaded.ts";
import { Model, type Call, type Jump } from "./model.ts";
import { Overview } from "./overview.ts";
import { CLASSES, theme } from "./palette.ts";
import { factList, Panel } from "./panel.ts";
import { inPauses, pause } from "./pauses.ts";
import { prefixes } from "./prefix.ts";
import { durationsOf, Quantiles } from "./quantiles.ts";
import { ASPECTS, type Aspect } from "./range-panel.ts";
import { rangeOf } from "./range.ts";
import { AXIS_PX, Stage } from "./stage.ts";
import { saveSnapshot } from "./snapshot.ts";
import { statistics, type Statistics } from "./statistics.ts";
import { Toolbar } from "./toolbar.ts";
import { groupBy } from "./tree.ts";
import { count, moment } from "./words.ts";
import { serve, Workers } from "./workers.ts";

/** Below the rows there is room for the panel. */
const PANEL_PX = 62;
const ROWS_PX_MIN = 240;
const FRAGMENT_AFTER_MS = 400;
/** Of a run of more calls sums are made, so that a range of it costs its edges. */
const READ_MAX = 200_000;

/** Opens the traces of a page, or their overviews. */
function unpack(what: "timeline" | "overview", decoder: Decoder | undefined): Promise<TraceData>[] {
  const scripts = [...document.querySelectorAll(`script[type="application/x-iolab-${what}"]`)];
  return scripts.map((script) => {
    const bytes = fromBase64(script.textContent ?? "");
    // The text is a third larger than the bytes and no longer needed.
    script.textContent = "";
    return open(bytes, decoder);
  });
}

/** Until all of the page has been read: its calls stand behind this script. */
function wholePage(): Promise<void> {
  if (document.readyState !== "loading") return Promise.resolve();
  return new Promise((done) => document.addEventListener("DOMContentLoaded", () => done(), { once: true }));
}

function jumps(): Jump[] {
  return JSON.parse(document.getElementById("jumps")?.textContent ?? "[]") as Jump[];
}

class Timeline {
  #root: HTMLElement;
  #model: Model;
  #stage: Stage;
  #overview: Overview;
  #gutter: Gutter;
  #toolbar: Toolbar;
  #panel: Panel;
  #accesses: Accesses;
  #curves: Curves;
  #scroller = element("div", { class: "scroller", tabindex: "-1" });
  #spacer = element("div", {});
  #body = element("div", { class: "body" });
  #tip = element("div", { class: "tip", hidden: "" });
  #help = helpDialog();
  #scheduled = false;
  #fragment = "";
  #written: ReturnType<typeof setTimeout> | undefined;
  #isReady = false;

  /** Listens and draws until `life` ends. */
  constructor(root: HTMLElement, data: TraceData[], life: AbortSignal) {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    this.#root = root;
    this.#model = new Model(data);
    const label = `Timeline of ${data.map(({ head }) => `${head.label}: ${count(head.stands_for ?? head.count)} calls`).join("; ")}. Press ? for keys.`;
    const canvas = element("canvas", { class: "stage", tabindex: "0", role: "application", "aria-label": label });
    this.#stage = new Stage(canvas, this.#model, theme(dark.matches));
    this.#overview = new Overview(element("canvas", { class: "overview", "aria-hidden": "true" }), this.#model, theme(dark.matches));
    this.#gutter = new Gutter(this.#model);
    this.#toolbar = new Toolbar(this.#model, {
      help: () => this.#help.showModal(),
      theme: () => this.#stage.theme,
      copyLink: () => this.#copyLink(),
      accesses: () => void this.#accesses.toggle(),
      curves: () => this.#curves.toggle(),
      measure: () => this.#measureAll(),
      snapshot: (format) => saveSnapshot([this.#toolbar.chips, this.#body, this.#curves.element, this.#accesses.element], format),
    });
    this.#curves = new Curves(this.#model, this.#stage, () => this.#stage.theme);
    this.#accesses = new Accesses(this.#model, this.#stage, () => this.#stage.theme);
    this.#panel = new Panel(this.#model, () => this.#stage.theme);
    this.#assemble();
    this.#connect(life);
    const recolour = () => {
      this.#stage.theme = this.#overview.theme = theme(dark.matches, this.#model.styles);
      this.#schedule();
    };
    this.#model.coloursChanged = () => {
      recolour();
      this.#toolbar.showLegend(this.#model.slots);
      this.#showShares(undefined);
    };
    dark.addEventListener("change", recolour, { signal: life });
    const observer = new ResizeObserver(() => this.#resize());
    observer.observe(this.#body);
    life.addEventListener("abort", () => observer.disconnect());
    window.addEventListener("resize", () => this.#resize(), { signal: life });
    this.#toolbar.showLegend(this.#model.slots);
    this.#resize();
  }

  #connect(life: AbortSignal): void {
    const model = this.#model;
    const gestures = new Gestures(this.#stage, model, {
      scroll: (px) => this.#scroll(px),
      hover: (x, y, event) => this.#hover(x, y, event, gestures.edgeAt(x) !== undefined),
      leave: () => this.#showTip(undefined),
      click: (x, y) => this.#click(x, y),
      help: () => this.#help.showModal(),
      focusSearch: () => this.#toolbar.search.focus(),
      hop: (direction) => void model.hop(direction),
      toggleWeb: () => model.toggleWeb(),
      accesses: () => void this.#accesses.toggle(),
      curves: () => this.#curves.toggle(),
      measure: () => this.#measureAll(),
      bookmark: () => void this.#bookmark(),
      goTo: () => void this.#goTo(),
      pin: () => this.#pin(),
    });
    model.bookmarksChanged = () => this.#panel.showBookmarks();
    model.changed = () => this.#schedule();
    model.selectionChanged = () => this.#selected();
    model.rangeChanged = () => void this.#panel.showRange();
    model.webChanged = () => this.#panel.showWeb();
    model.queryChanged = () => this.#toolbar.showQuery();
    model.shadesChanged = () => this.#panel.range.refresh();
    this.#panel.range.measured = (found) => this.#showShares(found);
    window.addEventListener("hashchange", () => void this.restore(), { signal: life });
  }

  #assemble(): void {
    this.#scroller.append(this.#spacer);
    this.#scroller.addEventListener("scroll", () => {
      this.#stage.scrollTop = this.#scroller.scrollTop;
      this.#showTip(undefined);
      this.#schedule();
    });
    this.#gutter.element.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && this.#scroll(event.deltaY)) event.preventDefault();
    });
    this.#body.append(this.#gutter.element, this.#stage.canvas, this.#scroller, this.#tip);
    const strip = element("div", { class: "strip" }, this.#overview.canvas);
    this.#root.replaceChildren(this.#toolbar.element, strip, this.#curves.element, this.#accesses.element, this.#body, this.#panel.element, this.#help);
  }

  /** What all that is in view comes to. */
  #measureAll(): void {
    const { start, end, length } = this.#model.view;
    this.#model.mark(rangeOf(Math.max(0, start), Math.min(length, end)));
  }

  async #bookmark(): Promise<void> {
    const { place, bookmarks } = this.#model;
    const name = await ask(this.#root, { title: "Name of the bookmark ", hint: `Kept in the address: ${moment(place.start)} to ${moment(place.end)}`, value: `${bookmarks.length + 1}` });
    if (name) this.#model.keep([...this.#model.bookmarks, { name, ...place }]);
  }

  /** Pins the row of the selected call, or lets it go. */
  #pin(): void {
    const { selected } = this.#model;
    const key = selected && this.#model.pinOf(selected);
    if (key) this.#model.togglePin(key);
  }

  async #goTo(): Promise<void> {
    const hint = "A time such as 12.5ms, or a row number of the trace such as 312164, as reports name it.";
    await ask(this.#root, { title: "Go to ", hint, value: "", fault: (text) => goTo(this.#model, text) });
  }

  /** Scrolls the rows; tells whether there was anything to scroll. */
  #scroll(px: number): boolean {
    const before = this.#scroller.scrollTop;
    this.#scroller.scrollTop += px;
    return this.#scroller.scrollTop !== before;
  }

  /** Height of the canvas: to the bottom of the window when the timeline begins near its top, else most of it. */
  #room(): number {
    const above = this.#body.getBoundingClientRect().top - this.#root.getBoundingClientRect().top;
    const top = this.#root.getBoundingClientRect().top + window.scrollY;
    const begins = top < window.innerHeight * 0.4 ? top : 0;
    return Math.max(ROWS_PX_MIN, Math.floor(window.innerHeight - begins - above - PANEL_PX));
  }

  #resize(): void {
    const room = this.#room();
    this.#model.room = room - AXIS_PX - 6;
    const height = Math.min(this.#model.height + AXIS_PX + 6, room);
    const isScrolled = this.#model.height + AXIS_PX > height;
    this.#root.classList.toggle("scrolled", isScrolled);
    this.#body.style.height = `${height + 2}px`;
    this.#spacer.style.height = `${this.#model.height + AXIS_PX}px`;
    const width = this.#stage.canvas.clientWidth;
    this.#stage.resize(width, height);
    this.#overview.resize(this.#overview.canvas.clientWidth);
    this.draw();
  }

  #schedule(): void {
    this.#writeFragment();
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      const wanted = Math.min(this.#model.height + AXIS_PX + 6, this.#room());
      const isTaller = this.#spacer.style.height !== `${this.#model.height + AXIS_PX}px`;
      if (wanted !== this.#stage.height || isTaller) this.#resize();
      else this.draw();
    });
  }

  draw(): void {
    this.#stage.draw();
    this.#overview.draw();
    this.#accesses.draw();
    this.#curves.draw();
    this.#gutter.draw(this.#stage.scrollTop);
    this.#toolbar.draw();
  }

  #hover(x: number, y: number, event: PointerEvent, isEdge: boolean): void {
    const hit = event.pointerType === "touch" || isEdge ? undefined : this.#stage.hit(x, y);
    this.#stage.canvas.style.cursor = isEdge ? "ew-resize" : hit ? "pointer" : y < AXIS_PX ? "col-resize" : "crosshair";
    const same = hit?.call.index === this.#stage.hover?.index && hit?.call.run === this.#stage.hover?.run;
    this.#showTip(hit?.call, hit?.count ?? 0, x, y);
    if (!same) this.#schedule();
  }

  #showTip(call: Call | undefined, calls = 0, x = 0, y = 0): void {
    const wasShown = this.#stage.hover !== undefined;
    this.#stage.hover = call;
    this.#tip.hidden = !call;
    if (!call) {
      if (wasShown) this.#schedule();
      return;
    }
    const run = this.#model.runs[call.run];
    this.#tip.replaceChildren(factList(summary(run, call.index)));
    if (calls > 1) this.#tip.append(element("p", {}, `longest of ${count(calls)} calls here: zoom in to tell them apart`));
    const left = this.#stage.canvas.offsetLeft + x;
    const isRight = left > this.#body.clientWidth - 300;
    this.#tip.style.left = isRight ? "auto" : `${left + 14}px`;
    this.#tip.style.right = isRight ? `${this.#body.clientWidth - left + 14}px` : "auto";
    const isLow = y > this.#stage.height - 110;
    this.#tip.style.top = isLow ? "auto" : `${y + 16}px`;
    this.#tip.style.bottom = isLow ? `${this.#body.clientHeight - y + 8}px` : "auto";
  }

  /** Unpacks in quiet moments what is not needed to draw. */
  async prepare(): Promise<void> {
    for (const run of this.#model.runs) {
      await pause();
      await complete(run);
    }
    this.#toolbar.showLegend(this.#model.slots);
    await this.#model.reshade();
    this.#showShares(undefined);
    await this.restore();
    this.#isReady = true;
    performance.mark("timeline-complete");
  }

  /** Makes in quiet moments what ranges of many calls are looked up in. */
  async sum(workers: Workers | undefined): Promise<void> {
    const large = this.#model.runs.filter(({ head }) => head.count > READ_MAX);
    for (const run of large) run.sums = await inPauses(prefixes(run));
    this.#showShares(undefined);
    await Promise.all(large.map((run) => sortDurations(run, workers)));
    performance.mark("timeline-summed");
  }

  /** The legend says how the time in calls is shared, in the range or of everything. */
  #showShares(found: Statistics | undefined): void {
    const { shownRuns: runs, view } = this.#model;
    if (this.#model.colouring !== "class") return this.#toolbar.showShares(new Map(), "");
    const everything = { start: 0, end: Math.ceil(view.length) + 1, tracks: undefined };
    if (!found && (runs.some((run) => !run.details || (run.head.count > READ_MAX && !run.sums)))) return this.#toolbar.showShares(new Map(), "");
    const all = found ? [found] : runs.map((run) => statistics(run, everything, false));
    this.#toolbar.showShares(shares(all), found ? "Share of the time within the range" : "Share of the time");
  }

  #click(x: number, y: number): void {
    this.#stage.canvas.focus({ preventScroll: true });
    this.#model.select(this.#stage.hit(x, y)?.call);
  }

  #selected(): void {
    const call = this.#model.selected;
    if (call) this.#scrollTo(call);
    void this.#panel.showCall(call).then(() => this.#writeFragment());
  }

  #scrollTo(call: Call): void {
    const line = this.#model.lineOf(call);
    if (!line) return;
    // A line that has just come to be may be below what could be scrolled to so far.
    this.#spacer.style.height = `${this.#model.height + AXIS_PX}px`;
    const bottom = this.#stage.height - AXIS_PX;
    const { fixed } = this.#model;
    if (line.y < fixed) return;
    const isAbove = line.y < this.#scroller.scrollTop + fixed;
    const isBelow = line.y + line.height > this.#scroller.scrollTop + bottom;
    if (isAbove || isBelow) this.#scroller.scrollTop = line.y - fixed - (bottom - fixed) / 3;
  }

  #writeFragment(): void {
    if (!this.#isReady) return;
    clearTimeout(this.#written);
    this.#written = setTimeout(() => {
      const fragment = encode(this.#model, this.#panels);
      if (fragment === this.#fragment) return;
      this.#fragment = fragment;
      history.replaceState(null, "", fragment ? `#${fragment}` : location.href.split("#")[0]);
    }, FRAGMENT_AFTER_MS);
  }

  /** What is open beside the rows, for the address. */
  get #panels(): Panels {
    const { aspect } = this.#panel.range;
    return { file: this.#accesses.state, curves: this.#curves.isOpen ? "on" : "", show: aspect === "classes" ? "" : aspect };
  }

  /** Shows what the address says, unless it leads to another part of the page. */
  async restore(): Promise<void> {
    const fragment = location.hash.slice(1);
    if (fragment === this.#fragment || (fragment && !fragment.includes("="))) return;
    this.#fragment = fragment;
    await apply(this.#model, fragment);
    const state = new URLSearchParams(fragment);
    this.#curves.toggle(state.get("curves") === "on");
    const aspect = state.get("show") ?? "";
    this.#panel.range.aspect = aspect in ASPECTS ? (aspect as Aspect) : "classes";
    const file = state.get("file");
    if (file) await this.#accesses.show(file);
    else this.#accesses.close();
    if (fragment) this.#root.scrollIntoView({ block: "start" });
  }

  async #copyLink(): Promise<boolean> {
    clearTimeout(this.#written);
    this.#fragment = encode(this.#model, this.#panels);
    history.replaceState(null, "", `#${this.#fragment}`);
    return navigator.clipboard?.writeText(location.href).then(() => true, () => false) ?? false;
  }

  connectJumps(all: Jump[]): void {
    for (const button of document.querySelectorAll<HTMLButtonElement>("button[data-jump]")) {
      const jump = all[Number(button.dataset["jump"])];
      if (!jump || !this.#model.runs[jump.timeline]) continue;
      button.addEventListener("click", () => {
        this.#root.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
        void this.#model.jump(jump);
      });
    }
  }
}

/** Own time by class, as a share: of programs, servers, devices and links each by themselves. */
function shares(all: Statistics[]): Map<string, number> {
  const own = new Map<string, number>();
  for (const { classes } of all) for (const sum of classes) own.set(sum.name, (own.get(sum.name) ?? 0) + sum.own);
  const groups = groupBy([...own], ([name]) => CLASSES.find((style) => style.name === name)?.part);
  const found = new Map<string, number>();
  for (const group of groups.values()) {
    const whole = group.reduce((sum, [, time]) => sum + time, 0);
    for (const [name, time] of group) found.set(name, time / Math.max(whole, 1));
  }
  return found;
}

async function sortDurations(run: LoadedRun, workers: Workers | undefined): Promise<void> {
  const { values, placeOf } = await inPauses(durationsOf(run, run.sums!));
  const levels = await workers?.levels(values, placeOf);
  if (levels) run.quantiles = new Quantiles(run, run.sums!, levels);
}

/** What is drawn of large traces while their calls are read; a picture to look at, not to touch. */
async function preview(root: HTMLElement): Promise<AbortController | undefined> {
  const overviews = await Promise.all(unpack("overview", undefined));
  if (!overviews.length) return undefined;
  const life = new AbortController();
  new Timeline(root, overviews, life.signal);
  root.inert = true;
  root.setAttribute("aria-busy", "true");
  performance.mark("timeline-previewed");
  return life;
}

async function show(root: HTMLElement, script: string): Promise<void> {
  if (!("DecompressionStream" in window)) throw new Error("this browser is older than 2023 and cannot unpack it");
  // Without a picture beforehand the calls themselves are still worth the wait.
  const previewed = await preview(root).catch(() => undefined);
  await wholePage();
  const workers = previewed && new Workers(script);
  const data = await Promise.all(unpack("timeline", workers));
  previewed?.abort();
  const timeline = new Timeline(root, data, new AbortController().signal);
  root.inert = false;
  root.removeAttribute("aria-busy");
  timeline.connectJumps(jumps());
  performance.mark("timeline-drawn");
  await timeline.prepare();
  await timeline.sum(workers);
  workers?.close();
}

async function start(script: string): Promise<void> {
  const root = document.getElementById("timeline");
  if (!root) return;
  try {
    await show(root, script);
  } catch (error) {
    const text = `The timeline cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
    root.inert = false;
    root.removeAttribute("aria-busy");
    root.replaceChildren(element("p", { class: "failure", role: "alert" }, text));
    console.error(error);
  }
}

if (typeof document === "undefined") serve();
else void start(document.currentScript?.textContent ?? "");
