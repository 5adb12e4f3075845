// What is committed in dist/ is what the source gives, and the source has no type errors.

import { execFileSync } from "node:child_process";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const cwd = join(dirname(fileURLToPath(import.meta.url)), "..");

test("dist/ is built from this source", () => {
  execFileSync(process.execPath, ["build.mjs", "--check"], { cwd, stdio: "pipe" });
});

test("the types are right", () => {
  execFileSync("npx", ["--no-install", "tsc", "-p", "."], { cwd, stdio: "pipe" });
});
