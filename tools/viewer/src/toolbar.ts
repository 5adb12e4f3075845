// Search, legend and buttons above the timeline.

import { element } from "./element.ts";
import type { Model } from "./model.ts";
import { CLASSES, type Theme } from "./palette.ts";
import type { Axis, Grouping } from "./tree.ts";
import { count, share } from "./words.ts";

export interface ToolbarActions {
  help: () => void;
  theme: () => Theme;
  copyLink: () => Promise<boolean>;
  accesses: () => void;
}

export class Toolbar {
  readonly element = element("div", { class: "toolbar" });
  readonly search = element("input", {
    type: "search",
    placeholder: "Find: words, op:pwrite, rank:0-63, error …",
    "aria-label": "Find calls",
    "aria-describedby": "query-state",
    spellcheck: "false",
  });
  #matches = element("output", { class: "matches", id: "query-state" });
  #previous: HTMLButtonElement;
  #next: HTMLButtonElement;
  #legend = element("div", { class: "legend", role: "group", "aria-label": "Classes of calls" });
  #chips = new Map<number, { button: HTMLButtonElement; dot: HTMLElement; part: HTMLElement }>();
  #idle = element("i", {});
  #grouping = choice<Grouping>("Order of the rows", [["run", "runs stacked"], ["process", "runs side by side"]], (chosen) => this.#model.group(chosen));
  #axis = choice<Axis>("Axis of time (T)", [["common", "one time axis"], ["stretched", "B stretched onto A"]], (chosen) => this.#model.stretch(chosen));
  #model: Model;
  #actions: ToolbarActions;

  constructor(model: Model, actions: ToolbarActions) {
    this.#model = model;
    this.#actions = actions;
    this.#previous = button("‹", "Previous match (shift + N)", () => model.next(-1));
    this.#next = button("›", "Next match (N)", () => model.next(1));
    const find = element("div", { class: "find" }, this.search, this.#previous, this.#next, this.#matches);
    this.element.append(find, this.#buttons(), this.#legend);
    this.search.addEventListener("input", () => void model.search(this.search.value.trim()));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") model.next(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") this.search.blur();
    });
    this.showLegend(model.classes);
    this.showQuery();
  }

  /** What the query comes to; puts one that came from elsewhere into the field. */
  showQuery(): void {
    const { query, queryError, matches } = this.#model;
    if (this.search.value.trim() !== query) this.search.value = query;
    this.search.setAttribute("aria-invalid", String(queryError !== undefined));
    this.#matches.classList.toggle("wrong", queryError !== undefined);
    const found = query ? `${count(matches)} ${matches === 1 ? "call" : "calls"}` : "";
    this.#matches.textContent = queryError ? `At character ${queryError.at + 1}: ${queryError.message}.` : found;
    this.#previous.hidden = this.#next.hidden = !query || queryError !== undefined || matches === 0;
  }

  /** One button per class that occurs. */
  showLegend(classes: number[]): void {
    this.#chips.clear();
    this.#legend.replaceChildren();
    for (const shade of classes) {
      const { name, text, isHatched } = CLASSES[shade];
      const dot = element("i", isHatched ? { class: "hatched" } : {});
      const part = element("small", {});
      const made = element("button", { type: "button", "aria-pressed": "true", "data-kind": name }, dot, text, part);
      made.addEventListener("click", () => void this.#model.toggle(shade));
      this.#chips.set(shade, { button: made, dot, part });
      this.#legend.append(made);
    }
    this.#legend.append(element("span", { title: "The process was elsewhere: computing, waiting, not in a call that is recorded" }, this.#idle, "no call"));
  }

  /** Shares of the time in calls, by class name, beside their names. */
  showShares(shares: Map<string, number>, title: string): void {
    for (const [shade, { button, part }] of this.#chips) {
      const value = shares.get(CLASSES[shade].name);
      part.textContent = value === undefined ? "" : share(value);
      button.title = value === undefined ? "" : title;
    }
  }

  #buttons(): HTMLElement {
    const group = element("div", { class: "buttons", role: "group", "aria-label": "View" });
    const { view } = this.#model;
    const add = (text: string, label: string, act: () => void) =>
      group.append(
        button(text, label, () => {
          act();
          this.#model.changed();
        }),
      );
    if (this.#model.runs.length > 1) group.append(this.#grouping);
    if (this.#model.canStretch) group.append(this.#axis);
    add("−", "Zoom out (S)", () => view.zoom(1 / 2, (view.start + view.end) / 2));
    add("+", "Zoom in (W)", () => view.zoom(2, (view.start + view.end) / 2));
    add("Fit", "Show everything (0)", () => {
      this.#model.fitAll();
      this.#model.fitRows();
    });
    add("Rows −", "Lower rows (−)", () => this.#model.resizeRows(-1));
    add("Rows +", "Higher rows (=)", () => this.#model.resizeRows(1));
    add("File", "Where in a file is read and written over time (O)", this.#actions.accesses);
    const link = button("Link", "Copy the address of what is shown", () => void this.#copyLink(link));
    group.append(link);
    add("?", "Keys and gestures", this.#actions.help);
    return group;
  }

  async #copyLink(link: HTMLButtonElement): Promise<void> {
    link.textContent = (await this.#actions.copyLink()) ? "Copied" : "In the address bar";
    setTimeout(() => (link.textContent = "Link"), 1600);
  }


  draw(): void {
    this.#idle.style.background = this.#actions.theme().idle;
    for (const [shade, { button, dot }] of this.#chips) {
      button.setAttribute("aria-pressed", String(!this.#model.hidden.has(shade)));
      dot.style.backgroundColor = this.#actions.theme().dark ? CLASSES[shade].dark : CLASSES[shade].light;
    }
    for (const [select, value] of [[this.#grouping, this.#model.grouping], [this.#axis, this.#model.axis]] as const) {
      if (select.value !== value) select.value = value;
    }
  }
}

/** A list to choose from. */
function choice<Value extends string>(label: string, options: [Value, string][], act: (chosen: Value) => void): HTMLSelectElement {
  const made = element("select", { "aria-label": label }, ...options.map(([value, text]) => element("option", { value }, text)));
  made.addEventListener("change", () => act(options[made.selectedIndex][0]));
  return made;
}

function button(text: string, label: string, act: () => void): HTMLButtonElement {
  const made = element("button", { type: "button", title: label, "aria-label": label }, text);
  made.addEventListener("click", act);
  return made;
}
