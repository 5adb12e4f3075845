// The whole of all runs in one strip, with a window on the part that is shown. Dragging the window
// moves the view, dragging outside it marks a new one.

import type { Model } from "./model.ts";
import { Columns } from "./columns.ts";
import { fill, paintStack, type Picture } from "./paint.ts";
import { isConcurrent } from "./place.ts";
import type { Theme } from "./palette.ts";

const STRIP_PX = 12;
const HANDLE_PX = 6;

export class Overview {
  readonly canvas: HTMLCanvasElement;
  theme: Theme;
  #model: Model;
  #strips: ImageData | undefined;
  #drawn = "";
  #width = 0;
  #ratio = 1;
  #grab: ((x: number) => void) | undefined;

  constructor(canvas: HTMLCanvasElement, model: Model, theme: Theme) {
    this.canvas = canvas;
    this.#model = model;
    this.theme = theme;
    canvas.addEventListener("pointerdown", (event) => this.#press(event));
    canvas.addEventListener("pointermove", (event) => this.#grab?.(event.offsetX));
    canvas.addEventListener("pointerup", () => (this.#grab = undefined));
    canvas.addEventListener("pointercancel", () => (this.#grab = undefined));
  }

  get height(): number {
    return Math.min(this.#model.shown.length, 6) * (STRIP_PX + 2) + 6;
  }

  resize(width: number): void {
    this.#ratio = Math.min(window.devicePixelRatio || 1, 3);
    this.#width = width;
    this.canvas.width = Math.max(1, Math.round(width * this.#ratio));
    this.canvas.height = Math.round(this.height * this.#ratio);
    this.canvas.style.height = `${this.height}px`;
  }

  draw(): void {
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context) return;
    const state = `${this.canvas.width} ${this.#model.shading} ${this.theme.dark}`;
    if (state !== this.#drawn || !this.#strips) {
      this.#strips = this.#paint(context);
      this.#drawn = state;
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.putImageData(this.#strips, 0, 0);
    context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    this.#drawWindow(context);
  }

  #paint(context: CanvasRenderingContext2D): ImageData {
    const image = context.createImageData(this.canvas.width, this.canvas.height);
    const picture: Picture = { pixels: new Uint32Array(image.data.buffer), width: image.width, height: image.height };
    picture.pixels.fill(this.theme.ground);
    const { view, shownRuns } = this.#model;
    shownRuns.slice(0, 6).forEach((run, index) => {
      const y = Math.round((3 + index * (STRIP_PX + 2)) * this.#ratio);
      const box = { x: 0, y, width: image.width, height: Math.round(STRIP_PX * this.#ratio) };
      fill(picture, 0, y, box.width, box.height, this.theme.lane);
      const length = (run.head.end_ns - run.head.start_ns) / view.length;
      fill(picture, 0, y, Math.round(box.width * length), box.height, this.theme.laneLive);
      // What programs did; their servers' part in it would only repeat it.
      const outer = run.tracks.filter((_, at) => run.head.rows[at].depth === 0 && !isConcurrent(run.places[run.head.rows[at].process].kind));
      const columns = new Columns(image.width);
      columns.sum(outer, { start: 0, end: view.length });
      paintStack(picture, columns, outer.length, box, this.theme.shades, 1);
    });
    return image;
  }

  #drawWindow(context: CanvasRenderingContext2D): void {
    const { left, right } = this.#window();
    context.fillStyle = this.theme.dark ? "rgba(10,13,16,.62)" : "rgba(255,255,255,.68)";
    context.fillRect(0, 0, left, this.height);
    context.fillRect(right, 0, this.#width - right, this.height);
    context.strokeStyle = this.theme.soft;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, 0.75, Math.max(2, right - left - 1.5), this.height - 1.5);
  }

  #window(): { left: number; right: number } {
    const { view } = this.#model;
    const place = (time: number) => Math.min(Math.max((time / view.length) * this.#width, 0), this.#width);
    return { left: place(view.start), right: Math.max(place(view.end), place(view.start) + 2) };
  }

  #press(event: PointerEvent): void {
    this.canvas.setPointerCapture(event.pointerId);
    const { view } = this.#model;
    const { left, right } = this.#window();
    const time = (x: number) => (x / this.#width) * view.length;
    const x = event.offsetX;
    const [start, end] = [view.start, view.end];
    const isWhole = end - start >= view.length;
    if (Math.abs(x - left) <= HANDLE_PX && !isWhole) {
      this.#grab = (to) => this.#show(time(to), end);
    } else if (Math.abs(x - right) <= HANDLE_PX && !isWhole) {
      this.#grab = (to) => this.#show(start, time(to));
    } else if (x > left && x < right && !isWhole) {
      this.#grab = (to) => this.#show(start + time(to - x), end + time(to - x));
    } else {
      this.#grab = (to) => Math.abs(to - x) > 3 && this.#show(Math.min(time(x), time(to)), Math.max(time(x), time(to)));
      if (!isWhole) this.#show(time(x) - (end - start) / 2, time(x) + (end - start) / 2);
    }
  }

  #show(start: number, end: number): void {
    this.#model.view.show(Math.min(start, end), Math.max(start, end));
    this.#model.changed();
  }
}
