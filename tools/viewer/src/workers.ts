// Other threads of the page, which decode and sort while it draws. A page is one file, and from `file://` a
// browser starts no worker from a path: each is the page's own script once more, from a blob, in which there is no
// document. Where a browser refuses them, this thread does the work.

import { HERE, type Decoder, type Described, type Outline, type Packed, type Times } from "./format.ts";
import { levelsOf, type Levels } from "./wavelet.ts";

const WORKERS_MAX = 4;

/** What workers do, by name. */
const WORK = {
  times: (outline: Outline, columns: Packed[]) => HERE.times(outline, columns),
  described: (outline: Outline, columns: Packed[]) => HERE.described(outline, columns),
  levels: async (values: Float64Array, placeOf: Uint32Array) => levelsOf(values, placeOf),
};

type Name = keyof typeof WORK;

interface Order {
  name: Name;
  args: unknown[];
}

type Answer = { done: unknown } | { failed: string };

/** The memory of typed arrays within a value, which is handed over instead of copied. */
function memoryOf(value: unknown, found = new Set<Transferable>()): Set<Transferable> {
  if (ArrayBuffer.isView(value)) found.add(value.buffer as ArrayBuffer);
  else if (value !== null && typeof value === "object") for (const part of Object.values(value)) memoryOf(part, found);
  return found;
}

/** The life of a worker: one order after the other. */
export function serve(): void {
  const scope = self as unknown as { onmessage: (event: MessageEvent<Order>) => void; postMessage(answer: Answer, transfer: Transferable[]): void };
  scope.onmessage = ({ data: { name, args } }) => {
    const work = WORK[name] as (...args: unknown[]) => Promise<unknown>;
    work(...args).then(
      (done) => scope.postMessage({ done }, [...memoryOf(done)]),
      (error: unknown) => scope.postMessage({ failed: error instanceof Error ? error.message : String(error) }, []),
    );
  };
}

interface Job extends Order {
  settle: (answer: Answer) => void;
  /** Does it on this thread. */
  here: () => void;
}

export class Workers implements Decoder {
  readonly isAhead = true;
  #free: Worker[] = [];
  #jobs: Job[] = [];
  #alive = 0;
  /** Those of the script, as many as there are processors. */
  constructor(script: string, count = navigator.hardwareConcurrency || 1) {
    try {
      const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
      for (let at = 0; at < Math.min(count, WORKERS_MAX); at++) this.#free.push(new Worker(address));
    } catch {
      // None, or fewer.
    }
    this.#alive = this.#free.length;
  }

  times(outline: Outline, columns: Packed[]): Promise<Times> {
    return this.#order("times", [outlineOf(outline), columns]);
  }

  described(outline: Outline, columns: Packed[]): Promise<Described> {
    return this.#order("described", [outlineOf(outline), columns]);
  }

  /** `undefined` where there are no workers: it would take a second of this thread. */
  async levels(values: Float64Array, placeOf: Uint32Array): Promise<Levels | undefined> {
    return this.#alive ? this.#order<Levels>("levels", [values, placeOf]) : undefined;
  }

  #order<T>(name: Name, args: unknown[]): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle = (answer: Answer) => ("done" in answer ? resolve(answer.done as T) : reject(new Error(answer.failed)));
      const here = () => void (WORK[name] as (...args: unknown[]) => Promise<T>)(...args).then(resolve, reject);
      this.#jobs.push({ name, args, settle, here });
      this.#next();
    });
  }

  #next(): void {
    if (this.#alive === 0) for (const { here } of this.#jobs.splice(0)) here();
    while (this.#jobs.length && this.#free.length) {
      const worker = this.#free.pop()!;
      const { name, args, settle, here } = this.#jobs.shift()!;
      const leave = (isAlive: boolean) => {
        worker.onmessage = worker.onerror = null;
        if (isAlive) this.#free.push(worker);
        else this.#alive--;
        this.#next();
      };
      worker.onmessage = ({ data }: MessageEvent<Answer>) => {
        leave(true);
        settle(data);
      };
      // It was not allowed to start, or ended.
      worker.onerror = (event) => {
        event.preventDefault();
        leave(false);
        here();
      };
      // Copied: what this worker does not finish, this thread will.
      worker.postMessage({ name, args });
    }
  }

  /** Ends them. */
  close(): void {
    for (const worker of this.#free.splice(0)) worker.terminate();
    this.#alive = 0;
  }
}

/** Names take time to copy and tell a decoder nothing. */
function outlineOf({ count, rows, functions, files }: Outline): Outline {
  return { count, rows: rows.map(({ count }) => ({ count })), functions: functions.map(({ shape }) => ({ shape })), files: { length: files.length } };
}
