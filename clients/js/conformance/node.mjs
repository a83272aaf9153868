/** node conformance/node.mjs VECTORS [CLIENT]: run Python's vectors in Node, and print the result as JSON. */
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { check } from "./check.js";

const client = await import(process.argv[3] ? pathToFileURL(process.argv[3]) : new URL("../discreet.min.js", import.meta.url));
console.log(JSON.stringify(check(readFileSync(process.argv[2], "utf8"), client)));
