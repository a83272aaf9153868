/** Words about privacy match the numbers beside them: one table has both, and no number is rounded to certainty. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Agreement } from "../src/agreement.js";
import { useCatalogue } from "../page/catalogue.js";
import { agreementFacts, atLeast, atMost, blindShare, certainty, percent, percentAtLeast, percentAtMost, privacyFacts, strength, visibleLabel } from "../page/words.js";
import { editDistance, foldText, placesContaining, suggestedPlaces } from "../page/search.js";
import { countsOf, entriesOf } from "../page/rows.js";

const catalogue = (language) => JSON.parse(readFileSync(new URL(`../../../src/discreet/collect/pages/${language}.json`, import.meta.url), "utf8"));
useCatalogue(catalogue("en"));
const read = (fields) => Agreement.read(JSON.stringify({ discreet: 2, bits: 62, mechanism: "optimal", ...fields }));
const number = (text) => Number(text.replace(/[^0-9.]/g, ""));

/** epsilon, outcomes; the grade of privacy, how sure somebody can become at most, the doubt left, the probability of each outcome, and of a draw that ignores the client. */
const TABLE = [
  [0.1, 2, "Strong", "52.5 %", "47.5 %", "47.5 %", "95 %"],
  [0.1, 10, "Strong", "52.5 %", "47.5 %", "9.89 %", "98.9 %"],
  [0.1, 100, "Strong", "52.5 %", "47.5 %", "0.998 %", "99.89 %"],
  [0.1, 10000, "Strong", "52.5 %", "47.5 %", "0.00999 %", "99.9989 %"],
  [0.5, 2, "Strong", "62.3 %", "37.7 %", "37.7 %", "75.5 %"],
  [0.5, 10, "Strong", "62.3 %", "37.7 %", "9.39 %", "93.9 %"],
  [0.5, 100, "Strong", "62.3 %", "37.7 %", "0.993 %", "99.35 %"],
  [0.5, 10000, "Strong", "62.3 %", "37.7 %", "0.00999 %", "99.9935 %"],
  [1, 2, "Strong", "73.2 %", "26.8 %", "26.8 %", "53.7 %"],
  [1, 10, "Strong", "73.2 %", "26.8 %", "8.53 %", "85.3 %"],
  [1, 100, "Strong", "73.2 %", "26.8 %", "0.983 %", "98.3 %"],
  [1, 10000, "Strong", "73.2 %", "26.8 %", "0.00999 %", "99.982 %"],
  [2, 2, "Moderate", "88.1 %", "11.9 %", "11.9 %", "23.8 %"],
  [2, 10, "Moderate", "88.1 %", "11.9 %", "6.1 %", "61 %"],
  [2, 100, "Moderate", "88.1 %", "11.9 %", "0.939 %", "93.9 %"],
  [2, 10000, "Moderate", "88.1 %", "11.9 %", "0.00999 %", "99.936 %"],
  [3, 2, "Weak", "95.3 %", "4.74 %", "4.74 %", "9.48 %"],
  [3, 10, "Weak", "95.3 %", "4.74 %", "3.43 %", "34.3 %"],
  [3, 100, "Weak", "95.3 %", "4.74 %", "0.839 %", "83.9 %"],
  [3, 10000, "Weak", "95.3 %", "4.74 %", "0.00998 %", "99.80 %"],
  [4, 2, "Weak", "98.3 %", "1.79 %", "1.79 %", "3.59 %"],
  [4, 10, "Weak", "98.3 %", "1.79 %", "1.57 %", "15.7 %"],
  [4, 100, "Weak", "98.3 %", "1.79 %", "0.651 %", "65.1 %"],
  [4, 10000, "Weak", "98.3 %", "1.79 %", "0.00994 %", "99.46 %"],
  [6, 2, "Very weak", "99.76 %", "0.247 %", "0.247 %", "0.494 %"],
  [6, 10, "Very weak", "99.76 %", "0.247 %", "0.242 %", "2.42 %"],
  [6, 100, "Very weak", "99.76 %", "0.247 %", "0.199 %", "19.9 %"],
  [6, 10000, "Very weak", "99.76 %", "0.247 %", "0.00961 %", "96.1 %"],
  [8, 2, "Hardly any privacy", "99.967 %", "0.0335 %", "0.0335 %", "0.067 %"],
  [8, 10, "Hardly any privacy", "99.967 %", "0.0335 %", "0.0334 %", "0.334 %"],
  [8, 100, "Hardly any privacy", "99.967 %", "0.0335 %", "0.0324 %", "3.24 %"],
  [8, 10000, "Hardly any privacy", "99.967 %", "0.0335 %", "0.0077 %", "77 %"],
  [10, 2, "Hardly any privacy", "99.9955 %", "0.00453 %", "0.00453 %", "0.00907 %"],
  [10, 10, "Hardly any privacy", "99.9955 %", "0.00453 %", "0.00453 %", "0.0453 %"],
  [10, 100, "Hardly any privacy", "99.9955 %", "0.00453 %", "0.00451 %", "0.451 %"],
  [10, 10000, "Hardly any privacy", "99.9955 %", "0.00453 %", "0.00312 %", "31.2 %"],
];

/** What is said at a grade, and what may not be. */
const SAID = {
  Strong: "Somebody who was undecided stays far from sure: a doubt of at least @ remains. You can plausibly say that chance produced your sample.",
  Moderate: "Somebody who was undecided can come to think one thing likely. A doubt of at least @ remains. You can say that chance produced your sample, but others may find that less likely.",
  Weak: "Somebody who was undecided can become nearly sure. The remaining doubt can be as small as @. Few people may believe that chance produced your sample.",
  "Very weak": "Somebody who was undecided can become almost certain. The remaining doubt can be as small as @. Do not expect anybody to believe that chance produced your sample.",
  "Hardly any privacy": "A sample can reveal your data. The remaining doubt can be as small as @. Take part only with data that you would publish.",
};

test("the sentences for epsilon 0.1 to 10 and 2 to 10,000 outcomes", () => {
  for (const [epsilon, size, grade, sure, doubt, floor, blind] of TABLE) {
    const said = agreementFacts(read({ epsilon, family: { kind: "simplex", size } })).map(([heading, text]) => [heading, text.replaceAll("\u00a0", " ")]);
    const words = Object.fromEntries(said);
    assert.equal(words["How private this is"], `${grade}. ${SAID[grade].replace("@", doubt)}`);
    assert.ok(words["What can be learnt about you at most"].endsWith(`from 50 % sure to ${sure} sure.`), `${sure}`);
    assert.ok(words["What it can be"].endsWith(`with a chance of at least ${floor}.`));
    assert.ok(words["How often only chance decides"].startsWith(`With a chance of at least ${blind} a sample is drawn without using your data.`));
    const [e, true_floor] = [Math.exp(epsilon), 1 / (Math.exp(epsilon) + size - 1)];
    assert.ok(number(sure) >= (100 * e) / (1 + e) && number(sure) < 100);
    for (const [shown, exact] of [[doubt, 100 / (1 + e)], [floor, 100 * true_floor], [blind, 100 * size * true_floor]]) {
      assert.ok(number(shown) > 0 && number(shown) <= exact && number(shown) > 0.98 * exact, `${shown} for ${exact}`);
    }
    const all = said.flat().join(" ");
    assert.doesNotMatch(all, /\b(100|0) %|usual|always say|deniable|nobody can tell/i);
    if (number(doubt) < 25) assert.doesNotMatch(all, /plausibly|strong/i);
    if (number(doubt) < 10) assert.doesNotMatch(all, /moderate|stays|can say/i);
    if (number(blind) < 50) assert.doesNotMatch(all, /most samples are independent/);
  }
  assert.ok(new Set(TABLE.map(([, , grade]) => grade)).size >= 4);
});

test("grades follow the doubt that is left after all rounds, and the floor follows the mechanism", () => {
  const order = Object.keys(SAID);
  let last = 0;
  for (let epsilon = 0.01; epsilon < 20; epsilon += 0.01) {
    const at = order.indexOf(strength(epsilon).grade);
    assert.ok(at >= last);
    last = at;
  }
  assert.equal(privacyFacts(1, 4)[0][1], strength(4).said);
  assert.match(strength(95).said, /percentage/);
  const shares = ["optimal", "linear", "mollifier"].map((mechanism) => blindShare(read({ mechanism, epsilon: 2, family: { kind: "simplex", size: 10 } })));
  assert.ok(Math.abs(shares[2] - Math.exp(-1)) < 1e-12 && shares[2] < shares[0]);
  const weights = "sha256:e0e1a2a9cc2d4165e93e7e36e291ee910548e36625df412255b9e4e89ba207d5";
  const band = read({ epsilon: 1, family: { kind: "band", size: 3, lower: 0, upper: 1.5, everybody: true, reference: [1, 0.5, 0.25], weights } });
  assert.ok(Math.abs(blindShare(band) - band.box.lower.reduce((sum, each) => sum + each)) < 1e-12);
});

test("no rounding reaches certainty, and bounds are rounded to the side on which they hold", () => {
  for (let power = -1; power > -16; power -= 0.25) {
    const rest = 10 ** power;
    for (const shown of [percent, percentAtMost, percentAtLeast]) {
      assert.ok(!/\b100\u00a0%/.test(shown(1 - rest)), `${shown(1 - rest)} for 1 - ${rest}`);
      assert.doesNotMatch(shown(rest), /^0\u00a0%/);
    }
    if (rest < 1e-7) continue;
    assert.ok(number(percentAtMost(1 - rest)) >= 100 - 100 * rest - 1e-12);
    assert.ok(number(percentAtLeast(1 - rest)) <= 100 - 100 * rest + 1e-12);
  }
  for (const epsilon of [10, 40, 700, 1e300]) assert.doesNotMatch(percentAtMost(certainty(Math.exp(epsilon))), /100/);
  assert.deepEqual([percent(0), percent(1), percentAtMost(1)], ["0\u00a0%", "100\u00a0%", "100\u00a0%"]);
  assert.deepEqual([atMost(2.711), atLeast(2.719), atMost(3e-9), atLeast(1234567)], ["2.72", "2.71", "3 × 10^−9", "1.23 × 10^6"]);
});

test("labels are shown whole, and what cannot be seen is spelled out", () => {
  const [one, other] = ["1", "2"].map((end) => visibleLabel("x".repeat(500) + end));
  assert.notEqual(one, other);
  assert.equal(visibleLabel("a\u200bb\u202ec\u00ad"), "a\\u{200b}b\\u{202e}c\\u{ad}");
});

test("long lists are searched, and slips of the keyboard found", () => {
  const towns = ["London", "Londonderry", "New London", "Paris", "蓝色", "Straße", ""];
  assert.deepEqual(placesContaining(towns, "LONDON "), [0, 1, 2]);
  assert.deepEqual(placesContaining(towns, "").length, towns.length);
  assert.deepEqual(suggestedPlaces(towns, "Lodnon"), [0]);
  assert.deepEqual(suggestedPlaces(towns, "Pariss"), [3]);
  assert.deepEqual(suggestedPlaces(towns, "Berlin"), []);
  assert.deepEqual(suggestedPlaces(towns, ""), []);
  assert.equal(foldText(" Ｐ\u200bar\u00a0 is "), "par is");
  for (const [one, two, apart] of [["", "abc", 3], ["abcd", "acbd", 1], ["kitten", "sitting", 3], ["same", "same", 0]]) assert.equal(editDistance(one, two), apart);
  const many = Array.from({ length: 50_000 }, (_, place) => `town ${place}`);
  const began = performance.now();
  assert.equal(suggestedPlaces(many, "twon 49999")[0], 49_999);
  assert.ok(performance.now() - began < 5000);
});

test("rows that are no counts are entries, and none is refused", () => {
  assert.deepEqual(entriesOf("red, 3\ngreen; 2\nred\t1"), [["red", 4], ["green", 2]]);
  assert.deepEqual(entriesOf("red\nred\nblue"), [["red", 2], ["blue", 1]]);
  assert.deepEqual(entriesOf("red, 3\ngreen, -2\nblue, 1.5\nmauve\npink, 1e30\ngrey, 0"), [["red", 3], ["green, -2", 1], ["blue, 1.5", 1], ["mauve", 1], ["pink", 1e9]]);
  assert.deepEqual(entriesOf("red, 900000000\nred, 900000000"), [["red", 1e9]]);
  assert.deepEqual(entriesOf("\n \n"), []);
  assert.throws(() => countsOf("red, 3\ngreen, -2", 9), /Row 2 has the count -2/);
  assert.throws(() => countsOf("red, 3\ngreen, 2\nblue", 9), /Row 3 has no count/);
});

test("a report is said to name many outcomes, which may include the person's", () => {
  const towns = read({ mechanism: "reports", epsilon: 1, family: { kind: "simplex", size: 104 }, blocks: { kind: "affine", q: 107, t: 1, c: 28 } });
  const said = Object.fromEntries(agreementFacts(towns).map(([heading, text]) => [heading, text.replaceAll("\u00a0", " ")]));
  assert.match(said["What leaves your device"], /^One report, and /);
  assert.match(said["What it can be"], /names about 27 outcomes at once, of 104: .* The named outcomes may include yours\. The report does not say which one is yours, or whether any is\./);
  // p_in = e^1 28/(107 + 28 (e^1 - 1)), p_out = (e^1 27 + 79) 28/106/(107 + 28 (e^1 - 1)), N/2^62 = 107/(107 + 28 (e^1 - 1))
  const { blind, inside, outside } = towns.reports.chances, all = 107 + 28 * Math.expm1(1);
  assert.ok(Math.abs(inside - (28 * Math.E) / all) < 1e-12 && Math.abs(blind - 107 / all) < 1e-12 && Math.abs(outside - (28 * ((27 * Math.E) + 79)) / 106 / all) < 1e-12);
  assert.match(said["How it is drawn"], /names it with a chance of 49.1 %, and any other outcome with a chance of 26 %/);
  assert.match(said["How often only chance decides"], /^With a chance of 68.9 % a report is drawn without using your data/);
  const values = read({ mechanism: "reports", epsilon: 4, family: { kind: "simplex", size: 3 }, blocks: { kind: "values" } });
  assert.match(Object.fromEntries(agreementFacts(values))["What it can be"], /A report names one outcome, of 3: .* It may be yours, or any other\./);
});
