/**
 * Bundles the libraries of the web interface into the package, with their licences and a manifest.
 * The same lock file gives the same bytes. Run `npm ci && npm run build` in this folder.
 */
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const vendor = join(here, "..", "src", "omnigraph", "web", "vendor");
const BUNDLES = ["preact", "codemirror", "sigma", "forces"];

function packageOf(input) {
  const found = input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  return found?.[1] ?? null;
}

async function readLicence(name) {
  const folder = join(here, "node_modules", name);
  const files = await readdir(folder);
  const file = files.find((each) => /^licen[cs]e/i.test(each));
  if (file !== undefined) return (await readFile(join(folder, file), "utf8")).trim();
  const { license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  return `${license} (the package has no file with the text)`;
}

async function bundle(name, lock) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [`entries/${name}.js`],
    bundle: true,
    format: "esm",
    target: "es2022",
    minify: true,
    legalComments: "none",
    metafile: true,
    write: false,
  });
  const bytes = result.outputFiles[0].contents;
  await writeFile(join(vendor, `${name}.js`), bytes);
  const names = new Set(Object.keys(result.metafile.inputs).map(packageOf).filter(Boolean));
  const packages = {};
  for (const each of [...names].sort()) {
    const { version, integrity } = lock.packages[`node_modules/${each}`];
    packages[each] = { version, integrity };
  }
  return { sha256: createHash("sha256").update(bytes).digest("hex"), packages };
}

const lock = JSON.parse(await readFile(join(here, "package-lock.json"), "utf8"));
await rm(vendor, { recursive: true, force: true });
await mkdir(vendor, { recursive: true });
// What tests look for faults of accessibility with; it is not in the package.
const axe = join(here, "..", "tests", "browser", "vendor");
await mkdir(axe, { recursive: true });
await writeFile(
  join(axe, "axe.js"),
  await readFile(join(here, "node_modules/axe-core/axe.min.js")),
);
const manifest = {};
for (const name of BUNDLES) manifest[`${name}.js`] = await bundle(name, lock);
const packages = Object.assign({}, ...Object.values(manifest).map((each) => each.packages));
const licences = [];
for (const name of Object.keys(packages).sort()) {
  licences.push(`${name} ${packages[name].version}\n\n${await readLicence(name)}\n`);
}
await writeFile(join(vendor, "licences.txt"), licences.join(`\n${"-".repeat(72)}\n\n`));
await writeFile(join(vendor, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
