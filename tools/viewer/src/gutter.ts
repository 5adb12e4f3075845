// Names of the lines, left of the canvas. Real elements, so that they can be read aloud, focused and
// opened from the keyboard; only those in sight exist.

import { element } from "./element.ts";
import type { Line } from "./layout.ts";
import type { Model } from "./model.ts";
import { Rows } from "./rows.ts";
import { AXIS_PX } from "./stage.ts";

export class Gutter {
  readonly element = element("div", { class: "gutter" });
  #list = element("div", { class: "labels", role: "group", "aria-label": "Rows" });
  #shown = "";
  #model: Model;

  constructor(model: Model) {
    this.#model = model;
    this.element.append(this.#list);
  }

  draw(scrollTop: number): void {
    const visible = Rows.visible(this.#model, scrollTop, this.element.clientHeight);
    const state = `${this.#model.grouping}|${visible.map((line) => `${line.key} ${line.y} ${line.height} ${line.folded}`).join("|")}`;
    if (state !== this.#shown) {
      const focused = (document.activeElement as HTMLElement | null)?.dataset["key"];
      this.#list.replaceChildren(...visible.map((line) => this.#label(line)));
      this.#shown = state;
      if (focused) this.#list.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    }
    this.#list.style.transform = `translateY(${AXIS_PX - scrollTop}px)`;
  }

  #label(line: Line): HTMLElement {
    const isFoldable = line.folded !== undefined;
    const made = isFoldable
      ? element("button", { type: "button", "aria-expanded": String(!line.folded), "data-key": line.key })
      : element("div", {});
    made.className = `label level${Math.min(line.level, 4)}${line.height < 15 ? " low" : ""}${line.mode === "block" ? " block" : ""}`;
    made.style.top = `${line.y}px`;
    made.style.height = `${line.height}px`;
    made.title = [line.label, line.note].filter(Boolean).join(" · ");
    made.append(element("span", { class: "name" }, line.label));
    if (line.note) made.append(element("span", { class: "note" }, line.note));
    if (isFoldable) made.addEventListener("click", () => this.#model.fold(line));
    return made;
  }
}
