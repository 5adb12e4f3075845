// What colour a class of calls has, in light and dark. Neighbours in meaning differ in lightness too,
// so that the timeline can be read without telling red from green; what servers and links do is hatched.

import type { FunctionEntry } from "./format.ts";
import { SHADE_COUNT_MAX, SHADE_DIM } from "./track.ts";

export interface ClassStyle {
  /** As in the tables that Rust computes. */
  name: string;
  text: string;
  light: string;
  dark: string;
  isHatched?: boolean;
  /** What part of a cluster it is of; none for programs. */
  part?: "server" | "device" | "link";
}

/** Classes in the order they are stacked, from the bottom. The index is the shade. */
export const CLASSES: ClassStyle[] = [
  { name: "read", text: "read", light: "#2f7fd1", dark: "#5aa5f0" },
  { name: "write", text: "write", light: "#e8892b", dark: "#f39a3e" },
  { name: "copy", text: "copy", light: "#b5851c", dark: "#d6b04a" },
  { name: "open", text: "open, close", light: "#1f9d74", dark: "#37c08f" },
  { name: "metadata", text: "metadata", light: "#8d8f1f", dark: "#bfc13f" },
  { name: "seek", text: "seek", light: "#8a5cd1", dark: "#a98bee" },
  { name: "sync", text: "sync, flush", light: "#c92f3c", dark: "#f0605c" },
  { name: "map", text: "map", light: "#9a6236", dark: "#c98b5a" },
  { name: "process", text: "process", light: "#5d6975", dark: "#9aa6b2" },
  { name: "message", text: "message", light: "#1397ab", dark: "#3fc6db" },
  { name: "decision", text: "strategy", light: "#c8408f", dark: "#ec74b8" },
  { name: "compute", text: "compute", light: "#b6c0ca", dark: "#56636f" },
  { name: "other", text: "unseen", light: "#8795a1", dark: "#74818d" },
  { name: "piece", text: "extents", light: "#c3ccd4", dark: "#414c56" },
  { name: "serve-read", text: "serve read", light: "#7fa9d6", dark: "#3f78b3", isHatched: true, part: "server" },
  { name: "serve-write", text: "serve write", light: "#d9a066", dark: "#b3742c", isHatched: true, part: "server" },
  { name: "device", text: "device, no seek", light: "#4aa898", dark: "#6fc7b6", part: "device" },
  { name: "device-near", text: "near seek", light: "#c9a019", dark: "#e6c54d", part: "device" },
  { name: "device-far", text: "far seek", light: "#9c2348", dark: "#e0507c", part: "device" },
  { name: "sent", text: "sent", light: "#35b5c6", dark: "#56cfdf", isHatched: true, part: "link" },
  { name: "received", text: "received", light: "#156a80", dark: "#2a93ad", isHatched: true, part: "link" },
];

const SHADES = new Map(CLASSES.map(({ name }, shade) => [name, shade]));
const OTHER = SHADES.get("other")!;
const DEVICE = SHADES.get("device")!;
/** The class of rows that only say where the data of the call around them lie: no calls, and without time of their own. */
export const PIECE = SHADES.get("piece")!;

/** The shade of a function's calls. */
export function shadeOf({ layer, kind, name }: FunctionEntry): number {
  if (layer === "device") return DEVICE;
  if (layer === "server") return SHADES.get(`serve-${kind}`) ?? OTHER;
  if (layer === "network") return SHADES.get(name === "send" ? "sent" : "received")!;
  return SHADES.get(kind) ?? OTHER;
}

/** How far a device went before an access is told by its argument: not at all, near, far. */
export function seekShade(argument: number): number {
  return DEVICE + Math.min(2, Math.max(0, argument));
}

export interface Theme {
  dark: boolean;
  /** What the shades mean. */
  styles: ClassStyle[];
  shades: Uint32Array;
  lane: number;
  laneLive: number;
  ground: number;
  header: number;
  ink: string;
  soft: string;
  /** Ground where a process lived but made no call. */
  idle: string;
  line: string;
  accent: string;
  /** Ground of the page. */
  page: string;
  /** Of the axis where a range is chosen. */
  rangeGround: string;
  /** Edge of failed calls. */
  failure: number;
}

/** `#rrggbb` as a little-endian canvas stores it. */
export function pixel(colour: string): number {
  const value = parseInt(colour.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

export function theme(dark: boolean, styles: ClassStyle[] = CLASSES): Theme {
  const shades = new Uint32Array(SHADE_COUNT_MAX);
  styles.forEach((style, shade) => (shades[shade] = pixel(dark ? style.dark : style.light)));
  shades[SHADE_DIM] = pixel(dark ? "#3a4550" : "#cfd6dd");
  return dark
    ? {
        dark, styles, shades, ground: pixel("#14191e"), lane: pixel("#181e24"), laneLive: pixel("#222b34"),
        header: pixel("#14191e"), ink: "#e6eaee", soft: "#9aa5b1", idle: "#2c3742", line: "#2c353e", accent: "#ffffff", page: "#14191e", rangeGround: "#28435c", failure: pixel("#ff4d4d"),
      }
    : {
        dark, styles, shades, ground: pixel("#ffffff"), lane: pixel("#f8f9fa"), laneLive: pixel("#edf0f3"),
        header: pixel("#ffffff"), ink: "#1d2329", soft: "#59636e", idle: "#e4e8ec", line: "#dde2e6", accent: "#111417", page: "#ffffff", rangeGround: "#d5e6f6", failure: pixel("#d40000"),
      };
}
