/**
 * node build.mjs [FOLDER]: build the client as one minified file, discreet.min.js, and the scripts and styles of the pages. Each file is written
 * beside the code that serves it, or all into FOLDER.
 */
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const inPackage = (name) => fileURLToPath(new URL(`../../src/discreet/${name}`, import.meta.url));
const [, , folder] = process.argv;
const OUTPUTS = {
  [here]: { "discreet.min.js": "src/discreet.js", "discreet-survey.min.js": "collector/survey-element.js" },
  [inPackage("research/_explorer/")]: { "explorer.js": "explorer/main.js", "explorer.css": "explorer/explorer.css" },
  [inPackage("collect/pages/")]: { "live.js": "collector/live.js", "take-part.js": "collector/take-part.js", "worker.js": "collector/worker.js", "collector.css": "collector/collector.css" },
};
for (const [place, files] of Object.entries(OUTPUTS)) {
  for (const [name, entry] of Object.entries(files)) {
    await build({
      absWorkingDir: here,
      entryPoints: [entry],
      outfile: `${folder ?? place}/${name}`,
      bundle: true,
      minify: true,
      format: "esm",
      target: "es2022",
      charset: "utf8",
      legalComments: "none",
      logLevel: "warning",
    });
  }
}
