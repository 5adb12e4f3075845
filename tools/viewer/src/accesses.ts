// One file over time: every access a rectangle, from its first byte to its last, from its start to its
// end, in the colour of its class. Above the rows and on their time axis, so that a pattern is seen
// beside who makes it. Of many accesses every 64th is painted first and the rest in the frames that
// follow, so that moving along stays smooth with ten million of them.

import { accessesTo, bytesOf, forAccesses, ownerOf, timeOf, type AccessList } from "./access-list.ts";
import { element } from "./element.ts";
import { complete } from "./loaded.ts";
import type { Call, Model } from "./model.ts";
import { fill, type Picture } from "./paint.ts";
import type { Theme } from "./palette.ts";
import type { Stage } from "./stage.ts";
import { SHADE_HIDDEN } from "./track.ts";
import { count, size } from "./words.ts";

const HEIGHT_PX = 180;
const REACH_PX = 5;
const PASSES = 64;
const FRAME_MS_MAX = 6;

export class Accesses {
  readonly element = element("div", { class: "accesses", hidden: "" });
  #canvas = element("canvas", { role: "img", tabindex: "0", "aria-label": "Accesses that are being read" });
  #select = element("select", { "aria-label": "File whose accesses are drawn" });
  #axis = element("div", { class: "scale", "aria-hidden": "true" });
  #model: Model;
  #stage: Stage;
  #shown: AccessList | undefined;
  #image: ImageData | undefined;
  #painted = "";
  #brush: Generator<void> | undefined;
  #continuing = 0;
  theme: () => Theme;

  constructor(model: Model, stage: Stage, theme: () => Theme) {
    this.#model = model;
    this.#stage = stage;
    this.theme = theme;
    const body = element("div", { class: "accesses-body" }, this.#axis, this.#canvas);
    const isGathered = model.runs.some(({ head }) => head.cell_ns !== undefined);
    const title = isGathered ? "Single accesses, none of those that are added up, to " : "Accesses to ";
    this.element.append(element("label", {}, title, this.#select), body);
    this.#select.addEventListener("change", () => void this.show(this.#select.value));
    this.#canvas.addEventListener("click", (event) => {
      const call = this.#hit(event.offsetX, event.offsetY);
      if (call) model.reveal(call, false);
    });
    this.#canvas.addEventListener("keydown", (event) => this.#stage.canvas.dispatchEvent(new KeyboardEvent("keydown", event)));
  }

  /** `run.file`, as it stands in the address; nothing when the panel is closed. */
  get state(): string {
    return this.element.hidden || !this.#shown ? "" : `${this.#shown.run}.${this.#shown.file}`;
  }

  /** Opens the panel on a file, or on the one that is accessed most; closes it when it is open. */
  async toggle(): Promise<void> {
    if (!this.element.hidden) {
      this.element.hidden = true;
      return this.#model.changed();
    }
    await Promise.all(this.#model.runs.map(complete));
    this.#fillSelect();
    const { selected, runs } = this.#model;
    const chosen = selected && runs[selected.run].files![selected.index] >= 0 ? `${selected.run}.${runs[selected.run].files![selected.index]}` : "";
    const isListed = [...this.#select.options].some(({ value }) => value === chosen);
    await this.show(isListed ? chosen : (this.#select.options[0]?.value ?? ""));
  }

  #fillSelect(): void {
    if (this.#select.options.length) return;
    this.#model.runs.forEach((run, index) => {
      const label = this.#model.runs.length > 1 ? `${run.head.label}: ` : "";
      const counts = new Uint32Array(run.head.files.length);
      forAccesses(run, (at) => counts[run.files![at]]++);
      const ordered = [...counts.keys()].filter((file) => counts[file]).sort((a, b) => counts[b] - counts[a]);
      for (const file of ordered) {
        this.#select.append(element("option", { value: `${index}.${file}` }, `${label}${run.head.files[file]} (${count(counts[file])})`));
      }
    });
    if (!this.#select.options.length) this.#select.append(element("option", { value: "" }, "no file: nothing was read or written"));
  }

  /** Opens the panel on the file `run.file`. */
  async show(state: string): Promise<void> {
    const [run, file] = state.split(".").map(Number);
    const loaded = this.#model.runs[run];
    if (loaded) {
      await complete(loaded);
      this.#fillSelect();
    }
    this.#shown = loaded && accessesTo(loaded, run, file);
    // An address may name a file that is not there, or not accessed.
    if (!this.#shown && state) return this.close();
    this.#select.value = state;
    this.#painted = "";
    this.element.hidden = false;
    this.#model.changed();
  }

  close(): void {
    this.element.hidden = true;
  }

  draw(): void {
    if (this.element.hidden) return;
    const ratio = Math.min(window.devicePixelRatio || 1, 3);
    const canvas = this.#canvas;
    const [width, height] = [Math.max(1, Math.round(this.#stage.width * ratio)), Math.round(HEIGHT_PX * ratio)];
    const { view, shading } = this.#model;
    const state = `${width} ${view.start} ${view.end} ${shading} ${this.theme().dark} ${this.#shown?.run} ${this.#shown?.file}`;
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) return;
    if (canvas.width !== width || canvas.height !== height) {
      [canvas.width, canvas.height] = [width, height];
      canvas.style.width = `${this.#stage.width}px`;
      canvas.style.height = `${HEIGHT_PX}px`;
      this.#image = undefined;
    }
    if (state !== this.#painted || !this.#image) {
      cancelAnimationFrame(this.#continuing);
      this.#image ??= context.createImageData(width, height);
      this.#painted = state;
      const picture = { pixels: new Uint32Array(this.#image.data.buffer), width, height };
      picture.pixels.fill(this.theme().lane);
      this.#brush = this.#shown && this.#paint(picture, this.#shown);
      this.#label();
      this.#advance();
    }
    this.#show(context, ratio);
  }

  #show(context: CanvasRenderingContext2D, ratio: number): void {
    if (this.#image) context.putImageData(this.#image, 0, 0);
    this.#outline(context, ratio);
  }

  /** Paints for as long as a frame has time, and goes on in the next one. */
  #advance(): void {
    const until = performance.now() + FRAME_MS_MAX;
    while (this.#brush && performance.now() < until) {
      if (this.#brush.next().done) this.#brush = undefined;
    }
    if (!this.#brush) return;
    this.#continuing = requestAnimationFrame(() => {
      this.#advance();
      const context = this.#canvas.getContext("2d", { alpha: false });
      if (context) this.#show(context, this.#canvas.width / Math.max(1, this.#stage.width));
    });
  }

  /** Paints what is in view, some calls of a row at each step. */
  *#paint(picture: Picture, shown: AccessList): Generator<void> {
    const { shades } = this.theme();
    const run = this.#model.runs[shown.run];
    const { offset } = run.details!;
    const from = this.#model.view.start;
    const [wide, high] = [picture.width / this.#model.view.span, picture.height / shown.end];
    const visible = shown.parts.map((part) => part.subarray(bisect(part, (at) => timeOf(run, at).end, from), bisect(part, (at) => timeOf(run, at).start, this.#model.view.end))).filter(({ length }) => length);
    for (let pass = 0; pass < PASSES; pass++) {
      for (const part of visible) {
        for (let place = pass; place < part.length; place += PASSES) {
          const at = part[place];
          if (run.shade[ownerOf(run, at)] === SHADE_HIDDEN) continue;
          const { start, end } = timeOf(run, at);
          const left = Math.floor((start - from) * wide);
          const right = Math.max(left + 1, Math.round((end - from) * wide));
          // Offsets grow upwards.
          const bottom = picture.height - Math.floor(offset[at] * high);
          const top = Math.min(bottom - 1, picture.height - Math.round((offset[at] + bytesOf(run, at)) * high));
          fill(picture, left, top, right - left, bottom - top, shades[run.shade[ownerOf(run, at)]]);
        }
        yield;
      }
    }
  }

  #label(): void {
    const shown = this.#shown;
    const name = shown ? this.#model.runs[shown.run].head.files[shown.file] : "";
    this.#axis.replaceChildren(element("span", { class: "top" }, shown ? size(shown.end) : ""), element("span", { class: "bottom" }, "0"));
    this.#canvas.setAttribute("aria-label", shown ? `Offsets of ${count(shown.calls.length)} accesses to ${name} over time, up to ${size(shown.end)}` : "No file");
  }

  #outline(context: CanvasRenderingContext2D, ratio: number): void {
    const { selected, runs } = this.#model;
    const shown = this.#shown;
    if (!selected || !shown || selected.run !== shown.run || runs[selected.run].files![selected.index] !== shown.file) return;
    const { offset } = runs[shown.run].details!;
    const at = selected.index;
    if (offset[at] < 0) return;
    const { start, end } = timeOf(runs[shown.run], at);
    const [left, right] = [this.#stage.xOf(start), this.#stage.xOf(end)];
    const y = (bytes: number) => HEIGHT_PX - (bytes / shown.end) * HEIGHT_PX;
    const [top, bottom] = [y(offset[at] + Math.max(0, bytesOf(runs[shown.run], at))), y(offset[at])];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.strokeStyle = this.theme().accent;
    context.lineWidth = 2;
    context.strokeRect(left - 1.5, top - 1.5, Math.max(1, right - left) + 3, bottom - top + 3);
    context.setTransform(1, 0, 0, 1, 0, 0);
  }

  /** The access nearest to a point, if it is close. */
  #hit(x: number, y: number): Call | undefined {
    const shown = this.#shown;
    if (!shown) return undefined;
    const run = this.#model.runs[shown.run];
    const { offset } = run.details!;
    const time = this.#stage.timeAt(x);
    const [perX, perY] = [this.#model.view.span / this.#stage.width, shown.end / HEIGHT_PX];
    const place = (HEIGHT_PX - y) * perY;
    let [found, nearest] = [-1, REACH_PX];
    for (const at of shown.calls) {
      const { start, end } = timeOf(run, at);
      const across = Math.max(0, start - time, time - end) / perX;
      const along = Math.max(0, offset[at] - place, place - offset[at] - bytesOf(run, at)) / perY;
      const distance = Math.hypot(across, along);
      if (distance < nearest) [found, nearest] = [at, distance];
    }
    return found < 0 ? undefined : { run: shown.run, index: found };
  }
}

/** The first place of a part whose call begins or ends, as `timeAt` says, later than a moment. */
function bisect(part: Uint32Array, timeAt: (at: number) => number, moment: number): number {
  let [low, high] = [0, part.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (timeAt(part[middle]) > moment) high = middle;
    else low = middle + 1;
  }
  return low;
}
