// How large a page is and how fast it opens, by number of calls. (How smoothly it moves, the browser
// test of tools/viewer prints.)
//   (cd tools/viewer && npm ci) && node benchmarks/page/measure.mjs [EVENTS …]
// Pages are those of the demonstration: two runs of EVENTS calls each and one of a twelfth. Peer: the
// same calls as Chrome trace JSON, what a trace viewer of that format would have to read, and the time
// the same browser needs just to parse it.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const { chromium } = createRequire(join(root, "tools/viewer/package.json"))("playwright-core");
const ROUNDS = 5;
const events = process.argv.slice(2).map(Number);
if (events.length === 0) events.push(100_000, 1_000_000, 5_000_000);

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

async function openingMs(browser, file) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
  await page.goto(`file://${file}`);
  await page.waitForFunction(() => performance.getEntriesByName("timeline-drawn").length > 0, null, { timeout: 120_000 });
  const time = await page.evaluate(() => performance.getEntriesByName("timeline-drawn")[0].startTime);
  return { page, time };
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
console.log("calls in page  B/call  B/call in JSON  opens ms  JSON parse alone ms  ratio");
for (const count of events) {
  const file = join(directory, "page.html");
  const cargo = ["run", "-q", "--release", "-p", "iolab-report", "--example", "demo_page", "--", String(count), file];
  const demo = JSON.parse(execFileSync("cargo", cargo, { cwd: root, encoding: "utf8" }));
  const base64 = [...readFileSync(file, "latin1").matchAll(/x-iolab-timeline">([^<]*)</g)].reduce((sum, match) => sum + match[1].length, 0);
  const opens = [];
  const parses = [];
  let json;
  for (let round = 0; round < ROUNDS; round++) {
    const { page, time } = await openingMs(browser, file);
    opens.push(time);
    await page.close();
    const blank = await browser.newPage();
    // A string of more than half a gigabyte does not fit: larger counts are scaled up.
    const parsed = Math.min(demo.events, 2_000_000);
    json = await chromeJson(blank, parsed);
    parses.push((json.ms * demo.events) / parsed);
    await blank.close();
  }
  const [opening, parsing] = [median(opens), median(parses)];
  const cells = [demo.events, ((base64 * 0.75) / demo.events).toFixed(2), json.bytes.toFixed(0), opening.toFixed(0), parsing.toFixed(0), (parsing / opening).toFixed(1)];
  console.log(cells.join("  "));
}
await browser.close();
rmSync(directory, { recursive: true });
