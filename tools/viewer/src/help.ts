// The keys and gestures, in a dialog.

import { element } from "./element.ts";

const KEYS: [string, string][] = [
  ["drag", "pan"],
  ["wheel, pinch, + −", "zoom"],
  ["shift + drag, drag on the axis", "zoom to what is marked"],
  ["← →, A D", "pan (with shift: a page)"],
  ["W S", "zoom in, out"],
  ["↑ ↓", "scroll the rows"],
  ["0, Home", "show everything"],
  [", .", "previous, next call of the row"],
  ["N", "next matching call"],
  ["Enter, F, double click", "zoom to the call"],
  ["/", "search"],
  ["Esc", "clear the selection"],
];

export function helpDialog(): HTMLDialogElement {
  const list = element("dl", {});
  for (const [keys, what] of KEYS) {
    list.append(element("div", {}, element("dt", {}, keys), element("dd", {}, what)));
  }
  const close = element("button", { type: "submit" }, "Close");
  const reading =
    "Far out, the height of a column is the share of that moment spent in calls and its colours say in which. " +
    "Further in, every rectangle is one call. Ground without a call is time the program spent elsewhere.";
  const form = element("form", { method: "dialog" }, element("h3", {}, "Moving around"), list, element("p", {}, reading), close);
  return element("dialog", { class: "help", "aria-label": "Keys and gestures" }, form);
}
