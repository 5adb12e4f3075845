// Types of made-up.mjs for the tests that are written in TypeScript.

export interface MadeUpCall {
  start: number;
  end: number;
  fn: number;
  file?: number;
  length?: number;
  offset?: number;
  result?: number;
  argument?: number;
  /** Drawing position of the enclosing call. */
  parent?: number;
  begunBy?: number[];
  endedBy?: number[];
  /** How many it stands for; 0 is itself. */
  calls?: number;
}

export function timeline(trace: {
  label: string;
  origin?: string;
  stretches?: number;
  /** Of an overview: how many calls the trace has. */
  standsFor?: number;
  /** Where calls are gathered: how long the cells are. */
  cellNs?: number;
  /** Of a part of a trace: how many rows are not in it. */
  leftOut?: number;
  functions: { name: string; layer: string; kind: string; shape?: string }[];
  files?: string[];
  processes: { name: string; kind?: string; rank?: number; host?: string; command?: string }[];
  phases?: { name: string; application: string; start_ns: number; end_ns: number }[];
  rows: { process: number; thread?: number; depth?: number; calls: MadeUpCall[] }[];
}): Uint8Array;
export function page(timelines: Uint8Array[], title?: string, overviews?: Uint8Array[]): string;
export function cluster(shape: { ranks: number; servers: number; perNode?: number; phases?: number; failing?: number[]; waiting?: number }): Uint8Array;
export function large(count: number): { calls: Uint8Array; overview: Uint8Array };
export function random(seed: number): (below: number) => number;
export function compared(): Uint8Array[];
