// Search, legend and buttons above the timeline.

import { button as plainButton, element } from "./element.ts";
import type { Model } from "./model.ts";
import type { LoadedRun } from "./loaded.ts";
import { ORDERS, type Order } from "./order.ts";
import { isConcurrent } from "./place.ts";
import { COLOURINGS, type Colouring } from "./colouring.ts";
import type { Theme } from "./palette.ts";
import type { Axis, Grouping } from "./tree.ts";
import { count, share } from "./words.ts";

const GROUPINGS: [Grouping, string][] = [
  ["run", "stacked"],
  ["servers", "servers first"],
  ["flat", "without nodes"],
  ["process", "side by side"],
];

export interface ToolbarActions {
  help: () => void;
  theme: () => Theme;
  copyLink: () => Promise<boolean>;
  accesses: () => void;
  curves: () => void;
  measure: () => void;
  snapshot: (format: "png" | "svg") => void;
}

export class Toolbar {
  readonly element = element("div", { class: "toolbar" });
  readonly search = element("input", {
    type: "search",
    placeholder: "Find: words, rank:0-63, error …",
    "aria-label": "Find calls",
    "aria-describedby": "query-state",
    spellcheck: "false",
  });
  #matches = element("output", { class: "matches", id: "query-state" });
  #only = element("input", { type: "checkbox" });
  #onlyLabel = element("label", { class: "only", title: "Leave out processes without a call that matches" }, this.#only, "only their rows");
  #previous: HTMLButtonElement;
  #next: HTMLButtonElement;
  /** What colours mean; belongs into pictures. */
  readonly chips = element("div", { class: "chips", role: "group", "aria-label": "What colours mean" });
  #chips = new Map<number, { button: HTMLButtonElement; dot: HTMLElement; part: HTMLElement }>();
  #idle = element("i", {});
  #grouping = choice<Grouping>("Groups of the rows", GROUPINGS, (chosen) => this.#model.group(chosen));
  #order = choice<Order>("Order of the rows", ORDERS, (chosen) => void this.#model.sort(chosen));
  #axis = choice<Axis>("Axis of time (T)", [["common", "one time axis"], ["stretched", "B stretched onto A"]], (chosen) => this.#model.stretch(chosen));
  #colouring = choice<Colouring>("Colours by", COLOURINGS, (chosen) => void this.#model.colour(chosen));
  #model: Model;
  #actions: ToolbarActions;

  constructor(model: Model, actions: ToolbarActions) {
    this.#model = model;
    this.#actions = actions;
    this.#previous = button("‹", "Previous match (shift + N)", () => model.next(-1));
    this.#next = button("›", "Next match (N)", () => model.next(1));
    const find = element("div", { class: "find" }, this.search, this.#previous, this.#next, this.#matches, this.#onlyLabel);
    this.element.append(find, this.#buttons(), element("div", { class: "legend" }, this.#colouring, this.chips));
    this.search.addEventListener("input", () => void model.search(this.search.value.trim()));
    this.#only.addEventListener("change", () => model.showOnlyMatching(this.#only.checked));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") model.next(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") this.search.blur();
    });
    this.showLegend(model.slots);
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
    this.#onlyLabel.hidden = !query && !this.#model.isOnlyMatching;
  }

  /** One button per class that occurs. */
  showLegend(classes: number[]): void {
    this.#chips.clear();
    this.chips.replaceChildren();
    // Shares are told of classes alone.
    this.chips.classList.toggle("plain", this.#model.colouring !== "class");
    for (const shade of classes) {
      const { name, text, isHatched } = this.#model.styles[shade];
      const dot = element("i", isHatched ? { class: "hatched" } : {});
      const part = element("small", {});
      const made = element("button", { type: "button", "aria-pressed": "true", "data-kind": name, title: name === text ? "" : name }, dot, text, part);
      made.addEventListener("click", () => void this.#model.toggle(shade));
      this.#chips.set(shade, { button: made, dot, part });
      this.chips.append(made);
    }
    this.chips.append(element("span", { title: "The process was elsewhere: computing, waiting, not in a call that is recorded" }, this.#idle, "no call"));
  }

  /** Shares of the time in calls, by class name, beside their names. */
  showShares(shares: Map<string, number>, title: string): void {
    for (const [shade, { button, part }] of this.#chips) {
      const value = shares.get(this.#model.styles[shade].name);
      part.textContent = value === undefined ? "" : share(value);
      if (value !== undefined) button.title = title;
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
    this.#offerGroupings();
    if (this.#grouping.options.length > 1) group.append(this.#grouping);
    group.append(this.#order);
    if (this.#model.canStretch) group.append(this.#axis);
    add("−", "Zoom out (S)", () => view.zoom(1 / 2, (view.start + view.end) / 2));
    add("+", "Zoom in (W)", () => view.zoom(2, (view.start + view.end) / 2));
    add("Fit", "Show everything (0)", () => {
      this.#model.fitAll();
      this.#model.fitRows();
    });
    add("Rows −", "Lower rows (−)", () => this.#model.resizeRows(-1));
    add("Rows +", "Higher rows (=)", () => this.#model.resizeRows(1));
    add("Measure", "What all that is in view comes to (R)", this.#actions.measure);
    add("Curves", "How fast data is moved, how much is under way (K)", this.#actions.curves);
    add("File", "Where in a file is read and written over time (O)", this.#actions.accesses);
    const link = button("Link", "Copy the address of what is shown", () => void this.#copyLink(link));
    group.append(link);
    add("PNG", "Save what is in view as a picture (PNG)", () => this.#actions.snapshot("png"));
    add("SVG", "Save what is in view as a picture with text (SVG)", () => this.#actions.snapshot("svg"));
    add("?", "Keys and gestures", this.#actions.help);
    return group;
  }

  /** Only what would make a difference. */
  #offerGroupings(): void {
    const { runs } = this.#model;
    const several = (of: (run: LoadedRun) => string[]) => runs.some((run) => new Set(of(run)).size > 1);
    const programs = ({ places }: LoadedRun) => places.filter(({ kind }) => !isConcurrent(kind));
    const isOffered: Record<Grouping, boolean> = {
      run: true,
      servers: runs.some(({ places }) => places.some(({ kind }) => kind === "server" || kind === "device")),
      flat: several((run) => programs(run).map(({ node, application }) => `${node} ${application}`)),
      process: runs.length > 1,
    };
    if (runs.length === 1) this.#grouping.options[0].text = "programs first";
    for (const option of [...this.#grouping.options]) if (!isOffered[option.value as Grouping]) option.remove();
  }

  async #copyLink(link: HTMLButtonElement): Promise<void> {
    link.textContent = (await this.#actions.copyLink()) ? "Copied" : "In the address bar";
    setTimeout(() => (link.textContent = "Link"), 1600);
  }


  draw(): void {
    this.#only.checked = this.#model.isOnlyMatching;
    this.#idle.style.background = this.#actions.theme().idle;
    for (const [shade, { button, dot }] of this.#chips) {
      button.setAttribute("aria-pressed", String(!this.#model.hidden.has(shade)));
      const { light, dark } = this.#model.styles[shade];
      dot.style.backgroundColor = this.#actions.theme().dark ? dark : light;
    }
    for (const [select, value] of [[this.#grouping, this.#model.grouping], [this.#axis, this.#model.axis], [this.#colouring, this.#model.colouring], [this.#order, this.#model.order]] as const) {
      if (select.value !== value) select.value = value;
    }
  }
}

/** A list to choose from. */
function choice<Value extends string>(label: string, options: [Value, string][], act: (chosen: Value) => void): HTMLSelectElement {
  const made = element("select", { "aria-label": label, title: label }, ...options.map(([value, text]) => element("option", { value }, text)));
  made.addEventListener("change", () => act(made.value as Value));
  return made;
}

/** A button whose text need not tell what it is for. */
function button(text: string, label: string, act: () => void): HTMLButtonElement {
  const made = plainButton(text, label, act);
  made.setAttribute("aria-label", label);
  return made;
}
