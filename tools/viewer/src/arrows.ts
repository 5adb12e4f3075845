// Causes over the rows: what the selected call hangs together with stands out from the rest, and arrows
// lead from each cause to what it let begin or end.

import type { Hop, Web } from "./causes.ts";
import type { Place } from "./marks.ts";
import type { Call, Model } from "./model.ts";
import { CLASSES } from "./palette.ts";
import { AXIS_PX, type Stage } from "./stage.ts";

const HEAD_PX = 5;

export class Arrows {
  #context: CanvasRenderingContext2D;
  #stage: Stage;
  #model: Model;
  #placeOf: (call: Call) => Place | undefined;

  constructor(context: CanvasRenderingContext2D, stage: Stage, model: Model, placeOf: (call: Call) => Place | undefined) {
    this.#context = context;
    this.#stage = stage;
    this.#model = model;
    this.#placeOf = placeOf;
  }

  draw(run: number, web: Web): void {
    const context = this.#context;
    const { theme, width, height } = this.#stage;
    context.fillStyle = theme.dark ? "rgba(20,25,30,.66)" : "rgba(255,255,255,.7)";
    context.fillRect(0, AXIS_PX, width, height - AXIS_PX);
    const places = new Map<number, Place>();
    const { kindOf } = this.#model.runs[run];
    for (const index of web.calls) {
      const place = this.#placeOf({ run, index });
      if (!place) continue;
      places.set(index, place);
      const style = CLASSES[kindOf[index]];
      context.fillStyle = theme.dark ? style.dark : style.light;
      const left = Math.max(-2, place.left);
      context.fillRect(left, place.top, Math.max(1, Math.min(width + 2, place.right) - left - 0.5), Math.max(1, place.height - 0.5));
    }
    context.strokeStyle = context.fillStyle = theme.accent;
    context.lineWidth = 1;
    context.globalAlpha = web.hops.length > 200 ? 0.35 : 0.75;
    for (const hop of web.hops) this.#arrow(run, hop, places);
    context.globalAlpha = 1;
  }

  #arrow(run: number, { from, to, kind }: Hop, places: Map<number, Place>): void {
    const [cause, effect] = [places.get(from), places.get(to)];
    if (!cause || !effect) return;
    const { start, end } = this.#model.runs[run].data;
    const time = kind === "begins" ? start[to] : end[to];
    const x1 = this.#stage.xOf(time);
    // A cause that is not over yet is left at the moment of the effect.
    const x0 = this.#stage.xOf(Math.min(end[from], time));
    const y0 = cause.top + cause.height / 2;
    const isDown = effect.top + effect.height / 2 > y0;
    const y1 = isDown ? effect.top : effect.top + effect.height;
    if (Math.max(x0, x1) < 0 || Math.min(x0, x1) > this.#stage.width) return;
    const context = this.#context;
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
    const tip = isDown ? -HEAD_PX : HEAD_PX;
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - HEAD_PX / 2, y1 + tip);
    context.lineTo(x1 + HEAD_PX / 2, y1 + tip);
    context.fill();
  }
}
