/** Which entries and names a collector gets in a record of an earlier version, which noted no address. */
import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Participation } from "../collector/participation.js";
import { nameIn } from "../collector/identity.js";
import { useCatalogue } from "../page/catalogue.js";

globalThis.crypto ??= webcrypto;
useCatalogue(JSON.parse(readFileSync(new URL("../../../src/discreet/collect/pages/en.json", import.meta.url), "utf8")));

const [COLLECTION, OTHER, FIRST, SECOND, SECRET] = [..."abcde"].map((digit) => digit.repeat(64));
const [RIGHT, FALSE] = ["https://right.example/", "https://false.example/"];
const PLAIN = nameIn(COLLECTION, SECRET);
const apart = (address) => nameIn(COLLECTION, SECRET, "", address);

/** Collectors by their address, in one browser whose record has these entries. */
function browserWith(spoken, more = {}) {
  const texts = new Map([["discreet collector", JSON.stringify({ discreet: 1, secret: SECRET, spoken, ...more })]]);
  const storage = { getItem: (key) => texts.get(key) ?? null, setItem: (key, text) => void texts.set(key, text) };
  return (address) => new Participation({ address, storage, locks: { request: async (_, act) => act() } });
}
const earlier = () => browserWith({ [`${COLLECTION} 1`]: { agreement: FIRST }, [`${OTHER} 1`]: { agreement: OTHER } });

test("an earlier entry holds for later agreements and rounds of its collection", async () => {
  const right = earlier()(RIGHT);
  assert.equal(right.entryOf(COLLECTION, 1).agreement, FIRST);
  assert.deepEqual(right.questionsIn(COLLECTION), [[FIRST, 1]]);
  assert.equal((await right.commit(COLLECTION, 1, SECOND, 1)).agreement, FIRST);
  assert.equal((await right.commit(COLLECTION, 2, SECOND, 1)).agreement, SECOND);
  assert.deepEqual(right.questionsIn(COLLECTION), [[FIRST, 1], [SECOND, 2]]);
  assert.equal(right.clientName(COLLECTION), PLAIN);
});

test("one collector takes the earlier entries of a collection, when the person answers it", async () => {
  for (const answer of [(one) => one.commit(COLLECTION, 2, FIRST, 1), (one) => one.claimName(COLLECTION), (one) => one.markReceived(COLLECTION, 1, "key", "time")]) {
    const collector = earlier();
    assert.equal(collector(FALSE).clientName(COLLECTION), PLAIN); // not sent yet
    await answer(collector(RIGHT));
    assert.equal(await collector(RIGHT).claimName(COLLECTION), PLAIN);
    assert.equal(await collector(FALSE).claimName(COLLECTION), apart(FALSE));
    assert.equal(collector(FALSE).entryOf(COLLECTION, 1), undefined);
    assert.equal((await collector(FALSE).commit(COLLECTION, 1, FIRST, 1)).agreement, FIRST);
    assert.equal(collector(RIGHT).clientName(COLLECTION), PLAIN);
    assert.equal(await collector(FALSE).claimName(OTHER), nameIn(OTHER, SECRET)); // each collection has its own holder
  }
});

test("entries of this version, of the page's own site or of another, are taken by no other collector", async () => {
  const collector = browserWith({});
  for (const address of ["", RIGHT]) await collector(address).commit(COLLECTION, 1, FIRST, 1);
  assert.equal(collector(RIGHT).clientName(COLLECTION), apart(RIGHT));
  assert.equal(await collector(FALSE).claimName(COLLECTION), apart(FALSE));
  assert.equal(collector("").clientName(COLLECTION), PLAIN);
  assert.deepEqual([collector(RIGHT), collector("")].map((one) => one.questionsIn(COLLECTION)), [[[FIRST, 1, RIGHT]], [[FIRST, 1]]]);
  assert.equal(collector(FALSE).entryOf(COLLECTION, 1), undefined);
});

test("a collector that has entries of its own keeps them", async () => {
  const collector = browserWith({ [`${COLLECTION} 1`]: { agreement: FIRST }, [`${COLLECTION}@${RIGHT} 1`]: { agreement: SECOND } });
  assert.equal(await collector(RIGHT).claimName(COLLECTION), apart(RIGHT));
  assert.equal(collector(RIGHT).entryOf(COLLECTION, 1).agreement, SECOND);
});

test("the page's own collectors find entries that another one took", async () => {
  const collector = earlier();
  await collector(FALSE).commit(COLLECTION, 2, FIRST, 1);
  assert.equal(collector("").clientName(COLLECTION), PLAIN);
  assert.equal(await collector("").claimName(COLLECTION), PLAIN);
  assert.equal(await collector(RIGHT).claimName(COLLECTION), apart(RIGHT));
});

test("an entry keeps the key with the token of the link that was open at the draw, and no later one", async () => {
  const page = browserWith({})("");
  await page.commit(COLLECTION, 1, FIRST, 1, undefined, "first link");
  assert.equal((await page.commit(COLLECTION, 1, FIRST, 1, undefined, "second link")).linkKey, "first link");
  const plain = earlier()("");
  assert.equal((await plain.commit(COLLECTION, 1, FIRST, 1, undefined, "second link")).linkKey, undefined);
});

test("a collector that the person cannot answer takes no entries and changes no limit", async () => {
  for (const address of [FALSE, ""]) {
    const collector = browserWith({ [`${COLLECTION} 1`]: { agreement: FIRST, key: "key", at: "time" } }, { limits: { [COLLECTION]: 3 } });
    assert.equal((await collector(address).commit(COLLECTION, 1, SECOND, 100)).agreement, FIRST);
    assert.equal(collector("").limitOf(COLLECTION), 3);
    assert.equal(collector(RIGHT).entryOf(COLLECTION, 1).at, "time"); // and does not ask again
  }
});

test("a record that was deleted meanwhile sends no name, and nothing is stored in its place", async () => {
  const texts = new Map();
  const storage = { getItem: (key) => texts.get(key) ?? null, setItem: (key, text) => void texts.set(key, text) };
  for (const address of ["", RIGHT]) {
    const page = new Participation({ address, storage, locks: { request: async (_, act) => act() } });
    await page.commit(COLLECTION, 1, FIRST, 1);
    texts.clear();
    await assert.rejects(page.claimName(COLLECTION), /deleted meanwhile/);
    await page.markReceived(COLLECTION, 1, "key", "time");
    await page.keepTicket(COLLECTION, "ticket");
    assert.equal(texts.size, 0);
    await page.commit(COLLECTION, 2, FIRST, 1);
    await page.markReceived(COLLECTION, 1, "key", "time"); // of a round that the new record does not know
    assert.equal(page.entryOf(COLLECTION, 1), undefined);
  }
});

test("a note of a holder that is no address is refused", () => {
  assert.throws(() => browserWith({}, { holders: { [COLLECTION]: 3 } })(RIGHT).entryOf(COLLECTION, 1), /not what|wrote/);
});
