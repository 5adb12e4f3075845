// The canvas: axis on top, rows below, selection and marks over them. Rows are painted anew only when the
// view, the lines or the shades have changed; a moving pointer costs its marks. While the view moves, rows
// that are summed up are painted in wider columns as soon as a frame takes too long.

import { hit, tracksBetween, type Hit } from "./hit.ts";
import { Marks } from "./marks.ts";
import type { Call, Model } from "./model.ts";
import { fill, type Picture, type Spot } from "./paint.ts";
import { pixel, type Theme } from "./palette.ts";
import { Rows, type Frame } from "./rows.ts";
import type { Track } from "./track.ts";
import { SHADE_DIM } from "./track.ts";
import { ticks } from "./words.ts";

export const AXIS_PX = 26;
/** How far beside a call the pointer may be, in pixels. */
const REACH_PX = 4;
const FRAME_MS_MAX = 11;
const STEP_MAX = 6;
const REST_MS = 140;

export class Stage {
  readonly canvas: HTMLCanvasElement;
  theme: Theme;
  scrollTop = 0;
  width = 0;
  height = 0;
  hover: Call | undefined;
  #ratio = 1;
  #image: ImageData | undefined;
  #painted = "";
  #spots: Spot[] = [];
  #step = 1;
  #rest: ReturnType<typeof setTimeout> | undefined;
  #model: Model;
  #context: CanvasRenderingContext2D;
  #rows = new Rows();
  #marks: Marks;

  constructor(canvas: HTMLCanvasElement, model: Model, theme: Theme) {
    this.canvas = canvas;
    this.#model = model;
    this.theme = theme;
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser has no canvas");
    this.#context = context;
    this.#marks = new Marks(context, this, model);
  }

  resize(width: number, height: number): void {
    this.#ratio = Math.min(window.devicePixelRatio || 1, 3);
    this.width = width;
    this.height = height;
    this.canvas.width = Math.max(1, Math.round(width * this.#ratio));
    this.canvas.height = Math.max(1, Math.round(height * this.#ratio));
    this.canvas.style.height = `${height}px`;
    this.#image = undefined;
  }

  timeAt(x: number): number {
    const { view } = this.#model;
    return view.start + (x / this.width) * view.span;
  }

  xOf(time: number): number {
    const { view } = this.#model;
    return ((time - view.start) / view.span) * this.width;
  }

  /** A height of the canvas as one of the layout. */
  layoutY(y: number): number {
    const at = y - AXIS_PX;
    return at < this.#model.fixed ? at : at + this.scrollTop;
  }

  /** Where something of the layout is on the canvas, as far as rows that do not scroll leave it in sight. */
  placed(top: number, height: number): { top: number; height: number } {
    const { fixed } = this.#model;
    if (top < fixed || !fixed) return { top: top + AXIS_PX - (fixed ? 0 : this.scrollTop), height };
    const y = top + AXIS_PX - this.scrollTop;
    const covered = Math.min(height, Math.max(0, AXIS_PX + fixed - y));
    return { top: covered ? AXIS_PX + fixed : y, height: height - covered };
  }

  axis() {
    const { view } = this.#model;
    return ticks(view.start, view.end, this.width / 110);
  }

  draw(): void {
    const { view } = this.#model;
    const state = `${view.start} ${view.end} ${this.scrollTop} ${this.#model.shading} ${this.#model.arranged} ${this.theme.dark} ${this.#step}`;
    if (!this.#image || state !== this.#painted) this.#paint(state);
    this.#context.setTransform(1, 0, 0, 1, 0, 0);
    this.#context.putImageData(this.#image!, 0, 0);
    this.#drawNames(this.#spots);
    this.#context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    this.#marks.draw();
  }

  #paint(state: string): void {
    const began = performance.now();
    const { canvas } = this;
    this.#image ??= this.#context.createImageData(canvas.width, canvas.height);
    const picture: Picture = { pixels: new Uint32Array(this.#image.data.buffer), width: canvas.width, height: canvas.height };
    picture.pixels.fill(this.theme.ground);
    const frame: Frame = {
      picture, model: this.#model, theme: this.theme, ratio: this.#ratio, scrollTop: this.scrollTop, top: AXIS_PX, step: this.#step,
    };
    this.#spots = this.#rows.draw(frame, Rows.visible(this.#model, this.scrollTop, this.height - AXIS_PX), (bottom) => this.#drawGrid(picture, bottom));
    // Lines scrolled half out of sight end at the axis.
    fill(picture, 0, 0, picture.width, Math.round(AXIS_PX * this.#ratio), this.theme.ground);
    this.#painted = state;
    this.#adapt(performance.now() - began);
  }

  /** Wider columns when a frame took too long, and the full picture as soon as there is time for it. */
  #adapt(took: number): void {
    clearTimeout(this.#rest);
    if (took > FRAME_MS_MAX && this.#step < STEP_MAX) this.#step++;
    if (this.#step === 1) return;
    this.#rest = setTimeout(() => {
      this.#step = 1;
      this.draw();
    }, REST_MS);
  }

  #drawGrid(picture: Picture, bottom: number): void {
    const colour = pixel(this.theme.line);
    for (const { time } of this.axis().ticks) {
      fill(picture, Math.round(this.xOf(time) * this.#ratio), 0, 1, bottom, colour);
    }
  }

  #drawNames(spots: Spot[]): void {
    const context = this.#context;
    const ratio = this.#ratio;
    context.font = `${Math.round(11 * ratio)}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    for (const { track, index, x, y, width, height } of spots) {
      if (height < 10 * ratio) continue;
      const run = this.#model.runs.find((candidate) => candidate.tracks.includes(track));
      if (!run) continue;
      const name = run.head.functions[run.data.functionOf[track.first + index]].name;
      const room = width - Math.round(8 * ratio);
      if (context.measureText(name).width > room) continue;
      context.fillStyle = this.#inkOn(track.shade[index]);
      context.fillText(name, x + Math.round(4 * ratio), y + height / 2 + ratio * 0.5);
    }
  }

  #inkOn(shade: number): string {
    if (shade === SHADE_DIM) return this.theme.soft;
    const { dark, styles } = this.theme;
    const colour = dark ? styles[shade].dark : styles[shade].light;
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return r * 0.299 + g * 0.587 + b * 0.114 > 130 ? "#101418" : "#ffffff";
  }

  /** The call under a point of the canvas: the longest one of the pixel, else one close by. */
  hit(x: number, y: number): Hit | undefined {
    if (y < AXIS_PX) return undefined;
    const within = (reach: number) => hit(this.#model, this.layoutY(y), this.timeAt(x - reach), this.timeAt(x + reach));
    return within(0.5) ?? within(REACH_PX);
  }

  /** The time at a place, or the beginning or end of a call close by. */
  snapped(x: number, y: number): number {
    const time = this.timeAt(x);
    const reach = this.timeAt(x + REACH_PX) - time;
    const found = y < AXIS_PX ? undefined : hit(this.#model, this.layoutY(y), time - reach, time + reach);
    if (!found) return time;
    const { start, end } = this.#model.runs[found.call.run].data;
    const [first, last] = [start[found.call.index], end[found.call.index]];
    const nearer = Math.abs(first - time) <= Math.abs(last - time) ? first : last;
    return Math.abs(nearer - time) <= reach ? nearer : time;
  }

  /** The rows between two heights of the canvas; those of the axis are all. */
  tracksBetween(a: number, b: number): Set<Track> {
    const { lines, fixed } = this.#model;
    const [top, bottom] = [this.layoutY(Math.min(a, b)), this.layoutY(Math.max(a, b)) + 0.01];
    if (top >= fixed || bottom <= fixed) return tracksBetween(lines, top, bottom);
    // Between them are those that are scrolled out of sight.
    return new Set([...tracksBetween(lines, top, fixed), ...tracksBetween(lines, fixed + this.scrollTop, bottom)]);
  }
}
