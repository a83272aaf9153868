/** node build.mjs [FOLDER]: the client as one minified file, discreet.min.js; and the script of the explorer's page, explorer.js. */
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const explorer = fileURLToPath(new URL("../../src/discreet/_explorer/", import.meta.url));
const [, , folder] = process.argv;
for (const [entry, place] of [["src/discreet.js", `${folder ?? here}/discreet.min.js`], ["explorer/main.js", `${folder ?? explorer}/explorer.js`]]) {
  await build({
    absWorkingDir: here,
    entryPoints: [entry],
    outfile: place,
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    logLevel: "warning",
  });
}
