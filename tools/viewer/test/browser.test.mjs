// The page in a real browser, from the disk: opens fast, moves smoothly, shows what Rust put in.
// CHROMIUM names the browser when it is not /usr/bin/chromium. Times are the best of three
// attempts: the machine that runs this has other things to do too.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, describe, test } from "node:test";
import { deflateSync } from "node:zlib";
import { launch, openFile, picture, pixels } from "./chromium.mjs";

const EVENTS = 1_000_000;
const OPEN_MS_MAX = 3000;
const FRAME_MS_MAX = 1000 / 30;
/** What the reference loop of `slowness` takes on one idle core of 2020. */
const REFERENCE_MS = 300;
const BYTES_PER_EVENT_MAX = 6;
const WRITE_LIGHT = 0xff2b89e8;

let directory, browser, demo, file;

/** Opens the page; what it complains about or asks for is collected. */
const open = (options = {}) => openFile(browser, file, { viewport: { width: 1400, height: 1000 }, ...options });

/**
 * How much slower than by itself this process's share of the machine is just now: other tests run beside
 * this one. A limit is meant for a machine that has nothing else to do.
 */
function slowness(page) {
  return page.evaluate((nominal) => {
    const began = performance.now();
    let hash = 1;
    for (let at = 0; at < 60_000_000; at++) hash = (Math.imul(hash, 31) + at) | 0;
    return Math.max(1, (performance.now() - began) / nominal + (hash & 0));
  }, REFERENCE_MS);
}

/** Milliseconds from the start of the navigation until the first picture is complete. */
const drawnAfter = (page) => page.evaluate(() => performance.getEntriesByName("timeline-drawn")[0].startTime);

/** Median time between frames while something is done with the page. */
async function frames(page, act) {
  await page.evaluate(() => {
    const times = (window.frameTimes = []);
    const tick = (time) => {
      times.push(time);
      window.frameLoop = requestAnimationFrame(tick);
    };
    window.frameLoop = requestAnimationFrame(tick);
  });
  await act();
  const times = await page.evaluate(() => {
    cancelAnimationFrame(window.frameLoop);
    return window.frameTimes;
  });
  const gaps = times.slice(1).map((time, at) => time - times[at]).sort((a, b) => a - b);
  return { median: gaps[gaps.length >> 1], worst: gaps[Math.floor(gaps.length * 0.95)], count: gaps.length };
}

async function best(attempts, measure, isGood) {
  let result;
  for (let attempt = 0; attempt < attempts; attempt++) {
    result = await measure();
    if (isGood(result)) break;
  }
  return result;
}

async function stageBox(page) {
  await page.locator("canvas.stage").scrollIntoViewIfNeeded();
  await page.waitForTimeout(400);
  return page.locator("canvas.stage").boundingBox();
}

const detail = (page, name) =>
  page.evaluate((name) => {
    const facts = [...document.querySelectorAll(".details dl > div")];
    return facts.find((fact) => fact.querySelector("dt").textContent === name)?.querySelector("dd").textContent;
  }, name);

const labels = (page) => page.locator(".gutter .label .name").allTextContents();

describe("a page of a million calls per run", () => {
  before(async () => {
    directory = mkdtempSync(join(tmpdir(), "iolab-page-"));
    file = join(directory, "page.html");
    // Of the whole workspace: of one package alone, cargo would build all below it once more, with fewer features.
    const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
    execFileSync("cargo", ["build", "-q", "--workspace", "--example", "demo_page"], { cwd: root });
    const program = join(root, process.env.CARGO_TARGET_DIR ?? "target", "debug/examples/demo_page");
    demo = JSON.parse(execFileSync(program, [String(EVENTS), file], { encoding: "utf8" }));
    browser = await launch();
  });

  after(async () => {
    await browser?.close();
    if (directory) rmSync(directory, { recursive: true });
  });

  test("is small", () => {
    const encoded = [...readFileSync(file, "latin1").matchAll(/x-iolab-timeline">([^<]*)</g)];
    const bytes = encoded.reduce((sum, match) => sum + (match[1].length * 3) / 4, 0);
    assert.ok(demo.events > 2 * EVENTS * 0.99, `${demo.events} events`);
    assert.ok(bytes / demo.events < BYTES_PER_EVENT_MAX, `${bytes / demo.events} bytes per event`);
    console.log(`# ${demo.events} events, ${(bytes / demo.events).toFixed(2)} bytes each before base64`);
  });

  test("opens from the disk in less than three seconds, without complaint, asking for nothing", async () => {
    const attempt = async () => {
      const { page, complaints } = await open();
      const time = (await drawnAfter(page)) / (await slowness(page));
      assert.ok((await pixels(page, WRITE_LIGHT)) > 1000, "no writes are drawn");
      await page.close();
      assert.deepEqual(complaints, []);
      return time;
    };
    const time = await best(3, attempt, (time) => time < OPEN_MS_MAX);
    console.log(`# first picture after ${Math.round(time)} ms`);
    assert.ok(time < OPEN_MS_MAX, `${time} ms`);
  });

  test("pans and zooms at thirty frames per second or more", async () => {
    const { page } = await open();
    const box = await stageBox(page);
    const [x, y] = [box.x + box.width / 2, box.y + 120];
    await page.mouse.move(x, y);
    const zoom = async () => {
      await page.keyboard.down("Control");
      for (let turn = 0; turn < 24; turn++) {
        await page.mouse.wheel(0, turn < 12 ? -120 : 120);
        await page.waitForTimeout(16);
      }
      await page.keyboard.up("Control");
    };
    const pan = async () => {
      await page.mouse.move(x, y);
      await page.mouse.down({ button: "middle" });
      await page.mouse.move(x - 300, y, { steps: 40 });
      await page.mouse.move(x + 300, y, { steps: 40 });
      await page.mouse.up({ button: "middle" });
    };
    const limit = FRAME_MS_MAX * (await slowness(page));
    const isSmooth = ({ median }) => median < limit;
    const start = await picture(page);
    const zoomed = await best(3, () => frames(page, zoom), isSmooth);
    await page.keyboard.down("Control");
    for (let turn = 0; turn < 5; turn++) await page.mouse.wheel(0, -120);
    await page.keyboard.up("Control");
    await page.waitForTimeout(100);
    assert.notEqual(await picture(page), start, "the wheel did not zoom");
    const before = await picture(page);
    const panned = await best(3, () => frames(page, pan), isSmooth);
    assert.notEqual(await picture(page), before, "the drag did not pan");
    for (const [what, { median, worst, count }] of Object.entries({ zoomed, panned })) {
      console.log(`# ${what}: ${median.toFixed(1)} ms per frame, 95 % below ${worst.toFixed(1)} ms, ${count} frames`);
      assert.ok(median < limit, `${what}: ${median} ms per frame`);
    }
    await page.close();
  });

  test("shows of a call that is clicked what Rust put in", async () => {
    const { page, complaints } = await open();
    const { probe } = demo;
    await page.getByRole("button", { name: "one of them" }).click();
    const box = await stageBox(page);
    await page.locator("canvas.stage").focus();
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !document.querySelector(".details dl"));
    const row = await page.locator(".gutter .label", { hasText: "rank 1" }).first().boundingBox();
    await page.mouse.click(box.x + box.width / 2, row.y + row.height / 2);
    await page.waitForSelector(".details dl");
    const seconds = ((probe.start_ns - 0) / 1e9).toFixed(9).replace(/(\d{3})(?=\d{3})/g, (digits, _, at, text) =>
      at > text.indexOf(".") ? `${digits}\u202f` : digits);
    const expected = {
      function: `${probe.function} (posix)`,
      file: probe.file,
      offset: probe.offset.toLocaleString("en-US"),
      length: `${probe.length} B`,
      result: `${probe.result} B`,
      duration: probe.end_ns - probe.start_ns < 1000 ? `${probe.end_ns - probe.start_ns} ns` : `${(probe.end_ns - probe.start_ns) / 1000} µs`,
      start: `${seconds} s`,
      descriptor: String(probe.fd),
      run: "recorded",
      row: probe.row.toLocaleString("en-US"),
    };
    for (const [name, text] of Object.entries(expected)) assert.equal(await detail(page, name), text, name);
    await page.keyboard.press(".");
    await page.waitForFunction((before) => {
      const facts = [...document.querySelectorAll(".details dl > div")];
      return facts.find((fact) => fact.textContent.startsWith("row"))?.querySelector("dd").textContent !== before;
    }, expected.row);
    assert.equal(await detail(page, "row"), (probe.row + 1).toLocaleString("en-US"));
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test("hides a kind of call with the legend, and dims what a search does not find", async () => {
    const { page } = await open();
    const button = page.locator('.legend button[data-kind="write"]');
    const before = await pixels(page, WRITE_LIGHT);
    await button.click();
    await page.waitForFunction(() => document.querySelector('[data-kind="write"]').getAttribute("aria-pressed") === "false");
    assert.equal(await pixels(page, WRITE_LIGHT), 0);
    await button.click();
    await page.waitForFunction(() => document.querySelector('[data-kind="write"]').getAttribute("aria-pressed") === "true");
    assert.equal(await pixels(page, WRITE_LIGHT), before);
    await page.getByRole("searchbox").fill("fsync checkpoint.2");
    await page.waitForFunction(() => document.querySelector(".matches").textContent !== "");
    assert.equal(await pixels(page, WRITE_LIGHT), 0);
    assert.match(await page.locator(".matches").textContent(), /^\d+ calls$/);
    await page.close();
  });

  test("puts the same rank of all runs together, and folds", async () => {
    const { page } = await open();
    const runs = ["recorded", "simulated: null", "simulated: write-back"];
    assert.deepEqual((await labels(page)).filter((label) => runs.includes(label)), runs);
    await page.getByLabel("Groups of the rows").selectOption("process");
    await page.waitForFunction(() => document.querySelector(".gutter .name").textContent.startsWith("rank 0"));
    assert.deepEqual((await labels(page)).filter(Boolean).slice(0, 4), ["rank 0", ...runs]);
    const count = (await labels(page)).length;
    const fold = page.locator(".gutter button.label").first();
    await fold.focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector(".gutter button").getAttribute("aria-expanded") === "false");
    assert.ok((await labels(page)).length < count);
    await page.close();
  });

  test("can be moved with keys alone, and says how", async () => {
    const { page } = await open();
    await page.locator("canvas.stage").focus();
    const pictures = [await picture(page)];
    for (const key of ["+", "ArrowRight", "Home"]) {
      await page.keyboard.press(key);
      await page.waitForTimeout(120);
      pictures.push(await picture(page));
    }
    assert.equal(new Set(pictures.slice(0, 3)).size, 3);
    assert.equal(pictures[3], pictures[0]);
    await page.keyboard.press("?");
    assert.ok(await page.getByRole("dialog").isVisible());
    await page.keyboard.press("Escape");
    assert.ok(!(await page.getByRole("dialog").isVisible()));
    await page.close();
  });

  test("opens the folds around a call that a finding points at", async () => {
    const { page } = await open();
    const folds = page.locator(".gutter button.label.level0");
    for (const index of [0, 1]) await folds.nth(index).click();
    await page.waitForFunction(() => document.querySelectorAll('.gutter [aria-expanded="false"]').length === 2);
    await page.getByRole("button", { name: "one of them" }).click();
    await page.waitForFunction(() => document.querySelectorAll('.gutter .level0[aria-expanded="false"]').length === 1);
    assert.equal(await folds.first().getAttribute("aria-expanded"), "true");
    await page.close();
  });

  test("is pinched and dragged with fingers", async () => {
    const { page } = await open({ hasTouch: true });
    const box = await stageBox(page);
    const [x, y] = [box.x + box.width / 2, box.y + 100];
    const session = await page.context().newCDPSession(page);
    const touch = (type, ...points) =>
      session.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([px, py], id) => ({ x: px, y: py, id })) });
    const whole = await picture(page);
    await touch("touchStart", [x - 40, y], [x + 40, y]);
    for (let spread = 40; spread <= 240; spread += 20) await touch("touchMove", [x - spread, y], [x + spread, y]);
    await touch("touchEnd");
    await page.waitForTimeout(100);
    const pinched = await picture(page);
    assert.notEqual(pinched, whole, "the pinch did not zoom");
    await touch("touchStart", [x, y]);
    for (let moved = 0; moved <= 200; moved += 20) await touch("touchMove", [x - moved, y]);
    await touch("touchEnd");
    await page.waitForTimeout(100);
    assert.notEqual(await picture(page), pinched, "the drag did not pan");
    await page.close();
  });

  /** The page with its first timeline replaced by other bytes. */
  function variant(name, bytes) {
    const replaced = readFileSync(file, "latin1")
      .replace(/(x-iolab-timeline">)[^<]*/, `$1${bytes.toString("base64")}`)
      // The other runs are left out.
      .replace(/(<script type="application\/x-iolab-timeline">[^<]*<\/script>)[^]*?(?=<\/body>)/, "$1");
    const path = join(directory, name);
    writeFileSync(path, replaced, "latin1");
    return path;
  }

  test("says what is wrong when its data is damaged", async () => {
    const page = await browser.newPage();
    await page.goto(`file://${variant("damaged.html", Buffer.from("IOTL and then nothing"))}`);
    const alert = page.locator("#timeline [role=alert]");
    await alert.waitFor();
    assert.match(await alert.textContent(), /^The timeline cannot be shown: /);
    assert.ok(await page.getByRole("heading", { name: "Findings" }).isVisible(), "the rest of the page is still there");
    await page.close();
  });

  test("shows a run without any call", async () => {
    const names = ["gap", "duration", "function", "file", "length", "offset", "result", "argument", "fd", "parent", "row"];
    const empty = deflateSync(Buffer.alloc(0));
    const head = JSON.stringify({
      label: "nothing", origin: "recorded", strategies: [], count: 0, start_ns: 0, end_ns: 0, lost_calls: 3,
      functions: [], files: [], processes: [], phases: [], rows: [],
      columns: names.map((name) => ({ name, bytes: empty.length, raw_bytes: 0 })),
    });
    const sizes = Buffer.alloc(8);
    sizes.writeUInt32LE(2, 0);
    sizes.writeUInt32LE(Buffer.byteLength(head), 4);
    const bytes = Buffer.concat([Buffer.from("IOTL"), sizes, Buffer.from(head), ...names.map(() => empty)]);
    const page = await browser.newPage();
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(error.message));
    await page.goto(`file://${variant("empty.html", bytes)}`);
    await page.waitForFunction(() => performance.getEntriesByName("timeline-drawn").length > 0);
    assert.match(await page.locator(".gutter").textContent(), /nothing.*3 calls missing/);
    for (const key of ["+", "n", ".", "0"]) await page.locator("canvas.stage").press(key);
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test("fits a telephone and a dark room", async () => {
    const { page, complaints } = await open({ viewport: { width: 400, height: 800 }, colorScheme: "dark" });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 400, `the page is ${width} pixels wide`);
    assert.ok((await pixels(page, 0xff3e9af3)) > 200, "no writes in the colour of the dark");
    assert.deepEqual(complaints, []);
    await page.close();
  });
});
