// The distribution's Chromium, and what tests do with pages in it. CHROMIUM names another one.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

export async function launch() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  assert.ok(existsSync(executablePath), `${executablePath} is not there; install chromium or set CHROMIUM`);
  const args = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ];
  return chromium.launch({ executablePath, args });
}

/** Opens a page from the disk and waits until all of it is unpacked; its complaints are collected. */
export async function openFile(browser, file, { fragment = "", before, ...options } = {}) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 1000 }, ...options });
  if (before) await page.addInitScript(before);
  const complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  // Its workers are its own script.
  page.on("request", (request) => request.url().startsWith(`file://${file}`) || request.url().startsWith("blob:") || complaints.push(`asked for ${request.url().slice(0, 80)}`));
  await page.goto(`file://${file}${fragment}`);
  await page.waitForFunction(() => performance.getEntriesByName("timeline-complete").length > 0, null, { timeout: 60_000 });
  return { page, complaints };
}

export const labels = (page) => page.locator(".gutter .label .name").allTextContents();

export const stage = (page) => page.locator("canvas.stage").boundingBox();

/**
 * The pixels of a canvas (0xAABBGGRR), once everything that was asked for is drawn: the page's text is there at
 * once, the picture with the next frame.
 */
async function ofPixels(page, selector, read, argument) {
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  return page.evaluate(`(() => {
    const canvas = document.querySelector("${selector}");
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return (${read})(new Uint32Array(data.buffer), ${argument});
  })()`);
}

/** A number that differs when the picture does. */
export const picture = (page) => ofPixels(page, "canvas.stage", (all) => all.reduce((hash, pixel) => (Math.imul(hash, 31) + pixel) | 0, 7));

/** Pixels of one colour on a canvas. */
export const pixels = (page, colour, selector = "canvas.stage") =>
  ofPixels(page, selector, (all, colour) => all.reduce((count, pixel) => count + (pixel === colour ? 1 : 0), 0), colour);

/** What axe finds wrong, in words. */
export async function faults(page) {
  const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  await page.evaluate(source);
  const { violations } = await page.evaluate(() => window.axe.run(document));
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" ")}`);
}

export async function drag(page, from, to, button = "left") {
  await page.mouse.move(from.x, from.y);
  await page.mouse.down({ button });
  await page.mouse.move((from.x + to.x) / 2, (from.y + to.y) / 2, { steps: 4 });
  await page.mouse.move(to.x, to.y, { steps: 4 });
  await page.mouse.up({ button });
}
