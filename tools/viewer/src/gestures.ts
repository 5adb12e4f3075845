// Mouse, touch and keys on the canvas, turned into moves of the model.
//   wheel zooms at the pointer, with shift or sideways it pans; a drag pans; shift + drag and a drag
//   on the axis mark a stretch and zoom to it; two fingers pinch; a double click zooms to a call.

import type { Model } from "./model.ts";
import { AXIS_PX, type Stage } from "./stage.ts";

const CLICK_PX = 4;
/** A wheel turning over the page keeps scrolling the page when the timeline slides under it. */
const PAGE_SCROLL_MS = 300;

export interface Actions {
  scroll(px: number): void;
  hover(x: number, y: number, event: PointerEvent): void;
  leave(): void;
  click(x: number, y: number): void;
  help(): void;
  focusSearch(): void;
}

interface Finger {
  x: number;
  y: number;
}

export class Gestures {
  #fingers = new Map<number, Finger>();
  #pressed: Finger | undefined;
  #mode: "pan" | "mark" | "pinch" = "pan";
  #pageScrolledAt = -Infinity;
  #stage: Stage;
  #model: Model;
  #actions: Actions;

  constructor(stage: Stage, model: Model, actions: Actions) {
    this.#stage = stage;
    this.#model = model;
    this.#actions = actions;
    const { canvas } = stage;
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#up(event));
    canvas.addEventListener("pointercancel", (event) => this.#cancel(event));
    canvas.addEventListener("pointerleave", () => actions.leave());
    canvas.addEventListener("dblclick", (event) => this.#doubleClick(event));
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.#key(event));
    document.addEventListener("scroll", () => (this.#pageScrolledAt = performance.now()), { passive: true });
  }

  #down(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.#stage.canvas.setPointerCapture(event.pointerId);
    this.#fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (this.#fingers.size === 2) {
      this.#mode = "pinch";
      this.#model.marked = undefined;
      return;
    }
    this.#pressed = { x: event.offsetX, y: event.offsetY };
    this.#mode = event.shiftKey || event.offsetY < AXIS_PX ? "mark" : "pan";
  }

  #move(event: PointerEvent): void {
    const before = this.#fingers.get(event.pointerId);
    if (!before) return this.#actions.hover(event.offsetX, event.offsetY, event);
    const now = { x: event.offsetX, y: event.offsetY };
    if (this.#mode === "pinch") this.#pinch(event.pointerId, now);
    else if (this.#mode === "mark") this.#mark(now);
    else this.#pan(before, now);
    this.#fingers.set(event.pointerId, now);
  }

  #pan(before: Finger, now: Finger): void {
    const { view } = this.#model;
    view.pan(((before.x - now.x) / this.#stage.width) * view.span);
    this.#actions.scroll(before.y - now.y);
    this.#model.changed();
  }

  #mark(now: Finger): void {
    if (!this.#pressed) return;
    this.#model.marked = { start: this.#stage.timeAt(this.#pressed.x), end: this.#stage.timeAt(now.x) };
    this.#model.changed();
  }

  #pinch(id: number, now: Finger): void {
    const before = this.#fingers.get(id);
    const other = [...this.#fingers].find(([otherId]) => otherId !== id)?.[1];
    if (!before || !other) return;
    const { view } = this.#model;
    const [wide, narrow] = [Math.abs(now.x - other.x), Math.abs(before.x - other.x)];
    if (wide > 8 && narrow > 8) view.zoom(wide / narrow, this.#stage.timeAt((now.x + other.x) / 2));
    view.pan(((before.x - now.x) / 2 / this.#stage.width) * view.span);
    this.#model.changed();
  }

  #up(event: PointerEvent): void {
    const pressed = this.#pressed;
    const { marked, view } = this.#model;
    const wasPinch = this.#mode === "pinch";
    this.#cancel(event);
    if (wasPinch || !pressed) return;
    const moved = Math.hypot(event.offsetX - pressed.x, event.offsetY - pressed.y) > CLICK_PX;
    if (!moved) return this.#actions.click(event.offsetX, event.offsetY);
    if (marked) view.show(Math.min(marked.start, marked.end), Math.max(marked.start, marked.end));
    this.#model.changed();
  }

  #cancel(event: PointerEvent): void {
    this.#fingers.delete(event.pointerId);
    if (this.#fingers.size === 0) this.#mode = "pan";
    this.#pressed = undefined;
    this.#model.marked = undefined;
    this.#model.changed();
  }

  #doubleClick(event: MouseEvent): void {
    const hit = this.#stage.hit(event.offsetX, event.offsetY);
    if (hit) this.#model.reveal(hit.call, true);
    else this.#model.view.zoom(3, this.#stage.timeAt(event.offsetX));
    this.#model.changed();
  }

  #wheel(event: WheelEvent): void {
    if (performance.now() - this.#pageScrolledAt < PAGE_SCROLL_MS) return;
    event.preventDefault();
    const { view } = this.#model;
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 18 : 1;
    const sideways = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      view.pan(((sideways * unit) / this.#stage.width) * view.span);
    } else {
      view.zoom(Math.exp(-event.deltaY * unit * 0.0022), this.#stage.timeAt(event.offsetX));
    }
    this.#model.changed();
  }

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = this.#moveOf(event.key, event.shiftKey);
    if (!move) return;
    event.preventDefault();
    move();
    this.#model.changed();
  }

  #moveOf(key: string, isLarge: boolean): (() => void) | undefined {
    const { view, selected } = this.#model;
    const model = this.#model;
    const step = view.span * (isLarge ? 0.8 : 0.12);
    const middle = this.#middle();
    const moves: Record<string, () => void> = {
      ArrowLeft: () => view.pan(-step),
      a: () => view.pan(-step),
      ArrowRight: () => view.pan(step),
      d: () => view.pan(step),
      ArrowUp: () => this.#actions.scroll(-44),
      ArrowDown: () => this.#actions.scroll(44),
      "+": () => view.zoom(1.5, middle),
      "=": () => view.zoom(1.5, middle),
      w: () => view.zoom(1.5, middle),
      "-": () => view.zoom(1 / 1.5, middle),
      s: () => view.zoom(1 / 1.5, middle),
      "0": () => view.fit(),
      Home: () => view.fit(),
      ".": () => model.step(1),
      ",": () => model.step(-1),
      n: () => model.next(),
      f: () => selected && model.reveal(selected, true),
      Enter: () => selected && model.reveal(selected, true),
      "/": () => this.#actions.focusSearch(),
      "?": () => this.#actions.help(),
    };
    if (key === "Escape" && selected) return () => model.select(undefined);
    return moves[key];
  }

  /** Where the keys zoom: at the selected call when it is in view, else at the middle. */
  #middle(): number {
    const { view, selected, runs } = this.#model;
    const start = selected ? runs[selected.run].data.start[selected.index] : -1;
    return start >= view.start && start <= view.end ? start : (view.start + view.end) / 2;
  }
}
