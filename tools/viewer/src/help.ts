// The keys and gestures, in a dialog.

import { element } from "./element.ts";

const KEYS: [string, string][] = [
  ["wheel, ↑ ↓", "scroll the rows, then the page"],
  ["ctrl + wheel, pinch, W S, +", "zoom"],
  ["shift + wheel, A D, ← →", "move along (with shift: a page)"],
  ["middle button or space, drag", "move along and scroll"],
  ["drag", "choose a range of time and rows; on the axis of all rows"],
  ["Z, double click", "zoom into the range, or to the call"],
  ["0, Home", "show everything"],
  ["ctrl + Z", "back to what was shown before"],
  ["− =", "lower, higher rows"],
  ["click, Enter on a name", "open or collapse a group"],
  ["P", "pin the row of the call to the top, or let it go; a name can be dragged there, too"],
  [", .", "previous, next call of the row"],
  ["/", "search"],
  ["N, shift + N", "next, previous match"],
  ["Enter, F", "zoom to the call"],
  ["[ ]", "to a cause, to an effect of the call"],
  ["C", "hide or show all causes and effects"],
  ["M", "keep the range, or the selected call, under a name"],
  ["G", "go to a time or a row of the trace"],
  ["R", "measure all that is in view"],
  ["K", "curves: how fast data is moved, how much is under way"],
  ["O", "offsets of a file over time"],
  ["T", "of runs compared: one axis of time, or B stretched so that its calls stand below those of A"],
  ["Esc", "clear the selection, then the range"],
];

export function helpDialog(): HTMLDialogElement {
  const list = element("dl", {});
  for (const [keys, what] of KEYS) {
    list.append(element("div", {}, element("dt", {}, keys), element("dd", {}, what)));
  }
  const close = element("button", { type: "submit" }, "Close");
  const reading =
    "Far out, the height of a column is the share of that moment spent in calls and its colours say in which. " +
    "Further in, every rectangle is one call, or, where a run is too large for its page, those of a moment added up. Ground without a call is time the program spent elsewhere. " +
    "Servers, devices and links do many things at once: the height of their rows is how many. " +
    "In a block all rows of a group are drawn, each as high as there is room. Failed calls have a red edge.";
  const queries =
    "Words must occur in the function or file. Further: op:pwrite file:*.h5 rank:0-63 process:sh node:node7 server:3 class:write layer:mpiio " +
    "size:<4k offset:1m-2m dur:>1ms seek:far error error:ENOSPC. A comma means or, a minus before a term not.";
  const form = element("form", { method: "dialog" }, element("h3", {}, "Moving around"), list, element("h3", {}, "Reading"), element("p", {}, reading), element("h3", {}, "Searching"), element("p", {}, queries), close);
  return element("dialog", { class: "help", "aria-label": "Keys and gestures" }, form);
}
