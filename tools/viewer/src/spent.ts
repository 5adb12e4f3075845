// Where the time of calls went: its parts as a bar, and each with its time.

import { element } from "./element.ts";
import { count, duration, share } from "./words.ts";

/** The parts with their names; what took no time is left out. */
export function spentView(title: string, names: string[], parts: ArrayLike<number>): HTMLElement {
  const taken = names.map((name, part) => ({ name, part, ns: parts[part] })).filter(({ ns }) => ns > 0);
  const total = taken.reduce((sum, { ns }) => sum + ns, 0);
  const bar = element("div", { class: "bar", "aria-hidden": "true" });
  const list = element("ul", {});
  for (const { name, part, ns } of taken) {
    const stretch = element("i", { class: `part${part}`, title: `${name}: ${duration(ns)}` });
    stretch.style.flexGrow = String(ns / total);
    bar.append(stretch);
    const exactly = { "data-ns": String(ns), title: `${count(ns)} ns` };
    list.append(element("li", exactly, element("i", { class: `part${part}` }), `${name} `, element("b", {}, duration(ns)), ` ${share(ns / total)}`));
  }
  const head = element("p", { class: "sum" }, `${title}: `, element("b", { title: `${count(total)} ns` }, duration(total, 6)));
  return element("div", { class: "spent", "data-ns": String(total) }, head, bar, list);
}
