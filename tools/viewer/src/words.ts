// How times, sizes and numbers are written.

const TIME_UNITS: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

function unitOf(ns: number): [number, string] {
  return TIME_UNITS.find(([size]) => Math.abs(ns) >= size) ?? [1, "ns"];
}

/** A duration with up to `digits` significant digits: `1.25 ms`. */
export function duration(ns: number, digits = 4): string {
  const [size, unit] = unitOf(ns);
  const value = ns / size;
  const whole = Math.trunc(Math.abs(value)).toString().length;
  return `${+value.toFixed(Math.max(0, Math.min(digits - whole, size === 1 ? 0 : 9)))} ${unit}`;
}

/** A moment with every nanosecond: `0.012 345 678 s`. */
export function moment(ns: number): string {
  const sign = ns < 0 ? "−" : "";
  const whole = Math.floor(Math.abs(ns) / 1e9);
  const fraction = Math.round(Math.abs(ns) % 1e9).toString().padStart(9, "0");
  return `${sign}${whole}.${fraction.replace(/(\d{3})(?=\d)/g, "$1\u202f")} s`;
}

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** A size: exact bytes, and from 1 KiB on also the rounded one. */
export function bytes(value: number): string {
  const units = ["KiB", "MiB", "GiB", "TiB"];
  if (Math.abs(value) < 1024) return `${count(value)} B`;
  const power = Math.min(units.length, Math.floor(Math.log2(Math.abs(value)) / 10));
  return `${count(value)} B (${+(value / 1024 ** power).toPrecision(3)} ${units[power - 1]})`;
}

export interface Tick {
  time: number;
  text: string;
}

/** Round moments for an axis, about `target` of them; far in, they are written relative to `base`. */
export function ticks(start: number, end: number, target: number): { ticks: Tick[]; base: number } {
  const rough = Math.max((end - start) / Math.max(target, 1), 1);
  const decade = 10 ** Math.floor(Math.log10(rough));
  const step = decade * ([1, 2, 5].find((factor) => factor * decade >= rough) ?? 10);
  const [unit] = unitOf(step);
  // Relative once an absolute text would need more than five digits in the unit of the step.
  const base = Math.abs(end) / unit >= 1e5 ? Math.floor(start / (step * 10)) * step * 10 : 0;
  const found: Tick[] = [];
  for (let index = Math.ceil(start / step); index * step <= end; index++) {
    const time = index * step;
    found.push({ time, text: (base ? "+" : "") + axisText(time - base, step) });
  }
  return { ticks: found, base };
}

function axisText(time: number, step: number): string {
  if (time === 0) return "0";
  const [size, unit] = unitOf(Math.max(Math.abs(time), step));
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${(time / size).toFixed(decimals)} ${unit}`;
}

/** A share: `12.3 %`. */
export function share(value: number): string {
  if (value <= 0) return "0 %";
  if (value < 0.001) return "< 0.1 %";
  return `${+(value * 100).toPrecision(value >= 0.9995 ? 3 : value >= 0.0995 ? 3 : 2)} %`;
}

/** A size in one unit: `4 KiB`. */
export function size(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = value < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(value) / 10));
  return `${+(value / 1024 ** power).toPrecision(4)} ${units[power]}`;
}
