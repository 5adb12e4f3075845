// Takes the exchange form of the first trace out of a page: node form.mjs PAGE.html OUT.iotl

import { readFileSync, writeFileSync } from "node:fs";

const [page, output] = process.argv.slice(2);
if (!output) {
  console.error("usage: node form.mjs PAGE.html OUT.iotl");
  process.exit(2);
}
const found = /x-iolab-timeline"[^>]*>([^<]*)</.exec(readFileSync(page, "latin1"));
if (!found) {
  console.error(`error: ${page} holds no timeline\nhint: pages with timelines are made by \`iolab view RUN.iot -o PAGE.html\``);
  process.exit(1);
}
writeFileSync(output, Buffer.from(found[1], "base64"));
