// Search, legend and buttons above the timeline.

import { element } from "./element.ts";
import type { Model } from "./model.ts";
import { KINDS, type Theme } from "./palette.ts";
import { count } from "./words.ts";

export class Toolbar {
  readonly element = element("div", { class: "toolbar" });
  readonly search = element("input", {
    type: "search",
    placeholder: "Filter by function or file",
    "aria-label": "Filter calls by function or file",
  });
  #matches = element("output", { class: "matches" });
  #chips: { shade: number; button: HTMLButtonElement; dot: HTMLElement }[] = [];
  #idle = element("i", {});
  #model: Model;
  #theme: () => Theme;

  constructor(model: Model, page: { help: () => void; theme: () => Theme }) {
    this.#model = model;
    this.#theme = page.theme;
    const find = element("div", { class: "find" }, this.search, this.#matches);
    this.element.append(find, this.#legend(), this.#buttons(page.help));
    this.search.addEventListener("input", () => void this.#apply());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") model.next();
      if (event.key === "Escape") this.search.blur();
    });
  }

  async #apply(): Promise<void> {
    await this.#model.search(this.search.value.trim());
    this.#showMatches();
  }

  /** Puts the model's filter, set by a jump, into the field. */
  showFilter(): void {
    this.search.value = this.#model.filter;
    this.#showMatches();
  }

  #showMatches(): void {
    const { runs, filter } = this.#model;
    const matches = runs.reduce((sum, run) => sum + run.matches, 0);
    this.#matches.textContent = filter ? `${count(matches)} ${matches === 1 ? "call" : "calls"}` : "";
  }

  #legend(): HTMLElement {
    const legend = element("div", { class: "legend", role: "group", "aria-label": "Kinds of call" });
    for (const shade of this.#model.kinds) {
      const dot = element("i", {});
      const button = element("button", { type: "button", "aria-pressed": "true", "data-kind": KINDS[shade].name }, dot, KINDS[shade].text);
      button.addEventListener("click", () => void this.#model.toggle(shade));
      this.#chips.push({ shade, button, dot });
      legend.append(button);
    }
    legend.append(element("span", { title: "The process was elsewhere: computing, waiting, not in a call that is recorded" }, this.#idle, "no call"));
    return legend;
  }

  #buttons(help: () => void): HTMLElement {
    const group = element("div", { class: "buttons", role: "group", "aria-label": "View" });
    const { view } = this.#model;
    const button = (text: string, label: string, act: () => void) => {
      const made = element("button", { type: "button", title: label, "aria-label": label }, text);
      made.addEventListener("click", () => {
        act();
        this.#model.changed();
      });
      group.append(made);
    };
    if (this.#model.runs.length > 1) group.append(this.#grouping());
    button("−", "Zoom out", () => view.zoom(1 / 2, (view.start + view.end) / 2));
    button("+", "Zoom in", () => view.zoom(2, (view.start + view.end) / 2));
    button("Fit", "Show everything", () => view.fit());
    button("?", "Keys and gestures", help);
    return group;
  }

  #grouping(): HTMLElement {
    const select = element(
      "select",
      { "aria-label": "Order of the rows" },
      element("option", { value: "run" }, "runs stacked"),
      element("option", { value: "process" }, "runs side by side"),
    );
    select.addEventListener("change", () => this.#model.group(select.value === "process" ? "process" : "run"));
    return select;
  }

  draw(): void {
    this.#idle.style.background = this.#theme().idle;
    for (const { shade, button, dot } of this.#chips) {
      button.setAttribute("aria-pressed", String(!this.#model.hidden.has(shade)));
      dot.style.background = this.#theme().dark ? KINDS[shade].dark : KINDS[shade].light;
    }
  }
}
