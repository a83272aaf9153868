/** The request that leaves has the same length in bytes for every sample. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import test from "node:test";
import { Agreement } from "../src/agreement.js";
import { useCatalogue } from "../page/catalogue.js";
import { Outbox } from "../collector/outbox.js";
import { bodyOf, longestSample } from "../collector/sending.js";
import { postSample } from "../collector/service.js";
import { signatureText } from "../collector/agreement-terms.js";

useCatalogue(JSON.parse(readFileSync(new URL("../../../src/discreet/collect/pages/en.json", import.meta.url), "utf8")));
const read = (family) => Agreement.read(JSON.stringify({ discreet: 2, bits: 62, mechanism: "optimal", epsilon: 1, family: { kind: "simplex", ...family } }));
const request = (sample) => ({ agreement: "a".repeat(64), round: 1, client: "é蓝", key: "k", sample });

test("all outcomes of an agreement have bodies of one length, which hold the request", () => {
  const labels = ["a", "grün", "蓝色", "🦊🦊", "", " ", "\u0000\u001f", 'a"b\\c', "\n\t", "\u2028", "x".repeat(500), "1", 1, -0.5, 1e21, 2, false, "e\u0301", "\u007f\u0080"];
  for (const family of [
    { size: labels.length, labels }, { size: 2 }, { size: 11 }, { size: 1000 }, { size: 20, interval: [0, 50] }, { size: 300, interval: [-1e-6, 1e-6] },
    { size: 129, interval: [-1e300, 1e300] }, { size: 7, interval: [1e-300, 1.3] }, { size: 9, interval: [-0.1, 0.2] }, { size: 50, interval: [1e20, 1e22] },
  ]) {
    const agreement = read(family), { domain } = agreement;
    const bodies = Array.from({ length: domain.size }, (_, place) => bodyOf(request(domain.named(place)), agreement));
    assert.equal(new Set(bodies.map((body) => new TextEncoder().encode(body).length)).size, 1, JSON.stringify(family));
    bodies.forEach((body, place) => assert.deepEqual(JSON.parse(body), request(domain.named(place))));
    if (!family.interval) assert.ok(bodies.some((body) => !body.endsWith(" "))); // the longest body has no padding
  }
});

test("all reports of an agreement have bodies of one length, which hold every digit", () => {
  for (const [size, blocks] of [
    [104, { kind: "affine", q: 107, t: 1, c: 29 }], [1000, { kind: "affine", q: 31, t: 3, c: 8 }], [64, { kind: "masks", w: 17 }], [64, { kind: "masks", w: 63 }],
    [2000, { kind: "ranks", w: 3 }], [65, { kind: "ranks", w: 32 }], [5, { kind: "values" }], [2 ** 31 - 1, { kind: "affine", q: 2 ** 31 - 1, t: 1, c: 2 ** 30 }],
  ]) {
    const agreement = Agreement.read(JSON.stringify({ discreet: 2, bits: 62, mechanism: "reports", epsilon: 1, family: { kind: "simplex", size }, blocks }));
    const law = agreement.law({ records: [0] }), last = 2n ** 62n - 1n;
    const words = [[0n, 0n], [0n, last - 2n ** 40n], [last, 0n, 0n]].map((list) => () => list.shift() ?? 1n);
    const drawn = [...words.map((word) => agreement.report(law, word)), ...Array.from({ length: 50 }, () => agreement.report(law))].map(String);
    const bodies = drawn.map((report) => bodyOf(request(report), agreement));
    assert.equal(new Set(bodies.map((body) => new TextEncoder().encode(body).length)).size, 1, JSON.stringify(blocks));
    bodies.forEach((body, place) => assert.equal(JSON.parse(body).sample, drawn[place]));
    if (size > 1000) assert.ok(new Set(drawn.map((report) => report.length)).size > 1); // else equal lengths would prove nothing
  }
});

test("no number takes more room in JSON than is kept for one", () => {
  const agreement = read({ size: 3, interval: [0, 1] });
  const view = new DataView(new ArrayBuffer(8));
  for (let draw = 0; draw < 200_000; draw++) {
    view.setBigUint64(0, globalThis.crypto.getRandomValues(new BigUint64Array(1))[0]);
    const value = draw % 2 ? view.getFloat64(0) : (view.getUint32(0) / 2 ** 32 - 0.5) * 10 ** (-(draw % 9)) * (1 + 2 ** -50);
    if (Number.isFinite(value)) assert.ok(JSON.stringify(value).length <= longestSample(agreement), `${value}`);
  }
  assert.equal(JSON.stringify(-0.0000012345678901234567).length, longestSample(agreement));
});

test("what a signature means is said, and a page claims to have checked nothing", () => {
  const key = "0123456789abcdef".repeat(4);
  const said = signatureText({ key, signature: "f".repeat(128), addresses: ["https://example.org"] });
  assert.match(said, /0123 4567 89ab cdef …/);
  assert.match(said, /https:\/\/example\.org/);
  assert.match(said, /cannot check/);
  for (const none of [undefined, null, {}, [], "x", { key: "x", addresses: [] }, { key: 3, addresses: ["a"] }, { key }]) assert.match(signatureText(none), /^No\. /);
  assert.match(signatureText({ key, signature: "", addresses: ["\u202e", 3] }), /\\u\{202e\}/);
});

/** A storage and locks as browsers have them, and the outbox of a page that sends to an address. */
function site() {
  const held = new Map();
  const storage = { getItem: (key) => held.get(key) ?? null, setItem: (key, value) => held.set(key, value), removeItem: (key) => held.delete(key) };
  const locks = { request: async (_, change) => change() };
  return { held, at: (path) => new Outbox({ storage, locks, address: `https://example.org${path}/samples` }) };
}
const waits = (key, more = {}) => ({ key, text: `{"key":"${key}"}`, record: "", collection: "c", round: 1, ...more });

test("what waits goes to the collector that it was sent to, and to no other of the site", async () => {
  const { at } = site();
  const seen = [];
  const posting = (path) => async (text) => void seen.push([path, text]);
  await at("/a").keep(waits("k"));
  await at("/b").keep(waits("k")); // one agreement at both has one key
  await at("/b").keep(waits("l"));
  await at("/b").send(posting("/b"), async () => {}, "c");
  assert.deepEqual(seen.toSorted(), [["/b", '{"key":"k"}'], ["/b", '{"key":"l"}']]);
  assert.deepEqual(at("/b").waitingFor("c"), []);
  assert.deepEqual(at("/b").waiting.map(({ address }) => address), ["https://example.org/a/samples"]);
  await at("/a").send(posting("/a"), async () => {}, "another");
  assert.deepEqual(seen.at(-1), ["/a", '{"key":"k"}']);
  assert.deepEqual(at("/a").waiting, []);
});

test("a request without an address goes where its collection is", async () => {
  const { held, at } = site();
  held.set("discreet outbox", JSON.stringify([waits("k"), waits("l", { collection: "d" })]));
  const seen = [];
  await at("/a").send(async (text) => void seen.push(text), async () => {}, "d");
  assert.deepEqual(seen, ['{"key":"l"}']);
  assert.deepEqual(at("/a").waiting.map(({ key }) => key), ["k"]);
});

test("a failure leaves a request waiting, and a refusal is counted until somebody has read of it", async () => {
  const { held, at } = site();
  const status = { ok: false, headers: new Headers(), json: async () => ({ error: "no" }) };
  const { fetch } = globalThis;
  try {
    for (const [number, later] of [[408, true], [429, true], [500, true], [501, true], [502, true], [520, true], [400, false], [403, false], [404, false], [409, false], [410, false], [422, false]]) {
      globalThis.fetch = async () => ({ ...status, status: number });
      const before = at("/a").refused?.n ?? 0;
      await at("/a").keep(waits("k"));
      await at("/a").send(postSample, async () => assert.fail("nobody heard it"), "c");
      assert.deepEqual([at("/a").waiting.length, at("/a").refused?.n ?? 0], later ? [1, before] : [0, before + 1], `${number}`);
    }
  } finally {
    globalThis.fetch = fetch;
  }
  assert.deepEqual(at("/a").refused, { n: 6, said: "no" });
  await at("/a").dismissRefused();
  assert.equal(at("/a").refused, undefined);
  assert.equal(held.size, 0);
});

test("a collector's redirect gets no sample to another address", async () => {
  let forwarded = 0;
  const other = createServer((_, answer) => { forwarded += 1; answer.end("{}"); });
  await new Promise((ready) => other.listen(0, "127.0.0.1", ready));
  const collector = createServer((query, answer) => { query.resume(); answer.writeHead(307, { Location: `http://127.0.0.1:${other.address().port}/` }); answer.end(); });
  await new Promise((ready) => collector.listen(0, "127.0.0.1", ready));
  await assert.rejects(postSample("{}", `http://127.0.0.1:${collector.address().port}/`));
  assert.equal(forwarded, 0);
  for (const server of [other, collector]) server.close();
});
