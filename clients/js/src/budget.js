/**
 * The privacy budget of a person, kept in the browser. A sample is charged before it leaves, and the same question always gets the same answer.
 *
 * An answer and its charge are stored in one write. The answer is returned only after it has been read back. So a page that is closed in
 * between, reloaded or opened twice never releases a second sample: it finds the stored one. Tabs take turns (`navigator.locks`).
 * A copy is on the disk before the answer is returned, and every draw looks for it first (`durable.js`). So this also holds for a browser that is
 * killed, or loses power. A browser that can make no copy draws nothing.
 * Only the person can raise or clear a budget: `raise` and `clear` need the event of a real click or key.
 *
 * A question is a round of an agreement, asked by one collector. Collectors that offer one agreement to people of one site would otherwise get one
 * sample, which they could recognise. `to` is the collector's address; without it, questions are those of the site's own page.
 */
import { Agreement } from "./agreement.js";
import { decimalOf, nearest } from "./exact.js";
import { count } from "./domain.js";
import { DurableStorage, Mirror } from "./durable.js";
import { DiscreetError, quoted, refuse } from "./errors.js";

const KEY = "discreet budget";
const VERSION = 1;

/** Exact sums and comparisons of epsilons as they were written, each as [numerator, denominator]. */
const plus = ([a, b], [c, d]) => [a * d + c * b, b * d];
const times = ([a, b], whole) => [a * whole, b];
const exceeds = ([a, b], [c, d]) => a * d > c * b;

const DIGITS = 12;

/** The least number of 12 significant digits that is not below an exact total. */
function leastLimit(total) {
  const near = Number(nearest(...total).toPrecision(DIGITS));
  if (!exceeds(total, decimalOf(near))) return near;
  return Number((near + 10 ** (Math.floor(Math.log10(near)) + 1 - DIGITS)).toPrecision(DIGITS));
}

/** The limit that just covers all rounds of an agreement, of at most 12 digits. */
export const coveringLimit = ({ epsilon, rounds }) => leastLimit(times(decimalOf(epsilon), BigInt(rounds)));

/** The storage key of a person's budget. The only person at a browser, or the first, has the name "". */
export const budgetKey = (name = "") => (name === "" ? KEY : `${KEY} ${name}`);

export class Budget {
  #storage;
  #locks;
  #limit;
  #key;

  /**
   * `limit`: the total epsilon that may be spent. `name`: whose budget it is, where several people share a browser. `storage`, `mirror`, `locks`:
   * used instead of the browser's own. A `storage` without a `mirror` has no copies.
   */
  constructor({ limit, name, storage, mirror, locks } = {}) {
    this.#limit = checkedLimit(limit);
    this.#key = budgetKey(name);
    this.#storage = durableStorage(storage, mirror);
    this.#locks = checkedLocks(locks);
    this.#read();
  }

  /** Restore what a browser that was killed has forgotten. Call it when a page starts, before `limitOf`. `release` and `raise` do it themselves. */
  static async recover({ name, storage, mirror, locks } = {}) {
    const key = budgetKey(name), durable = durableStorage(storage, mirror); // prettier-ignore
    return checkedLocks(locks).request(key, () => recoverLedger(durable, key));
  }

  /** The limit of the budget that is stored; undefined if there is none yet. */
  static limitOf({ name, storage } = {}) {
    return readLedger(storage ?? ownStorage(), budgetKey(name))?.limit;
  }

  /**
   * The private sample of a round that was agreed on. If one was drawn before, it is returned again, even if the person's data has changed.
   * `part`: {limit, questions} also limits what these questions, [agreement's id, round, `to`] each, may cost together with this one.
   */
  async release(agreement, law, { round = 1, part, to } = {}) {
    if (!(agreement instanceof Agreement)) refuse("agreement is not one that Agreement.read gave");
    agreement.checked(law);
    if (count("round", round, Number.MAX_SAFE_INTEGER) > agreement.rounds) {
      refuse(`round = ${round} is more than the ${agreement.rounds} agreed on`);
    }
    if (part !== undefined) checkedLimit(part.limit);
    const question = questionKey(agreement.id, round, checkedAddress(to));
    return this.#locks.request(this.#key, () => this.#answer(agreement, law, question, part));
  }

  /** Refuse what `release` would refuse for lack of budget. Nothing is drawn or charged. */
  check(agreement, { round = 1, part, to } = {}) {
    if (part !== undefined) checkedLimit(part.limit);
    this.#check(this.#read(), agreement, questionKey(agreement.id, round, checkedAddress(to)), part);
  }

  #check(ledger, agreement, question, part) {
    if (question in ledger.answers) return;
    const no = (which, limit) => refuse(`the ${which} of ${limit} does not allow another epsilon = ${agreement.epsilon}; nothing was drawn or charged`);
    if (part && exceeds(spent(ledger, agreement.epsilon, part.questions), decimalOf(part.limit))) no("limit", part.limit);
    if (exceeds(spent(ledger, agreement.epsilon), decimalOf(this.#limit))) no("budget", this.#limit);
  }

  async #answer(agreement, law, question, part) {
    await recoverLedger(this.#storage, this.#key);
    const ledger = this.#read();
    if (!(question in ledger.answers)) {
      this.#check(ledger, agreement, question, part);
      ledger.answers[question] = { epsilon: agreement.epsilon, sample: agreement.release(law).sample };
      await this.#write(ledger);
    }
    return { sample: ledger.answers[question].sample, agreement: agreement.id };
  }

  /** The sample of a round that was drawn before; undefined if none was. */
  answered(agreement, { round = 1, to } = {}) {
    const sample = this.#read().answers[questionKey(agreement.id, round, to)]?.sample;
    return sample === undefined ? undefined : { sample, agreement: agreement.id };
  }

  /** The epsilon that has been spent, as the nearest float. */
  get spent() {
    return nearest(...spent(this.#read()));
  }

  /** The epsilon that these questions, [agreement's id, round, `to`] each, have cost. */
  spentOn(questions) {
    return nearest(...spent(this.#read(), 0, questions));
  }

  /** The limit of at most 12 digits that just covers another epsilon, beside what was spent: in all, or on these questions. */
  limitWith(epsilon, questions) {
    return leastLimit(spent(this.#read(), epsilon, questions));
  }

  /** Raise the limit from now on, at the person's request. `event`: of their click or key. */
  async raise(limit, event) {
    checkedLimit(limit);
    if (!event?.isTrusted) refuse("only the person raises a budget: pass the event of the click");
    return this.#locks.request(this.#key, async () => {
      await recoverLedger(this.#storage, this.#key);
      const ledger = this.#read();
      if (limit < ledger.limit) refuse(`limit = ${limit} is less than the ${ledger.limit} that this browser was given`);
      await this.#write({ ...ledger, limit });
      this.#limit = limit;
    });
  }

  /**
   * Delete the budget and all answers, at the person's request. `event`: of their click or key. They are gone from the page at once, and for good
   * when the promise resolves.
   */
  clear(event) {
    if (!event?.isTrusted) refuse("only the person clears a budget: pass the event of the click");
    this.#storage.removeItem(this.#key);
    return this.#locks.request(this.#key, () => copied(() => this.#storage.forget([this.#key]), "the copy of the budget could not be deleted"));
  }

  #read() {
    const ledger = readLedger(this.#storage, this.#key) ?? { discreet: VERSION, limit: this.#limit, answers: {} };
    if (ledger.limit !== this.#limit) {
      refuse(`limit = ${this.#limit} is not the ${ledger.limit} that this browser was given; the person may raise or clear it`);
    }
    return ledger;
  }

  async #write(ledger) {
    const text = JSON.stringify(ledger);
    try {
      await this.#storage.write(this.#key, text);
      if (this.#storage.getItem(this.#key) === text) return;
    } catch {
      // refused below
    }
    refuse("the charge could not be stored, so no sample leaves: storage is full or blocked");
  }
}

const durableStorage = (storage, mirror = storage ? undefined : new Mirror()) => new DurableStorage(storage ?? ownStorage(), mirror);

const checkedLocks = (locks = globalThis.navigator?.locks) =>
  locks ?? refuse("this browser has no locks, so two tabs could each draw a sample; use a newer one");

const recoverLedger = (durable, key) => copied(() => durable.recover(key, joinedLedgers), "nothing may be drawn");

/** What an access to the copies returns. `so`: what follows if it fails. */
async function copied(access, so) {
  try {
    return await access();
  } catch (error) {
    if (error instanceof DiscreetError) throw error;
    return refuse(`storage is full or blocked, or IndexedDB does not work here, so ${so}; reload the page, or use a window that is not private`);
  }
}

/** The ledger of all answers in these texts, with the largest limit. Of two answers to a question the one in the last text counts. */
function joinedLedgers(texts) {
  const ledgers = texts.map(parseLedger);
  return JSON.stringify({ discreet: VERSION, limit: Math.max(...ledgers.map(({ limit }) => limit)), answers: Object.assign({}, ...ledgers.map(({ answers }) => answers)) });
}

function checkedLimit(limit) {
  if (typeof limit !== "number" || !(limit > 0 && limit < Infinity)) refuse(`limit = ${quoted(limit)} is not in (0, inf)`);
  return limit;
}

function checkedAddress(to) {
  if (to !== undefined && (typeof to !== "string" || /\s/.test(to))) refuse(`to = ${quoted(to)} is not an address`);
  return to;
}

/** The stored ledger; undefined if there is none. */
function readLedger(storage, key) {
  let text;
  try {
    text = storage.getItem(key);
  } catch {
    refuse("this browser keeps nothing (private browsing, or storage is blocked), so nothing may be drawn");
  }
  return text === null || text === undefined ? undefined : parseLedger(text);
}

/** The ledger in a stored text. A text that is no valid ledger is refused, and never treated as an empty one. */
function parseLedger(text) {
  try {
    const ledger = JSON.parse(text);
    const whole = isRecord(ledger, ["answers", "discreet", "limit"]) && ledger.discreet === VERSION && isBudget(ledger.limit);
    if (whole && isRecord(ledger.answers) && Object.entries(ledger.answers).every(isAnswer)) return ledger;
  } catch {
    // refused below
  }
  return refuse("what is stored is no budget of this version; nothing is drawn before the person clears it");
}

const questionKey = (id, round, to = "") => (to === "" ? `${id} ${round}` : `${id} ${round} ${to}`);
const QUESTION = /^[0-9a-f]{64} [1-9][0-9]*( \S+)?$/; // an agreement, a round of it, and who asks
const isBudget = (value) => Number.isFinite(value) && value > 0;

/** Whether a value is an object, not a list, and has exactly these fields if any are given (in sorted order). */
function isRecord(value, fields) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return false;
  return fields === undefined || Object.keys(value).sort().join() === fields.join();
}

function isAnswer([question, answer]) {
  if (!QUESTION.test(question) || !isRecord(answer, ["epsilon", "sample"])) return false;
  return isBudget(answer.epsilon) && ["string", "number", "boolean"].includes(typeof answer.sample);
}

/** What the stored answers have cost plus `more`, as [numerator, denominator]. If `questions` are given, only their answers count. */
function spent({ answers }, more = 0, questions) {
  const counted = questions === undefined ? Object.values(answers) : questions.map((question) => answers[questionKey(...question)]).filter(Boolean);
  return counted.reduce((sum, { epsilon }) => plus(sum, decimalOf(epsilon)), decimalOf(more));
}

function ownStorage() {
  try {
    if (globalThis.localStorage) return globalThis.localStorage;
  } catch {
    // refused below: where storage is blocked, reading `localStorage` throws
  }
  return refuse("this browser keeps nothing (private browsing, or storage is blocked), so nothing may be drawn");
}
