// How large a page is, how fast it opens, and what a range of it costs, by number of calls. (How smoothly it
// moves, the browser test of tools/viewer prints.)
//   (cd tools/viewer && npm ci) && node benchmarks/page/measure.mjs [EVENTS … | PAGE.html …]
// Pages are those of the demonstration: two runs of EVENTS calls each and one of a twelfth. Peer: the
// same calls as Chrome trace JSON, what a trace viewer of that format would have to read, and the time
// the same browser needs just to parse it.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const { chromium } = createRequire(join(root, "tools/viewer/package.json"))("playwright-core");
const ROUNDS = 5;
const wanted = process.argv.slice(2);
if (wanted.length === 0) wanted.push("100000", "1000000", "5000000");

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

/** Milliseconds from the start of the navigation to: a picture, all calls drawn, all decoded, all sums made. */
async function openingMs(browser, file) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
  await page.goto(`file://${file}`);
  await page.waitForFunction(() => performance.getEntriesByName("timeline-summed").length > 0, null, { timeout: 120_000 });
  const at = (name) => page.evaluate((name) => performance.getEntriesByName(name)[0]?.startTime, name);
  const drawn = await at("timeline-drawn");
  const times = [(await at("timeline-previewed")) ?? drawn, drawn, await at("timeline-complete"), await at("timeline-summed")];
  return { page, times };
}

/** Milliseconds that the sums and the quantiles of nearly all calls take. */
async function rangeMs(page) {
  const canvas = page.locator("canvas.stage");
  await canvas.scrollIntoViewIfNeeded();
  const stage = await canvas.boundingBox();
  await page.mouse.move(stage.x + stage.width * 0.02, stage.y + 10);
  await page.mouse.down();
  await page.mouse.move(stage.x + stage.width * 0.98, stage.y + 10, { steps: 3 });
  await page.mouse.up();
  await page.waitForFunction(() => performance.getEntriesByName("range-quantiles").length > 0, null, { timeout: 120_000 });
  return page.evaluate(() => ["range-sums", "range-quantiles"].map((name) => performance.getEntriesByName(name)[0].duration));
}

/** Time to parse the same number of calls as Chrome trace JSON, and its size. */
function chromeJson(page, count) {
  return page.evaluate((count) => {
    const one = '{"name":"write","cat":"posix","ph":"X","ts":123456.789,"dur":0.512,"pid":4100,"tid":0,"args":{"file":"/scratch/run/checkpoint.0.bin","offset":123456,"length":64,"result":64}}';
    const text = `[${new Array(count).fill(one).join(",")}]`;
    const start = performance.now();
    const parsed = JSON.parse(text);
    return { ms: performance.now() - start, bytes: text.length / parsed.length };
  }, count);
}

const directory = mkdtempSync(join(tmpdir(), "iolab-page-"));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
/** A page of so many calls, or the one that is named. */
function pageOf(what) {
  if (what.endsWith(".html")) {
    const heads = [...readFileSync(what, "latin1").matchAll(/x-iolab-timeline">([^<]*)</g)].map(([, form]) => {
      const bytes = Buffer.from(form.slice(0, 1 << 24), "base64");
      return JSON.parse(bytes.subarray(12, 12 + bytes.readUInt32LE(8)));
    });
    return { file: resolve(what), demo: { events: heads.reduce((sum, { count }) => sum + count, 0) } };
  }
  const file = join(directory, "page.html");
  const cargo = ["run", "-q", "--release", "-p", "iolab-report", "--example", "demo_page", "--", what, file];
  return { file, demo: JSON.parse(execFileSync("cargo", cargo, { cwd: root, encoding: "utf8" })) };
}

console.log("calls in page  B/call  B/call in JSON  ms to: picture, drawn, decoded, summed  range ms: sums, quantiles  JSON parse alone ms  ratio to decoded");
for (const what of wanted) {
  const { file, demo } = pageOf(what);
  const base64 = [...readFileSync(file, "latin1").matchAll(/x-iolab-timeline">([^<]*)</g)].reduce((sum, match) => sum + match[1].length, 0);
  const opens = [];
  const ranges = [];
  const parses = [];
  let json;
  for (let round = 0; round < ROUNDS; round++) {
    const { page, times } = await openingMs(browser, file);
    opens.push(times);
    ranges.push(await rangeMs(page));
    await page.close();
    const blank = await browser.newPage();
    // A string of more than half a gigabyte does not fit: larger counts are scaled up.
    const parsed = Math.min(demo.events, 2_000_000);
    json = await chromeJson(blank, parsed);
    parses.push((json.ms * demo.events) / parsed);
    await blank.close();
  }
  const medians = (rounds) => rounds[0].map((_, at) => median(rounds.map((times) => times[at])));
  const [opening, range, parsing] = [medians(opens), medians(ranges), median(parses)];
  const cells = [demo.events, ((base64 * 0.75) / demo.events).toFixed(2), json.bytes.toFixed(0)];
  cells.push(opening.map((ms) => ms.toFixed(0)).join(" "), range.map((ms) => ms.toFixed(1)).join(" "), parsing.toFixed(0), (parsing / opening[2]).toFixed(1));
  console.log(cells.join("  "));
}
await browser.close();
rmSync(directory, { recursive: true });
