// What the search of the built book finds, as JSON: a list of pages for each query, best first.
//   node search.mjs DIR CHROMIUM < queries.json

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const [directory, chromium] = process.argv.slice(2);
const viewer = createRequire(new URL("../viewer/package.json", import.meta.url));
const puppeteer = await import(pathToFileURL(viewer.resolve("puppeteer-core")).href);
const browser = await puppeteer.default.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
try {
  const page = await browser.newPage();
  const found = {};
  for (const query of JSON.parse(readFileSync(0, "utf8"))) {
    const address = pathToFileURL(resolve(directory, "search.html"));
    address.searchParams.set("q", query);
    await page.goto(address.href);
    // The summary ends with a full stop or a number of pages once all results stand there.
    await page.waitForFunction(() => /finished|did not match/i.test(document.querySelector(".search-summary")?.textContent ?? ""),
      { timeout: 60_000 });
    found[query] = await page.$$eval("ul.search li a", (links) => links.map((link) => new URL(link.href).pathname));
  }
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
}
