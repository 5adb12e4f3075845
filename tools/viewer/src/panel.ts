// Below the rows: the selected call, and what the chosen range comes to.

import { facts, type Fact } from "./details.ts";
import { element } from "./element.ts";
import { hopTable } from "./hops.ts";
import { complete } from "./loaded.ts";
import type { Call, Model } from "./model.ts";
import { spentView } from "./spent.ts";
import { statistics, type Statistics } from "./statistics.ts";
import { csv, NAMES, Tables, type Grouped } from "./tables.ts";
import { count, duration, moment, size } from "./words.ts";

const HINT = "Click a call for its details, drag over rows for statistics of a range. The wheel scrolls, with ctrl it zooms, with shift it moves along; ? tells all keys.";
/** Sums follow the pointer; quantiles wait until it rests. */
const QUANTILES_AFTER_MS = 200;

export class Panel {
  readonly element = element("div", { class: "details" });
  #call = element("div", { "aria-live": "polite" });
  #web = element("div", {});
  #range = element("div", {});
  #tables = new Tables();
  #model: Model;
  #pending: ReturnType<typeof setTimeout> | undefined;
  #drawn = 0;
  /** Told what the range comes to, or that there is none. */
  measured: (statistics: Statistics | undefined) => void = () => {};

  constructor(model: Model) {
    this.#model = model;
    this.element.append(this.#call, this.#web, this.#range);
    this.#tables.chosen = (grouped, name) => void model.search(queryFor(grouped, name));
    void this.showCall(undefined);
  }

  async showCall(call: Call | undefined): Promise<void> {
    if (!call) this.#web.replaceChildren();
    if (!call) {
      this.#call.replaceChildren(...(this.#model.range ? [] : [element("p", { class: "quiet" }, HINT)]));
      return;
    }
    const run = this.#model.runs[call.run];
    await complete(run);
    if (this.#model.selected !== call || !run.details || !run.files) return;
    const list = factList(facts(run.data, run.details, run.files, call.index));
    const parent = run.details.parent[call.index];
    const steps = element("div", { class: "steps" });
    const add = (text: string, act: () => void) => steps.append(button(text, act));
    add("‹ previous", () => this.#model.step(-1));
    add("next ›", () => this.#model.step(1));
    add("zoom to it", () => this.#model.reveal(call, true));
    if (parent >= 0) {
      const outer = run.head.functions[run.data.functionOf[parent]].name;
      add(`inside ${outer}`, () => this.#model.reveal({ run: call.run, index: parent }, false));
    }
    const parts = run.parts?.of(call.index);
    const spent = parts ? [spentView("Where its time went", run.head.parts, parts)] : [];
    this.#call.replaceChildren(list, ...spent, steps);
  }

  /** The hops from and to the selected call. */
  showWeb(): void {
    const { selected, web } = this.#model;
    if (!selected || !web) return this.#web.replaceChildren();
    this.#web.replaceChildren(hopTable(this.#model, selected, web));
  }

  /** Follows the range: sums at once, quantiles when it rests. */
  async showRange(): Promise<void> {
    const { range, selected } = this.#model;
    clearTimeout(this.#pending);
    const turn = ++this.#drawn;
    if (!range) {
      this.#range.replaceChildren();
      if (!selected) await this.showCall(undefined);
      return this.measured(undefined);
    }
    if (!selected) this.#call.replaceChildren();
    await Promise.all(this.#model.runs.map(complete));
    // While a range is drawn, only its last state within a frame is worth adding up.
    await new Promise((done) => requestAnimationFrame(done));
    if (turn !== this.#drawn) return;
    this.#drawRange(false);
    this.#pending = setTimeout(() => this.#drawRange(true), QUANTILES_AFTER_MS);
  }

  #drawRange(withQuantiles: boolean): void {
    const { range, shownRuns: runs } = this.#model;
    if (!range) return;
    const measure = { name: withQuantiles ? "range-quantiles" : "range-sums", start: performance.now() };
    const all = runs.map((run) => statistics(run, range, withQuantiles));
    performance.clearMeasures(measure.name);
    performance.measure(measure.name, { start: measure.start });
    const shown = all.findIndex(({ total }) => total.calls > 0);
    const found = all[Math.max(0, shown)];
    const span = range.end - range.start;
    const rows = range.tracks ? `${count(range.tracks.size)} ${range.tracks.size === 1 ? "row" : "rows"}` : "all rows";
    const several = all.filter(({ total }) => total.calls > 0).length;
    const { total } = found;
    const whose = several > 1 ? `, ${runs[shown].head.label} (choose rows of another run for its own)` : "";
    const text = `${duration(span)} from ${moment(range.start)}, ${rows}${whose}: ${count(total.calls)} ${total.calls === 1 ? "call" : "calls"}, ${size(total.bytes)}, ${count(total.failures)} failed`;
    const steps = element("div", { class: "steps" });
    for (const grouped of Object.keys(NAMES) as Grouped[]) {
      const made = button(`by ${NAMES[grouped]}`, () => {
        this.#tables.grouped = grouped;
        this.#drawRange(withQuantiles);
      });
      made.setAttribute("aria-pressed", String(this.#tables.grouped === grouped));
      steps.append(made);
    }
    steps.append(button("zoom to it", () => this.#model.zoomToRange()), button("save as CSV", () => save("range.csv", csv(found, runs[Math.max(0, shown)].head.parts))), button("clear", () => this.#model.mark(undefined)));
    this.#tables.draw(found, span);
    const isKnown = found.parts.some((ns) => ns > 0);
    const spent = isKnown ? [spentView("Where the time of ranks' calls went", runs[Math.max(0, shown)].head.parts, found.parts)] : [];
    this.#range.replaceChildren(element("p", { class: "sum", role: "status" }, text), ...spent, steps, this.#tables.element);
    this.measured(found);
  }
}

function queryFor(grouped: Grouped, name: string): string {
  const key = { classes: "class", functions: "op", files: "file", processes: "process" }[grouped];
  return `${key}:${/[\s,:"]/.test(name) ? `"${name}"` : name}`;
}

function button(text: string, act: () => void): HTMLButtonElement {
  const made = element("button", { type: "button" }, text);
  made.addEventListener("click", act);
  return made;
}

export function factList(list: Fact[]): HTMLElement {
  const made = element("dl", {});
  for (const { name, text } of list) {
    made.append(element("div", {}, element("dt", {}, name), element("dd", {}, text)));
  }
  return made;
}

/** Hands a text to the user as a file. */
function save(name: string, text: string): void {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
