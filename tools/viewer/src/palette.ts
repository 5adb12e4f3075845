// What colour a kind of call has, in light and dark. Neighbours in meaning differ in lightness too,
// so that the timeline can be read without telling red from green.

import { SHADE_COUNT_MAX, SHADE_DIM } from "./track.ts";

export interface KindStyle {
  name: string;
  text: string;
  light: string;
  dark: string;
}

/** Kinds in the order they are stacked, from the bottom. The index is the shade. */
export const KINDS: KindStyle[] = [
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
];

export interface Theme {
  dark: boolean;
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
}

export function shadeOf(kind: string): number {
  const found = KINDS.findIndex((candidate) => candidate.name === kind);
  return found < 0 ? KINDS.length - 1 : found;
}

/** `#rrggbb` as a little-endian canvas stores it. */
export function pixel(colour: string): number {
  const value = parseInt(colour.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

export function theme(dark: boolean): Theme {
  const shades = new Uint32Array(SHADE_COUNT_MAX);
  KINDS.forEach((kind, shade) => (shades[shade] = pixel(dark ? kind.dark : kind.light)));
  shades[SHADE_DIM] = pixel(dark ? "#3a4550" : "#cfd6dd");
  return dark
    ? {
        dark, shades, ground: pixel("#14191e"), lane: pixel("#181e24"), laneLive: pixel("#222b34"),
        header: pixel("#14191e"), ink: "#e6eaee", soft: "#9aa5b1", idle: "#2c3742", line: "#2c353e", accent: "#ffffff",
      }
    : {
        dark, shades, ground: pixel("#ffffff"), lane: pixel("#f8f9fa"), laneLive: pixel("#edf0f3"),
        header: pixel("#ffffff"), ink: "#1d2329", soft: "#59636e", idle: "#e4e8ec", line: "#dde2e6", accent: "#111417",
      };
}
