/** Surveys by themselves: which rows are read, what is refused, that a report answers one part, and that it is charged once. */
import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import test from "node:test";
import { Agreement, Budget, checkSeen, DiscreetError } from "../src/discreet.js";

globalThis.crypto ??= webcrypto;

const COLUMNS = [
  { name: "region", labels: ["north", "south", "west"] },
  { name: "amount", low: 0, high: 500, unit: "euro" },
  { name: "day", first: "2026-01-01", last: "2026-01-09" },
  { name: "children", size: 7 },
];
const QUESTIONS = [{ shares: ["region", "children"] }, { mean: "amount" }, { histogram: "amount", cells: 4 }, { linear: "region", matrix: [[1, 2, 0]] }];
const PARTS = [
  { question: 0, share: 3, sees: { columns: ["region", "children"] }, blocks: { kind: "masks", w: 5 } },
  { question: 1, share: 2, sees: { column: "amount", points: 5 }, blocks: { kind: "windows", w: 3 } },
  { question: 2, share: 2, sees: { column: "amount", cells: 4 }, blocks: { kind: "values" } },
  { question: 3, share: 1, sees: { columns: ["region"] }, blocks: { kind: "weighted", blocks: ["1", "2", "3", "4", "5", "6"], copies: ["7", "7", "2", "7", "2", "2"] } },
];
const BASE = { discreet: 2, bits: 62, mechanism: "survey", epsilon: 1, family: { kind: "rows", columns: COLUMNS }, survey: { questions: QUESTIONS, parts: PARTS } };
const read = (changes = {}) => Agreement.read(JSON.stringify({ ...BASE, ...changes }));
const asking = (questions, parts) => read({ survey: { questions, parts } });
const refused = (call, words) => assert.throws(call, (error) => error instanceof DiscreetError && words.test(error.message), `${words}`);
const survey = read();
const ROW = { region: "south", amount: 125, day: "2026-01-03", children: 2 };
const TOP = 2n ** 62n - 1n;

/** A generator that returns these words one after the other, and then repeats the last one. */
const saying = (...words) => () => (words.length > 1 ? words.shift() : words[0]);

test("a row is one whole number, by the outcome numbers of its columns", () => {
  const row = 1n + 3n * (48_000n + 192_000n * (2n + 9n * 2n));
  assert.deepEqual(survey.survey.numbers([ROW, { ...ROW, day: new Date("2026-01-03"), more: "ignored" }]), [row, row]);
  assert.deepEqual(survey.domain.named(row), { ...ROW, amount: (48_000.5 / 192_000) * 500 });
  assert.equal(survey.size, 3 * 192_000 * 9 * 7);
  const law = survey.law({ records: [ROW, { ...ROW, region: "west" }, ROW] });
  assert.deepEqual([law.rows, [...law.masses], law.outside], [[row, row + 1n], [2 / 3, 1 / 3], 0]);
  assert.deepEqual(survey.law({ counts: new Map([[ROW, 2], [{ ...ROW, region: "west" }, 1]]) }), law);
});

test("numbers outside go to the nearest end, rows with other values outside are left out, and nothing is refused", () => {
  for (const [amount, cell] of [[-1, 0n], [-Infinity, 0n], [1e9, 191_999n], [Infinity, 191_999n]]) {
    const law = survey.law({ records: [{ ...ROW, amount }] });
    assert.deepEqual([(law.rows[0] / 3n) % 192_000n, law.outside], [cell, 1]);
    assert.deepEqual(survey.law({ counts: new Map([[{ ...ROW, amount }, 2]]) }).rows, law.rows);
  }
  const noon = new Date("2026-01-03T12:00Z"), { region, ...partial } = ROW;
  const outside = [
    { region: "east" }, { region: 1 }, { region: true }, { amount: NaN }, { amount: "125" }, { amount: null }, { day: "2026-01-10" }, { day: noon }, { day: new Date(NaN) },
    { children: 7 }, { children: 0.5 }, { children: "2" }, { children: 2n },
  ].map((change) => ({ ...ROW, ...change }));
  for (const record of [...outside, partial, {}, [], null, undefined, 3, "north", Symbol("x"), () => 0, Object.create(null)]) {
    checkSeen({ records: [record] });
    const alone = survey.law({ records: [record] }), beside = survey.law({ records: [record, ROW] });
    assert.deepEqual([alone.rows, alone.outside, beside.rows.length, beside.outside], [[], 1, 1, 1]);
    assert.match(survey.release(alone).sample, /^[0-9]+$/);
    refused(() => survey.survey.numbers([record]), /unknown rows/);
  }
  for (const counts of [[], [1, 2], { north: 3 }, new Map([["north", 2]])]) assert.deepEqual(survey.law({ counts }).rows, []);
  assert.equal(region, "south");
});

test("words decide which part is asked, whether the report is uniform, which row, how a number is rounded, and which report", () => {
  const law = survey.law({ records: [ROW] }), [table, mean, cells, sums] = survey.survey.parts;
  assert.deepEqual([table, mean, cells, sums].map(({ share }) => share), [3 / 8, 2 / 8, 2 / 8, 1 / 8]);
  const first = [0n, table.words, table.words + mean.words, table.words + mean.words + cells.words];
  const report = (part, ...words) => survey.report(law, saying(first[part], ...words));
  const uniform = report(2, 0n, 3n), own = report(2, TOP, 0n, 0n);
  assert.deepEqual([survey.survey.partOf(uniform), survey.outcomesOf(uniform)], [2, [3]]);
  assert.deepEqual([survey.survey.partOf(String(own)), survey.outcomesOf(String(own))], [2, [1]]);
  // 125 is a quarter of 500, and so point 1 of 0 to 4. The middle of its cell lies half a cell of 192,000 higher: 4 of 2 * 192,000 words round up.
  for (const [word, point] of [[3n, 2], [4n, 1]]) {
    assert.deepEqual([0n, 1n, 2n].map((rank) => survey.outcomesOf(report(1, TOP, 0n, word, rank)).includes(point)), [true, true, true]);
    assert.equal(survey.outcomesOf(report(1, TOP, 0n, word, 2n)).at(-1), point + 2);
    assert.equal(survey.outcomesOf(report(1, TOP, 0n, word, 0n)).at(-1), point);
  }
  assert.deepEqual([0n, 6n, 7n, 8n, 9n, 10n].map((rank) => survey.outcomesOf(report(3, TOP, 0n, rank))), [[1], [1], [0, 1], [0, 1], [1, 2], [1, 2]]);
  assert.equal(survey.outcomesOf(report(0, TOP, 0n, 9n)).includes(1 * 7 + 2), true);
});

test("a report of nobody's rows is uniform, and counts beyond 2^62 are drawn from too", () => {
  const nobody = survey.law({ records: [] }), { parts } = survey.survey;
  assert.equal(survey.report(nobody, saying(0n, TOP, 5n)), survey.report(survey.law({ records: [ROW] }), saying(0n, 0n, 5n)));
  const many = new Map(Array.from({ length: 700 }, (_, place) => [{ ...ROW, amount: place / 2 }, 2 ** 53 - 1 - place]));
  assert.ok(survey.report(survey.law({ counts: many })) < 2n ** 64n);
  const towns = { discreet: 2, bits: 62, mechanism: "reports", epsilon: 1, family: { kind: "simplex", size: 700 }, blocks: { kind: "values" } };
  const agreement = Agreement.read(JSON.stringify(towns));
  assert.ok(agreement.report(agreement.law({ counts: [...many.values()] })) < 700n);
  assert.equal(parts.reduce((sum, { words }) => sum + words, 0n), 2n ** 62n);
});

test("between any two clients no report is more than e^epsilon times as likely", () => {
  for (const { uniformWeight: weight, blocks: { blocks, holding } } of survey.survey.parts) {
    // Q is between N/b and N/b + (2^62 - N)/r of 2^62; e to 33 digits, rounded down
    assert.ok((weight * holding + (2n ** 62n - weight) * blocks) * 10n ** 32n <= 271828182845904523536028747135266n * weight * holding);
  }
});

test("a survey is charged, kept and repeated like a sample, and is no sample", async () => {
  const kept = new Map(), locks = { request: (_, call) => Promise.resolve(call()) };
  const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value), removeItem: (key) => kept.delete(key) };
  const budget = new Budget({ limit: 1, storage, locks });
  const first = await budget.release(survey, survey.law({ records: [ROW] }));
  for (const region of ["north", "south", "east"]) assert.deepEqual(await budget.release(survey, survey.law({ records: [{ ...ROW, region }] })), first);
  assert.equal(budget.spent, 1);
  const another = read({ purpose: "again" });
  await assert.rejects(budget.release(another, another.law({ records: [ROW] })), /does not allow another epsilon = 1/);
  const law = survey.law({ records: [ROW] });
  for (const call of [() => survey.output(law), () => survey.weights(law), () => survey.outcome(law, 0n)]) refused(call, /on reports, which are no outcomes/);
});

test("a law is one that this survey's columns made", () => {
  const other = read({ family: { kind: "rows", columns: [{ name: "region", labels: ["south", "north", "west"] }, ...COLUMNS.slice(1)] } });
  const law = survey.law({ records: [ROW] });
  refused(() => other.release(law), /made for other outcomes/);
  for (const wrong of [{ ...law }, {}, null, 3]) refused(() => survey.release(wrong), /none that agreement.law gave/);
  refused(() => Agreement.read(JSON.stringify({ ...BASE, mechanism: "optimal", survey: undefined, family: { kind: "simplex", size: 3 } })).release(law), /made for other outcomes/);
  survey.release(read({ purpose: "another" }).law({ records: [ROW] }));
});

test("what is no report of the survey is refused", () => {
  const { longest } = survey.survey;
  for (const wrong of [-1n, BigInt(longest) + 1n, "-1", "007", 7, null, undefined, "", 0n, 2n ** 64n]) refused(() => survey.outcomesOf(wrong), /is no report of this agreement/);
  assert.deepEqual(survey.outcomesOf(longest), [1, 2]);
  assert.equal(survey.survey.partOf("31"), 0);
});

test("what Python refuses is refused, by the name of the field", () => {
  const changed = (place, change) => asking(QUESTIONS, PARTS.map((part, each) => (each === place ? { ...part, ...change } : part)));
  refused(() => read({ mechanism: "optimal" }), /family.kind = 'rows', mechanism = 'survey' and the field survey together/);
  refused(() => read({ family: { kind: "simplex", size: 3 } }), /together/);
  refused(() => read({ other: 0 }), /other has no meaning for a survey/);
  refused(() => read({ family: { kind: "rows", columns: COLUMNS, size: 3 } }), /family.size has no meaning for rows/);
  refused(() => read({ family: { kind: "rows", columns: [...COLUMNS, COLUMNS[0]] } }), /names "region" twice/);
  refused(() => read({ family: { kind: "rows", columns: [{ name: "x", labels: ["a", 1] }] } }), /neither all texts nor all whole numbers/);
  refused(() => read({ family: { kind: "rows", columns: [{ name: "x", first: "2026-02-30", last: "2026-03-01" }] } }), /no date/);
  refused(() => read({ family: { kind: "rows", columns: Array.from({ length: 32 }, (_, x) => ({ name: `${x}`, size: 4 })) } }), /2\^62 different rows/);
  refused(() => asking([...QUESTIONS, { mean: "amount", cells: 3 }], PARTS), /survey.questions\[4\] has a field "cells"/);
  refused(() => asking([...QUESTIONS, { mean: "day" }], PARTS), /one column of numbers/);
  refused(() => asking([...QUESTIONS, { shares: "day" }], PARTS), /answer survey.questions\[4\]/);
  refused(() => asking(QUESTIONS, [...PARTS, PARTS[0]]), /answer survey.questions\[0\]/);
  refused(() => asking(QUESTIONS, PARTS.toReversed()), /not in the order of the questions/);
  refused(() => changed(0, { blocks: { kind: "masks", w: 21 } }), /none on 21 outcomes/);
  refused(() => changed(1, { sees: { column: "amount", points: 5000 } }), /points is more than 4096/);
  refused(() => changed(2, { share: 2 ** 30 + 1 }), /share is more than/);
  refused(() => changed(3, { blocks: { ...PARTS[3].blocks, copies: ["7", "7", "2", "7", "2", "3"] } }), /different numbers of copies/);
  refused(() => changed(3, { blocks: { kind: "weighted", blocks: ["7"], copies: ["1"] } }), /answer survey.questions\[3\]/);
  refused(() => asking(QUESTIONS, [...PARTS, { ...PARTS[3], question: -1 }]), /a part without a question is a table/);
  refused(() => asking(QUESTIONS, [...PARTS, { question: -1, share: 1, sees: { columns: ["region", "day"] }, blocks: { kind: "values" } }]), /whose shares are asked/);
});

const daysFrom = (first, days) => ({ first, last: new Date(Date.parse(first) + (days - 1) * 86_400_000).toISOString().slice(0, 10) });
const withColumns = (...more) => read({ family: { kind: "rows", columns: [...COLUMNS, ...more] } });

test("columns of many days are counted before any day is made", () => {
  const many = Array.from({ length: 100 }, (_, place) => ({ name: `d${place}`, ...daysFrom("1900-01-01", 65_535) }));
  const { toISOString } = Date.prototype;
  let made = 0;
  Date.prototype.toISOString = function () {
    made += 1;
    return toISOString.call(this);
  };
  try {
    refused(() => withColumns(...many), /more than 65536 labels/);
    assert.ok(made < 1000, `${made} days were made`);
    withColumns({ name: "d", ...daysFrom("1900-01-01", 65_536 - 3 - 9) }); // the labels of region and day count too
    assert.ok(made < 1000, `${made} days were made`);
  } finally {
    Date.prototype.toISOString = toISOString;
  }
});

test("all labels and days together are at most 65,536, and all rows at most 2^62", () => {
  const left = 65_536 - 3 - 9;
  for (const most of [left - 1, left]) withColumns({ name: "d", ...daysFrom("1900-01-01", most) });
  refused(() => withColumns({ name: "d", ...daysFrom("1900-01-01", left + 1) }), /more than 65536 labels/);
  refused(() => withColumns({ name: "d", ...daysFrom("1900-01-01", left) }, { name: "one", labels: ["a"] }), /more than 65536 labels/);
  withColumns({ name: "d", ...daysFrom("1900-01-01", left - 2) }, { name: "two", labels: ["a", "b"] }, { name: "many", size: 1 << 18 });
  const powers = (...exponents) => read({ family: { kind: "rows", columns: [COLUMNS[0], ...exponents.map((exponent, place) => ({ name: `${place}`, size: 2 ** exponent }))] }, survey: { questions: [QUESTIONS[3]], parts: [{ ...PARTS[3], question: 0 }] } });
  assert.equal(powers(30, 30).domain.size, 3 * 2 ** 60);
  refused(() => powers(30, 31), /2\^62 different rows/);
});

test("a day is found by its place, and nothing else is taken for one", () => {
  const { domain } = withColumns({ name: "d", ...daysFrom("1999-12-30", 800) }).domain.places.get("d");
  assert.equal(domain.labels.length, 800);
  domain.labels.forEach((label, place) => assert.deepEqual([domain.number(label), domain.number(new Date(label)), domain.key(label), domain.named(place), domain.name(place)], [place, place, place, label, label]));
  assert.equal(domain.named(61), "2000-02-29");
  for (const wrong of ["1999-12-29", "2002-03-09", "2000-02-30", "2000-1-1", "2000-01-01T00:00", "2000-01-01T00:00:00Z", "Jan 1, 2000", "", "0", 0, 3, true, null, undefined, NaN, {}, [], new Date("2000-01-01T01:00Z"), new Date(NaN)]) {
    assert.equal(domain.number(wrong), -1, String(wrong));
  }
  assert.equal(domain.number("2002-03-08"), 799);
});

test("a schedule of rounds is read, and is part of the id", () => {
  const monthly = read({ rounds: 12, schedule: { start: "2026-01-01", every: "month" } });
  assert.deepEqual(monthly.schedule, { start: "2026-01-01", every: "month" });
  assert.notEqual(monthly.id, read({ rounds: 12 }).id);
  for (const schedule of [null, {}, { start: "2026-01-02", every: "month" }, { start: "2026-1-1", every: "day" }, { start: "2026-01-01", every: "year" }, { start: "2026-01-01", every: "day", more: 1 }]) {
    refused(() => read({ schedule }), /schedule/);
  }
});
