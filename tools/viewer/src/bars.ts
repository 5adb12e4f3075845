// Distributions as bars, one per power of two, stacked by class; each is a button that finds its calls.

import type { Bin, Distributions } from "./distributions.ts";
import { element } from "./element.ts";
import { CLASSES } from "./palette.ts";
import { count, duration, share, size } from "./words.ts";

const HEIGHT_PX = 120;
/** A bin with any call is seen. */
const LOWEST_PX = 2;

interface Axis {
  title: string;
  /** The key of the search. */
  key: "dur" | "size";
  unit: string;
  text: (value: number) => string;
}

type Of = "durations" | "sizes";

const AXES: Record<Of, Axis> = {
  durations: { title: "Durations", key: "dur", unit: "ns", text: (value) => duration(value, 3) },
  sizes: { title: "Sizes asked for", key: "size", unit: "b", text: size },
};

/** Pictures of distributions; `find` is called with the query for the calls of a bar. */
export function bars(found: Distributions, isDark: boolean, find: (query: string) => void): HTMLElement {
  const made = element("div", { class: "distributions" });
  for (const name of Object.keys(AXES) as Of[]) made.append(figure(AXES[name], found[name], isDark, find));
  if (found.onlyCounted) made.append(element("p", { class: "quiet" }, `Of ${count(found.onlyCounted)} calls on streams neither is known: they were only counted.`));
  if (found.gathered) made.append(element("p", { class: "quiet" }, `Of ${count(found.gathered)} calls neither is told: they are added up on this page.`));
  return made;
}

function figure(axis: Axis, bins: Bin[], isDark: boolean, find: (query: string) => void): HTMLElement {
  const total = bins.reduce((sum, { calls }) => sum + calls, 0);
  const caption = element("figcaption", {}, `${axis.title} of ${count(total)} ${total === 1 ? "call" : "calls"}`);
  const made = element("figure", {}, caption);
  if (!total) return made;
  const most = Math.max(...bins.map(({ calls }) => calls));
  const list = element("ol", { class: "bars", style: `height:${HEIGHT_PX}px` });
  for (const bin of bins) list.append(element("li", {}, bar(axis, bin, most, total, isDark, find)));
  const scale = element("div", { class: "bars-scale", "aria-hidden": "true" });
  const every = Math.max(1, Math.ceil(bins.length / 8));
  bins.forEach(({ low }, at) => scale.append(element("span", {}, at % every ? "" : axis.text(low))));
  made.append(list, scale);
  return made;
}

function bar({ key, unit, text }: Axis, { low, high, calls, classes }: Bin, most: number, total: number, isDark: boolean, find: (query: string) => void): HTMLElement {
  const whole = calls ? Math.max(LOWEST_PX, Math.round((calls / most) * HEIGHT_PX)) : 0;
  const by = classes.map((own, kind) => ({ own, ...CLASSES[kind] })).filter(({ own }) => own);
  const where = high ? `${text(low)} to below ${text(high)}` : text(0);
  const label = `${where}: ${count(calls)} ${calls === 1 ? "call" : "calls"}, ${share(calls / total)}`;
  const details = by.length > 1 ? ` (${by.map(({ own, text }) => `${text} ${count(own)}`).join(", ")})` : ` (${by[0]?.text ?? ""})`;
  const made = element("button", { type: "button", title: label + (calls ? details : ""), "aria-label": label + (calls ? details : "") });
  made.disabled = !calls;
  for (const { own, light, dark, isHatched } of by) {
    const part = element("i", { style: `height:${(own / calls) * whole}px;background-color:${isDark ? dark : light}` });
    if (isHatched) part.classList.add("hatched");
    made.prepend(part);
  }
  made.addEventListener("click", () => find(high ? `${key}:${low}-${high - 1}${unit}` : `${key}:0`));
  return made;
}
