// Causes in a real browser, on the trace of a simulated checkpoint of 8 ranks on 10 servers (golden/checkpoint.toml).

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { faults, launch, openFile, picture, stage } from "./chromium.mjs";
import { page as pageOf } from "./made-up.mjs";

const RANKS = 8;
const SERVERS = 10;
const golden = join(dirname(fileURLToPath(import.meta.url)), "golden/checkpoint.iotl");

let directory, browser, file;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), "iolab-causes-"));
  file = join(directory, "checkpoint.html");
  writeFileSync(file, pageOf([readFileSync(golden)], "checkpoint"));
  browser = await launch();
});

after(async () => {
  await browser?.close();
  if (directory) rmSync(directory, { recursive: true });
});

/** Clicks the write of a rank: all of them are under way at 30 % of the time. */
async function clickWrite(page, rank) {
  const line = page.locator(".gutter .label", { has: page.locator(".name", { hasText: new RegExp(`^rank ${rank}$`) }) }).first();
  const { y, height } = await line.boundingBox();
  const { x, width } = await stage(page);
  await page.mouse.click(x + width * 0.3, y + height / 2);
  await page.waitForFunction((name) => document.querySelector(".details dl")?.textContent.includes(name), `rank ${rank}`, { timeout: 20_000 });
  await page.waitForFunction((name) => document.querySelector(".hops [aria-current]")?.textContent.includes(name), `rank ${rank}`);
  assert.match(await page.locator(".details dl").textContent(), /MPI_File_write/);
  await page.locator(".hops").waitFor();
}

/** The rows of the table: call, process, and how many of its causes are listed. */
async function hops(page) {
  const cells = await page.locator(".hops tbody tr").evaluateAll((rows) => rows.map(({ cells }) => [...cells].map(({ textContent }) => textContent)));
  return cells.map(([call, process, , , , causes]) => ({ call, process, causes }));
}

const selected = (page) => page.locator('.hops [aria-current="true"]').textContent();

describe("a click on a write", () => {
  test("names its requests, device accesses and answers, and nothing of other callers", async () => {
    const { page, complaints } = await openFile(browser, file);
    let joined = 0;
    for (let rank = 0; rank < RANKS; rank++) {
      await clickWrite(page, rank);
      const rows = await hops(page);
      const of = (call, process) => rows.filter((row) => row.call === call && process.test(row.process));
      assert.equal(of("MPI_File_write", new RegExp(`^rank ${rank}$`)).length, 1);
      const servers = new Set(of("serve write", /^server\d+ requests$/).map(({ process }) => process));
      assert.equal(servers.size, SERVERS, `rank ${rank}`);
      assert.equal(of("serve write", /./).length, SERVERS, "a request to each server");
      assert.equal(of("receive", new RegExp(`^client${rank} received$`)).length, SERVERS, "an answer from each server");
      // A request and its data to each.
      assert.equal(of("send", new RegExp(`^client${rank} sent$`)).length, 2 * SERVERS);
      assert.equal(of("receive", /^server\d+ received$/).length, 2 * SERVERS);
      assert.equal(of("send", /^server\d+ sent$/).length, SERVERS);
      const devices = of("device write", /^server\d+ device$/);
      assert.equal(new Set(devices.filter(({ causes }) => !causes.startsWith("0")).map(({ process }) => process)).size, SERVERS);
      assert.equal(rows.length, 1 + 7 * SERVERS + devices.length, `of others: ${JSON.stringify(rows.map(({ process }) => process))}`);
      joined += devices.filter(({ causes }) => /^[1-9]\d* of /.test(causes)).length;
    }
    assert.ok(joined > 0, "no access is joined with another caller's: the trace tries nothing");
    assert.deepEqual(await faults(page), []);
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test("says where its time went, in parts that add up to its duration", async () => {
    const { page, complaints } = await openFile(browser, file);
    for (let rank = 0; rank < RANKS; rank++) {
      await clickWrite(page, rank);
      const { total, shown, parts, duration } = await page.evaluate(() => {
        const spent = document.querySelector(".details .spent");
        const list = [...spent.querySelectorAll("li")].map((item) => [item.textContent, Number(item.dataset.ns)]);
        const fact = [...document.querySelectorAll(".details dt")].find(({ textContent }) => textContent === "duration");
        const shown = spent.querySelector(".sum b").textContent;
        return { total: Number(spent.dataset.ns), shown, parts: list, duration: fact.nextSibling.textContent };
      });
      assert.equal(parts.reduce((sum, [, ns]) => sum + ns, 0), total);
      assert.equal(shown, duration, "the duration of the call itself");
      for (const name of ["sending", "on the wire", "answering"]) assert.ok(parts.some(([text]) => text.startsWith(name)), `rank ${rank}: ${name}`);
      const widths = await page.locator(".details .spent .bar i").evaluateAll((stretches) => stretches.map((one) => one.getBoundingClientRect().width));
      const longest = parts.findIndex(([, ns]) => ns === Math.max(...parts.map(([, ns]) => ns)));
      assert.equal(widths.indexOf(Math.max(...widths)), longest);
    }
    assert.deepEqual(await faults(page), []);
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test("a range sums the parts of the calls in it", async () => {
    const { page } = await openFile(browser, file);
    const { x, y, width } = await stage(page);
    const lines = await page.locator(".gutter .label", { has: page.locator(".name", { hasText: /^rank [37]$/ }) }).all();
    const [first, last] = await Promise.all([lines[0], lines.at(-1)].map((line) => line.boundingBox()));
    await page.mouse.move(x + width * 0.25, first.y + first.height / 2);
    await page.mouse.down();
    await page.mouse.move(x + width * 0.35, last.y + last.height / 2, { steps: 5 });
    await page.mouse.up();
    await page.locator(".details .spent").waitFor();
    const [total, parts] = await page.evaluate(() => {
      const spent = document.querySelector(".details .spent");
      return [Number(spent.dataset.ns), [...spent.querySelectorAll("li")].map(({ dataset }) => Number(dataset.ns))];
    });
    assert.equal(parts.reduce((sum, ns) => sum + ns, 0), total);
    assert.match(await page.locator(".details .sum[role=status]").textContent(), /5 rows.*5 calls/);
    assert.ok(total > 5 * 30e6, `five writes of some 40 ms each, not ${total} ns`);
    assert.ok(y > 0);
    await page.close();
  });

  test("draws arrows, which C hides and shows again", async () => {
    const { page } = await openFile(browser, file);
    await clickWrite(page, 3);
    await page.locator("canvas.stage").focus();
    await page.mouse.move(5, 5);
    const drawn = async (before) => {
      await page.waitForTimeout(300);
      const now = await picture(page);
      if (before !== undefined) assert.notEqual(now, before);
      return now;
    };
    const withArrows = await drawn();
    await page.keyboard.press("c");
    await page.locator(".hops").waitFor({ state: "detached" });
    await drawn(withArrows);
    await page.keyboard.press("Shift+C");
    await page.locator(".hops").waitFor();
    assert.equal(await drawn(), withArrows);
    await page.close();
  });

  test("is where [ goes to the answer that ended it, and ] to its first request and on to the server", async () => {
    const { page } = await openFile(browser, file);
    await clickWrite(page, 3);
    await page.locator("canvas.stage").focus();
    const press = async (key, call, process) => {
      await page.keyboard.press(key);
      await page.waitForFunction(
        ([call, process]) => {
          const now = document.querySelector('.hops [aria-current="true"]')?.cells;
          return now?.[0].textContent === call && new RegExp(process).test(now[1].textContent);
        },
        [call, process],
      );
    };
    await press("[", "receive", "^client3 received$");
    await press("[", "send", "^server\\d+ sent$");
    await clickWrite(page, 3);
    assert.match(await selected(page), /^MPI_File_write/);
    await press("]", "send", "^client3 sent$");
    await press("]", "receive", "^server\\d+ received$");
    await press("[", "send", "^client3 sent$");
    await press("[", "MPI_File_write", "^rank 3$");
    await page.close();
  });
});
