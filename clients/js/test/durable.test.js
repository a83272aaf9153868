/** Crashes at every step: what the storage and the disk have then, and what a page makes of it. */
import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Agreement, Budget, DiscreetError } from "../src/discreet.js";
import { DurableStorage, Mirror } from "../src/durable.js";
import { Participation, participationKey } from "../collector/participation.js";
import { useCatalogue } from "../page/catalogue.js";

globalThis.crypto ??= webcrypto;
useCatalogue(JSON.parse(readFileSync(new URL("../../../src/discreet/collect/pages/en.json", import.meta.url), "utf8")));

const click = { isTrusted: true };
const locks = { request: (_, act) => (locks.last = locks.last.then(act, act)), last: Promise.resolve() };
const wide = Agreement.read(JSON.stringify({ discreet: 2, bits: 62, mechanism: "optimal", epsilon: 1, family: { kind: "simplex", size: 1e6 }, rounds: 9 }));
const law = wide.law({ records: [1] });
const [COLLECTION, FIRST, SECOND] = [..."abc"].map((digit) => digit.repeat(64));

/** A browser whose steps are numbered: each change of its storage, and each commit of its mirror. */
class Browser {
  steps = []; // [place, key, value] each
  storage = this.#texts("storage");
  mirror = this.#copies();
  #texts(place, texts = new Map()) {
    const note = (key, text) => (this.steps.push([place, key, text]), text === null ? texts.delete(key) : texts.set(key, text));
    return { texts, getItem: (key) => texts.get(key) ?? null, setItem: (key, text) => note(key, text), removeItem: (key) => note(key, null) };
  }
  #copies(copies = new Map()) {
    const change = async (keys, next) => {
      const made = keys.map((key) => [key, next(copies.get(key), key)]);
      await null; // a commit takes time
      const changed = made.filter(([key, copy]) => copy !== copies.get(key));
      for (const [key, copy] of changed) copies.set(key, copy);
      if (changed.length) this.steps.push(["mirror", changed]);
    };
    return { copies, change, keys: async () => [...copies.keys()] };
  }
  get now() {
    return this.steps.length;
  }
  /** The browser after a crash at step `crash`, when the storage of step `flushed` was on the disk. */
  after(crash, flushed) {
    const found = new Browser();
    for (const [number, [place, key, value]] of this.steps.entries()) {
      if (place === "mirror" && number < crash) for (const [name, copy] of key) found.mirror.copies.set(name, copy);
      if (place === "storage" && number < flushed) value === null ? found.storage.texts.delete(key) : found.storage.texts.set(key, value);
    }
    return found;
  }
  /** Every crash: its step, and the browser after it. The storage was on the disk up to the step `begun` at least. */
  *crashes(begun = 0) {
    for (let crash = begun; crash <= this.now; crash++) for (let flushed = begun; flushed <= crash; flushed++) yield [crash, this.after(crash, flushed)];
  }
  get own() {
    return { storage: this.storage, mirror: this.mirror, locks };
  }
}

/** Acts of a person, each {at: the step after which it was done, from: the step at which it began, ...}, in a browser. */
async function done(browser, acts) {
  const log = [];
  for (const act of acts) {
    const from = browser.now;
    log.push({ from, ...(await act()), at: browser.now });
  }
  return log;
}

test("a browser that is killed at any moment forgets no answer and no limit, and remembers nothing that was cleared", async () => {
  for (const earlier of [false, true]) {
    const browser = new Browser(), log = [];
    if (earlier) { // an earlier version stored this answer alone, and it is on the disk
      const answer = await new Budget({ limit: 2, storage: browser.storage, locks }).release(wide, law, { round: 9 });
      log.push({ from: browser.now, round: 9, answer, at: browser.now });
    }
    const begun = browser.now;
    let limit = 2;
    const budget = () => new Budget({ limit, ...browser.own });
    const ask = (round) => async () => ({ round, answer: await budget().release(wide, law, { round }) });
    const raise = (to) => async () => (await budget().raise(to, click), { limit: (limit = to) });
    const clear = async () => (await budget().clear(click), (limit = 5), { isClear: true });
    log.push(...(await done(browser, [ask(1), ask(1), raise(3), ask(2), clear, ask(2), ask(3), clear, clear, ask(1)])));
    let crashes = 0;
    for (const [crash, found] of browser.crashes(begun)) {
      const onDisk = new Map(found.storage.texts);
      const past = log.filter(({ at }) => at <= crash), cleared = past.findLast(({ isClear }) => isClear)?.at ?? 0;
      const since = past.filter(({ at, isClear }) => at > cleared || (!cleared && !isClear));
      const isClearing = log.some(({ from, at, isClear }) => isClear && from < crash && crash < at);
      const possible = log.filter(({ from, answer, at }) => answer && from <= crash && at >= cleared);
      for (let again = 0; again < 2; again++) { // the second time after another crash, before the disk had what was restored
        await Budget.recover(found.own);
        const known = Budget.limitOf(found.own);
        const answerIn = (round) => known && new Budget({ limit: known, ...found.own }).answered(wide, { round });
        for (const { round, answer, limit: raised } of isClearing ? [] : since) {
          if (answer) assert.deepEqual(answerIn(round), answer);
          if (raised) assert.ok(known >= raised);
        }
        for (let round = 1; round <= 9; round++) {
          const answer = answerIn(round);
          if (answer) assert.ok(possible.some((each) => each.round === round && each.answer.sample === answer.sample), `${crash} ${round}`);
        }
        found.storage.texts.clear();
        for (const [key, text] of onDisk) found.storage.texts.set(key, text);
      }
      crashes += 1;
    }
    assert.ok(crashes > 250, `${crashes}`);
  }
});

test("what can be read in the storage is on the disk already, and so is every answer that is returned", async () => {
  const browser = new Browser();
  await new Budget({ limit: 2, ...browser.own }).release(wide, law);
  assert.deepEqual(browser.steps.map(([place]) => place), ["mirror", "storage"]);
  for (const [, found] of [...browser.crashes()].filter(([, { storage }]) => storage.texts.size)) {
    assert.equal(found.storage.getItem("discreet budget"), found.mirror.copies.get("discreet budget").text);
  }
});

test("a draw in a browser that forgot finds the copy by itself, and another limit is refused", async () => {
  const browser = new Browser();
  const first = await new Budget({ limit: 2, ...browser.own }).release(wide, law);
  const found = browser.after(browser.now, 0);
  const other = new Budget({ limit: 7, ...found.own });
  await assert.rejects(other.release(wide, law), /limit = 7 is not the 2 that this browser was given/);
  assert.deepEqual(await new Budget({ limit: 2, ...browser.after(browser.now, 0).own }).release(wide, law), first);
});

test("answers that a page of an earlier version stored alone are kept beside those of the copy", async () => {
  const browser = new Browser(), earlier = { storage: browser.storage, locks };
  const first = await new Budget({ limit: 3, ...browser.own }).release(wide, law);
  const second = await new Budget({ limit: 3, ...earlier }).release(wide, law, { round: 2 });
  await new Budget({ limit: 3, ...earlier }).raise(4, click);
  await Budget.recover(browser.own);
  const found = browser.after(browser.now, 0);
  await Budget.recover(found.own);
  const budget = new Budget({ limit: 4, ...found.own });
  assert.deepEqual([1, 2].map((round) => budget.answered(wide, { round })), [first, second]);
  assert.equal(budget.spent, 2);
});

test("a mirror that fails lets nothing leave, and what is no budget is refused in it too", async () => {
  const failing = { change: async () => { throw new Error("full"); } };
  const isRefusal = (words) => (error) => error instanceof DiscreetError && words.test(error.message);
  const browser = new Browser(), own = { ...browser.own, mirror: failing };
  await assert.rejects(new Budget({ limit: 2, ...own }).release(wide, law), isRefusal(/IndexedDB does not work here, so nothing may be drawn/));
  await assert.rejects(Budget.recover(own), isRefusal(/nothing may be drawn/));
  await assert.rejects(new Participation(own).commit(COLLECTION, 1, FIRST, 1), isRefusal(/cannot store safely/));
  const late = { change: (keys, next) => (next(undefined, keys[0]) === undefined ? undefined : failing.change()) }; // it reads, and cannot write
  await assert.rejects(new Budget({ limit: 2, ...own, mirror: late }).release(wide, law), isRefusal(/could not be stored, so no sample leaves/));
  assert.equal(browser.now, 0);
  const first = await new Budget({ limit: 2, ...browser.own }).release(wide, law);
  await assert.rejects(new Budget({ limit: 2, ...own }).clear(click), isRefusal(/could not be deleted/));
  assert.deepEqual(await new Budget({ limit: 2, ...browser.own }).release(wide, law), first); // it was not cleared
  browser.mirror.copies.set("discreet budget", { text: "{}", forgotten: 0 });
  await assert.rejects(Budget.recover(browser.own), isRefusal(/no budget of this version/));
});

test("a browser without IndexedDB, or with one that never answers, is refused in time", async (context) => {
  const own = Object.getOwnPropertyDescriptor(globalThis, "indexedDB");
  context.after(() => (own ? Object.defineProperty(globalThis, "indexedDB", own) : delete globalThis.indexedDB));
  for (const [indexedDB, words] of [[undefined, /undefined/], [{ open: () => ({}) }, /does not answer/], [{ open: () => { throw new Error("denied"); } }, /denied/]]) {
    Object.defineProperty(globalThis, "indexedDB", { value: indexedDB, configurable: true });
    await assert.rejects(new Mirror({ patience: 20 }).keys(), words);
    await assert.rejects(new Mirror({ patience: 20 }).change(["a"], () => assert.fail()), words);
  }
});

test("a record comes back with its secret and all its entries, or was forgotten together with the budget", async () => {
  const browser = new Browser(), key = participationKey();
  const person = (found = browser) => new Participation(found.own);
  const forget = () => new DurableStorage(browser.storage, browser.mirror).forget([key, "discreet budget"]);
  const named = async (act) => (await act(), { name: person().clientName(COLLECTION), agreement: person().entryOf(COLLECTION, 1).agreement });
  const log = await done(browser, [
    () => named(() => person().commit(COLLECTION, 1, FIRST, 1)),
    async () => void (await new Budget({ limit: 2, ...browser.own }).release(wide, law)),
    () => named(() => person().markReceived(COLLECTION, 1, "key", "time")),
    () => named(() => person().keepTicket(COLLECTION, "ticket")),
    () => named(() => person().claimName(COLLECTION)),
    async () => (await forget(), { forgotten: true }),
    () => named(() => person().commit(COLLECTION, 1, SECOND, 1)),
  ]);
  assert.notEqual(log[0].name, log[6].name);
  for (const [crash, found] of browser.crashes()) {
    let dropped = false;
    const had = found.storage.texts.has(key);
    await person(found).recover(async () => (dropped = true));
    await Budget.recover(found.own);
    const entry = person(found).entryOf(COLLECTION, 1), isForgotten = log[5].at <= crash;
    for (const { from, at, name, agreement } of log) {
      if (name && at <= crash && (isForgotten ? from >= log[5].at : true) && !(log[5].from < crash && crash < log[5].at)) {
        assert.deepEqual([person(found).clientName(COLLECTION), entry.agreement], [name, agreement]);
      }
    }
    if (isForgotten) {
      assert.notEqual(entry?.agreement, FIRST);
      assert.equal(Budget.limitOf(found.own), undefined);
      if (had && !entry) assert.ok(dropped); // its waiting requests are to be dropped too
    } else if (Budget.limitOf(found.own)) assert.ok(entry); // both or none
    if (crash >= log[3].at && !isForgotten && entry) assert.equal(person(found).ticketOf(COLLECTION), "ticket");
  }
});

test("whatever a page does first in a browser that forgot, it finds the copy by itself", async () => {
  const browser = new Browser();
  const first = await new Budget({ limit: 2, ...browser.own }).release(wide, law);
  await new Participation(browser.own).commit(COLLECTION, 1, FIRST, 1);
  const name = new Participation(browser.own).clientName(COLLECTION);
  const raised = browser.after(browser.now, 0);
  await new Budget({ limit: 2, ...raised.own }).raise(3, click);
  assert.deepEqual(new Budget({ limit: 3, ...raised.own }).answered(wide), first);
  for (const act of [(person) => person.commit(COLLECTION, 1, SECOND, 1), (person) => person.markReceived(COLLECTION, 1, "key", "time"), (person) => person.keepTicket(COLLECTION, "ticket"), (person) => person.claimName(COLLECTION)]) {
    const person = new Participation(browser.after(browser.now, 0).own);
    await act(person);
    assert.deepEqual([person.clientName(COLLECTION), person.entryOf(COLLECTION, 1).agreement], [name, FIRST]);
  }
});

test("a record of an earlier version is joined with the copy, whose secret counts", async () => {
  const browser = new Browser(), person = new Participation(browser.own);
  await person.commit(COLLECTION, 1, FIRST, 1);
  const name = person.clientName(COLLECTION), place = (round) => `${COLLECTION} ${round}`;
  const earlier = { discreet: 1, secret: "d".repeat(64), spoken: { [place(1)]: { agreement: SECOND }, [place(2)]: { agreement: SECOND } }, limits: { [SECOND]: 9 } };
  browser.storage.setItem(participationKey(), JSON.stringify(earlier));
  await person.recover();
  assert.deepEqual([1, 2].map((round) => person.entryOf(COLLECTION, round).agreement), [FIRST, SECOND]);
  assert.deepEqual([person.limitOf(COLLECTION), person.limitOf(SECOND), person.clientName(COLLECTION)], [1, 9, name]);
  browser.storage.setItem(participationKey(), "{}");
  await assert.rejects(person.recover(), /not what it wrote/);
});

test("after something was forgotten, later answers are kept like those before", async () => {
  const browser = new Browser(), own = browser.own;
  await new Budget({ limit: 2, ...own }).release(wide, law);
  await new Budget({ limit: 2, ...own }).clear(click);
  assert.deepEqual([...browser.storage.texts], []);
  const first = await new Budget({ limit: 3, ...own }).release(wide, law);
  const second = await new Budget({ limit: 3, ...own, mirror: undefined }).release(wide, law, { round: 2 }); // by a page of an earlier version
  const durable = new DurableStorage(browser.storage, browser.mirror);
  await durable.recover("discreet budget", (texts) => texts[0], () => assert.fail("nothing was forgotten since"));
  const budget = new Budget({ limit: 3, ...own });
  assert.deepEqual([1, 2].map((round) => budget.answered(wide, { round })), [first, second]);
  browser.mirror.copies.set("discreet budget", { text: JSON.stringify({ discreet: 1, limit: 8, answers: {} }), forgotten: 0 }); // as in a backup from before
  await Budget.recover(own);
  assert.deepEqual([Budget.limitOf(own), browser.mirror.copies.get("discreet budget").forgotten], [3, 1]);
});
