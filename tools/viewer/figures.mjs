// Makes the pictures of the documentation, docs/images: simulated runs as the timeline shows them, those of the
// evaluation of 2009 (Kuhn, figures 7.2 to 7.6) among them.
//   node tools/viewer/figures.mjs [IOLAB]       # target/release/iolab

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { launch, openFile } from "./test/chromium.mjs";

const root = resolve(import.meta.dirname, "../..");
const iolab = resolve(process.argv[2] ?? join(root, "target/release/iolab"));
const samples = join(root, "samples");

const partdiff = (cache) => ({
  name: `partdiff-${cache}`,
  simulate: ["--trace", join(samples, "traces/hdtrace/partdiff-2009/partdiff-par.proj"), "--platform", join(samples, "partdiff-2009/platform.toml"), "--cache", cache],
  // The same second of each, from the fourth checkpoint on.
  fragment: "t=600000000..1600000000",
  height: 760,
});

const FIGURES = [
  {
    name: "timeline",
    simulate: ["--workload", join(samples, "workloads/checkpoint.toml"), "--platform", "classic-hdd"],
    fragment: "t=2040000000..2150000000&call=0.18165",
    height: 1000,
  },
  {
    name: "interleaved",
    simulate: ["--workload", join(samples, "workloads/interleaved.toml"), "--platform", "classic-hdd", "--collective", "file=interleaved-two-phase"],
    fragment: "curves=on",
    height: 1100,
  },
  ...["none", "write-behind", "aggregation", "server-directed", "server-directed-delayed"].map(partdiff),
];

const place = mkdtempSync(join(tmpdir(), "iolab-figures-"));
const browser = await launch();
try {
  for (const { name, simulate, fragment, height } of FIGURES) {
    const [trace, html, png] = [join(place, `${name}.iot`), join(place, `${name}.html`), join(root, "docs/images", `${name}.png`)];
    execFileSync(iolab, ["simulate", ...simulate, "--seeds", "1", "-o", trace], { stdio: ["ignore", "ignore", "inherit"] });
    execFileSync(iolab, ["view", trace, "-o", html], { stdio: ["ignore", "ignore", "inherit"] });
    const { page } = await openFile(browser, html, { fragment: `#${fragment}`, viewport: { width: 1440, height } });
    // Arrows and curves come when they are made.
    await page.waitForTimeout(1500);
    await page.locator("#timeline").screenshot({ path: png });
    await page.close();
    console.log(png);
  }
} finally {
  await browser.close();
  rmSync(place, { recursive: true });
}
