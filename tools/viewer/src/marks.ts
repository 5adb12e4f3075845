// What is drawn over the rows: the axis, the chosen range, outlines of calls.

import { Arrows } from "./arrows.ts";
import { stripOf, strips, type Line, type Row } from "./layout.ts";
import type { Call, Model } from "./model.ts";
import { Rows } from "./rows.ts";
import { AXIS_PX, type Stage } from "./stage.ts";
import type { Track } from "./track.ts";
import { duration, moment } from "./words.ts";

export interface Place {
  left: number;
  right: number;
  top: number;
  height: number;
}

export class Marks {
  #context: CanvasRenderingContext2D;
  #stage: Stage;
  #model: Model;
  #arrows: Arrows;

  constructor(context: CanvasRenderingContext2D, stage: Stage, model: Model) {
    this.#context = context;
    this.#stage = stage;
    this.#model = model;
    this.#arrows = new Arrows(context, stage, model, (call) => this.placeOf(call));
  }

  draw(): void {
    this.#drawAxis();
    const context = this.#context;
    const { selected, range } = this.#model;
    const { width, height, hover } = this.#stage;
    context.save();
    context.beginPath();
    context.rect(0, AXIS_PX, width, height - AXIS_PX);
    context.clip();
    if (range) this.#drawRange(range.start, range.end, range.tracks);
    if (selected && this.#model.web) this.#arrows.draw(selected.run, this.#model.web);
    if (hover) this.#outline(hover, 1);
    if (selected) this.#outline(selected, 2);
    context.restore();
    for (const { start, end, name } of this.#model.bookmarks) this.#drawBookmark(start, end, name);
    if (range) this.#drawRuler(range.start, range.end);
  }

  #drawAxis(): void {
    const context = this.#context;
    const { theme, width } = this.#stage;
    const axis = this.#stage.axis();
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.strokeStyle = theme.line;
    context.lineWidth = 1;
    const left = axis.base ? context.measureText(moment(axis.base)).width + 14 : 0;
    for (const { time, text } of axis.ticks) {
      const x = Math.round(this.#stage.xOf(time)) + 0.5;
      this.#line(x, AXIS_PX - 5, x, AXIS_PX);
      context.fillStyle = theme.soft;
      if (x + 4 >= left && x + 4 + context.measureText(text).width <= width) context.fillText(text, x + 4, AXIS_PX / 2);
    }
    if (axis.base) {
      context.fillStyle = theme.ink;
      context.fillText(moment(axis.base), 4, AXIS_PX / 2);
    }
    this.#line(0, AXIS_PX - 0.5, width, AXIS_PX - 0.5);
  }

  /** A bookmark on the axis: how long it is, and its name where there is room. */
  #drawBookmark(start: number, end: number, name: string): void {
    const context = this.#context;
    const { theme, width } = this.#stage;
    const [left, right] = [this.#stage.xOf(start), this.#stage.xOf(end)];
    if (right < -1 || left > width + 1) return;
    context.fillStyle = theme.accent;
    context.fillRect(left, AXIS_PX - 4, Math.max(2, right - left), 3);
    context.beginPath();
    context.moveTo(left, AXIS_PX - 12);
    context.lineTo(left + 7, AXIS_PX - 8);
    context.lineTo(left, AXIS_PX - 4);
    context.fill();
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const room = context.measureText(name).width;
    if (left < 0 || left + 10 + room > width) return;
    context.fillStyle = theme.page;
    context.fillRect(left + 8, AXIS_PX - 16, room + 4, 12);
    context.fillStyle = theme.ink;
    context.fillText(name, left + 10, AXIS_PX - 10);
  }

  #line(x0: number, y0: number, x1: number, y1: number): void {
    const context = this.#context;
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  }

  /** The range: its rows tinted, everything beside it in time veiled. */
  #drawRange(start: number, end: number, tracks: ReadonlySet<Track> | undefined): void {
    const context = this.#context;
    const { theme, width, height, scrollTop } = this.#stage;
    const [left, right] = [this.#stage.xOf(start), this.#stage.xOf(end)];
    context.fillStyle = theme.dark ? "rgba(10,13,16,.45)" : "rgba(255,255,255,.55)";
    context.fillRect(0, AXIS_PX, left, height);
    context.fillRect(right, AXIS_PX, width - right, height);
    if (tracks) {
      for (const line of Rows.visible(this.#model, scrollTop, height)) {
        if (line.mode === "heading") continue;
        for (const { row, top, height } of partsOf(line)) {
          if (row.some(({ all }) => all.some((track) => tracks.has(track)))) continue;
          const placed = this.#stage.placed(top, height);
          context.fillRect(left, placed.top, right - left, placed.height);
        }
      }
    }
    context.strokeStyle = theme.accent;
    context.lineWidth = 1;
    for (const x of [left, right]) this.#line(Math.round(x) + 0.5, AXIS_PX, Math.round(x) + 0.5, height);
  }

  /** The range on the axis: its ends can be moved, and it says how long it is. */
  #drawRuler(start: number, end: number): void {
    const context = this.#context;
    const { theme } = this.#stage;
    const [left, right] = [this.#stage.xOf(start), this.#stage.xOf(end)];
    const text = `Δ ${duration(end - start)}`;
    const room = context.measureText(text).width + 12;
    const middle = Math.min(Math.max((left + right) / 2, room / 2), this.#stage.width - room / 2);
    context.fillStyle = theme.rangeGround;
    context.fillRect(left, 0, Math.max(1, right - left), AXIS_PX - 1);
    context.fillStyle = theme.accent;
    for (const x of [left, right]) context.fillRect(Math.round(x) - 2, 4, 4, AXIS_PX - 8);
    context.fillStyle = theme.page;
    context.fillRect(middle - room / 2, 4, room, AXIS_PX - 8);
    context.fillStyle = theme.ink;
    context.textAlign = "center";
    context.fillText(text, middle, AXIS_PX / 2);
    context.textAlign = "start";
  }

  /** Where a call is drawn on the canvas. */
  placeOf(call: Call): Place | undefined {
    const found = this.#model.placeOf(this.#model.trackOf(call));
    if (!found) return undefined;
    const { line, row } = found;
    const { start, end } = this.#model.runs[call.run].data;
    const left = this.#stage.xOf(start[call.index]);
    const right = Math.max(this.#stage.xOf(end[call.index]), left + 2);
    const part = line.mode === "block" ? partsOf(line)[stripOf(line.rows.length, line.height, row)] : { top: line.y, height: line.height };
    return { left, right, ...this.#stage.placed(part.top, part.height) };
  }

  #outline(call: Call, thickness: number): void {
    const place = this.placeOf(call);
    if (!place?.height) return;
    const left = Math.max(-4, place.left);
    const right = Math.min(this.#stage.width + 4, place.right);
    const context = this.#context;
    context.strokeStyle = this.#stage.theme.accent;
    context.lineWidth = thickness;
    context.strokeRect(left - 0.5, place.top - 0.5, right - left + 1, place.height + 1);
    if (thickness > 1 && right - left < 12) this.#pointer((left + right) / 2, place.top);
  }

  /** A small arrow over a call too narrow to be seen. */
  #pointer(x: number, y: number): void {
    const context = this.#context;
    context.fillStyle = this.#stage.theme.accent;
    context.beginPath();
    context.moveTo(x, y - 1);
    context.lineTo(x - 5, y - 8);
    context.lineTo(x + 5, y - 8);
    context.fill();
  }
}

/** The rows of a line with their heights: of a block those that are told apart. */
function partsOf(line: Line): { row: Row[]; top: number; height: number }[] {
  if (line.mode !== "block") return [{ row: line.rows, top: line.y, height: line.height }];
  return strips(line.rows.length, line.height).map(({ first, beyond, top, bottom }) => ({
    row: line.rows.slice(first, beyond),
    top: line.y + top,
    height: bottom - top,
  }));
}
