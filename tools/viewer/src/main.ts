// Starts the timeline of a page: unpacks its traces, builds the elements, connects them.

import { facts, summary, type Fact } from "./details.ts";
import { element } from "./element.ts";
import { fromBase64, open, type TraceData } from "./format.ts";
import { Gestures } from "./gestures.ts";
import { Gutter } from "./gutter.ts";
import { helpDialog } from "./help.ts";
import { Model, type Call, type Jump } from "./model.ts";
import { Overview } from "./overview.ts";
import { theme } from "./palette.ts";
import { AXIS_PX, Stage } from "./stage.ts";
import { Toolbar } from "./toolbar.ts";
import { count } from "./words.ts";

async function unpack(): Promise<TraceData[]> {
  if (!("DecompressionStream" in window)) throw new Error("this browser is older than 2023 and cannot unpack it");
  const scripts = [...document.querySelectorAll('script[type="application/x-iolab-timeline"]')];
  const packed = scripts.map((script) => {
    const bytes = fromBase64(script.textContent ?? "");
    // The text is a third larger than the bytes and no longer needed.
    script.textContent = "";
    return bytes;
  });
  return Promise.all(packed.map(open));
}

function jumps(): Jump[] {
  return JSON.parse(document.getElementById("jumps")?.textContent ?? "[]") as Jump[];
}

class Timeline {
  #root: HTMLElement;
  #model: Model;
  #stage: Stage;
  #overview: Overview;
  #gutter: Gutter;
  #toolbar: Toolbar;
  #scroller = element("div", { class: "scroller", tabindex: "-1" });
  #spacer = element("div", {});
  #body = element("div", { class: "body" });
  #tip = element("div", { class: "tip", hidden: "" });
  #details = element("div", { class: "details", "aria-live": "polite" });
  #help = helpDialog();
  #scheduled = false;

  constructor(root: HTMLElement, data: TraceData[]) {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    this.#root = root;
    this.#model = new Model(data);
    const label = `Timeline of ${data.map(({ head }) => `${head.label}: ${count(head.count)} calls`).join("; ")}. Press ? for keys.`;
    const canvas = element("canvas", { class: "stage", tabindex: "0", role: "application", "aria-label": label });
    this.#stage = new Stage(canvas, this.#model, theme(dark.matches));
    this.#overview = new Overview(element("canvas", { class: "overview", "aria-hidden": "true" }), this.#model, theme(dark.matches));
    this.#gutter = new Gutter(this.#model);
    this.#toolbar = new Toolbar(this.#model, { help: () => this.#help.showModal(), theme: () => this.#stage.theme });
    this.#assemble();
    new Gestures(this.#stage, this.#model, {
      scroll: (px) => (this.#scroller.scrollTop += px),
      hover: (x, y, event) => this.#hover(x, y, event),
      leave: () => this.#showTip(undefined),
      click: (x, y) => this.#click(x, y),
      help: () => this.#help.showModal(),
      focusSearch: () => this.#toolbar.search.focus(),
    });
    this.#model.changed = () => this.#schedule();
    this.#model.selectionChanged = () => void this.#describe(this.#model.selected);
    dark.addEventListener("change", () => {
      this.#stage.theme = this.#overview.theme = theme(dark.matches);
      this.#schedule();
    });
    new ResizeObserver(() => this.#resize()).observe(this.#body);
    this.#resize();
  }

  #assemble(): void {
    this.#scroller.append(this.#spacer);
    this.#scroller.addEventListener("scroll", () => {
      this.#stage.scrollTop = this.#scroller.scrollTop;
      this.#schedule();
    });
    this.#gutter.element.addEventListener("wheel", (event) => {
      if (this.#model.height <= this.#stage.height - AXIS_PX) return;
      event.preventDefault();
      this.#scroller.scrollTop += event.deltaY;
    });
    this.#body.append(this.#gutter.element, this.#stage.canvas, this.#scroller, this.#tip);
    const strip = element("div", { class: "strip" }, this.#overview.canvas);
    this.#root.replaceChildren(this.#toolbar.element, strip, this.#body, this.#details, this.#help);
    this.#describe(undefined);
  }

  #resize(): void {
    const room = Math.max(240, Math.round(window.innerHeight * 0.66));
    const height = Math.min(this.#model.height + AXIS_PX + 6, room);
    const isScrolled = this.#model.height + AXIS_PX > height;
    this.#root.classList.toggle("scrolled", isScrolled);
    this.#body.style.height = `${height + 2}px`;
    this.#spacer.style.height = `${this.#model.height + AXIS_PX}px`;
    const width = this.#stage.canvas.clientWidth;
    this.#stage.resize(width, height);
    this.#overview.resize(this.#overview.canvas.clientWidth);
    this.draw();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      const wanted = Math.min(this.#model.height + AXIS_PX + 6, Math.max(240, Math.round(window.innerHeight * 0.66)));
      if (wanted !== this.#stage.height) this.#resize();
      else this.draw();
    });
  }

  draw(): void {
    this.#stage.draw();
    this.#overview.draw();
    this.#gutter.draw(this.#stage.scrollTop);
    this.#toolbar.draw();
  }

  #hover(x: number, y: number, event: PointerEvent): void {
    const hit = event.pointerType === "touch" ? undefined : this.#stage.hit(x, y);
    this.#stage.canvas.style.cursor = hit ? "pointer" : y < AXIS_PX ? "col-resize" : "grab";
    const same = hit?.call.index === this.#stage.hover?.index && hit?.call.run === this.#stage.hover?.run;
    this.#showTip(hit?.call, hit?.count ?? 0, x, y);
    if (!same) this.#schedule();
  }

  #showTip(call: Call | undefined, calls = 0, x = 0, y = 0): void {
    const wasShown = this.#stage.hover !== undefined;
    this.#stage.hover = call;
    this.#tip.hidden = !call;
    if (!call) {
      if (wasShown) this.#schedule();
      return;
    }
    const { data } = this.#model.runs[call.run];
    this.#tip.replaceChildren(factList(summary(data, call.index, this.#files[call.run]?.[call.index])));
    if (calls > 1) this.#tip.append(element("p", {}, `longest of ${count(calls)} calls here: zoom in to tell them apart`));
    const left = this.#stage.canvas.offsetLeft + x;
    const isRight = left > this.#body.clientWidth - 300;
    this.#tip.style.left = isRight ? "auto" : `${left + 14}px`;
    this.#tip.style.right = isRight ? `${this.#body.clientWidth - left + 14}px` : "auto";
    this.#tip.style.top = `${y + 16}px`;
  }

  /** Files by call, as far as they are unpacked already. */
  #files: Int32Array[] = [];

  /** Unpacks in quiet moments what is not needed to draw. */
  async prepare(): Promise<void> {
    for (const [index, run] of this.#model.runs.entries()) {
      await new Promise<void>((done) => ("requestIdleCallback" in window ? requestIdleCallback(() => done()) : setTimeout(done, 50)));
      this.#files[index] = await run.data.files();
    }
  }

  #click(x: number, y: number): void {
    this.#stage.canvas.focus({ preventScroll: true });
    this.#model.select(this.#stage.hit(x, y)?.call);
  }

  async #describe(call: Call | undefined): Promise<void> {
    if (!call) {
      const hint = "Select a call to see its details. Drag to pan, turn the wheel to zoom, press ? for all keys.";
      this.#details.replaceChildren(element("p", { class: "quiet" }, hint));
      return;
    }
    this.#scrollTo(call);
    const { data } = this.#model.runs[call.run];
    const [files, details] = await Promise.all([data.files(), data.details()]);
    if (this.#model.selected !== call) return;
    const list = factList(facts(data, details, files, call.index));
    const parent = details.parent[call.index];
    const buttons = element("div", { class: "steps" });
    const button = (text: string, act: () => void) => {
      const made = element("button", { type: "button" }, text);
      made.addEventListener("click", act);
      buttons.append(made);
    };
    button("‹ previous", () => this.#model.step(-1));
    button("next ›", () => this.#model.step(1));
    button("zoom to it", () => this.#model.reveal(call, true));
    if (parent >= 0) {
      const outer = data.head.functions[data.functionOf[parent]].name;
      button(`inside ${outer}`, () => this.#model.reveal({ run: call.run, index: parent }, false));
    }
    this.#details.replaceChildren(list, buttons);
  }

  #scrollTo(call: Call): void {
    const line = this.#model.lineOf(call);
    if (!line) return;
    const bottom = this.#stage.height - AXIS_PX;
    const isAbove = line.y < this.#scroller.scrollTop;
    const isBelow = line.y + line.height > this.#scroller.scrollTop + bottom;
    if (isAbove || isBelow) this.#scroller.scrollTop = line.y - bottom / 3;
  }

  connectJumps(all: Jump[]): void {
    for (const button of document.querySelectorAll<HTMLButtonElement>("button[data-jump]")) {
      const jump = all[Number(button.dataset["jump"])];
      if (!jump || !this.#model.runs[jump.timeline]) continue;
      button.addEventListener("click", () => {
        this.#root.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
        void this.#model.jump(jump).then(() => this.#toolbar.showFilter());
      });
    }
  }
}

function factList(list: Fact[]): HTMLElement {
  const made = element("dl", {});
  for (const { name, text } of list) {
    made.append(element("div", {}, element("dt", {}, name), element("dd", {}, text)));
  }
  return made;
}

async function start(): Promise<void> {
  const root = document.getElementById("timeline");
  if (!root) return;
  try {
    const timeline = new Timeline(root, await unpack());
    timeline.connectJumps(jumps());
    performance.mark("timeline-drawn");
    await timeline.prepare();
  } catch (error) {
    const text = `The timeline cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
    root.replaceChildren(element("p", { class: "failure", role: "alert" }, text));
    console.error(error);
  }
}

void start();
