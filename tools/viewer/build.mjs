// Bundles the viewer into dist/, which is committed because a user's machine may have no Node.
//   node build.mjs           writes dist/
//   node build.mjs --check   fails when dist/ is not what the source gives
//   node build.mjs --tests   bundles the unit tests into build/tests/

import { build } from "esbuild";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** The licences of the packages that are in the bundle, which is in every page. */
async function licences() {
  const { dependencies } = JSON.parse(await readFile(join(here, "package.json"), "utf8"));
  const texts = Object.entries(dependencies).map(async ([name, version]) => {
    const text = await readFile(join(here, "node_modules", name, "LICENSE"), "utf8");
    return `/*! ${name} ${version}\n${text.trim()}\n*/`;
  });
  return (await Promise.all(texts)).join("\n");
}

async function bundle() {
  const result = await build({
    absWorkingDir: here,
    entryPoints: { viewer: "src/main.ts", "viewer.css": "src/style.css" },
    bundle: true,
    minify: true,
    charset: "utf8",
    format: "iife",
    target: "es2022",
    legalComments: "none",
    outdir: "dist",
    write: false,
    footer: { js: await licences() },
  });
  const named = (end) => result.outputFiles.find((file) => file.path.endsWith(end)).text;
  return { "viewer.js": named(".js"), "viewer.css": named(".css") };
}

async function check(files) {
  for (const [name, text] of Object.entries(files)) {
    const committed = await readFile(join(here, "dist", name), "utf8").catch(() => "");
    if (committed !== text) {
      console.error(`error: dist/${name} is not what src/ gives\nhint: run \`npm run build\` in tools/viewer and commit dist/`);
      process.exitCode = 1;
    }
  }
}

async function bundleTests() {
  const names = (await readdir(join(here, "test"))).filter((name) => name.endsWith(".test.ts"));
  // A test that was renamed would go on under its old name.
  await rm(join(here, "build/tests"), { recursive: true, force: true });
  await build({
    absWorkingDir: here,
    entryPoints: names.map((name) => `test/${name}`),
    bundle: true,
    platform: "node",
    format: "esm",
    outdir: "build/tests",
    outExtension: { ".js": ".mjs" },
  });
}

if (process.argv.includes("--tests")) {
  await bundleTests();
} else {
  const files = await bundle();
  if (process.argv.includes("--check")) {
    await check(files);
  } else {
    await mkdir(join(here, "dist"), { recursive: true });
    for (const [name, text] of Object.entries(files)) await writeFile(join(here, "dist", name), text);
  }
}
