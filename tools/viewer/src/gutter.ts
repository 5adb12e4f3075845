// Names of the lines, left of the canvas. Real elements, so that they can be read aloud, focused and
// opened from the keyboard; only those in sight exist. Pinned ones stand above those that scroll; a name
// that is dragged there is pinned at that place, and one that is dragged away from there is let go.

import { button, element } from "./element.ts";
import type { Line } from "./layout.ts";
import type { Model } from "./model.ts";
import { Rows } from "./rows.ts";
import { AXIS_PX } from "./stage.ts";

/** A name that is moved farther is dragged. */
const DRAG_PX = 6;
/** Where names can be dropped while nothing is pinned. */
const DROP_PX = 14;

export class Gutter {
  readonly element = element("div", { class: "gutter" });
  #fixed = element("div", { class: "labels", role: "group", "aria-label": "Pinned rows" });
  #list = element("div", { class: "labels", role: "group", "aria-label": "Rows" });
  #scrolled = element("div", { class: "scrolled-labels" }, this.#list);
  #drop = element("div", { class: "drop", hidden: "" });
  #shown = "";
  #model: Model;
  #scrollTop = 0;

  constructor(model: Model) {
    this.#model = model;
    this.#fixed.style.transform = `translateY(${AXIS_PX}px)`;
    this.element.append(this.#fixed, this.#scrolled, this.#drop);
  }

  draw(scrollTop: number): void {
    const { fixed } = this.#model;
    this.#scrollTop = scrollTop;
    const visible = Rows.visible(this.#model, scrollTop, this.element.clientHeight);
    const state = `${this.#model.grouping}|${fixed}|${visible.map((line) => `${line.key} ${line.y} ${line.height} ${line.folded} ${line.isPinned}`).join("|")}`;
    if (state !== this.#shown) {
      const focused = (document.activeElement as HTMLElement | null)?.dataset["key"];
      this.#fixed.replaceChildren(...visible.filter(({ y }) => y < fixed).flatMap((line) => this.#label(line)));
      this.#list.replaceChildren(...visible.filter(({ y }) => y >= fixed).flatMap((line) => this.#label(line)));
      this.#fixed.hidden = !fixed;
      this.#shown = state;
      if (focused) this.element.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    }
    this.#list.style.transform = `translateY(${AXIS_PX - scrollTop}px)`;
    this.#scrolled.style.clipPath = `inset(${AXIS_PX + fixed}px 0 0 0)`;
  }

  /** The name of a line, and what pins it. */
  #label(line: Line): HTMLElement[] {
    const isFoldable = line.folded !== undefined;
    const made: HTMLElement = isFoldable
      ? element("button", { type: "button", "aria-expanded": String(!line.folded), "data-key": line.key })
      : element("div", {});
    made.className = `label level${Math.min(line.level, 4)}${line.height < 15 ? " low" : ""}${line.mode === "block" ? " block" : ""}`;
    made.style.top = `${line.y}px`;
    made.style.height = `${line.height}px`;
    made.title = [line.label, line.note].filter(Boolean).join(" · ");
    made.append(element("span", { class: "name" }, line.label));
    if (line.note) made.append(element("span", { class: "note" }, line.note));
    const { pin } = line;
    const drag = pin === undefined ? undefined : this.#drag(made, pin);
    // A drag ends with a click.
    if (isFoldable) made.addEventListener("click", () => !drag?.isDragged() && this.#model.fold(line));
    if (pin === undefined) return [made];
    made.addEventListener("keydown", (event) => this.#key(event, pin));
    if (isFoldable) made.setAttribute("aria-keyshortcuts", "P");
    return [made, this.#pinButton(line, pin)];
  }

  #pinButton(line: Line, pin: string): HTMLElement {
    const isPinned = this.#model.pins.includes(pin);
    const made = button(isPinned ? "×" : "↑", isPinned ? "Let it scroll" : "Pin it to the top", () => this.#model.togglePin(pin));
    // For the mouse: keys have P, on the name or for the row of a call.
    made.className = isPinned ? "pin on" : "pin";
    made.tabIndex = -1;
    made.setAttribute("aria-hidden", "true");
    made.style.top = `${line.y}px`;
    made.style.height = `${line.height}px`;
    return made;
  }

  /** P pins; with alt, arrows move a pinned one among the others. */
  #key(event: KeyboardEvent, pin: string): void {
    const at = this.#model.pins.indexOf(pin);
    const isMove = event.altKey && at >= 0;
    if (event.key.toLowerCase() === "p" && !event.ctrlKey && !event.metaKey) this.#model.togglePin(pin);
    else if (isMove && event.key === "ArrowUp") this.#model.pin(pin, Math.max(0, at - 1));
    else if (isMove && event.key === "ArrowDown") this.#model.pin(pin, at + 2);
    else return;
    event.preventDefault();
  }

  /** Lets a name be dragged with the mouse or a pen. */
  #drag(made: HTMLElement, pin: string): { isDragged(): boolean } {
    let from: number | undefined;
    let isDragged = false;
    const at = (event: PointerEvent) => event.clientY - this.element.getBoundingClientRect().top - AXIS_PX;
    made.addEventListener("pointerdown", (event) => {
      isDragged = false;
      if (event.button !== 0 || event.pointerType === "touch") return;
      from = event.clientY;
      made.setPointerCapture(event.pointerId);
    });
    made.addEventListener("pointermove", (event) => {
      if (from === undefined) return;
      isDragged ||= Math.abs(event.clientY - from) > DRAG_PX;
      if (!isDragged) return;
      made.classList.add("dragged");
      made.style.transform = `translateY(${event.clientY - from}px)`;
      const place = this.#placeAt(at(event));
      this.#drop.hidden = place === undefined;
      if (place) this.#drop.style.top = `${AXIS_PX + place.y}px`;
    });
    const end = (event: PointerEvent, isMeant: boolean) => {
      if (from === undefined) return;
      from = undefined;
      this.#drop.hidden = true;
      made.classList.remove("dragged");
      made.style.transform = "";
      if (!isDragged || !isMeant) return;
      const place = this.#placeAt(at(event));
      if (place) this.#model.pin(pin, place.before);
      else if (this.#model.pins.includes(pin)) this.#model.unpin(pin);
    };
    made.addEventListener("pointerup", (event) => end(event, true));
    made.addEventListener("pointercancel", (event) => end(event, false));
    return { isDragged: () => isDragged };
  }

  /** Before which pinned row a name is dropped at a height, and where that is; nothing where rows scroll. */
  #placeAt(y: number): { before: number; y: number } | undefined {
    const { lines, pins, fixed } = this.#model;
    const pinned = lines.filter((line) => line.isPinned && line.pin !== undefined && pins.includes(line.pin));
    // Where they are too many to stay in sight, they scroll like the others.
    const height = (fixed ? y : y + this.#scrollTop) - 1;
    const bottom = lines.findLast(({ isPinned }) => isPinned);
    if (height > (bottom ? bottom.y + bottom.height : DROP_PX)) return undefined;
    const before = pinned.find((line) => height < line.y + line.height / 2);
    if (before) return { before: pins.indexOf(before.pin!), y: before.y - (height - y) - 1 };
    return { before: pins.length, y: (bottom ? bottom.y + bottom.height : 0) - (height - y) - 1 };
  }
}
