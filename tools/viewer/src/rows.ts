// Draws the rows into the array of pixels of a frame.

import { Columns } from "./columns.ts";
import { firstBelow, strips, type Line, type Row } from "./layout.ts";
import type { Model } from "./model.ts";
import { fill, hatch, paintBlend, paintFailures, paintStack, paintTrack, type Box, type Picture, type Spot } from "./paint.ts";
import { pixel, type Theme } from "./palette.ts";

/** From this height on (in pixels of the device) the height of a column says how full it is. */
const STACK_PX = 7;
const NAME_PX = 40;

export interface Frame {
  picture: Picture;
  model: Model;
  theme: Theme;
  /** Pixels of the device per pixel of the page. */
  ratio: number;
  /** Height of the layout at the top of the picture's rows, and where these begin. */
  scrollTop: number;
  top: number;
  /** Pixels per column where many rows are summed up: more than 1 while in motion. */
  step: number;
}

export class Rows {
  #columns = new Columns(1);

  /** Lines that are at least partly in sight; first those that do not scroll. */
  static visible(model: Model, scrollTop: number, height: number): Line[] {
    const { lines, fixed } = model;
    const found = fixed ? lines.slice(0, firstBelow(lines, fixed)) : [];
    for (let at = firstBelow(lines, fixed + scrollTop); at < lines.length && lines[at].y <= scrollTop + height; at++) {
      found.push(lines[at]);
    }
    return found;
  }

  /** Draws lines; `grid` draws what is behind calls down to a height of the picture. */
  draw(frame: Frame, lines: Line[], grid: (bottom: number) => void): Spot[] {
    const { picture, step, model, theme } = frame;
    const count = Math.max(1, Math.ceil(picture.width / step));
    if (this.#columns.count !== count) this.#columns = new Columns(count);
    const edge = Math.round((frame.top + model.fixed) * frame.ratio);
    const scrolled = this.#lines(frame, lines.filter(({ y }) => y >= model.fixed), () => grid(picture.height));
    if (!model.fixed) return scrolled;
    fill(picture, 0, 0, picture.width, edge, theme.ground);
    const fixed = this.#lines(frame, lines.filter(({ y }) => y < model.fixed), () => grid(edge));
    fill(picture, 0, edge - Math.ceil(frame.ratio), picture.width, Math.ceil(frame.ratio), pixel(theme.soft));
    return [...fixed, ...scrolled.filter(({ y, height }) => y + height / 2 > edge)];
  }

  #lines(frame: Frame, lines: Line[], grid: () => void): Spot[] {
    for (const line of lines) this.#ground(frame, line);
    grid();
    const spots: Spot[] = [];
    for (const line of lines) {
      if (line.mode === "calls") spots.push(...this.#calls(frame, line));
      else if (line.mode === "lane") this.#sum(frame, line.rows, boxOf(frame, line));
      else if (line.mode === "block") this.#block(frame, line);
    }
    return spots;
  }

  /** The ground of a line is darker while its process lived: time there without a call is compute. */
  #ground(frame: Frame, line: Line): void {
    if (line.mode === "heading") return;
    const { picture, theme, model } = frame;
    const box = boxOf(frame, line);
    fill(picture, box.x, box.y, box.width, box.height, theme.lane);
    if (line.process < 0 || line.rows[0]?.branch.isLane) return;
    const { head } = model.runs[line.run];
    const process = head.processes[line.process];
    const [first] = line.rows[0].tracks;
    if (!first) return;
    const lived = process.end_ns > 0;
    const start = lived ? process.start_ns - head.start_ns : first.start[0];
    const end = lived ? process.end_ns - head.start_ns : first.end[first.count - 1];
    const { view } = model;
    const xOf = (time: number) => Math.round(((time - view.start) / view.span) * picture.width);
    const left = Math.max(0, xOf(start));
    fill(picture, left, box.y, Math.max(0, xOf(end) - left), box.height, theme.laneLive);
  }

  #calls(frame: Frame, line: Line): Spot[] {
    const { picture, model, theme, ratio } = frame;
    const box = boxOf(frame, line);
    const [row] = line.rows;
    const spots = paintTrack(picture, row.tracks[0], model.view, box, theme.shades, Math.round(NAME_PX * ratio));
    if (row.branch.isLane) hatch(picture, box, theme, Math.round(5 * ratio));
    this.#failures(frame, row, box);
    return spots;
  }

  /** Several rows, or one lane, in one box. */
  #sum(frame: Frame, rows: Row[], box: Box): void {
    const { picture, model, theme, step, ratio } = frame;
    const tracks = rows.length === 1 ? rows[0].tracks : rows.flatMap((row) => row.tracks);
    this.#columns.sum(tracks, model.view);
    if (box.height >= STACK_PX * ratio) paintStack(picture, this.#columns, tracks.length, box, theme.shades, step);
    else paintBlend(picture, this.#columns, tracks.length, box, theme.shades, theme.lane, step);
    if (box.height >= 6 * ratio) hatch(picture, box, theme, Math.round(5 * ratio));
    for (const row of rows) this.#failures(frame, row, box);
  }

  #block(frame: Frame, line: Line): void {
    const { picture, ratio } = frame;
    const whole = boxOf(frame, line);
    for (const { first, beyond, top, bottom } of strips(line.rows.length, line.height, 1 / ratio)) {
      const gap = bottom - top >= 5 ? 1 : 0;
      const y = whole.y + Math.round(top * ratio);
      const box = { x: 0, y, width: whole.width, height: Math.max(1, Math.round(bottom * ratio) - Math.round(top * ratio) - gap) };
      if (y >= picture.height || y + box.height < 0) continue;
      this.#sum(frame, line.rows.slice(first, beyond), box);
    }
  }

  #failures(frame: Frame, row: Row, box: Box): void {
    paintFailures(frame.picture, row.all, frame.model.view, box, frame.theme.failure, Math.max(1, Math.round(2 * frame.ratio)));
  }
}

export function boxOf({ picture, ratio, scrollTop, top, model }: Frame, line: Line): Box {
  const y = Math.round((line.y - (line.y < model.fixed ? 0 : scrollTop) + top) * ratio);
  return { x: 0, y, width: picture.width, height: Math.max(1, Math.round(line.height * ratio)) };
}
