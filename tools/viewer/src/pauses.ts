// Work in steps, done while the page has nothing else to do.

const STEP_MS_MAX = 8;
const WAIT_MS_MAX = 200;

export function pause(): Promise<void> {
  return new Promise((done) => ("requestIdleCallback" in window ? requestIdleCallback(() => done(), { timeout: WAIT_MS_MAX }) : setTimeout(done, 1)));
}

/** Takes all steps; never longer at a time than a frame allows. */
export async function inPauses<Result>(steps: Generator<undefined, Result>): Promise<Result> {
  return (await whileWanted(steps, () => true))!;
}

/** Takes all steps as long as somebody wants their result; `undefined` as soon as nobody does. */
export async function whileWanted<Result>(steps: Generator<undefined, Result>, isWanted: () => boolean): Promise<Result | undefined> {
  for (;;) {
    await pause();
    if (!isWanted()) return undefined;
    const until = performance.now() + STEP_MS_MAX;
    do {
      const step = steps.next();
      if (step.done) return step.value;
    } while (performance.now() < until);
  }
}
