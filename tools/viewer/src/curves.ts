// How fast data is moved and how much is under way, as curves above the rows and on their time axis. Of a run of
// many calls they are drawn from cells of the whole run; a narrow view is read from its calls in the frames that
// follow, so that moving along stays smooth.

import uPlot from "uplot";
import { activity, CELLS, Cells, SERIES } from "./activity.ts";
import { element } from "./element.ts";
import { complete, type LoadedRun } from "./loaded.ts";
import type { Model } from "./model.ts";
import type { Span } from "./paint.ts";
import { CLASSES, type Theme } from "./palette.ts";
import { whileWanted } from "./pauses.ts";
import { rangeOf } from "./range.ts";
import type { Stage } from "./stage.ts";
import { size } from "./words.ts";

const HEIGHT_PX = 66;
/** A stretch of the curve is so wide. */
const STEP_PX = 2;
/** More runs than this would not be told apart. */
const RUNS_MAX = 4;
const DASHES = [[], [5, 3], [2, 2], [8, 3, 2, 3]];
/** A view is read from its calls once it has not moved for so long. */
const REST_MS = 120;
/** A step to the side that is meant as a range. */
const DRAG_PX = 4;

/** Of a run what its curves are made of, for one state of the search and the legend. */
interface Made {
  shading: number;
  cells: Cells;
}

interface Chart {
  series: number;
  element: HTMLElement;
  text: HTMLElement;
  plot: uPlot;
  runs: LoadedRun[];
}

/** A value of a series with its unit. */
function textOf(series: number, value: number): string {
  return SERIES[series].isRate ? `${size(Math.round(value))}/s` : String(+value.toPrecision(3));
}

export class Curves {
  readonly element = element("div", { class: "curves", hidden: "" });
  #model: Model;
  #stage: Stage;
  #theme: () => Theme;
  #made = new Map<LoadedRun, Made>();
  #making: number | undefined;
  #charts: Chart[] = [];
  #drawn = "";
  #turn = 0;

  constructor(model: Model, stage: Stage, theme: () => Theme) {
    [this.#model, this.#stage, this.#theme] = [model, stage, theme];
  }

  get isOpen(): boolean {
    return !this.element.hidden;
  }

  toggle(isOpen = this.element.hidden): void {
    if (isOpen === this.isOpen) return;
    this.element.hidden = !isOpen;
    this.#drawn = "";
    this.#model.changed();
  }

  get #runs(): LoadedRun[] {
    return this.#model.shownRuns.slice(0, RUNS_MAX);
  }

  draw(): void {
    if (this.element.hidden) return;
    const { view, shading, axis } = this.#model;
    if (this.#runs.some((run) => this.#made.get(run)?.shading !== shading)) void this.#make(shading);
    const state = `${view.start} ${view.end} ${shading} ${axis} ${this.#stage.width} ${this.#theme().dark} ${this.#made.size} ${JSON.stringify(this.#model.range ?? "")}`;
    if (state === this.#drawn || !this.#runs.every((run) => this.#made.has(run))) return;
    this.#drawn = state;
    this.#show(view);
  }

  /** Reads all calls, in quiet moments. */
  async #make(shading: number): Promise<void> {
    if (this.#making === shading) return;
    this.#making = shading;
    if (!this.#charts.length) this.element.replaceChildren(element("p", { class: "quiet", role: "status" }, "Calls are being read …"));
    for (const run of this.#runs) {
      await complete(run);
      const cells = await whileWanted(activity(run, { start: 0, end: this.#model.view.length }, CELLS), () => this.#model.shading === shading);
      if (!cells) break;
      this.#made.set(run, { shading, cells });
    }
    this.#making = undefined;
    this.#drawn = "";
    this.#model.changed();
  }

  get #count(): number {
    return Math.max(1, Math.round(this.#stage.width / STEP_PX));
  }

  #show(view: Span): void {
    const runs = this.#runs;
    const turn = ++this.#turn;
    const span = { start: view.start, end: view.end };
    const cells = runs.map((run) => this.#made.get(run)!.cells.resampled(span, this.#count));
    this.#plot(runs, cells);
    const isNarrow = (span.end - span.start) / this.#count < this.#made.get(runs[0])!.cells.width;
    if (isNarrow) setTimeout(() => void this.#refine(runs, span, () => turn === this.#turn && this.isOpen), REST_MS);
  }

  /** Draws a view anew from its calls, unless it has changed meanwhile. */
  async #refine(runs: LoadedRun[], span: Span, isWanted: () => boolean): Promise<void> {
    const exact: Cells[] = [];
    for (const run of runs) {
      const cells = await whileWanted(activity(run, span, this.#count), isWanted);
      if (!cells) return;
      exact.push(cells);
    }
    this.#plot(runs, exact);
  }

  /** Puts curves into charts; one that no run has anything for is left out. */
  #plot(runs: LoadedRun[], cells: Cells[]): void {
    const wanted = SERIES.map((_, series) => series).filter((series) => runs.some((run) => this.#made.get(run)!.cells.amounts[series].some(Boolean)));
    const isSame = this.#charts.length === wanted.length && this.#charts.every(({ series, runs: own }, at) => series === wanted[at] && own.length === runs.length && own.every((run, index) => run === runs[index]));
    if (!isSame) this.#build(wanted, runs);
    const { start, width, count } = cells[0];
    const times = Array.from({ length: count }, (_, cell) => start + cell * width);
    for (const chart of this.#charts) {
      const values = cells.map((of) => of.values(chart.series));
      chart.plot.setSize({ width: this.#left + this.#stage.width, height: HEIGHT_PX });
      chart.plot.setData([times, ...values]);
      this.#describe(chart, values);
    }
  }

  /** Where the time axis begins. */
  get #left(): number {
    return this.#stage.canvas.offsetLeft;
  }

  #build(wanted: number[], runs: LoadedRun[]): void {
    for (const { plot } of this.#charts) plot.destroy();
    this.#charts = wanted.map((series) => this.#chart(series, runs));
    const nothing = element("p", { class: "quiet", role: "status" }, "Nothing to draw: no call was made, or none matches.");
    this.element.replaceChildren(...(this.#charts.length ? this.#charts.map(({ element }) => element) : [nothing]));
    this.#model.changed();
  }

  #chart(series: number, runs: LoadedRun[]): Chart {
    const { name, title, shade, isRate } = SERIES[series];
    const text = element("small", {});
    const label = element("div", { class: "curve-name", title }, element("span", {}, name), text);
    const made = element("figure", { class: "curve", role: "img" }, label);
    const colour = () => (this.#theme().dark ? CLASSES[shade].dark : CLASSES[shade].light);
    const soft = () => this.#theme().soft;
    const line = () => this.#theme().line;
    const plot = new uPlot(
      {
        width: this.#left + this.#stage.width,
        height: HEIGHT_PX,
        padding: [6, 0, 4, 0],
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false, dist: DRAG_PX }, sync: { key: "timeline" } },
        scales: {
          x: { time: false, range: () => [this.#model.view.start, this.#model.view.end] },
          y: { range: (_, __, most) => [0, most > 0 ? most * 1.06 : 1] },
        },
        axes: [
          { show: false },
          {
            size: this.#left, gap: 4, stroke: soft, font: "11px system-ui, sans-serif",
            grid: { stroke: line, width: 1 }, ticks: { show: false },
            incrs: isRate ? [...Array(50).keys()].map((power) => 2 ** power) : undefined!,
            values: (_, marks) => marks.map((mark) => (mark ? textOf(series, mark) : "")),
            space: 26,
          },
        ],
        series: [{}, ...runs.map(({ head }, at) => ({ label: head.label, stroke: colour, fill: runs.length > 1 ? undefined! : () => `${colour()}33`, width: 1, dash: DASHES[at], paths: uPlot.paths.stepped!({ align: 1 }), points: { show: false } }))],
        hooks: {
          setCursor: [(of) => this.#point(of, text, series)],
          setSelect: [(of) => this.#choose(of)],
          draw: [(of) => this.#tint(of)],
        },
      },
      [[0], ...runs.map(() => [0])],
      made,
    );
    plot.root.setAttribute("aria-hidden", "true");
    plot.over.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    return { series, element: made, text, plot, runs };
  }

  /** The same as over the rows. */
  #wheel(event: WheelEvent): void {
    const { canvas } = this.#stage;
    const { left, top } = canvas.getBoundingClientRect();
    const { deltaX, deltaY, deltaMode, ctrlKey, shiftKey, metaKey, clientX } = event;
    const same = new WheelEvent("wheel", { deltaX, deltaY, deltaMode, ctrlKey, shiftKey, metaKey, clientX: Math.max(clientX, left), clientY: top + 1, cancelable: true });
    if (!canvas.dispatchEvent(same)) event.preventDefault();
  }

  /** What the curves of the view come to, in words; also read aloud. */
  #describe(chart: Chart, values: Float64Array[]): void {
    const { name } = SERIES[chart.series];
    const write = (value: number) => textOf(chart.series, value);
    const told = chart.runs.map(({ head }, at) => {
      const whose = chart.runs.length > 1 ? `${head.label}: ` : "";
      const [mean, most] = [values[at].reduce((sum, value) => sum + value, 0) / values[at].length, values[at].reduce((a, b) => Math.max(a, b), 0)];
      return `${whose}mean ${write(mean)}, most ${write(most)}`;
    });
    chart.text.textContent = told.join("; ");
    chart.text.dataset["view"] = chart.text.textContent;
    chart.element.setAttribute("aria-label", `${name} in view: ${chart.text.textContent}`);
  }

  /** The values under the pointer in place of those of the view. */
  #point({ cursor, data }: uPlot, text: HTMLElement, series: number): void {
    const at = cursor.idx;
    const values = at === null || at === undefined ? [] : data.slice(1).map((list) => list[at]);
    text.textContent = values.some((value) => typeof value === "number") ? values.map((value) => textOf(series, value ?? 0)).join(", ") : (text.dataset["view"] ?? "");
  }

  /** A drag chooses a range of all rows. */
  #choose(of: uPlot): void {
    const { left, width } = of.select;
    if (width < DRAG_PX) return;
    const [from, to] = [this.#stage.timeAt(left), this.#stage.timeAt(left + width)];
    of.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.#model.mark(rangeOf(from, to));
  }

  /** The chosen range. */
  #tint({ ctx, bbox }: uPlot): void {
    const { range } = this.#model;
    if (!range) return;
    const ratio = bbox.width / Math.max(1, this.#stage.width);
    const [left, right] = [range.start, range.end].map((time) => bbox.left + Math.min(Math.max(this.#stage.xOf(time), 0), this.#stage.width) * ratio);
    ctx.save();
    ctx.globalAlpha = 0.35;
    ctx.fillStyle = this.#theme().rangeGround;
    ctx.fillRect(left, bbox.top, Math.max(1, right - left), bbox.height);
    ctx.restore();
  }
}
