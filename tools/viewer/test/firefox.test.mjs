// The timeline in the distribution's Firefox, by WebDriver BiDi. FIREFOX names another one.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import puppeteer from "puppeteer-core";
import { pixels } from "./chromium.mjs";
import { cluster, compared, large, page as pageOf } from "./made-up.mjs";

const TIMEOUT_MS = 120_000;

let directory, browser, page, complaints;

before(async () => {
  const executablePath = process.env.FIREFOX ?? "/usr/bin/firefox-esr";
  assert.ok(existsSync(executablePath), `${executablePath} is not there; install firefox-esr or set FIREFOX`);
  directory = mkdtempSync(join(tmpdir(), "iolab-firefox-"));
  const file = join(directory, "page.html");
  writeFileSync(file, pageOf([cluster({ ranks: 1000, servers: 20, failing: [500] })]));
  browser = await puppeteer.launch({ browser: "firefox", executablePath, headless: true, timeout: TIMEOUT_MS, protocolTimeout: TIMEOUT_MS });
  page = await browser.newPage();
  await page.setViewport({ width: 1440, height: 1000 });
  complaints = [];
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(`file://${file}`, { timeout: TIMEOUT_MS });
  await until(() => performance.getEntriesByName("timeline-complete").length > 0);
});

after(async () => {
  await browser?.close();
  if (directory) rmSync(directory, { recursive: true });
});

const until = (condition, ...values) => page.waitForFunction(condition, { timeout: TIMEOUT_MS, polling: 100 }, ...values);

test("draws a thousand ranks and twenty servers on one screen, with the one failure", async () => {
  const names = await page.evaluate(() => [...document.querySelectorAll(".gutter .name")].map(({ textContent }) => textContent));
  assert.ok(names.includes("rank 960–999") && names.includes("server19"), names.join());
  assert.equal(await page.evaluate(() => document.querySelector("#timeline").classList.contains("scrolled")), false);
  assert.ok((await pixels(page, 0xff2b89e8)) > 1000, "no writes are drawn");
  assert.ok((await pixels(page, 0xff0000d4)) > 0, "the failed call is not marked");
});

test("says of a write of a simulated checkpoint where its time went", async () => {
  const other = await browser.newPage();
  await other.setViewport({ width: 1440, height: 1000 });
  const file = join(directory, "checkpoint.html");
  writeFileSync(file, pageOf([readFileSync(join(import.meta.dirname, "golden/checkpoint.iotl"))], "checkpoint"));
  await other.goto(`file://${file}`, { timeout: TIMEOUT_MS });
  await other.waitForFunction(() => performance.getEntriesByName("timeline-complete").length > 0, { timeout: TIMEOUT_MS, polling: 100 });
  const place = await other.evaluate(() => {
    const label = [...document.querySelectorAll(".gutter .label")].find((one) => one.querySelector(".name")?.textContent === "rank 3");
    const [line, stage] = [label.getBoundingClientRect(), document.querySelector("canvas.stage").getBoundingClientRect()];
    return { x: stage.x + stage.width * 0.3, y: line.y + line.height / 2 };
  });
  await other.mouse.click(place.x, place.y);
  await other.waitForSelector(".details .spent", { timeout: TIMEOUT_MS });
  const { shown, parts, total, duration } = await other.evaluate(() => {
    const spent = document.querySelector(".details .spent");
    const fact = [...document.querySelectorAll(".details dt")].find(({ textContent }) => textContent === "duration");
    const parts = [...spent.querySelectorAll("li")].map(({ dataset }) => Number(dataset.ns));
    return { shown: spent.querySelector(".sum b").textContent, parts, total: Number(spent.dataset.ns), duration: fact.nextSibling.textContent };
  });
  assert.equal(shown, duration);
  assert.ok(parts.length >= 3);
  assert.equal(parts.reduce((sum, ns) => sum + ns, 0), total);
  await other.close();
});

test("measures a range, finds calls, keeps both in the address", async () => {
  const box = await page.evaluate(() => {
    const { x, y, width } = document.querySelector("canvas.stage").getBoundingClientRect();
    return { x, y, width };
  });
  await page.mouse.move(box.x + 100, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 400, box.y + 70, { steps: 5 });
  await page.mouse.up();
  await until(() => /calls/.test(document.querySelector(".details [role=status]")?.textContent));
  await page.type("input[type=search]", "error");
  await until(() => document.querySelector(".matches").textContent === "1 call");
  await until(() => location.hash.includes("range=") && location.hash.includes("q=error"));
  await page.keyboard.press("Enter");
  await until(() => document.querySelector(".details dl")?.textContent.includes("ENOSPC"));
  assert.deepEqual(complaints, []);
});

test("lays a run over another one by T, and back", async () => {
  const other = await browser.newPage();
  await other.setViewport({ width: 1440, height: 1000 });
  const file = join(directory, "pair.html");
  writeFileSync(file, pageOf(compared(), "pair"));
  await other.goto(`file://${file}`, { timeout: TIMEOUT_MS });
  await other.waitForFunction(() => performance.getEntriesByName("timeline-complete").length > 0, { timeout: TIMEOUT_MS, polling: 100 });
  await other.focus("canvas.stage");
  for (const [there, gone] of [["B stretched", "B: after"], ["B: after", "B stretched"]]) {
    await other.keyboard.press("t");
    await other.waitForFunction(
      (there, gone) => {
        const names = [...document.querySelectorAll(".gutter .name")].map(({ textContent }) => textContent);
        return names.includes(there) && !names.includes(gone);
      },
      { timeout: TIMEOUT_MS, polling: 100 },
      there,
      gone,
    );
  }
  await other.close();
});

test("draws a large trace first, unpacks it by workers, and looks ranges up", async () => {
  const other = await browser.newPage();
  await other.setViewport({ width: 1440, height: 1000 });
  await other.evaluateOnNewDocument(() => {
    window.workers = 0;
    window.answers = 0;
    const Real = window.Worker;
    window.Worker = class extends Real {
      constructor(...address) {
        super(...address);
        window.workers++;
        this.addEventListener("message", () => window.answers++);
      }
    };
  });
  const file = join(directory, "large.html");
  const { calls, overview } = large(240_000);
  writeFileSync(file, pageOf([calls], "large", [overview]));
  await other.goto(`file://${file}`, { timeout: TIMEOUT_MS });
  await other.waitForFunction(() => performance.getEntriesByName("timeline-summed").length > 0, { timeout: TIMEOUT_MS, polling: 100 });
  const at = (name) => other.evaluate((name) => performance.getEntriesByName(name)[0].startTime, name);
  assert.ok((await at("timeline-previewed")) < (await at("timeline-drawn")));
  // Times, descriptions, and the order of durations.
  assert.equal(await other.evaluate(() => window.answers), 3);
  const box = await other.evaluate(() => {
    const { x, y, width } = document.querySelector("canvas.stage").getBoundingClientRect();
    return { x, y, width };
  });
  await other.mouse.move(box.x + 2, box.y + 10);
  await other.mouse.down();
  await other.mouse.move(box.x + box.width - 2, box.y + 10, { steps: 4 });
  await other.mouse.up();
  await other.waitForFunction(() => performance.getEntriesByName("range-quantiles").length > 0, { timeout: TIMEOUT_MS, polling: 100 });
  const table = await other.evaluate(() => document.querySelector(".details table").innerText);
  assert.match(table, /5 ns\s+5 ns\s+5 ns/);
  await other.close();
});
