// Below the rows: the selected call, and what the chosen range comes to.

import { facts, type Fact } from "./details.ts";
import { button, element } from "./element.ts";
import { hopTable } from "./hops.ts";
import { complete } from "./loaded.ts";
import type { Call, Model } from "./model.ts";
import { moment } from "./words.ts";
import type { Theme } from "./palette.ts";
import { RangePanel } from "./range-panel.ts";
import { spentView } from "./spent.ts";

const HINT = "Click a call for its details, drag over rows for statistics of a range. The wheel scrolls, with ctrl it zooms, with shift it moves along; ? tells all keys.";

export class Panel {
  readonly element = element("div", { class: "details" });
  #call = element("div", { "aria-live": "polite" });
  #web = element("div", {});
  #bookmarks = element("div", { class: "bookmarks", role: "group", "aria-label": "Bookmarks", hidden: "" });
  readonly range: RangePanel;
  #model: Model;

  constructor(model: Model, theme: () => Theme) {
    this.#model = model;
    this.range = new RangePanel(model, theme);
    this.element.append(this.#bookmarks, this.#call, this.#web, this.range.element);
    void this.showCall(undefined);
  }

  async showCall(call: Call | undefined): Promise<void> {
    if (!call) this.#web.replaceChildren();
    if (!call) {
      this.#call.replaceChildren(...(this.#model.range ? [] : [element("p", { class: "quiet" }, HINT)]));
      return;
    }
    const run = this.#model.runs[call.run];
    await complete(run);
    if (this.#model.selected !== call || !run.details || !run.files) return;
    const list = factList(facts(run.data, run.details, run.files, call.index));
    const parent = run.details.parent[call.index];
    const steps = element("div", { class: "steps" });
    const add = (text: string, act: () => void) => steps.append(button(text, "", act));
    add("‹ previous", () => this.#model.step(-1));
    add("next ›", () => this.#model.step(1));
    add("zoom to it", () => this.#model.reveal(call, true));
    const pin = this.#model.pinOf(call);
    if (pin) add("pin its row", () => this.#model.togglePin(pin));
    if (parent >= 0) {
      const outer = run.head.functions[run.data.functionOf[parent]].name;
      add(`inside ${outer}`, () => this.#model.reveal({ run: call.run, index: parent }, false));
    }
    const parts = run.parts?.of(call.index);
    const spent = parts ? [spentView("Where its time went", run.head.parts, parts)] : [];
    this.#call.replaceChildren(list, ...spent, steps);
  }

  /** What was kept, to go back to. */
  showBookmarks(): void {
    const { bookmarks } = this.#model;
    this.#bookmarks.hidden = bookmarks.length === 0;
    const made = bookmarks.flatMap((bookmark) => {
      const remove = button("×", `Remove ${bookmark.name}`, () => this.#model.keep(this.#model.bookmarks.filter((other) => other !== bookmark)));
      remove.setAttribute("aria-label", `Remove ${bookmark.name}`);
      return [button(bookmark.name, moment(bookmark.start), () => this.#model.visit(bookmark)), remove];
    });
    this.#bookmarks.replaceChildren(...(made.length ? ["Bookmarks", ...made] : []));
  }

  /** The hops from and to the selected call. */
  showWeb(): void {
    const { selected, web } = this.#model;
    if (!selected || !web) return this.#web.replaceChildren();
    this.#web.replaceChildren(hopTable(this.#model, selected, web));
  }

  /** Follows the range. */
  async showRange(): Promise<void> {
    const { range, selected } = this.#model;
    if (!selected) await this.showCall(undefined);
    if (range && !selected) this.#call.replaceChildren();
    await this.range.show();
  }
}

export function factList(list: Fact[]): HTMLElement {
  const made = element("dl", {});
  for (const { name, text } of list) {
    made.append(element("div", {}, element("dt", {}, name), element("dd", {}, text)));
  }
  return made;
}
