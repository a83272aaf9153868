/** node build.mjs [FOLDER]: the client as one minified file, discreet.min.js. */
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
await build({
  absWorkingDir: here,
  entryPoints: ["src/discreet.js"],
  outfile: `${process.argv[2] ?? here}/discreet.min.js`,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
});
