// A large trace in a real browser: a picture before its calls are there, calls unpacked by workers or without
// them, ranges looked up instead of read.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { drag, launch, openFile, picture, pixels, stage } from "./chromium.mjs";
import { large, page as pageOf, timeline } from "./made-up.mjs";

const CALLS = 240_000;
const WRITE_LIGHT = 0xff2b89e8;
let browser, directory, file, unfinished;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), "iolab-large-"));
  file = join(directory, "large.html");
  unfinished = join(directory, "unfinished.html");
  const { calls, overview } = large(CALLS);
  writeFileSync(file, pageOf([calls], "large", [overview]));
  // Its calls do not unpack.
  writeFileSync(unfinished, pageOf([Buffer.from("IOTL and then nothing")], "unfinished", [overview]));
  browser = await launch();
});

after(async () => {
  await browser?.close();
  if (directory) rmSync(directory, { recursive: true });
});

const until = (page, name) => page.waitForFunction((name) => performance.getEntriesByName(name).length > 0, name, { timeout: 60_000 });

/** The table of functions of nearly everything, quantiles and all. */
async function table(page) {
  const box = await stage(page);
  await drag(page, { x: box.x + 1, y: box.y + 10 }, { x: box.x + box.width - 2, y: box.y + 10 });
  await page.getByRole("button", { name: "by function" }).click();
  await page.waitForFunction(() => document.querySelector(".details table") && !document.querySelector(".details table").textContent.includes("…"));
  return page.locator(".details table").innerText();
}

describe("a large trace", () => {
  test("is drawn before its calls are there, and cannot be touched until they are", async () => {
    const page = await browser.newPage({ viewport: { width: 1440, height: 1000 } });
    // The page's calls are held back: what is there stands still.
    await page.addInitScript(() => {
      Object.defineProperty(document, "readyState", { get: () => "loading" });
      const listen = document.addEventListener.bind(document);
      document.addEventListener = (name, ...rest) => (name === "DOMContentLoaded" ? (window.goOn = rest[0]) : listen(name, ...rest));
    });
    await page.goto(`file://${file}`);
    await until(page, "timeline-previewed");
    assert.ok((await pixels(page, WRITE_LIGHT)) > 5000, "writes are drawn");
    assert.equal(await page.locator("#timeline").getAttribute("aria-busy"), "true");
    assert.ok(await page.evaluate(() => document.getElementById("timeline").inert));
    assert.match(await page.locator("canvas.stage").getAttribute("aria-label"), /large: 240,000 calls/);
    assert.equal(await page.evaluate(() => performance.getEntriesByName("timeline-drawn").length), 0);
    const first = await picture(page);
    await page.evaluate(() => window.goOn());
    await until(page, "timeline-summed");
    assert.equal(await page.locator("#timeline").getAttribute("aria-busy"), null);
    assert.ok(!(await page.evaluate(() => document.getElementById("timeline").inert)));
    assert.notEqual(await picture(page), first, "the calls themselves are drawn");
    await page.close();
  });

  test("says what is wrong when only its overview can be read", async () => {
    const page = await browser.newPage();
    await page.goto(`file://${unfinished}`);
    const alert = page.locator("#timeline [role=alert]");
    await alert.waitFor();
    assert.match(await alert.textContent(), /^The timeline cannot be shown: /);
    assert.ok(!(await page.evaluate(() => document.getElementById("timeline").inert)));
    await page.close();
  });

  test("is shown without a picture beforehand when its overview is damaged", async () => {
    const damaged = join(directory, "damaged.html");
    writeFileSync(damaged, pageOf([large(1000).calls], "damaged", [Buffer.from("IOTL and then nothing")]));
    const { page, complaints } = await openFile(browser, damaged);
    assert.ok((await pixels(page, WRITE_LIGHT)) > 1000);
    assert.equal(await page.evaluate(() => performance.getEntriesByName("timeline-previewed").length), 0);
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test("is the same with workers, without any, and where they are refused", async () => {
    const refuse = () => {
      window.Worker = class {
        postMessage() {
          setTimeout(() => this.onerror(new Event("error", { cancelable: true })));
        }
        terminate() {}
      };
    };
    const count = () => {
      const Real = window.Worker;
      window.workers = 0;
      window.Worker = class extends Real {
        constructor(...address) {
          super(...address);
          window.workers++;
        }
      };
    };
    const found = [];
    for (const before of [count, () => delete window.Worker, refuse]) {
      const { page, complaints } = await openFile(browser, file, { before });
      await until(page, "timeline-summed");
      if (before === count) assert.ok((await page.evaluate(() => window.workers)) > 0, "no worker was started");
      found.push({ table: await table(page), picture: await picture(page) });
      assert.deepEqual(complaints, []);
      await page.close();
    }
    assert.match(found[0].table, /5 ns\t5 ns\t5 ns/);
    assert.match(found[0].table, /9 ns\t9 ns\t9 ns/);
    for (const other of found.slice(1)) assert.deepEqual(other, found[0]);
  });

  test("whose calls are added up says so, and tells of no single one what is not known", async () => {
    const functions = [{ name: "write", layer: "posix", kind: "write" }];
    const calls = Array.from({ length: 100 }, (_, cell) => ({ start: cell * 10_000, end: cell * 10_000 + 6_000, fn: 0, file: 0, result: 1 << 20, calls: 5000 }));
    const gathered = join(directory, "gathered.html");
    const form = { label: "recorded", cellNs: 10_000, standsFor: 500_000, functions, files: ["/data/out.h5"], processes: [{ name: "rank 0", rank: 0 }], rows: [{ process: 0, calls }] };
    writeFileSync(gathered, pageOf([timeline(form)], "gathered"));
    const { page, complaints } = await openFile(browser, gathered);
    await until(page, "timeline-complete");
    assert.match(await page.locator("canvas.stage").getAttribute("aria-label"), /recorded: 500,000 calls/);
    const rows = await table(page);
    assert.match(rows, /write\t500,000\t100 MiB/);
    assert.match(rows, /–\t–\t–/);
    assert.match(await page.locator(".details .sum").innerText(), /calls are added up here, so that at the ends of a range up to 10 µs of them/);
    await page.locator("canvas.stage").focus();
    await page.keyboard.press(".");
    await page.waitForFunction(() => /added up: single ones did not fit/.test(document.querySelector(".details").innerText));
    assert.match(await page.locator(".details").innerText(), /5,000 within 10 µs/);
    assert.deepEqual(complaints, []);
    await page.close();
  });
});
