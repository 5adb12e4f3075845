// Takes a picture of a page's timeline: node screenshot.mjs PAGE.html OUT.png [FRAGMENT]
// The one in docs/images is made so, from a run of the simulator:
//   iolab simulate --workload samples/workloads/checkpoint.toml --platform classic-hdd --seeds 1 -o build/checkpoint.iot
//   iolab view build/checkpoint.iot -o build/checkpoint.html
//   node tools/viewer/screenshot.mjs build/checkpoint.html docs/images/timeline.png

import { resolve } from "node:path";
import { launch, openFile } from "./test/chromium.mjs";

const [file, output, fragment = ""] = process.argv.slice(2);
if (!output) {
  console.error("usage: node screenshot.mjs PAGE.html OUT.png [FRAGMENT]");
  process.exit(2);
}
const browser = await launch();
try {
  const { page } = await openFile(browser, resolve(file), { fragment: fragment && `#${fragment}`, viewport: { width: 1440, height: 1000 } });
  await page.waitForTimeout(400);
  await page.screenshot({ path: output });
} finally {
  await browser.close();
}
