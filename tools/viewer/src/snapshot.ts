// What is in view as a picture to keep: legend, names, axis, rows, open panels. The page is walked once; what it
// shows is painted into a canvas (PNG) or written down as text over pictures (SVG).

import { save } from "./csv.ts";

const MARGIN_PX = 8;

type Item =
  | { kind: "canvas"; canvas: HTMLCanvasElement; x: number; y: number; width: number; height: number }
  | { kind: "dot"; colour: string; x: number; y: number; width: number; height: number }
  | { kind: "text"; text: string; colour: string; font: string; x: number; y: number };

interface Snapshot {
  width: number;
  height: number;
  ground: string;
  items: Item[];
}

/** What stands in parts of the page, in places relative to all of them together. */
function taken(parts: HTMLElement[]): Snapshot {
  const boxes = parts.map((part) => part.getBoundingClientRect());
  const [left, top] = [Math.min(...boxes.map((box) => box.left)) - MARGIN_PX, Math.min(...boxes.map((box) => box.top)) - MARGIN_PX];
  const [right, bottom] = [Math.max(...boxes.map((box) => box.right)) + MARGIN_PX, Math.max(...boxes.map((box) => box.bottom)) + MARGIN_PX];
  const items = parts.flatMap((part) => itemsIn(part, left, top));
  return { width: Math.ceil(right - left), height: Math.ceil(bottom - top), ground: getComputedStyle(document.body).backgroundColor, items };
}

function itemsIn(part: HTMLElement, left: number, top: number): Item[] {
  const items: Item[] = [];
  const visible = part.getBoundingClientRect();
  const walker = document.createTreeWalker(part, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node: Node | null = walker.currentNode; node; node = walker.nextNode()) {
    const owner = node instanceof HTMLElement ? node : node.parentElement!;
    if (!owner.checkVisibility({ visibilityProperty: true }) || owner.closest("select, option, .tip")) continue;
    const style = getComputedStyle(owner);
    if (node instanceof Text) items.push(...textItems(node, style, visible, left, top));
    else if (owner instanceof HTMLCanvasElement || owner.tagName === "I") {
      const { x, y, width, height } = owner.getBoundingClientRect();
      const place = { x: x - left, y: y - top, width, height };
      items.push(owner instanceof HTMLCanvasElement ? { kind: "canvas", canvas: owner, ...place } : { kind: "dot", colour: style.backgroundColor, ...place });
    }
  }
  return items;
}

/** A text where it stands, line by line, unless it was scrolled out of sight. */
function textItems(node: Text, style: CSSStyleDeclaration, visible: DOMRect, left: number, top: number): Item[] {
  const font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const range = document.createRange();
  const lines: (Item & { kind: "text" })[] = [];
  for (const { index, 0: word } of node.data.matchAll(/\S+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const box = range.getBoundingClientRect();
    if (box.width === 0 || box.bottom < visible.top || box.top > visible.bottom) continue;
    const y = (box.top + box.bottom) / 2 - top;
    const line = lines.at(-1);
    if (line && Math.abs(line.y - y) < 1) line.text += ` ${word}`;
    else lines.push({ kind: "text", text: word, colour: style.color, font, x: box.left - left, y });
  }
  return lines;
}

function painted({ width, height, ground, items }: Snapshot): HTMLCanvasElement {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = canvas.getContext("2d")!;
  context.scale(ratio, ratio);
  context.fillStyle = ground;
  context.fillRect(0, 0, width, height);
  context.textBaseline = "middle";
  for (const item of items) {
    if (item.kind === "canvas") context.drawImage(item.canvas, item.x, item.y, item.width, item.height);
    else if (item.kind === "dot") {
      context.fillStyle = item.colour;
      context.fillRect(item.x, item.y, item.width, item.height);
    } else {
      context.fillStyle = item.colour;
      context.font = item.font;
      context.fillText(item.text, item.x, item.y);
    }
  }
  return canvas;
}

const SVG = "http://www.w3.org/2000/svg";

function written({ width, height, ground, items }: Snapshot): string {
  const made = (name: string, attributes: Record<string, string | number>, text = "") => {
    const part = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, String(value));
    // What no document may hold.
    part.textContent = text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f]/g, "\ufffd");
    return part;
  };
  const picture = made("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  picture.append(made("rect", { width: "100%", height: "100%", fill: ground }));
  for (const item of items) {
    const { x, y } = item;
    if (item.kind === "canvas") picture.append(made("image", { x, y, width: item.width, height: item.height, href: item.canvas.toDataURL("image/png") }));
    else if (item.kind === "dot") picture.append(made("rect", { x, y, width: item.width, height: item.height, fill: item.colour }));
    else picture.append(made("text", { x, y, "dominant-baseline": "central", fill: item.colour, style: `font:${item.font}` }, item.text));
  }
  return new XMLSerializer().serializeToString(picture);
}

/** Hands a picture of parts of the page to the user. */
export function saveSnapshot(parts: HTMLElement[], format: "png" | "svg"): void {
  const snapshot = taken(parts.filter((part) => part.checkVisibility()));
  if (format === "svg") save("timeline.svg", new Blob([written(snapshot)], { type: "image/svg+xml" }));
  else painted(snapshot).toBlob((blob) => blob && save("timeline.png", blob), "image/png");
}
