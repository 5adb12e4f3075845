// Where a typed place is: a moment such as `12.5ms`, or a row number of the trace such as `312164`.

import type { Call, Model } from "./model.ts";
import { complete } from "./loaded.ts";

const UNITS: Record<string, number> = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 };

export type Goal = { time: number } | { row: number };

export function goalOf(text: string): Goal | undefined {
  const [, digits, unit] = /^(?:row\s+)?([\d,_ \u202f]*\d(?:\.\d+)?)\s*([a-zµ]*)$/i.exec(text.trim()) ?? [];
  if (digits === undefined) return undefined;
  const value = Number(digits.replace(/[,_ \u202f]/g, ""));
  if (!unit) return Number.isInteger(value) ? { row: value } : undefined;
  const factor = UNITS[unit.toLowerCase()];
  return factor === undefined || /^row/i.test(text.trim()) ? undefined : { time: value * factor };
}

/** Goes there; tells what is in the way. */
export async function goTo(model: Model, text: string): Promise<string | undefined> {
  const goal = goalOf(text);
  if (!goal) return `“${text}” is neither a time such as 12.5ms nor a row number such as 312164.`;
  const { view } = model;
  if ("time" in goal) {
    if (goal.time > view.length) return "The trace ends before that time.";
    view.remember();
    view.show(goal.time - view.span / 2, goal.time + view.span / 2);
    model.changed();
    return undefined;
  }
  const call = await callOfRow(model, goal.row);
  if (!call) return `There is no row ${goal.row} on this page.`;
  model.reveal(call, false);
  return undefined;
}

async function callOfRow(model: Model, row: number): Promise<Call | undefined> {
  for (const run of model.shown) {
    await complete(model.runs[run]);
    const index = model.runs[run].details!.row.indexOf(row);
    if (index >= 0) return { run, index };
  }
  return undefined;
}
