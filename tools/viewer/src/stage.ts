// The canvas: axis on top, lines below, selection and marks over them. A frame costs about one
// millisecond per ten lines, whatever the number of calls.

import type { Line } from "./layout.ts";
import type { Call, Model } from "./model.ts";
import { fill, paintMerged, paintTrack, type Box, type Picture, type Spot } from "./paint.ts";
import { KINDS, pixel, type Theme } from "./palette.ts";
import { SHADE_DIM, SHADE_HIDDEN, type Track } from "./track.ts";
import { duration, moment, ticks } from "./words.ts";

export const AXIS_PX = 26;
/** How far beside a call the pointer may be, in pixels. */
const REACH_PX = 4;

export interface Hit {
  line: Line;
  call: Call;
  /** How many calls share the pixel. */
  count: number;
}

export class Stage {
  readonly canvas: HTMLCanvasElement;
  theme: Theme;
  scrollTop = 0;
  width = 0;
  height = 0;
  hover: Call | undefined;
  #ratio = 1;
  #image: ImageData | undefined;
  #model: Model;
  #context: CanvasRenderingContext2D;

  constructor(canvas: HTMLCanvasElement, model: Model, theme: Theme) {
    this.canvas = canvas;
    this.#model = model;
    this.theme = theme;
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser has no canvas");
    this.#context = context;
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

  draw(): void {
    const { canvas } = this;
    this.#image ??= this.#context.createImageData(canvas.width, canvas.height);
    const picture: Picture = {
      pixels: new Uint32Array(this.#image.data.buffer),
      width: canvas.width,
      height: canvas.height,
    };
    picture.pixels.fill(this.theme.ground);
    const spots = this.#drawLines(picture);
    const top = this.#device(AXIS_PX);
    // Lines scrolled half out of sight end at the axis.
    fill(picture, 0, 0, picture.width, top, this.theme.ground);
    this.#context.setTransform(1, 0, 0, 1, 0, 0);
    this.#context.putImageData(this.#image, 0, 0);
    this.#drawNames(spots);
    this.#context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    this.#drawAxis();
    this.#drawMarks();
  }

  #device(px: number): number {
    return Math.round(px * this.#ratio);
  }

  #box(line: Line): Box {
    const y = this.#device(line.y - this.scrollTop + AXIS_PX);
    return { x: 0, y, width: this.canvas.width, height: this.#device(line.height) };
  }

  #drawLines(picture: Picture): Spot[] {
    const { view } = this.#model;
    const visible = this.#visible();
    for (const line of visible) this.#drawGround(picture, line, this.#box(line));
    this.#drawGrid(picture);
    const spots: Spot[] = [];
    for (const line of visible) {
      const box = this.#box(line);
      if (line.tracks.length > 1) paintMerged(picture, line.tracks, view, box, this.theme.shades);
      else spots.push(...paintTrack(picture, line.tracks[0], view, box, this.theme.shades, this.#device(40)));
    }
    return spots;
  }

  /** Lines with calls that are at least partly in sight. */
  #visible(): Line[] {
    const bottom = this.scrollTop + this.height - AXIS_PX;
    return this.#model.lines.filter((line) => line.tracks.length && line.y + line.height >= this.scrollTop && line.y <= bottom);
  }

  #axis() {
    const { view } = this.#model;
    return ticks(view.start, view.end, this.width / 110);
  }

  #drawGrid(picture: Picture): void {
    const colour = pixel(this.theme.line);
    for (const { time } of this.#axis().ticks) {
      fill(picture, this.#device(this.xOf(time)), 0, 1, picture.height, colour);
    }
  }

  /** The ground of a line is darker while its process lived: time there without a call is compute. */
  #drawGround(picture: Picture, line: Line, box: Box): void {
    fill(picture, box.x, box.y, box.width, box.height, this.theme.lane);
    const { head } = this.#model.runs[line.run] ?? {};
    const process = head?.processes[line.process];
    const [first] = line.tracks;
    const lived = process && process.end_ns > process.start_ns;
    const start = lived ? process.start_ns - head!.start_ns : first.start[0];
    const end = lived ? process.end_ns - head!.start_ns : first.end[first.count - 1];
    const left = this.#device(Math.max(-1, this.xOf(start)));
    const right = this.#device(Math.min(this.width + 1, this.xOf(end)));
    fill(picture, left, box.y, right - left, box.height, this.theme.laneLive);
  }

  #drawNames(spots: Spot[]): void {
    const context = this.#context;
    context.font = `${this.#device(11)}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    const top = this.#device(AXIS_PX);
    for (const { track, index, x, y, width, height } of spots) {
      if (height < this.#device(13) || y < top) continue;
      const run = this.#model.runs.find((candidate) => candidate.tracks.includes(track));
      if (!run) continue;
      const name = run.head.functions[run.data.functionOf[track.first + index]].name;
      const room = width - this.#device(8);
      if (context.measureText(name).width > room) continue;
      context.fillStyle = this.#inkOn(track.shade[index]);
      context.fillText(name, x + this.#device(4), y + height / 2 + this.#ratio * 0.5);
    }
  }

  #inkOn(shade: number): string {
    if (shade === SHADE_DIM) return this.theme.soft;
    const colour = this.theme.dark ? KINDS[shade].dark : KINDS[shade].light;
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return r * 0.299 + g * 0.587 + b * 0.114 > 130 ? "#101418" : "#ffffff";
  }

  #drawAxis(): void {
    const context = this.#context;
    const axis = this.#axis();
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.strokeStyle = this.theme.line;
    context.lineWidth = 1;
    const left = axis.base ? context.measureText(moment(axis.base)).width + 14 : 0;
    for (const { time, text } of axis.ticks) {
      const x = Math.round(this.xOf(time)) + 0.5;
      line(context, x, AXIS_PX - 5, x, AXIS_PX);
      context.fillStyle = this.theme.soft;
      if (x + 4 >= left && x + 4 + context.measureText(text).width <= this.width) context.fillText(text, x + 4, AXIS_PX / 2);
    }
    if (axis.base) {
      context.fillStyle = this.theme.ink;
      context.fillText(moment(axis.base), 4, AXIS_PX / 2);
    }
    line(context, 0, AXIS_PX - 0.5, this.width, AXIS_PX - 0.5);
  }

  #drawMarks(): void {
    const context = this.#context;
    const { selected, marked } = this.#model;
    context.save();
    context.beginPath();
    context.rect(0, AXIS_PX, this.width, this.height - AXIS_PX);
    context.clip();
    if (this.hover) this.#outline(this.hover, 1);
    if (selected) this.#outline(selected, 2);
    context.restore();
    if (marked) this.#drawMarked(Math.min(marked.start, marked.end), Math.max(marked.start, marked.end));
  }

  #drawMarked(start: number, end: number): void {
    const context = this.#context;
    const [left, right] = [this.xOf(start), this.xOf(end)];
    context.fillStyle = this.theme.dark ? "rgba(120,170,230,.22)" : "rgba(30,90,170,.14)";
    context.fillRect(left, 0, right - left, this.height);
    context.fillStyle = this.theme.ink;
    context.textAlign = "center";
    context.fillText(duration(end - start), (left + right) / 2, AXIS_PX / 2);
    context.textAlign = "start";
  }

  #outline(call: Call, thickness: number): void {
    const track = this.#model.trackOf(call);
    const shown = this.#model.lines.find((candidate) => candidate.tracks.includes(track));
    if (!shown) return;
    const { start, end } = this.#model.runs[call.run].data;
    const left = Math.max(-4, this.xOf(start[call.index]));
    const right = Math.min(this.width + 4, Math.max(this.xOf(end[call.index]), left + 2));
    const y = shown.y - this.scrollTop + AXIS_PX;
    const context = this.#context;
    context.strokeStyle = this.theme.accent;
    context.lineWidth = thickness;
    context.strokeRect(left - 0.5, y - 0.5, right - left + 1, shown.height + 1);
    if (thickness > 1 && right - left < 12) this.#pointer((left + right) / 2, y);
  }

  /** A small arrow over a call too narrow to be seen. */
  #pointer(x: number, y: number): void {
    const context = this.#context;
    context.fillStyle = this.theme.accent;
    context.beginPath();
    context.moveTo(x, y - 1);
    context.lineTo(x - 5, y - 8);
    context.lineTo(x + 5, y - 8);
    context.fill();
  }

  /** The call under a point of the canvas: the longest one of the pixel, else one close by. */
  hit(x: number, y: number): Hit | undefined {
    if (y < AXIS_PX) return undefined;
    const at = y - AXIS_PX + this.scrollTop;
    const line = this.#model.lines.find((candidate) => at >= candidate.y && at < candidate.y + candidate.height);
    if (!line || line.tracks.length !== 1) return undefined;
    const [track] = line.tracks;
    const within = (reach: number) => this.#longest(track, this.timeAt(x - reach), this.timeAt(x + reach));
    const found = within(0.5) ?? within(REACH_PX);
    return found && { line, call: { run: line.run, index: track.first + found.index }, count: found.count };
  }

  #longest(track: Track, from: number, to: number): { index: number; count: number } | undefined {
    const first = track.firstEndingAfter(from);
    let found: number | undefined;
    let count = 0;
    // A pixel may hold a million calls; the longest of the first ten thousand is as good to show.
    for (let at = first; at < track.count && track.start[at] <= to && at - first < 10_000; at++) {
      if (track.shade[at] === SHADE_HIDDEN) continue;
      count++;
      const isLonger = found === undefined || track.end[at] - track.start[at] > track.end[found] - track.start[found];
      if (isLonger) found = at;
    }
    return found === undefined ? undefined : { index: found, count: Math.max(count, this.#countIn(track, first, to)) };
  }

  #countIn(track: Track, first: number, to: number): number {
    return track.firstStartingFrom(to, first) - first;
  }
}

function line(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}
