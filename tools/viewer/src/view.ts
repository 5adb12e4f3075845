// Which part of the time axis is shown. All moves keep it inside the trace and no narrower than
// a few nanoseconds.

import type { Span } from "./paint.ts";

const SPAN_MIN_NS = 20;
const PAST_MAX = 100;

export class View implements Span {
  start = 0;
  end = 1;
  readonly length: number;
  #past: Span[] = [];

  /** A view of everything from 0 to `length` nanoseconds. */
  constructor(length: number) {
    this.length = Math.max(length, SPAN_MIN_NS);
    this.fit();
  }

  get span(): number {
    return this.end - this.start;
  }

  fit(): void {
    this.show(0, this.length);
  }

  /** Shows a stretch of time, moved and cut to what there is. */
  show(start: number, end: number): void {
    const span = Math.min(Math.max(end - start, SPAN_MIN_NS), this.length * 1.04);
    const margin = Math.min(span, this.length) * 0.02;
    const low = -margin;
    const high = this.length + margin - span;
    const middle = (start + end) / 2 - span / 2;
    this.start = high < low ? (low + high) / 2 : Math.min(Math.max(middle, low), high);
    this.end = this.start + span;
  }

  /** Keeps what is shown now, to come back to. */
  remember(): void {
    const last = this.#past.at(-1);
    if (last && last.start === this.start && last.end === this.end) return;
    this.#past.push({ start: this.start, end: this.end });
    if (this.#past.length > PAST_MAX) this.#past.shift();
  }

  /** Shows what was shown before the last leap. */
  back(): void {
    const last = this.#past.pop();
    if (last) this.show(last.start, last.end);
  }

  pan(time: number): void {
    this.show(this.start + time, this.end + time);
  }

  /** Zooms so that the moment `time` stays where it is on the screen; a factor above 1 zooms in. */
  zoom(factor: number, time: number): void {
    const span = Math.min(Math.max(this.span / factor, SPAN_MIN_NS), this.length * 1.04);
    const share = (time - this.start) / this.span;
    const start = time - share * span;
    this.show(start, start + span);
  }

  /** Shows a stretch of time with some air around it. */
  focus(start: number, end: number, air = 0.1): void {
    const margin = Math.max((end - start) * air, SPAN_MIN_NS);
    this.show(start - margin, end + margin);
  }
}
