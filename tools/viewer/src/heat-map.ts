// A matrix of processes by files or servers as a picture, the darker the more, with its largest cells as a table
// beside it.

import { lines } from "./csv.ts";
import { element } from "./element.ts";
import { MEASURES, type Matrix, type Measure } from "./matrix.ts";
import { count, duration, size } from "./words.ts";

const WIDTH_PX = 620;
const HEIGHT_PX = 380;
const CELL_PX_MAX = 44;
const ROW_PX_MAX = 18;
/** Those behind are summed up, so that a column can be pointed at. */
const COLUMNS_MAX = 120;
const LARGEST = 12;
/** What any cell that is not empty has at least of the colour. */
const FAINTEST = 0.1;

export const TEXTS: Record<Measure, (value: number) => string> = { bytes: size, calls: count, time: duration };

interface Shown {
  matrix: Matrix;
  measure: Measure;
  /** `file` or `server`. */
  across: string;
  isDark: boolean;
  /** Called with names of a process and of a column. */
  find: (process: string, column: string) => void;
}

export function heatMap(shown: Shown): HTMLElement {
  const { matrix, measure, across } = shown;
  const all = matrix.cells[measure];
  const most = all.reduce((a, b) => Math.max(a, b), 0);
  if (!most) return element("p", { class: "quiet" }, `No ${measure} here: nothing in the range is at a ${across}.`);
  const write = TEXTS[measure];
  const columns = Math.min(matrix.columns.length, COLUMNS_MAX);
  const left = matrix.columns.length - columns;
  const rest = left ? ` The ${count(left)} ${across}s with least bytes are left out.` : "";
  const caption = element("figcaption", {}, `${measure} by process (down) and ${across} (across), darkest ${write(most)}.${rest}`);
  return element("div", { class: "matrix" }, element("figure", {}, picture(shown, columns, most), caption), largest(shown));
}

function picture({ matrix, measure, across, isDark, find }: Shown, columns: number, most: number): HTMLCanvasElement {
  const rows = matrix.processes.length;
  const [cellWidth, cellHeight] = [Math.min(CELL_PX_MAX, WIDTH_PX / columns), Math.min(ROW_PX_MAX, HEIGHT_PX / rows)];
  const [width, height] = [Math.ceil(cellWidth * columns), Math.max(ROW_PX_MAX, Math.ceil(cellHeight * rows))];
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const label = `${measure} of ${count(rows)} processes at ${count(columns)} ${across}s; the largest are in the table beside it`;
  const canvas = element("canvas", { role: "img", "aria-label": label, width: String(Math.round(width * ratio)), height: String(Math.round(height * ratio)), style: `width:${width}px;height:${height}px` });
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  const scale = (value: number) => Math.round(value * ratio);
  const cells = matrix.cells[measure];
  const colour = isDark ? "90,165,240" : "11,95,168";
  const valueAt = (row: number, column: number) => cells[row * matrix.columns.length + column];
  // Rows of less than a pixel share it: the fullest is seen.
  const strips = Math.min(rows, Math.round(height * ratio));
  for (let strip = 0; strip < strips; strip++) {
    const [first, beyond] = [Math.floor((strip * rows) / strips), Math.floor(((strip + 1) * rows) / strips)];
    const [top, bottom] = [scale((first / rows) * cellHeight * rows), scale((beyond / rows) * cellHeight * rows)];
    for (let column = 0; column < columns; column++) {
      let value = 0;
      for (let row = first; row < beyond; row++) value = Math.max(value, valueAt(row, column));
      if (!value) continue;
      context.fillStyle = `rgba(${colour},${FAINTEST + (1 - FAINTEST) * (value / most)})`;
      const [x, right] = [scale(column * cellWidth), scale((column + 1) * cellWidth)];
      const gap = cellWidth >= 6 && cellHeight >= 6 ? 1 : 0;
      context.fillRect(x, top, Math.max(1, right - x - gap), Math.max(1, bottom - top - gap));
    }
  }
  const at = (event: MouseEvent) => {
    const [row, column] = [Math.floor(event.offsetY / cellHeight), Math.floor(event.offsetX / cellWidth)];
    return row < rows && column < columns ? { row, column, process: matrix.processes[row], name: matrix.columns[column] } : undefined;
  };
  canvas.addEventListener("pointermove", (event) => {
    const found = at(event);
    canvas.title = found ? `${found.process}, ${found.name}: ${MEASURES.map((of) => `${TEXTS[of](matrix.cells[of][found.row * matrix.columns.length + found.column])}${of === "calls" ? " calls" : ""}`).join(", ")}` : "";
  });
  canvas.addEventListener("click", (event) => {
    const found = at(event);
    if (found && valueAt(found.row, found.column)) find(found.process, found.name);
  });
  return canvas;
}

function largest({ matrix, measure, across, find }: Shown): HTMLElement {
  const cells = matrix.cells[measure];
  const order = [...cells.keys()].filter((at) => cells[at]).sort((a, b) => cells[b] - cells[a] || a - b).slice(0, LARGEST);
  const head = element("tr", {}, ...["process", across, ...MEASURES].map((name, at) => element("th", { scope: "col", ...(at > 1 ? { class: "number" } : {}) }, name)));
  const body = element("tbody", {});
  for (const at of order) {
    const [process, column] = [matrix.processes[Math.floor(at / matrix.columns.length)], matrix.columns[at % matrix.columns.length]];
    const link = element("button", { type: "button", class: "link", title: "Find these calls" }, process);
    link.addEventListener("click", () => find(process, column));
    body.append(element("tr", {}, element("td", {}, link), element("td", {}, column), ...MEASURES.map((of) => element("td", { class: "number" }, TEXTS[of](matrix.cells[of][at])))));
  }
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Largest by ${measure}` }, element("table", {}, element("thead", {}, head), body));
}

/** All cells as comma-separated values. */
export function matrixCsv({ processes, columns, cells }: Matrix, across: string): string {
  const rows: (string | number)[][] = [["process", across, "bytes", "calls", "time_ns"]];
  processes.forEach((process, row) => {
    columns.forEach((column, place) => {
      const values = MEASURES.map((measure) => cells[measure][row * columns.length + place]);
      if (values.some(Boolean)) rows.push([process, column, ...values]);
    });
  });
  return lines(rows);
}
