// The timeline in a real browser, on made-up clusters: everything in sight, ranges, searches, addresses.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { drag, faults, labels, launch, openFile, picture, pixels, stage } from "./chromium.mjs";
import { cluster, compared, page as pageOf } from "./made-up.mjs";

const RED = 0xff0000d4;
const WRITE_LIGHT = 0xff2b89e8;

let directory, browser, large, small, pair;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), "iolab-timeline-"));
  const write = (name, shape) => {
    const file = join(directory, name);
    writeFileSync(file, pageOf([cluster(shape)], name));
    return file;
  };
  large = write("large.html", { ranks: 1000, servers: 20, failing: [500] });
  small = write("small.html", { ranks: 8, servers: 2, failing: [3] });
  pair = join(directory, "pair.html");
  writeFileSync(pair, pageOf(compared(), "pair"));
  browser = await launch();
});

after(async () => {
  await browser?.close();
  if (directory) rmSync(directory, { recursive: true });
});

/** The middle of the line with this name. */
async function lineAt(page, name) {
  const line = page.locator(".gutter .label", { has: page.locator(".name", { hasText: new RegExp(`^${name}$`) }) }).first();
  const { y, height } = await line.boundingBox();
  return y + height / 2;
}

const status = (page) => page.locator(".details [role=status]");

describe("a thousand ranks on twenty servers", () => {
  test("are in sight at once, with their servers, devices, links and the one failure", async () => {
    const { page, complaints } = await openFile(browser, large);
    const shown = await labels(page);
    assert.ok(shown.includes("rank 0–63") && shown.includes("rank 960–999"), shown.join());
    for (let server = 0; server < 20; server++) assert.ok(shown.includes(`server${server}`), `server${server}`);
    assert.ok(shown.includes("links of clients"));
    assert.equal(await page.locator("#timeline.scrolled").count(), 0, "rows must be scrolled");
    const end = await page.locator(".details").evaluate((element) => element.getBoundingClientRect().bottom);
    assert.ok(end <= 1000, `the timeline ends at ${end}`);
    assert.ok((await pixels(page, RED)) > 0, "the failed call is not marked");
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test("open to each rank with one step, and to each request of a server with two", async () => {
    const { page } = await openFile(browser, large);
    await page.getByRole("button", { name: "rank 448–511" }).click();
    await page.locator(".gutter .name", { hasText: /^rank 448$/ }).waitFor();
    await page.getByRole("button", { name: "rank 448–511" }).click();
    await page.getByRole("button", { name: /^server7$/ }).click();
    await page.getByRole("button", { name: /^requests$/ }).click();
    await page.locator(".gutter .note", { hasText: /^12$/ }).waitFor();
    await page.close();
  });

  test("name the longest call under the pointer though many share the place", async () => {
    const { page } = await openFile(browser, large);
    const box = await stage(page);
    await page.mouse.move(box.x + 20, await lineAt(page, "rank 448–511"));
    await page.locator(".tip").waitFor();
    assert.match(await page.locator(".tip").textContent(), /compute.*rank 4\d\d/);
    await page.close();
  });
});

describe("a range", () => {
  test("of some rows is told by class, function, file and process, and cleared with Esc", async () => {
    const { page, complaints } = await openFile(browser, small);
    const box = await stage(page);
    const y = await lineAt(page, "rank 3");
    await drag(page, { x: box.x + 1, y }, { x: box.x + box.width - 2, y });
    await status(page).waitFor();
    await page.waitForFunction(() => !document.querySelector(".details table").textContent.includes("…"));
    // 4 phases of one computation, one message and four writes.
    assert.match(await status(page).textContent(), /1 row: 24 calls, 960 KiB, 1 failed/);
    for (const [by, name] of [["class", "write"], ["function", "MPI_File_write"], ["file", "checkpoints"], ["process", "rank 3"]]) {
      await page.getByRole("button", { name: `by ${by}` }).click();
      assert.ok((await page.locator(".details tbody td:first-child").allTextContents()).includes(name), `${name} by ${by}`);
    }
    assert.match(await page.locator('.legend [data-kind="write"]').textContent(), /%/);
    await page.locator("canvas.stage").focus();
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !document.querySelector(".details [role=status]"));
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test("of the axis has all rows, its ends can be moved, and Z goes into it", async () => {
    const { page } = await openFile(browser, small);
    const box = await stage(page);
    const at = (share) => box.x + share * box.width;
    await drag(page, { x: at(0.3), y: box.y + 8 }, { x: at(0.5), y: box.y + 8 });
    await status(page).waitFor();
    assert.match(await status(page).textContent(), /all rows/);
    const before = await status(page).textContent();
    await drag(page, { x: at(0.5), y: box.y + 12 }, { x: at(0.6), y: box.y + 12 });
    await page.waitForFunction((before) => document.querySelector(".details [role=status]").textContent !== before, before);
    const picked = await picture(page);
    await page.locator("canvas.stage").focus();
    await page.keyboard.press("z");
    await page.waitForFunction(() => location.hash.includes("t="));
    assert.notEqual(await picture(page), picked);
    const shown = new URLSearchParams(await page.evaluate(() => location.hash.slice(1)));
    const [from, to] = shown.get("range").split("..").map(Number);
    const [start, end] = shown.get("t").split("..").map(Number);
    assert.ok(start <= from && end >= to && end - start < (to - from) * 1.2, `${shown}`);
    await page.keyboard.press("Control+z");
    await page.waitForFunction(() => !location.hash.includes("t="));
    await page.close();
  });
});

describe("the wheel", () => {
  test("scrolls the rows, then the page; zooms with ctrl, moves along with shift", async () => {
    const { page } = await openFile(browser, small, { viewport: { width: 1200, height: 420 } });
    for (let turn = 0; turn < 3; turn++) await page.locator("canvas.stage").press("=");
    await page.locator("#timeline.scrolled").waitFor();
    await page.evaluate(() => document.querySelector("#timeline").scrollIntoView());
    await page.waitForTimeout(500);
    const box = await stage(page);
    await page.mouse.move(box.x + 300, box.y + 100);
    const rows = () => page.locator(".scroller").evaluate((element) => element.scrollTop);
    const top = () => page.evaluate(() => window.scrollY);
    const [rowsBefore, topBefore] = [await rows(), await top()];
    await page.mouse.wheel(0, 60);
    await page.waitForFunction((before) => document.querySelector(".scroller").scrollTop > before, rowsBefore);
    assert.equal(await top(), topBefore);
    await page.locator(".scroller").evaluate((element) => (element.scrollTop = 1e6));
    await page.evaluate(() => window.scrollTo(0, 0));
    await page.waitForTimeout(500);
    const low = await stage(page);
    await page.mouse.move(low.x + 300, low.y + 20);
    await page.mouse.wheel(0, 60);
    await page.waitForFunction(() => window.scrollY > 0);
    const views = [await picture(page)];
    for (const key of ["Control", "Shift"]) {
      await page.waitForTimeout(400);
      await page.keyboard.down(key);
      await page.mouse.wheel(0, -240);
      await page.keyboard.up(key);
      await page.waitForTimeout(200);
      views.push(await picture(page));
    }
    assert.equal(new Set(views).size, 3, "it zooms and moves along");
    await page.close();
  });
});

describe("a search", () => {
  test("says how many calls it finds, goes through them, and dims the others", async () => {
    const { page } = await openFile(browser, small);
    await page.getByRole("searchbox").fill("op:MPI_File_write rank:3 error");
    await page.waitForFunction(() => document.querySelector(".matches").textContent === "1 call");
    assert.ok((await pixels(page, WRITE_LIGHT)) < 600);
    await page.getByRole("button", { name: "Next match" }).click();
    await page.waitForFunction(() => document.querySelector(".details dl")?.textContent.includes("failed: ENOSPC"));
    await page.getByRole("searchbox").fill("op:MPI_File_write");
    await page.waitForFunction(() => document.querySelector(".matches").textContent === "128 calls");
    await page.locator("canvas.stage").focus();
    const row = () => page.evaluate(() => [...document.querySelectorAll(".details dl > div")].find(({ firstChild }) => firstChild.textContent === "row")?.lastChild.textContent);
    await page.keyboard.press("Escape");
    const seen = [];
    for (let turn = 0; turn < 4; turn++) {
      const before = await row();
      await page.keyboard.press("n");
      await page.waitForFunction((before) => {
        const now = [...document.querySelectorAll(".details dl > div")].find(({ firstChild }) => firstChild.textContent === "row")?.lastChild.textContent;
        return now !== undefined && now !== before;
      }, before);
      seen.push(await row());
    }
    assert.equal(new Set(seen).size, 4);
    await page.keyboard.press("Shift+N");
    await page.waitForFunction((wanted) => [...document.querySelectorAll(".details dl > div")].some(({ textContent }) => textContent === `row${wanted}`), seen[2]);
    await page.close();
  });

  test("says where it goes wrong", async () => {
    const { page } = await openFile(browser, small);
    await page.getByRole("searchbox").fill("write sise:<4k");
    await page.waitForFunction(() => document.querySelector(".matches").textContent.startsWith("At character 7: there is no “sise”"));
    assert.equal(await page.getByRole("searchbox").getAttribute("aria-invalid"), "true");
    await page.close();
  });
});

describe("the accesses to a file", () => {
  const colours = (page, colour) => pixels(page, colour, ".accesses canvas");

  test("stand below the rows, offset over time; a click on one selects it above", async () => {
    const { page, complaints } = await openFile(browser, small);
    await page.getByRole("button", { name: "Where in a file" }).click();
    const canvas = page.locator(".accesses canvas");
    // Calls are decoded first, which takes its time on a busy machine.
    await page.locator('.accesses canvas[aria-label^="Offsets"]').waitFor();
    // 8 ranks × 4 phases × 4 writes, one of which failed and moved nothing.
    assert.match(await canvas.getAttribute("aria-label"), /127 accesses to checkpoints .*up to 2 MiB/);
    assert.ok((await colours(page, WRITE_LIGHT)) > 100);
    const box = await canvas.boundingBox();
    // Rank 7 writes the upper eighth of the file; the first of its writes begins behind computation and message.
    await page.mouse.click(box.x + box.width * (0.455 / 4 + 0.01), box.y + box.height * (1 / 8 - 1 / 64));
    await page.locator(".details dl").waitFor();
    assert.match(await page.locator(".details dl").textContent(), /MPI_File_write.*rank 7/);
    assert.deepEqual(await faults(page), []);
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test("are brought back by the address, and O closes them", async () => {
    const { page } = await openFile(browser, small, { fragment: "#file=0.0" });
    await page.locator(".accesses canvas").waitFor();
    await page.locator("canvas.stage").focus();
    await page.keyboard.press("o");
    await page.waitForFunction(() => document.querySelector(".accesses").hidden && !location.hash.includes("file="));
    await page.close();
  });

  test("fit a telephone", async () => {
    const { page } = await openFile(browser, small, { fragment: "#file=0.0", viewport: { width: 390, height: 800 } });
    await page.locator(".accesses canvas").waitFor();
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
    await page.close();
  });
});

describe("the address", () => {
  test("brings back what was shown: time, range, rows, search, folds, call", async () => {
    const { page } = await openFile(browser, small);
    const box = await stage(page);
    await page.getByRole("button", { name: /^servers/ }).click();
    await page.getByRole("searchbox").fill("op:MPI_File_write,compute");
    const y = await lineAt(page, "rank 2");
    await drag(page, { x: box.x + 100, y }, { x: box.x + 500, y: y + 30 });
    await page.locator("canvas.stage").focus();
    await page.keyboard.press("z");
    await page.mouse.click(box.x + 400, y);
    await page.locator(".details dl").waitFor();
    await page.waitForFunction(() => ["t=", "range=", "rows=", "q=", "call=", "shut="].every((key) => location.hash.includes(key)));
    const [fragment, wanted] = [await page.evaluate(() => location.hash), await page.locator(".details").textContent()];
    await page.mouse.move(5, 5);
    await page.waitForTimeout(300);
    const drawn = await picture(page);
    await page.close();
    const again = await openFile(browser, small, { fragment });
    await again.page.waitForFunction((wanted) => document.querySelector(".details").textContent === wanted, wanted);
    await again.page.waitForTimeout(300);
    assert.equal(await picture(again.page), drawn);
    assert.deepEqual(again.complaints, []);
    await again.page.close();
  });

  test("that says nonsense does no harm", async () => {
    for (const fragment of ["#t=5..1&call=9.99999&range=x&rows=7.1-9&q=foo:bar&hide=nothing&open=nowhere&h=0&by=x", "#file=0.7", "#file=x", "#timeline-heading", "#%E0%A4%A"]) {
      const { page, complaints } = await openFile(browser, small, { fragment });
      assert.ok((await pixels(page, WRITE_LIGHT)) > 200, fragment);
      assert.deepEqual(complaints, []);
      await page.close();
    }
  });
});

describe("everybody", () => {
  test("axe finds nothing, in the light, in the dark, with a range and a call", async () => {
    for (const colorScheme of ["light", "dark"]) {
      const { page } = await openFile(browser, large, { colorScheme });
      const box = await stage(page);
      await drag(page, { x: box.x + 100, y: box.y + 60 }, { x: box.x + 500, y: box.y + 90 });
      await page.mouse.click(box.x + 450, box.y + 70);
      await page.locator(".details dl").waitFor();
      await page.getByRole("searchbox").fill("wrong:x");
      assert.deepEqual(await faults(page), [], colorScheme);
      await page.close();
    }
  });

  test("axe finds nothing in curves, distributions, matrices, lists of calls and questions", async () => {
    for (const [colorScheme, width] of [["light", 1440], ["dark", 390]]) {
      for (const [show, seen] of [["distributions", ".bars"], ["process-files", ".matrix"], ["longest", "region"]]) {
        const fragment = `#range=0..500000000&show=${show}&curves=on&mark=10..20:one&colour=duration`;
        const { page, complaints } = await openFile(browser, pair, { colorScheme, fragment, viewport: { width, height: 1000 } });
        await page.locator(".curve").first().waitFor();
        await (seen === "region" ? page.getByRole("region", { name: "Longest calls" }) : page.locator(seen).first()).waitFor();
        await page.locator("canvas.stage").focus();
        if (show === "longest") await page.keyboard.press("g");
        assert.deepEqual(await faults(page), [], `${show}, ${colorScheme}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `${show}: ${wide} pixels of ${width}`);
        assert.deepEqual(complaints, []);
        await page.close();
      }
    }
  });

  test("nothing is wider than a telephone, and fingers find their buttons", async () => {
    const { page } = await openFile(browser, large, { viewport: { width: 390, height: 800 }, hasTouch: true });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 390, `${wide} pixels`);
    const heights = await page.locator(".toolbar button:visible, .toolbar select:visible").evaluateAll((all) => all.map((button) => button.getBoundingClientRect().height));
    assert.ok(Math.min(...heights) >= 32, `${heights}`);
    await page.close();
  });

  test("on paper there is the legend and no button", async () => {
    const { page } = await openFile(browser, small);
    await page.emulateMedia({ media: "print" });
    assert.ok(await page.locator('.legend [data-kind="write"]').isVisible());
    assert.ok(!(await page.locator(".buttons").isVisible()));
    await page.close();
  });
});

describe("runs compared", () => {
  const names = (page) => page.locator(".gutter .name").allTextContents();

  test("stand on one axis or, by T, with the calls of B below those of A", async () => {
    const { page, complaints } = await openFile(browser, pair);
    assert.ok((await names(page)).includes("B: after") && !(await names(page)).includes("B stretched"));
    await page.locator("canvas.stage").focus();
    await page.keyboard.press("t");
    await page.locator(".gutter .name", { hasText: /^B stretched$/ }).waitFor();
    assert.ok(!(await names(page)).includes("B: after"));
    assert.equal(await page.getByLabel("Axis of time (T)").inputValue(), "stretched");
    await page.waitForFunction(() => location.hash.includes("axis=stretched"));
    await page.getByLabel("Axis of time (T)").selectOption("common");
    await page.locator(".gutter .name", { hasText: /^B: after$/ }).waitFor();
    await page.waitForFunction(() => !location.hash.includes("axis="));
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test("keep the call that is selected, and its matches are counted once", async () => {
    const { page } = await openFile(browser, `${pair}#call=1.7`);
    const selected = () => page.locator(".details dl").textContent();
    await page.waitForFunction(() => document.querySelector(".details dl")?.textContent.includes("3 µs"));
    await page.locator("canvas.stage").focus();
    await page.keyboard.press("t");
    await page.waitForFunction(() => location.hash.includes("call=2.7") && document.querySelector(".details dl")?.textContent.includes("1 µs"));
    assert.match(await selected(), /28,672|28672/);
    await page.getByRole("searchbox").fill("write");
    await page.waitForFunction(() => document.querySelector(".matches").textContent === "160 calls");
    await page.close();
  });

  test("no other page offers it", async () => {
    const { page } = await openFile(browser, small);
    assert.equal(await page.getByLabel("Axis of time (T)").count(), 0);
    await page.close();
  });
});

describe("beside the rows", () => {
  test("curves tell what was moved, follow the view and the search, and choose ranges", async () => {
    const { page, complaints } = await openFile(browser, small);
    await page.locator("canvas.stage").focus();
    await page.keyboard.press("k");
    const curve = (name) => page.getByRole("img", { name: new RegExp(`^${name} in view`) });
    await curve("written").waitFor();
    assert.equal(await curve("read").count(), 0);
    for (const name of ["calls under way", "requests at servers", "device accesses", "messages sent"]) assert.equal(await curve(name).count(), 1, name);
    // 127 of 128 writes of 64 KiB in 0.98 s.
    const told = () => curve("written").getAttribute("aria-label");
    assert.match(await told(), /mean 8\.\d+ MiB\/s, most/);
    const before = await told();
    await page.keyboard.press("w");
    await page.waitForFunction((before) => document.querySelector(".curve").getAttribute("aria-label") !== before, before);
    await page.keyboard.press("0");
    await page.getByRole("searchbox").fill("rank:3");
    await page.waitForFunction(() => /mean [\d.]+ KiB\/s/.test(document.querySelector(".curve").getAttribute("aria-label")));
    const box = await page.locator(".curve .u-over").first().boundingBox();
    await drag(page, { x: box.x + box.width * 0.25, y: box.y + 20 }, { x: box.x + box.width * 0.5, y: box.y + 20 });
    await status(page).waitFor();
    await page.waitForFunction(() => location.hash.includes("curves=on"));
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test("a range is told as distributions, matrices and its longest calls, and the address brings them back", async () => {
    const { page, complaints } = await openFile(browser, small);
    await page.locator("canvas.stage").focus();
    await page.keyboard.press("r");
    await page.getByRole("button", { name: "sizes and durations" }).click();
    const bar = page.getByRole("button", { name: /^64 KiB to below 128 KiB: .* calls/ });
    await bar.click();
    await page.waitForFunction(() => document.querySelector("[role=searchbox], input[type=search]").value === "size:65536-131071b");
    await page.getByRole("searchbox").fill("");
    await page.getByRole("button", { name: "process × file" }).click();
    await page.getByRole("img", { name: /^bytes of 8 processes at 2 files/ }).waitFor();
    assert.match(await page.locator(".matrix tbody tr").first().textContent(), /rank \dcheckpoints1 MiB16/);
    await page.getByRole("button", { name: "process × server" }).click();
    await page.getByText("does not tell which request is whose").waitFor();
    await page.getByRole("button", { name: "longest calls" }).click();
    await page.locator(".details tbody .link").first().click();
    await page.locator(".details dl").first().waitFor();
    await page.waitForFunction(() => location.hash.includes("show=longest") && location.hash.includes("call="));
    const fragment = await page.evaluate(() => location.hash);
    await page.close();
    const again = await openFile(browser, small, { fragment });
    await again.page.getByRole("region", { name: "Longest calls" }).waitFor();
    assert.deepEqual([...complaints, ...again.complaints], []);
    await again.page.close();
  });

  test("colours can mean the file, the rank, the size, the duration or the result", async () => {
    const { page, complaints } = await openFile(browser, small);
    const chips = () => page.locator(".chips button").allTextContents();
    const seen = new Set([await picture(page)]);
    const expected = { file: "checkpoints", process: "rank 7", size: "64 KiB to 1 MiB", duration: "about the median", result: "failed" };
    for (const [colouring, chip] of Object.entries(expected)) {
      await page.getByLabel("Colours by").selectOption(colouring);
      await page.waitForFunction((chip) => document.querySelector(".chips").textContent.includes(chip), chip);
      assert.ok((await chips()).some((text) => text.startsWith(chip)), colouring);
      seen.add(await picture(page));
    }
    assert.equal(seen.size, 6);
    await page.locator('.chips [data-kind="as asked for"]').click();
    await page.waitForFunction(() => location.hash.includes("colour=result") && location.hash.includes("hide="));
    const [fragment, hidden] = [await page.evaluate(() => location.hash), await picture(page)];
    await page.close();
    const again = await openFile(browser, small, { fragment });
    assert.equal(await picture(again.page), hidden);
    // The test itself reads the picture often.
    assert.deepEqual([...complaints, ...again.complaints].filter((text) => !text.includes("willReadFrequently")), []);
    await again.page.close();
  });

  test("rows can be sorted, grouped otherwise, and left out when they do not match", async () => {
    const { page } = await openFile(browser, small);
    const ranks = async () => (await labels(page)).filter((name) => name.startsWith("rank"));
    assert.equal((await ranks())[0], "rank 0");
    await page.getByLabel("Order of the rows").selectOption("time");
    await page.waitForFunction(() => location.hash.includes("order=time"));
    const byTime = await ranks();
    assert.equal(byTime.length, 8);
    assert.notDeepEqual(byTime, [0, 1, 2, 3, 4, 5, 6, 7].map((rank) => `rank ${rank}`));
    await page.getByLabel("Groups of the rows").selectOption("servers");
    await page.waitForFunction(() => location.hash.includes("by=servers"));
    assert.equal((await labels(page))[1], "servers");
    await page.getByRole("searchbox").fill("rank:2,5");
    await page.getByLabel("only their rows").check();
    await page.waitForFunction(() => [...document.querySelectorAll(".gutter .name")].filter(({ textContent }) => textContent.startsWith("rank")).length === 2);
    assert.equal((await labels(page)).includes("servers"), false);
    await page.close();
  });

  test("rows can be pinned to the top by P, by their button and by dragging their names there", async () => {
    const { page } = await openFile(browser, small, { viewport: { width: 1200, height: 420 } });
    for (let turn = 0; turn < 3; turn++) await page.locator("canvas.stage").press("=");
    await page.locator("#timeline.scrolled").waitFor();
    const box = await stage(page);
    const pinned = () => page.locator(".gutter [aria-label='Pinned rows'] .name").allTextContents();
    const seen = async (names) => {
      await page.waitForFunction((names) => [...document.querySelectorAll(".gutter [aria-label='Pinned rows'] .name")].map(({ textContent }) => textContent).join() === names, names.join());
      assert.deepEqual(await pinned(), names);
    };
    await page.mouse.click(box.x + 300, await lineAt(page, "rank 1"));
    await page.locator(".details dl").waitFor();
    const told = await page.locator(".details dl").textContent();
    await page.keyboard.press("p");
    await seen(["rank 1"]);
    // It stays in sight, and what is under the pointer is its call, however far the others are scrolled.
    await page.locator(".scroller").evaluate((element) => (element.scrollTop = 1e6));
    await page.waitForFunction(() => ![...document.querySelectorAll(".gutter .name")].some(({ textContent }) => textContent === "rank 0"));
    await page.keyboard.press("Escape");
    await page.mouse.click(box.x + 300, await lineAt(page, "rank 1"));
    await page.waitForFunction((told) => document.querySelector(".details dl")?.textContent === told, told);
    await page.mouse.move(5, 5);
    await page.waitForTimeout(300);
    const drawn = await picture(page);
    await page.locator(".scroller").evaluate((element) => (element.scrollTop = 0));
    await page.locator(".gutter .label", { hasText: /^rank 3/ }).hover();
    await page.locator(".gutter .label", { hasText: /^rank 3/ }).locator("+ .pin").click();
    await seen(["rank 1", "rank 3"]);
    const middle = async (name) => ({ x: box.x - 150, y: await lineAt(page, name) });
    await drag(page, await middle("rank 3"), { x: box.x - 150, y: (await middle("rank 1")).y - 8 });
    await seen(["rank 3", "rank 1"]);
    await drag(page, await middle("rank 2"), await middle("rank 1"));
    await page.waitForFunction(() => location.hash.split("pin=").length === 4);
    assert.equal((await pinned()).includes("rank 2"), true);
    const fragment = await page.evaluate(() => location.hash);
    const names = await pinned();
    for (const name of ["rank 3", "rank 2"]) {
      const left = (await pinned()).filter((other) => other !== name);
      await drag(page, await middle(name), { x: box.x - 150, y: box.y + 200 });
      await seen(left);
    }
    await seen(["rank 1"]);
    await page.locator(".scroller").evaluate((element) => (element.scrollTop = 1e6));
    await page.mouse.move(5, 5);
    await page.waitForTimeout(300);
    assert.equal(await picture(page), drawn);
    await page.close();
    const again = await openFile(browser, small, { fragment });
    assert.deepEqual(again.complaints, []);
    assert.deepEqual(await again.page.locator(".gutter [aria-label='Pinned rows'] .name").allTextContents(), names);
    assert.deepEqual(await faults(again.page), []);
    // In another tree the same rows are pinned.
    await again.page.getByLabel("Groups of the rows").selectOption("flat");
    await again.page.waitForFunction(() => location.hash.includes("by=flat"));
    assert.deepEqual(await again.page.locator(".gutter [aria-label='Pinned rows'] .name").allTextContents(), names);
    await again.page.close();
  });

  test("M keeps a range under a name, G goes to a time or a row, pictures can be saved", async () => {
    const { page, complaints } = await openFile(browser, small);
    const box = await stage(page);
    await drag(page, { x: box.x + box.width * 0.3, y: box.y + 8 }, { x: box.x + box.width * 0.4, y: box.y + 8 });
    await page.locator("canvas.stage").focus();
    await page.keyboard.press("m");
    await page.getByLabel("Name of the bookmark").last().fill("slow <part>");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "slow <part>", exact: true }).waitFor();
    await page.waitForFunction(() => location.hash.includes("mark="));
    const fragment = await page.evaluate(() => location.hash);
    await page.locator("canvas.stage").focus();
    await page.keyboard.press("g");
    await page.getByRole("textbox", { name: "Go to" }).fill("next week");
    await page.keyboard.press("Enter");
    await page.getByText("neither a time such as").waitFor();
    await page.getByRole("textbox", { name: "Go to" }).fill("100");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => [...document.querySelectorAll(".details dl div")].some(({ textContent }) => textContent === "row100"));
    for (const format of ["PNG", "SVG"]) {
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: `(${format})` }).click()]);
      const saved = readFileSync(await download.path());
      if (format === "PNG") assert.deepEqual([...saved.subarray(1, 4)].map((byte) => String.fromCharCode(byte)).join(""), "PNG");
      else for (const part of [/^<svg /, /<image [^>]*href="data:image\/png/, />rank 3<\/text>/, />write<\/text>/]) assert.match(saved.toString(), part);
    }
    await page.close();
    const again = await openFile(browser, small, { fragment });
    await again.page.getByRole("button", { name: "slow <part>", exact: true }).waitFor();
    assert.deepEqual([...complaints, ...again.complaints], []);
    await again.page.close();
  });
});
