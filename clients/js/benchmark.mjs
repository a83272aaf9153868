/**
 * node benchmark.mjs [AGREEMENT with its weights beside it ...]: how long one draw takes, in milliseconds (median and slowest of many). The first
 * draw is timed by itself, because no code is compiled yet. Only integers that depend on the client are drawn: the others take no time.
 */
import { gzipSync } from "node:zlib";
import { readFileSync } from "node:fs";
import { Agreement, randomInteger } from "./discreet.min.js";

function measureDraws(agreement, law, draws) {
  const times = [];
  for (let draw = 0; draw < draws; draw++) {
    const { shared } = agreement.lattice;
    const integer = shared + (randomInteger() * ((1n << 62n) - shared) >> 62n);
    const start = performance.now();
    agreement.outcome(law, integer);
    times.push(performance.now() - start);
  }
  times.sort((one, other) => one - other);
  return `median ${times[draws >> 1].toFixed(3)} ms, slowest ${times.at(-1).toFixed(3)} ms`;
}

const small = readFileSync(new URL("discreet.min.js", import.meta.url));
console.log(`discreet.min.js: ${small.length} bytes, ${gzipSync(small, { level: 9 }).length} gzipped`);
for (const [size, draws] of [[100, 2000], [100_000, 100]]) {
  for (const mechanism of ["optimal", "linear", "mollifier"]) {
    const family = { kind: "simplex", size };
    const agreement = Agreement.read(JSON.stringify({ discreet: 2, bits: 62, mechanism, epsilon: 2, family }));
    for (const [held, counts] of [["all", (i) => 1 + ((i * 7919) % 1000)], ["every third", (i) => (i % 3 ? 0 : 1 + (i % 11))]]) {
      const law = agreement.law({ counts: Float64Array.from({ length: size }, (_, i) => counts(i)) });
      const start = performance.now();
      agreement.outcome(law, (1n << 62n) - 1n);
      const first = (performance.now() - start).toFixed(1);
      console.log(`${size} outcomes, ${held} held, ${mechanism}: ${measureDraws(agreement, law, draws)} (the first ${first} ms)`);
    }
  }
}
for (const path of process.argv.slice(2)) {
  const agreement = Agreement.read(readFileSync(path), { weights: readFileSync(`${path}.weights`) });
  for (const [held, counts] of [["all", (i) => 1 + ((i * 7919) % 1000)], ["every third", (i) => (i % 3 ? 0 : 1 + (i % 11))]]) {
    const law = agreement.law({ counts: Float64Array.from({ length: agreement.size }, (_, i) => counts(i)) });
    const start = performance.now();
    agreement.outcome(law, (1n << 62n) - 1n);
    const first = (performance.now() - start).toFixed(1);
    console.log(`${path}, ${agreement.size} outcomes, ${held} held: ${measureDraws(agreement, law, 100)} (the first ${first} ms)`);
  }
}
