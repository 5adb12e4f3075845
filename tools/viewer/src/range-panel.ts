// What the chosen range comes to: tables, distributions, who did how much where, the longest calls. Sums follow the
// pointer; what takes longer waits until it rests and is made in quiet moments.

import { bars } from "./bars.ts";
import { callsCsv, callTable, longest } from "./calls.ts";
import { saveText } from "./csv.ts";
import { distributions } from "./distributions.ts";
import { button, element } from "./element.ts";
import { heatMap, matrixCsv } from "./heat-map.ts";
import { complete, type LoadedRun } from "./loaded.ts";
import { byFile, byServer, knowsCallers, MEASURES, NO_FILE, type Measure } from "./matrix.ts";
import type { Model } from "./model.ts";
import type { Theme } from "./palette.ts";
import { whileWanted } from "./pauses.ts";
import type { Range } from "./range.ts";
import { spentView } from "./spent.ts";
import { hasDurations, statistics, type Statistics } from "./statistics.ts";
import { csv, NAMES, Tables, type Grouped } from "./tables.ts";
import { count, duration, moment, size } from "./words.ts";

const REST_MS = 200;

/** What is shown of a range. */
export type Aspect = Grouped | "distributions" | "process-files" | "process-servers" | "longest";

export const ASPECTS: Record<Aspect, string> = {
  ...(Object.fromEntries(Object.entries(NAMES).map(([grouped, name]) => [grouped, `by ${name}`])) as Record<Grouped, string>),
  distributions: "sizes and durations",
  "process-files": "process × file",
  "process-servers": "process × server",
  longest: "longest calls",
};

const isTable = (aspect: Aspect): aspect is Grouped => aspect in NAMES;

export class RangePanel {
  readonly element = element("div", {});
  /** Told what the range comes to, or that there is none. */
  measured: (statistics: Statistics | undefined) => void = () => {};
  #model: Model;
  #theme: () => Theme;
  #tables = new Tables();
  #aspect: Aspect = "classes";
  #measure: Measure = "bytes";
  /** What is shown of the aspect; stays until the next is made. */
  #content = element("div", {});
  #pending: ReturnType<typeof setTimeout> | undefined;
  #turn = 0;
  /** What was drawn last. */
  #drawn: { range: Range; withQuantiles: boolean; run: LoadedRun } | undefined;

  constructor(model: Model, theme: () => Theme) {
    [this.#model, this.#theme] = [model, theme];
    this.#tables.chosen = (grouped, name) => void model.search(queryFor(grouped, name));
  }

  get aspect(): Aspect {
    return this.#aspect;
  }

  set aspect(aspect: Aspect) {
    if (aspect === this.#aspect) return;
    this.#aspect = aspect;
    if (isTable(aspect)) this.#tables.grouped = aspect;
    this.#content.replaceChildren();
    this.#model.changed();
    const { range } = this.#model;
    if (!range) return;
    if (this.#drawn?.range === range) {
      this.#draw(range, this.#drawn.withQuantiles);
      this.#rest(range);
    } else void this.show();
  }

  /** Follows the range: sums at once, the rest when it rests. */
  async show(): Promise<void> {
    const { range } = this.#model;
    const turn = this.#nextTurn();
    if (!range) {
      this.element.replaceChildren();
      return this.measured(undefined);
    }
    await Promise.all(this.#model.runs.map(complete));
    // While a range is drawn, only its last state within a frame is worth adding up.
    await new Promise((done) => requestAnimationFrame(done));
    if (turn !== this.#turn) return;
    this.#draw(range, this.#drawn?.range === range && this.#drawn.withQuantiles);
    this.#rest(range);
  }

  /** What was begun before is not wanted any more. */
  #nextTurn(): number {
    clearTimeout(this.#pending);
    return ++this.#turn;
  }

  /** Makes what takes longer, once the range rests. */
  #rest(range: Range): void {
    const turn = this.#nextTurn();
    this.#pending = setTimeout(() => {
      if (!isTable(this.#aspect)) void this.#detail(range, () => turn === this.#turn);
      else if (!this.#drawn?.withQuantiles) this.#draw(range, true);
    }, REST_MS);
  }

  /** To be called when a search or the legend has changed what is shown. */
  refresh(): void {
    if (this.#aspect === "longest" && this.#model.range) void this.show();
  }

  #draw(range: Range, withQuantiles: boolean): void {
    const { shownRuns: runs } = this.#model;
    const measure = { name: withQuantiles ? "range-quantiles" : "range-sums", start: performance.now() };
    const all = runs.map((run) => statistics(run, range, withQuantiles));
    performance.clearMeasures(measure.name);
    performance.measure(measure.name, { start: measure.start });
    const shown = Math.max(0, all.findIndex(({ total }) => total.calls > 0));
    const found = all[shown];
    const run = runs[shown];
    this.#drawn = { range, withQuantiles, run };
    const span = range.end - range.start;
    const several = all.filter(({ total }) => total.calls > 0).length > 1;
    const part = run.head.left_out ? ", of the calls on this page alone" : "";
    const { cell_ns: cell } = run.head;
    const edges = cell === undefined ? "" : `; calls are added up here, so that at the ends of a range up to ${duration(cell)} of them count on the wrong side`;
    const text = element("p", { class: "sum", role: "status" }, sentence(range, found, several ? run.head.label : "") + part + edges);
    const isKnown = found.parts.some((ns) => ns > 0);
    const spent = isKnown ? [spentView("Where the time of ranks' calls went", run.head.parts, found.parts)] : [];
    if (isTable(this.#aspect)) {
      this.#tables.draw(found, span, hasDurations(run));
      this.#content.replaceChildren(this.#tables.element);
    }
    this.element.replaceChildren(text, ...spent, this.#steps(range, run, found), this.#content);
    this.measured(found);
  }

  #steps(range: Range, run: LoadedRun, found: Statistics): HTMLElement {
    const steps = element("div", { class: "steps" });
    for (const aspect of Object.keys(ASPECTS) as Aspect[]) {
      if (aspect === "process-servers" && !run.places.some(({ kind }) => kind === "server")) continue;
      const made = button(ASPECTS[aspect], "", () => (this.aspect = aspect));
      made.setAttribute("aria-pressed", String(this.#aspect === aspect));
      steps.append(made);
    }
    const add = (text: string, title: string, act: () => void) => steps.append(button(text, title, act));
    add("zoom to it", "Z", () => this.#model.zoomToRange());
    add("save tables", "The tables by class, function, file and process as CSV", () => saveText("range.csv", csv(found, run.head.parts)));
    add("save calls", "The calls of the range that are not hidden and match the search as CSV", () => saveText("calls.csv", callsCsv(run, range)));
    add("clear", "Esc", () => this.#model.mark(undefined));
    return steps;
  }

  /** Makes what takes its time, unless something else is wanted meanwhile. */
  async #detail(range: Range, isWanted: () => boolean): Promise<void> {
    const made = await this.#made(range, isWanted);
    if (made && isWanted()) this.#content.replaceChildren(made);
  }

  async #made(range: Range, isWanted: () => boolean): Promise<HTMLElement | undefined> {
    const { shownRuns: runs, shown, runs: all } = this.#model;
    if (this.#aspect === "distributions") {
      const found = await whileWanted(distributions(runs, range), isWanted);
      return found && bars(found, this.#theme().dark, (query) => void this.#model.search(query));
    }
    if (this.#aspect === "longest") {
      const found = await whileWanted(longest(shown.map((index) => ({ run: all[index], index })), range), isWanted);
      return found && callTable(all, found, (call) => this.#model.reveal(call, false));
    }
    return this.#matrix(range, isWanted);
  }

  /** Of the first run that has calls in the range, as the tables. */
  async #matrix(range: Range, isWanted: () => boolean): Promise<HTMLElement | undefined> {
    const isServers = this.#aspect === "process-servers";
    const run = this.#drawn?.run;
    if (!run) return undefined;
    const causes = isServers ? await run.data.causes() : undefined;
    if (causes && !knowsCallers(run, causes)) return element("p", { class: "quiet" }, "This trace does not tell which request is whose.");
    const matrix = await whileWanted(causes ? byServer(run, causes, range) : byFile(run, range), isWanted);
    if (!matrix) return undefined;
    const across = isServers ? "server" : "file";
    const at = (column: string) => (isServers ? `class:serve-* ${term("node", column)}` : column === NO_FILE ? `-file:*` : term("file", column));
    const find = (process: string, column: string) => void this.#model.search(isServers ? at(column) : `${term("process", process)} ${at(column)}`);
    const steps = element("div", { class: "steps" });
    for (const measure of MEASURES) {
      const made = button(measure, "", () => {
        this.#measure = measure;
        draw();
      });
      steps.append(made);
    }
    steps.append(button("save matrix", "All its cells as CSV", () => saveText("matrix.csv", matrixCsv(matrix, across))));
    const content = element("div", {});
    const draw = () => {
      MEASURES.forEach((measure, at) => steps.children[at].setAttribute("aria-pressed", String(measure === this.#measure)));
      content.replaceChildren(steps, heatMap({ matrix, measure: this.#measure, across, isDark: this.#theme().dark, find }));
    };
    draw();
    return content;
  }
}

function sentence({ start, end, tracks }: Range, { total }: Statistics, label: string): string {
  const rows = tracks ? `${count(tracks.size)} ${tracks.size === 1 ? "row" : "rows"}` : "all rows";
  const whose = label ? `, ${label} (choose rows of another run for its own)` : "";
  return `${duration(end - start)} from ${moment(start)}, ${rows}${whose}: ${count(total.calls)} ${total.calls === 1 ? "call" : "calls"}, ${size(total.bytes)}, ${count(total.failures)} failed`;
}

function queryFor(grouped: Grouped, name: string): string {
  return term({ classes: "class", functions: "op", files: "file", processes: "process" }[grouped], name);
}

function term(key: string, name: string): string {
  return `${key}:${/[\s,:"]/.test(name) ? `"${name}"` : name}`;
}
