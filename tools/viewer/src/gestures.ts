// Mouse, touch and keys on the canvas, turned into moves of the model.
//   The wheel scrolls the rows, then the page; with ctrl it zooms at the pointer, with shift or sideways it
//   pans. A drag chooses a range of time and rows, on the axis of all rows; its ends can be moved. The
//   middle button, or a drag with the space bar, pans; a finger pans, held still first it chooses; two pinch.

import type { Model } from "./model.ts";
import { rangeOf, type Range } from "./range.ts";
import { AXIS_PX, type Stage } from "./stage.ts";

const CLICK_PX = 4;
const EDGE_PX = 5;
const HOLD_MS = 450;
/** A wheel turning over the page keeps scrolling the page when the timeline slides under it. */
const PAGE_SCROLL_MS = 300;

export interface Actions {
  /** Tells whether the rows moved. */
  scroll(px: number): boolean;
  hover(x: number, y: number, event: PointerEvent): void;
  leave(): void;
  click(x: number, y: number): void;
  help(): void;
  focusSearch(): void;
  /** One hop to a cause (−1) or an effect (1) of the selected call. */
  hop(direction: 1 | -1): void;
  /** Shows or hides all causes and effects. */
  toggleWeb(): void;
  /** Opens or closes the accesses to a file. */
  accesses(): void;
  /** Opens or closes the curves. */
  curves(): void;
  /** Keeps the range or the selected call under a name. */
  bookmark(): void;
  /** Asks for a time or row to go to. */
  goTo(): void;
  /** Pins the row of the selected call, or lets it go. */
  pin(): void;
  /** Chooses all that is in view as the range. */
  measure(): void;
}

interface Finger {
  x: number;
  y: number;
}

type Mode = "pan" | "choose" | "pinch" | { moving: "start" | "end"; range: Range };

export class Gestures {
  #fingers = new Map<number, Finger>();
  #pressed: Finger | undefined;
  #mode: Mode = "choose";
  #isSpaceDown = false;
  #hold: ReturnType<typeof setTimeout> | undefined;
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
    canvas.addEventListener("pointercancel", (event) => this.#end(event));
    canvas.addEventListener("pointerleave", () => actions.leave());
    canvas.addEventListener("mousedown", (event) => event.button === 1 && event.preventDefault());
    canvas.addEventListener("contextmenu", (event) => this.#fingers.size && event.preventDefault());
    canvas.addEventListener("dblclick", (event) => this.#doubleClick(event));
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("keyup", (event) => event.key === " " && (this.#isSpaceDown = false));
    canvas.addEventListener("blur", () => (this.#isSpaceDown = false));
    document.addEventListener("scroll", () => (this.#pageScrolledAt = performance.now()), { passive: true });
  }

  #down(event: PointerEvent): void {
    if (event.button > 1) return;
    this.#stage.canvas.setPointerCapture(event.pointerId);
    const at = { x: event.offsetX, y: event.offsetY };
    this.#fingers.set(event.pointerId, at);
    clearTimeout(this.#hold);
    if (this.#fingers.size === 2) {
      this.#mode = "pinch";
      return;
    }
    this.#pressed = at;
    this.#mode = this.#modeOf(event);
    if (event.pointerType === "touch") this.#hold = setTimeout(() => (this.#mode = "choose"), HOLD_MS);
  }

  #modeOf(event: PointerEvent): Mode {
    const edge = this.edgeAt(event.offsetX);
    if (edge && event.button === 0 && this.#model.range) return { moving: edge, range: this.#model.range };
    return event.button === 1 || this.#isSpaceDown || event.pointerType === "touch" ? "pan" : "choose";
  }

  /** The end of the range at a place, if there is one. */
  edgeAt(x: number): "start" | "end" | undefined {
    const { range } = this.#model;
    if (!range) return undefined;
    const near = (time: number) => Math.abs(this.#stage.xOf(time) - x) <= EDGE_PX;
    return near(range.end) ? "end" : near(range.start) ? "start" : undefined;
  }

  #move(event: PointerEvent): void {
    const before = this.#fingers.get(event.pointerId);
    if (!before) return this.#actions.hover(event.offsetX, event.offsetY, event);
    const now = { x: event.offsetX, y: event.offsetY };
    if (this.#pressed && this.#isMoved(now)) clearTimeout(this.#hold);
    if (this.#mode === "pinch") this.#pinch(event.pointerId, now);
    else if (this.#mode === "pan") this.#pan(before, now);
    else if (this.#mode === "choose") this.#choose(now);
    else this.#moveEdge(this.#mode, now);
    this.#fingers.set(event.pointerId, now);
  }

  #isMoved(now: Finger): boolean {
    return !!this.#pressed && Math.hypot(now.x - this.#pressed.x, now.y - this.#pressed.y) > CLICK_PX;
  }

  #pan(before: Finger, now: Finger): void {
    const { view } = this.#model;
    view.pan(((before.x - now.x) / this.#stage.width) * view.span);
    this.#actions.scroll(before.y - now.y);
    this.#model.changed();
  }

  #choose(now: Finger): void {
    const from = this.#pressed;
    if (!from || !this.#isMoved(now)) return;
    const tracks = from.y < AXIS_PX ? undefined : this.#stage.tracksBetween(from.y, now.y);
    this.#model.mark(rangeOf(this.#stage.snapped(from.x, from.y), this.#stage.snapped(now.x, now.y), tracks?.size ? tracks : undefined));
  }

  #moveEdge(mode: { moving: "start" | "end"; range: Range }, now: Finger): void {
    const fixed = mode.moving === "start" ? mode.range.end : mode.range.start;
    this.#model.mark(rangeOf(fixed, this.#stage.snapped(now.x, now.y), mode.range.tracks));
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
    const wasPinch = this.#mode === "pinch";
    const moved = this.#isMoved({ x: event.offsetX, y: event.offsetY });
    this.#end(event);
    if (!wasPinch && pressed && !moved && event.button === 0) this.#actions.click(event.offsetX, event.offsetY);
  }

  #end(event: PointerEvent): void {
    clearTimeout(this.#hold);
    this.#fingers.delete(event.pointerId);
    if (this.#fingers.size === 0) this.#mode = "choose";
    this.#pressed = undefined;
    this.#model.changed();
  }

  #doubleClick(event: MouseEvent): void {
    const { range, view } = this.#model;
    const time = this.#stage.timeAt(event.offsetX);
    const hit = this.#stage.hit(event.offsetX, event.offsetY);
    if (range && time >= range.start && time <= range.end) this.#model.zoomToRange();
    else if (hit) this.#model.reveal(hit.call, true);
    else view.zoom(3, time);
    this.#model.changed();
  }

  #wheel(event: WheelEvent): void {
    const { view } = this.#model;
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 18 : 1;
    const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (event.ctrlKey || event.metaKey) {
      view.zoom(Math.exp(-event.deltaY * unit * 0.0022), this.#stage.timeAt(event.offsetX));
    } else if (isSideways) {
      view.pan((((event.deltaX || event.deltaY) * unit) / this.#stage.width) * view.span);
    } else if (performance.now() - this.#pageScrolledAt < PAGE_SCROLL_MS || !this.#actions.scroll(event.deltaY * unit)) {
      return;
    }
    event.preventDefault();
    this.#model.changed();
  }

  #key(event: KeyboardEvent): void {
    if (event.altKey) return;
    const move = event.ctrlKey || event.metaKey ? event.key === "z" && (() => this.#model.view.back()) : this.#moveOf(event.key, event.shiftKey);
    if (!move) return;
    event.preventDefault();
    move();
    this.#model.changed();
  }

  #moveOf(key: string, isLarge: boolean): (() => void) | undefined {
    const model = this.#model;
    const { view, selected, range } = model;
    const step = view.span * (isLarge ? 0.8 : 0.12);
    const middle = this.#middle();
    const moves: Record<string, () => void> = {
      ArrowLeft: () => view.pan(-step),
      a: () => view.pan(-step),
      ArrowRight: () => view.pan(step),
      d: () => view.pan(step),
      ArrowUp: () => this.#actions.scroll(-44),
      ArrowDown: () => this.#actions.scroll(44),
      PageUp: () => this.#actions.scroll(44 - this.#stage.height),
      PageDown: () => this.#actions.scroll(this.#stage.height - 44),
      "+": () => view.zoom(1.5, middle),
      w: () => view.zoom(1.5, middle),
      s: () => view.zoom(1 / 1.5, middle),
      "=": () => model.resizeRows(1),
      "-": () => model.resizeRows(-1),
      "0": () => model.fitAll(),
      Home: () => model.fitAll(),
      ".": () => model.step(1),
      ",": () => model.step(-1),
      n: () => model.next(1),
      N: () => model.next(-1),
      z: () => model.zoomToRange(),
      f: () => selected && model.reveal(selected, true),
      Enter: () => selected && model.reveal(selected, true),
      "[": () => this.#actions.hop(-1),
      "]": () => this.#actions.hop(1),
      c: () => this.#actions.toggleWeb(),
      o: () => this.#actions.accesses(),
      m: () => this.#actions.bookmark(),
      g: () => this.#actions.goTo(),
      k: () => this.#actions.curves(),
      p: () => this.#actions.pin(),
      r: () => this.#actions.measure(),
      t: () => model.stretch(model.axis === "common" ? "stretched" : "common"),
      " ": () => (this.#isSpaceDown = true),
      "/": () => this.#actions.focusSearch(),
      "?": () => this.#actions.help(),
    };
    if (key === "Escape" && selected) return () => model.select(undefined);
    if (key === "Escape" && range) return () => model.mark(undefined);
    return moves[key] ?? (key.length === 1 ? moves[key.toLowerCase()] : undefined);
  }

  /** Where the keys zoom: at the selected call when it is in view, else at the middle. */
  #middle(): number {
    const { view, selected, runs } = this.#model;
    const start = selected ? runs[selected.run].data.start[selected.index] : -1;
    return start >= view.start && start <= view.end ? start : (view.start + view.end) / 2;
  }
}
