// What a call hangs together with, as a table: which calls, where, when and for how long.

import type { Web } from "./causes.ts";
import { processOf } from "./details.ts";
import { element } from "./element.ts";
import type { Call, Model } from "./model.ts";
import { count, duration } from "./words.ts";

const ROWS_MAX = 120;

/** The calls of a web in the order of time; times are told from the beginning of the call it is about. */
export function hopTable(model: Model, call: Call, web: Web): HTMLElement {
  const { data, head } = model.runs[call.run];
  const { start, end, functionOf } = data;
  const zero = start[call.index];
  const ordered = [...web.calls].sort((a, b) => start[a] - start[b] || a - b);
  const body = element("tbody", {});
  for (const index of ordered.slice(0, ROWS_MAX)) {
    const name = element("button", { type: "button", class: "link", title: "Select this call" }, head.functions[functionOf[index]].name);
    name.addEventListener("click", () => model.reveal({ run: call.run, index }, false));
    const causes = web.hops.filter(({ to }) => to === index).length;
    const effects = web.hops.filter(({ from }) => from === index).length;
    const row = element(
      "tr",
      index === call.index ? { "aria-current": "true" } : {},
      element("td", {}, name),
      element("td", {}, head.processes[processOf(data, index).process].name),
      element("td", { class: "number" }, signed(start[index] - zero)),
      element("td", { class: "number" }, signed(end[index] - zero)),
      element("td", { class: "number" }, duration(end[index] - start[index])),
      element("td", { class: "number" }, causes ? count(causes) : ""),
      element("td", { class: "number" }, effects ? count(effects) : ""),
    );
    body.append(row);
  }
  const titles = ["call", "process", "begins", "ends", "duration", "causes", "effects"];
  const heads = element("tr", {}, ...titles.map((title, at) => element("th", { scope: "col", ...(at > 1 ? { class: "number" } : {}) }, title)));
  const left = ordered.length - ROWS_MAX;
  const more = left > 0 ? `${count(left)} later ones are not listed` : "";
  const cut = web.isCut ? "there are still more behind these" : "";
  const caption = element("caption", {}, [`${count(ordered.length)} calls hang together with this one; times from its beginning`, more, cut].filter(Boolean).join("; "));
  const table = element("table", { class: "hops" }, caption, element("thead", {}, heads), body);
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Causes and effects" }, table);
}

function signed(ns: number): string {
  return ns < 0 ? `−${duration(-ns)}` : `+${duration(ns)}`;
}
