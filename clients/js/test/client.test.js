/** The client by itself: what it reads, what it refuses and with which message, and that no question is drawn twice. */
import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import test from "node:test";
import { Agreement, Budget, checkSeen, DiscreetError, randomInteger } from "../src/discreet.js";
import { coveringLimit } from "../src/budget.js";

globalThis.crypto ??= webcrypto;

const SIMPLEX = { discreet: 2, bits: 62, mechanism: "optimal", epsilon: 1, family: { kind: "simplex", size: 3 } };
const read = (changes = {}, options) => Agreement.read(JSON.stringify({ ...SIMPLEX, ...changes }), options);
const refused = (call, words) => assert.throws(call, (error) => error instanceof DiscreetError && words.test(error.message));
const LABELS = ["<img src=x onerror=alert(1)>", "grün", "蓝"];
const named = read({ family: { kind: "simplex", size: 3, labels: LABELS } });

test("an id is that of Python, and a document that was changed is told", () => {
  const { id } = read({ family: { kind: "simplex", size: 10 } });
  assert.equal(id, "ce9453d8ad967336f02dcc9346a35a8398d6707ba2c90f076e3588a6f164cc6a");
  refused(() => read({ epsilon: 2 }, { id }), /^the document is agreement .{64}, not .*: it was changed/);
  assert.equal(read({ rounds: 1, purpose: "" }).id, read().id);
});

test("what is not understood is refused, in one sentence", () => {
  refused(() => read({ discreet: 1 }), /version 1, whose id only Python/);
  refused(() => read({ discreet: 3 }), /not version 2; update/);
  refused(() => read({ privacy: { kind: "gaussian", nu: 1 } }), /another notion of privacy/);
  refused(() => read({ samples: 3 }), /a field "samples" that this version does not know/);
  refused(() => read({ joint: { samples: 3, around: "envelope" } }), /samples of each client drawn at once, which Python alone draws: .*joint_sampler\(\).*, or agree on one sample/);
  refused(() => read({ family: { kind: "gaussian mixtures", dim: 1, size: 1 } }), /does not know how to draw for it/);
  refused(() => Agreement.read('{"epsilon":1,"epsilon":2}'), /gives "epsilon" twice/);
  refused(() => Agreement.read(new Uint8Array([0xff, 0xfe])), /not a text in UTF-8/);
  refused(() => Agreement.read("x\u001b[2Jx"), /not JSON/);
  refused(() => Agreement.read(null), /UTF-8|not JSON/);
  for (const text of ['"', '"a', '"\\', '"\\x"', '"\\u12"', '"a\n"', '{"a', "{a:1}"]) refused(() => Agreement.read(text), /not JSON/);
});

test("a mechanism of a Python package is refused by the agreement alone, before anything is kept", async () => {
  const box = `sha256:${"0".repeat(64)}`;
  const own = { name: "reveal-or-obscure", package: "obscurity", package_version: "1.2", box };
  for (const fields of [{ mechanism: "own", own }, { own }, { mechanism: "own" }, { mechanism: "linear", own: null }]) {
    refused(() => read(fields), /^the agreement is on a mechanism that a Python package brings, which this client cannot draw/);
  }
  const kept = new Map();
  const storage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => kept.set(name, value), removeItem: (name) => kept.delete(name) };
  const budget = new Budget({ limit: 5, storage, locks: { request: (name, action) => action() } });
  const document = { ...read().document, mechanism: "own", own };
  await assert.rejects(async () => budget.release(document, { records: [0] }));
  assert.equal(kept.size, 0);
});

test("a long text is read, or refused by name, whatever its length", () => {
  const purpose = "x".repeat(2 ** 25);
  assert.equal(read({ purpose }).purpose.length, purpose.length);
  refused(() => Agreement.read(`{"purpose":"${purpose}`), /not JSON/);
  assert.equal(read({ purpose: "\\\"\t\u0000\u2028é🙂/" }).purpose, "\\\"\t\u0000\u2028é🙂/");
});

test("records and counts become the same distribution", () => {
  const seen = named.law({ records: ["蓝", "grün", "蓝"] });
  for (const counts of [[0, 1, 2], { grün: 1, 蓝: 2 }, new Map([["蓝", 2], ["grün", 1]]), new Int32Array([0, 1, 2]), [0, 2, 4]]) {
    assert.deepEqual(named.law({ counts }), seen);
  }
  assert.deepEqual([...seen.masses], [1 / 3, 2 / 3]);
  const cells = read({ family: { kind: "simplex", size: 4, interval: [0, 60] } });
  assert.deepEqual([...cells.law({ records: [0, 14.9, 15, 60] }).outcomes], [0, 1, 3]);
  assert.deepEqual(cells.law({ counts: { 0: 2, 1: 1, 3: 1 } }), cells.law({ records: [0, 14.9, 15, 60] }));
  assert.equal(cells.domain.named(0), 7.5);
  assert.equal(named.law({ records: Array(1_000_000).fill("蓝") }).masses[0], 1);
});

const OUTSIDE = [3, -1, 0.5, NaN, Infinity, -Infinity, "rouge", "<b>", "\u202e", "", null, undefined, 1n, {}, [], Symbol("x"), () => 0, true];

test("values outside the domain count as the outcome that the agreement names, and raise nothing", () => {
  const { id } = read({ other: 2 });
  assert.equal(read({ other: 2 }).other, 2);
  assert.notEqual(id, read().id);
  for (const value of OUTSIDE.filter((each) => each !== true)) {
    const law = read({ other: 2 }).law({ records: [0, value, value, 1] });
    assert.deepEqual([[...law.outcomes], [...law.masses], law.outside], [[0, 1, 2], [0.25, 0.25, 0.5], 2]);
    assert.deepEqual([...read({ other: 0 }).law({ records: [value] }).outcomes], [0]);
  }
  const family = { kind: "simplex", size: 3, labels: LABELS };
  const law = read({ family, other: 1 }).law({ counts: { rouge: 3, 蓝: 1 } });
  assert.deepEqual([[...law.outcomes], [...law.masses], law.outside], [[1, 2], [0.75, 0.25], 3]);
  for (const other of [3, -1, 0.5, null, "0", true]) refused(() => read({ other }), /other = .* is not one of the outcomes 0 to 2/);
  refused(() => read({ other: 0, family: { kind: "simplex", size: 4, interval: [0, 1] } }), /no meaning on an interval/);
});

test("without one they are left out, and who has nothing left is served as the reference", () => {
  const law = named.law({ records: ["蓝", "x", "y", "蓝"] });
  assert.deepEqual([[...law.outcomes], [...law.masses], law.outside], [[2], [1], 2]);
  const weights = "sha256:e0e1a2a9cc2d4165e93e7e36e291ee910548e36625df412255b9e4e89ba207d5";
  const band = read({ family: { kind: "band", size: 3, lower: 0, upper: 1.5, everybody: true, reference: [1, 0.5, 0.25], weights } });
  for (const given of [{ records: ["rouge", "<b>"] }, { records: [] }, { counts: [0, 0, 0] }, { counts: { rouge: 7 } }]) {
    assert.deepEqual([...named.law(given).masses], [1 / 3, 1 / 3, 1 / 3]);
    if (!Array.isArray(given.counts)) band.law(given).masses.forEach((mass, place) => assert.ok(Math.abs(mass - [4, 2, 1][place] / 7) < 1e-15));
  }
  assert.deepEqual([...read({ other: 2 }).law({ records: [] }).masses], [1 / 3, 1 / 3, 1 / 3]);
});

test("on an interval a value outside becomes the nearest end, and what is no number is left out", () => {
  const cells = read({ family: { kind: "simplex", size: 4, interval: [0, 60] } });
  const law = cells.law({ records: [-1, -Infinity, 61, Infinity, 1e300, 20] });
  assert.deepEqual([[...law.outcomes], [...law.masses], law.outside], [[0, 1, 3], [2 / 6, 1 / 6, 3 / 6], 5]);
  for (const value of [NaN, "7", null, undefined, 1n, {}]) {
    assert.deepEqual([...cells.law({ records: [value] }).masses], [0.25, 0.25, 0.25, 0.25]);
    assert.deepEqual([...cells.law({ records: [value, 20] }).outcomes], [1]);
    assert.equal(cells.law({ records: [value] }).outside, 1);
  }
  assert.deepEqual([...cells.law({ counts: new Map([[9, 2], [1, 2]]) }).outcomes], [1]);
});

test("nothing that a person holds is refused, and the linear mechanism moves laws outside its band to its edge", () => {
  const weights = "sha256:606e5166986dd9f186277d16e3d18bae3887a944a829487b59fd8672bbb20251";
  const band = read({ mechanism: "linear", family: { kind: "band", size: 2, lower: 0.5, upper: 1.5, weights } });
  assert.deepEqual([...band.law({ records: [0] }).masses], [0.75, 0.25]);
  assert.deepEqual([...band.law({ counts: [6, 4] }).masses], [0.6, 0.4]);
  for (const agreement of [band, named, read({ mechanism: "mollifier" }), read({ other: 1 }), read({ family: { kind: "simplex", size: 4, interval: [0, 60] } })]) {
    for (const value of OUTSIDE) {
      for (const records of [[], [value], [value, value, 1, 0.1], [0, value]]) agreement.release(agreement.law({ records }));
      agreement.release(agreement.law({ counts: new Map([[value, 2]]) }));
    }
  }
});

test("what no agreement is needed to take is taken by every agreement: a list of another length is served as the reference, large totals are added up", () => {
  const large = 2 ** 53 - 1;
  const lists = [[], [1, 2], [1, 2, 3, 4], new Float64Array(9).fill(large), [large, large, large], { rouge: large, other: large }, new Map([["?", large]])];
  for (const agreement of [named, read({ other: 1 }), read({ mechanism: "linear" }), read({ mechanism: "mollifier", other: 0 })]) {
    const uniform = Array(agreement.size).fill(1 / agreement.size);
    for (const counts of lists) {
      checkSeen({ counts });
      agreement.release(agreement.law({ counts }));
      if (counts.length !== undefined && counts.length !== agreement.size) {
        const law = agreement.law({ counts });
        assert.deepEqual([...law.masses], uniform);
        assert.equal(law.outside, [...counts].reduce((sum, each) => sum + each, 0));
      }
    }
    for (const mass of agreement.law({ counts: [large, large, large] }).masses) assert.ok(Math.abs(mass - 1 / 3) < 1e-15);
  }
  assert.deepEqual([...named.law({ counts: new Map([["?", large], ["??", large], [LABELS[0], 1]]) }).masses], [1]);
});

test("what is no records and no counts is refused, and markup is only ever a text", () => {
  for (const [given, words] of [
    [{}, /either records .* or counts/], [{ records: [], counts: [] }, /either/], [{ counts: [1, -1, 0] }, /-1, not a whole number/], [{ counts: [1, 0.5, 0] }, /0.5, not a whole/],
    [{ counts: [1, NaN, 0] }, /NaN, not a whole number/], [{ counts: [1, "2", 0] }, /not a whole/], [{ counts: [1.5, 2] }, /1.5, not a whole/],
    [{ records: "grün" }, /not a list/], [{ records: 3 }, /not a list/], [{ counts: { rouge: -1 } }, /-1, not a whole number/],
    [{ counts: [2 ** 53, 0, 0] }, /not a whole number/], [{ counts: 3 }, /neither a list/],
    [undefined, /either/],
  ]) {
    refused(() => checkSeen(given), words);
    refused(() => named.law(given), words);
  }
  refused(() => read().outcome(read().law({ records: [1] }), 1), /not a bigint/);
  refused(() => read().outcome(read().law({ records: [1] }), 1n << 62n), /not a bigint/);
});

test("weights keep to e^epsilon between any two clients, as whole numbers, and sum to 2^62", () => {
  const all = [[1, 0, 0], [0, 0, 1], [1, 1, 1], [1, 2, 97]].map((counts) => named.weights(named.law({ counts })));
  for (const one of all) {
    assert.equal(one.reduce((sum, each) => sum + each, 0n), 1n << 62n);
    for (const other of all) one.forEach((each, place) => assert.ok(each * 10n ** 15n <= other[place] * 2718281828459046n));
  }
});

test("a law of other outcomes, or none at all, is drawn from by nobody", async () => {
  const [three, ten] = [3, 10].map((size) => read({ family: { kind: "simplex", size } }));
  const law = (outcomes, masses) => ({ outcomes: Float64Array.from(outcomes), masses: Float64Array.from(masses) });
  const other = read({ family: { kind: "simplex", size: 3, labels: LABELS.toReversed() } });
  const changed = three.law({ counts: [1, 1, 2] });
  changed.outcomes[2] = 7;
  const moving = { get outcomes() { return Float64Array.of((this.asked = (this.asked ?? -1) + 1) ? 9 : 0); }, masses: Float64Array.of(1) };
  const throwing = [
    [ten.law({ counts: [0, 0, 0, 0, 0, 0, 0, 0, 0, 5] }), /made for other outcomes/], [named.law({ records: ["蓝"] }), /made for other outcomes/],
    [changed, /law holds 7/], [law([9], [1]), /law holds 9, which is no outcome from 0 to 2/], [law([1, 0], [0.5, 0.5]), /law holds 0/],
    [law([1, 1], [0.5, 0.5]), /law holds 1/], [law([-1], [1]), /law holds -1/], [law([0.5], [1]), /law holds 0.5/], [law([NaN], [1]), /law holds NaN/],
    [law([0, 1], [1]), /2 outcomes and 1 masses/], [law([0, 1], [1.5, -0.5]), /mass 1.5/], [law([0, 1], [-0.5, 1.5]), /mass -0.5/],
    [law([0], [NaN]), /mass NaN/], [law([0], [Infinity]), /mass Infinity/], [law([0, 1], [0.5, 0.4]), /sum to 0.9/], [law([], []), /sum to 0/],
    ...[undefined, null, 3, "law", [], {}, { outcomes: [0], masses: [1] }, { outcomes: null, masses: null }, () => 0, Symbol("law"), 1n,
      { outcomes: "012", masses: { length: 3 } }, { outcomes: new BigInt64Array(1), masses: Float64Array.of(1) }, { counts: [1, 2, 3] }]
      .map((each) => [each, /none that agreement.law gave/]),
  ];
  const budget = new Budget({ limit: 9, storage: new Memory(), locks });
  for (const [given, words] of throwing) {
    for (const call of [() => three.release(given), () => three.output(given), () => three.weights(given), () => three.outcome(given, 0n)]) {
      refused(call, words);
    }
    await assert.rejects(budget.release(three, given), (error) => error instanceof DiscreetError && words.test(error.message));
  }
  assert.equal(budget.spent, 0);
  refused(() => other.release(named.law({ records: ["蓝"] })), /made for other outcomes/);
  assert.equal(three.outcome(moving, 1n << 61n), three.outcome(law([0], [1]), 1n << 61n));
  assert.equal(three.outcome(law([0, 2], [0.5, 0.5]), 0n), 0);
  assert.equal(read({ epsilon: 2 }).outcome(three.law({ records: [1] }), 0n), 0);
  const weights = "sha256:606e5166986dd9f186277d16e3d18bae3887a944a829487b59fd8672bbb20251";
  const band = read({ mechanism: "linear", family: { kind: "band", size: 2, lower: 0.5, upper: 1.5, weights } });
  const outside = read({ family: { kind: "simplex", size: 2 } }).law({ records: [0] });
  refused(() => band.release(outside), /outside the band that the linear mechanism serves/);
});

test("draws need the system's generator", (context) => {
  assert.ok(randomInteger() < 1n << 62n);
  const law = named.law({ records: ["蓝"] });
  assert.ok(LABELS.includes(named.release(law).sample));
  const own = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  context.after(() => Object.defineProperty(globalThis, "crypto", own));
  Object.defineProperty(globalThis, "crypto", { value: undefined, configurable: true, writable: true });
  refused(() => named.release(law), /no crypto.getRandomValues/);
});

class Memory {
  held = new Map();
  getItem = (key) => this.held.get(key) ?? null;
  setItem = (key, value) => void this.held.set(key, value);
  removeItem = (key) => void this.held.delete(key);
}
const locks = { last: Promise.resolve(), request(_, call) { return (this.last = this.last.then(call, call)); } };

test("the same question has the same answer, also in another tab, and is charged once", async () => {
  const storage = new Memory();
  const wide = read({ family: { kind: "simplex", size: 1000 }, rounds: 2 });
  const tabs = [new Budget({ limit: 2, storage, locks }), new Budget({ limit: 2, storage, locks })];
  const laws = [1, 2, 3].map((outcome) => wide.law({ records: [outcome] }));
  assert.equal(tabs[0].answered(wide), undefined);
  const found = await Promise.all(laws.flatMap((law) => tabs.map((tab) => tab.release(wide, law))));
  assert.equal(new Set(found.map(({ sample }) => sample)).size, 1);
  assert.equal(tabs[0].spent, 1);
  assert.deepEqual(tabs[1].answered(wide), found[0]);
  assert.equal(tabs[1].answered(wide, { round: 2 }), undefined);
  await tabs[1].release(wide, laws[0], { round: 2 });
  assert.equal(tabs[0].spent, 2);
  await assert.rejects(tabs[0].release(read(), read().law({ records: [0] })), /budget of 2 does not allow another epsilon = 1/);
  await assert.rejects(tabs[0].release(wide, laws[0], { round: 3 }), /more than the 2 agreed on/);
  assert.equal(tabs[0].spent, 2);
});

test("ten times a tenth is one", async () => {
  const budget = new Budget({ limit: 1, storage: new Memory(), locks });
  const tenth = read({ epsilon: 0.1, rounds: 11 });
  for (let round = 1; round <= 10; round++) await budget.release(tenth, tenth.law({ records: [0] }), { round });
  assert.equal(budget.spent, 1);
  await assert.rejects(budget.release(tenth, tenth.law({ records: [0] }), { round: 11 }), /does not allow/);
});

test("what was spent is told to the last digit, however little or much", async () => {
  for (const epsilon of [1e-20, 3e-5, 0.1, 123456.789, 1e22]) {
    const budget = new Budget({ limit: 1e300, storage: new Memory(), locks });
    const agreement = read({ epsilon, mechanism: "linear", family: { kind: "simplex", size: 1 } });
    await budget.release(agreement, agreement.law({ records: [0] }));
    assert.equal(budget.spent, epsilon);
  }
});

test("a charge that does not stick lets no sample leave", async () => {
  const law = named.law({ records: ["蓝"] });
  for (const setItem of [() => {}, () => { throw new Error("full"); }]) {
    const storage = Object.assign(new Memory(), { setItem });
    await assert.rejects(new Budget({ limit: 9, storage, locks }).release(named, law), /no sample leaves/);
  }
  const denied = Object.assign(new Memory(), { getItem: () => { throw new Error("denied"); } });
  refused(() => new Budget({ limit: 9, storage: denied, locks }), /keeps nothing/);
  refused(() => new Budget({ limit: 9, locks }), /keeps nothing/);
  refused(() => new Budget({ limit: 9, storage: new Memory(), locks: null }), /no locks/);
  for (const limit of [0, -1, NaN, Infinity, "1", undefined]) refused(() => new Budget({ limit, storage: new Memory(), locks }), /limit/);
});

test("a budget is not taken for an empty one, raised, or cleared by a page", async () => {
  const storage = new Memory();
  await new Budget({ limit: 1, storage, locks }).release(named, named.law({ records: ["蓝"] }));
  refused(() => new Budget({ limit: 5, storage, locks }), /limit = 5 is not the 1/);
  const budget = new Budget({ limit: 1, storage, locks });
  refused(() => budget.clear(), /only the person/);
  refused(() => budget.clear(new Event("click")), /only the person/);
  assert.equal(budget.spent, 1);
  const question = `${named.id} 1`;
  const answered = (answer, asked = question) => JSON.stringify({ discreet: 1, limit: 1, answers: { [asked]: answer } });
  const wrong = [
    "{}", "nonsense", "null", "[]", "1", '"book"', '{"discreet":9,"limit":1,"answers":{}}', '{"discreet":1,"limit":1,"answers":{"a":{}}}',
    '{"discreet":1,"limit":1,"answers":[]}', '{"discreet":1,"limit":1,"answers":null}', '{"discreet":1,"limit":1,"answers":"x"}',
    '{"discreet":1,"limit":"1","answers":{}}', '{"discreet":1,"limit":1e999,"answers":{}}', '{"discreet":1,"limit":1,"answers":{},"more":1}',
    '[{"discreet":1,"limit":1,"answers":{}}]', answered(null), answered([]), answered(1), answered({ epsilon: 1 }), answered({ sample: 0 }),
    answered({ epsilon: 0, sample: 0 }), answered({ epsilon: -1, sample: 0 }), answered({ epsilon: "1", sample: 0 }),
    answered({ epsilon: 1, sample: null }), answered({ epsilon: 1, sample: {} }), answered({ epsilon: 1, sample: 0, more: 1 }),
    answered({ epsilon: 1, sample: 0 }, "a"), answered({ epsilon: 1, sample: 0 }, named.id), answered({ epsilon: 1, sample: 0 }, `${named.id} 0`),
    '{"discreet":1,"limit":1,"answers":{"__proto__":{"epsilon":1,"sample":0}}}',
  ];
  for (const text of wrong) {
    storage.setItem("discreet budget", text);
    refused(() => budget.spent, /no budget of this version/);
    refused(() => new Budget({ limit: 1, storage, locks }), /no budget of this version/);
  }
});

test("a part of a budget has a limit of its own, and only the person raises the whole", async () => {
  const storage = new Memory();
  const twice = read({ rounds: 2 }), law = twice.law({ records: [0] }), other = read({ epsilon: 0.5 });
  const budget = new Budget({ limit: 2, storage, locks });
  const part = { limit: 1, questions: [[twice.id, 1], [twice.id, 2]] };
  assert.equal(Budget.limitOf({ storage }), undefined);
  budget.check(twice, { part });
  await budget.release(twice, law, { part });
  await budget.release(twice, law, { part }); // the same question
  refused(() => budget.check(twice, { round: 2, part }), /limit of 1 does not allow another epsilon = 1/);
  await assert.rejects(budget.release(twice, law, { round: 2, part }), /limit of 1 does not allow/);
  assert.equal(budget.spentOn(part.questions), 1);
  await budget.release(other, law, { part: { limit: 0.5, questions: [[other.id, 1]] } });
  assert.deepEqual([budget.spent, budget.spentOn(part.questions), budget.spentOn([])], [1.5, 1, 0]);
  refused(() => budget.check(twice, { round: 2, part: { ...part, limit: 9 } }), /budget of 2 does not allow/);
  for (const limit of [0, NaN, "2"]) refused(() => budget.check(twice, { part: { ...part, limit } }), /not in \(0, inf\)/);
  for (const event of [undefined, new Event("click")]) await assert.rejects(budget.raise(3, event), /only the person raises/);
  assert.equal(Budget.limitOf({ storage }), 2);
  const click = { isTrusted: true }; // as in the event of a real click; a script cannot make such an event
  await assert.rejects(budget.raise(1, click), /limit = 1 is less than the 2/);
  await budget.raise(2.5, click);
  await budget.release(twice, law, { round: 2, part: { ...part, limit: 2 } });
  assert.equal(Budget.limitOf({ storage }), 2.5);
  assert.equal(new Budget({ limit: 2.5, storage, locks }).spent, 2.5);
  refused(() => new Budget({ limit: 2, storage, locks }), /limit = 2 is not the 2.5/);
});

test("two collectors with one agreement are two questions", async () => {
  const storage = new Memory(), law = named.law({ records: ["蓝"] });
  const budget = new Budget({ limit: 3, storage, locks });
  const [first, second] = ["https://a.example/", "https://b.example/"];
  await budget.release(named, law, { to: first });
  assert.deepEqual([budget.spent, budget.answered(named, { to: second }), budget.answered(named)], [1, undefined, undefined]);
  await budget.release(named, law, { to: second, part: { limit: 1, questions: [[named.id, 1, second]] } });
  await budget.release(named, law, { to: first }); // the same question
  await budget.release(named, law);
  assert.deepEqual([budget.spent, budget.spentOn([[named.id, 1, first], [named.id, 1]])], [3, 2]);
  for (const to of ["https://a.example/ 2", 7]) await assert.rejects(budget.release(named, law, { to }), /is not an address/);
});

test("a limit that just covers an epsilon is never below it", async () => {
  const epsilons = [0.1 * 3, 1.1 * 1.1, 0.1, 1 / 3, 1e-7 / 3, 2, 0.7 + 0.1, 99.99999999999999, 1 - 2 ** -53];
  for (const epsilon of epsilons) {
    for (const rounds of [1, 3]) {
      const agreement = read({ epsilon, rounds }), storage = new Memory();
      const limit = coveringLimit(agreement), budget = new Budget({ limit, storage, locks });
      for (let round = 1; round <= rounds; round += 1) {
        assert.ok(budget.limitWith(epsilon) <= limit);
        await budget.release(agreement, agreement.law({ records: [0] }), { round });
      }
      assert.ok(limit <= epsilon * rounds * (1 + 2e-11) && Number(limit.toPrecision(12)) === limit);
    }
  }
  assert.deepEqual([coveringLimit({ epsilon: 0.1, rounds: 3 }), coveringLimit({ epsilon: 0.1 * 3, rounds: 1 })], [0.3, 0.300000000001]);
});

test("two people of one browser have a budget each", async () => {
  const storage = new Memory(), law = named.law({ records: ["蓝"] });
  const first = new Budget({ limit: 1, storage, locks }), second = new Budget({ limit: 3, name: "2", storage, locks });
  await first.release(named, law);
  assert.deepEqual([first.spent, second.spent, second.answered(named)], [1, 0, undefined]);
  await second.release(named, law);
  second.clear({ isTrusted: true });
  assert.deepEqual([first.spent, Budget.limitOf({ storage }), Budget.limitOf({ name: "2", storage })], [1, 1, undefined]);
});

const TOWNS = { discreet: 2, bits: 62, mechanism: "reports", epsilon: 1, family: { kind: "simplex", size: 104 }, blocks: { kind: "affine", q: 107, t: 1, c: 29 } };

test("a report names a block of outcomes, which holds the person's own more often than another", () => {
  const towns = read(TOWNS);
  const law = towns.law({ records: [7, 7, 7] });
  let own = 0, other = 0;
  for (let i = 0; i < 4000; i++) {
    const held = towns.outcomesOf(towns.report(law));
    own += held.includes(7);
    other += held.includes(8);
  }
  // p_in = .495 and p_out = .268 of 4,000, each with a standard deviation below 32
  assert.ok(Math.abs(own - 1980) < 200 && Math.abs(other - 1072) < 200, `${own} ${other}`);
  const { sample } = towns.release(law);
  assert.match(sample, /^(0|[1-9][0-9]*)$/);
  assert.deepEqual(towns.outcomesOf(sample), towns.outcomesOf(BigInt(sample)));
});

test("what is no report is told, and a report is no outcome", () => {
  const towns = read(TOWNS), law = towns.law({ records: [7] });
  for (const wrong of [-1n, 11342n, "11342", "-1", "007", " 7", "7.0", 7, null, undefined, {}, "", 2n ** 64n]) refused(() => towns.outcomesOf(wrong), /is no report of this agreement/);
  assert.equal(towns.outcomesOf("11341").length, towns.outcomesOf(11341n).length);
  for (const call of [() => towns.output(law), () => towns.weights(law), () => towns.outcome(law, 0n)]) refused(call, /on reports, which are no outcomes: use report/);
  for (const call of [() => read().report(read().law({ records: [0] })), () => read().outcomesOf(0n)]) refused(call, /on samples, not on reports/);
  refused(() => towns.report({}), /make it of records or counts/);
  refused(() => read({ ...TOWNS, blocks: undefined }), /needs blocks/);
  refused(() => read({ blocks: TOWNS.blocks }), /blocks has no meaning for the mechanism optimal/);
});

test("a law that was changed or made by hand is drawn from as it is", () => {
  const towns = read(TOWNS), law = towns.law({ counts: new Map([[7, 1], [9, 1]]) });
  const own = [2n ** 62n - 1n, 0n, 0n], words = (list) => { let place = 0; return () => list[place++]; };
  const of = (one) => towns.report(one, words(own));
  const seven = of(towns.law({ records: [7] })), nine = of(towns.law({ records: [9] }));
  assert.notEqual(seven, nine);
  assert.equal(of(law), seven);
  law.masses.set([0, 1]);
  assert.equal(of(law), nine);
  assert.equal(of({ outcomes: Float64Array.of(7, 9), masses: Float64Array.of(0, 1) }), nine);
});

test("a report is charged, kept and repeated like a sample", async () => {
  const towns = read(TOWNS), kept = new Map();
  const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value), removeItem: (key) => kept.delete(key) };
  const budget = new Budget({ limit: 1, storage, locks: { request: (_, call) => Promise.resolve(call()) } });
  const first = await budget.release(towns, towns.law({ records: [7] }));
  for (let i = 0; i < 5; i++) assert.deepEqual(await budget.release(towns, towns.law({ records: [i] })), first);
  assert.equal(budget.spent, 1);
  await assert.rejects(budget.release(read(), read().law({ records: [0] })), /does not allow another epsilon/);
});
