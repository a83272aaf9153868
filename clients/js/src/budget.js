/**
 * What a person has spent, kept in the browser: charged before a sample leaves, and the same question has the same answer for ever.
 *
 * An answer is stored beside its charge in one write, and handed out only once it reads back. So a page that is closed in between, reloaded
 * or opened twice never draws a second time: it finds the first answer. Tabs wait for each other (`navigator.locks`).
 * Only the person raises or clears it: `raise` and `clear` take the event of a real click or key.
 */
import { Agreement } from "./agreement.js";
import { decimalOf, nearest } from "./exact.js";
import { count } from "./domain.js";
import { quoted, refuse } from "./errors.js";

const KEY = "discreet budget";
const VERSION = 1;

/** Sums of budgets as they were written, without rounding: [numerator, denominator]. */
const plus = ([a, b], [c, d]) => [a * d + c * b, b * d];
const exceeds = ([a, b], [c, d]) => a * d > c * b;

/** Where the budget of a person is kept: "" is the only one, or the first, of a browser. */
export const budgetKey = (name = "") => (name === "" ? KEY : `${KEY} ${name}`);

export class Budget {
  #storage;
  #locks;
  #limit;
  #key;

  /** `limit`: the epsilon that may be spent in all. `name`: whose it is, where several share a browser. `storage`, `locks`: for where they are not its own. */
  constructor({ limit, name, storage, locks = globalThis.navigator?.locks } = {}) {
    this.#limit = checkedLimit(limit);
    this.#key = budgetKey(name);
    this.#storage = storage ?? ownStorage();
    this.#locks = locks ?? refuse("this browser has no locks, so two tabs could each draw a sample; use a newer one");
    this.#read();
  }

  /** The limit of the budget that is stored; undefined if there is none yet. */
  static limitOf({ name, storage } = {}) {
    return readBook(storage ?? ownStorage(), budgetKey(name))?.limit;
  }

  /**
   * One private sample of a round that was agreed on; the one drawn before, if there is one, whatever is held by now.
   * `part`: {limit, questions} is a limit on what these questions, [agreement's id, round] each, may cost together with this one.
   */
  async release(agreement, law, { round = 1, part } = {}) {
    if (!(agreement instanceof Agreement)) refuse("agreement is not one that Agreement.read gave");
    agreement.checked(law);
    if (count("round", round, Number.MAX_SAFE_INTEGER) > agreement.rounds) {
      refuse(`round = ${round} is more than the ${agreement.rounds} agreed on`);
    }
    if (part !== undefined) checkedLimit(part.limit);
    return this.#locks.request(this.#key, () => this.#answer(agreement, law, round, part));
  }

  /** Refuse what `release` would refuse for want of budget, before anything is drawn or charged. */
  check(agreement, { round = 1, part } = {}) {
    if (part !== undefined) checkedLimit(part.limit);
    this.#check(this.#read(), agreement, round, part);
  }

  #check(book, agreement, round, part) {
    if (askedBy(agreement.id, round) in book.answers) return;
    const no = (which, limit) => refuse(`the ${which} of ${limit} does not allow another epsilon = ${agreement.epsilon}; nothing was drawn or charged`);
    if (part && exceeds(spent(book, agreement.epsilon, part.questions), decimalOf(part.limit))) no("limit", part.limit);
    if (exceeds(spent(book, agreement.epsilon), decimalOf(this.#limit))) no("budget", this.#limit);
  }

  #answer(agreement, law, round, part) {
    const book = this.#read();
    const question = askedBy(agreement.id, round);
    if (!(question in book.answers)) {
      this.#check(book, agreement, round, part);
      book.answers[question] = { epsilon: agreement.epsilon, sample: agreement.release(law).sample };
      this.#write(book);
    }
    return { sample: book.answers[question].sample, agreement: agreement.id };
  }

  /** The sample of a round that was drawn before; undefined if none was. */
  answered(agreement, { round = 1 } = {}) {
    const sample = this.#read().answers[askedBy(agreement.id, round)]?.sample;
    return sample === undefined ? undefined : { sample, agreement: agreement.id };
  }

  /** What has been spent, as the number nearest to it. */
  get spent() {
    return nearest(...spent(this.#read()));
  }

  /** What these questions, [agreement's id, round] each, have cost. */
  spentOn(questions) {
    return nearest(...spent(this.#read(), 0, questions));
  }

  /** Allow more from now on, as the person asks by a click or key: `event` is that event. */
  async raise(limit, event) {
    checkedLimit(limit);
    if (!event?.isTrusted) refuse("only the person raises a budget: pass the event of the click");
    return this.#locks.request(this.#key, () => {
      const book = this.#read();
      if (limit < book.limit) refuse(`limit = ${limit} is less than the ${book.limit} that this browser was given`);
      this.#write({ ...book, limit });
      this.#limit = limit;
    });
  }

  /** Forget everything, as the person asks by a click or key: `event` is that event. */
  clear(event) {
    if (!event?.isTrusted) refuse("only the person clears a budget: pass the event of the click");
    this.#storage.removeItem(this.#key);
  }

  #read() {
    const book = readBook(this.#storage, this.#key) ?? { discreet: VERSION, limit: this.#limit, answers: {} };
    if (book.limit !== this.#limit) {
      refuse(`limit = ${this.#limit} is not the ${book.limit} that this browser was given; the person may raise or clear it`);
    }
    return book;
  }

  #write(book) {
    const text = JSON.stringify(book);
    try {
      this.#storage.setItem(this.#key, text);
      if (this.#storage.getItem(this.#key) === text) return;
    } catch {
      // said below
    }
    refuse("the charge could not be stored, so no sample leaves: storage is full or blocked");
  }
}

function checkedLimit(limit) {
  if (typeof limit !== "number" || !(limit > 0 && limit < Infinity)) refuse(`limit = ${quoted(limit)} is not in (0, inf)`);
  return limit;
}

/** The stored book; undefined if there is none. */
function readBook(storage, key) {
  let text;
  try {
    text = storage.getItem(key);
  } catch {
    refuse("this browser keeps nothing (private browsing, or storage is blocked), so nothing may be drawn");
  }
  return text === null || text === undefined ? undefined : bookOf(text);
}

/** What a stored text says, if it is a budget; another one is not taken for an empty one. */
function bookOf(text) {
  try {
    const book = JSON.parse(text);
    const whole = isRecord(book, ["answers", "discreet", "limit"]) && book.discreet === VERSION && isBudget(book.limit);
    if (whole && isRecord(book.answers) && Object.entries(book.answers).every(isAnswer)) return book;
  } catch {
    // said below
  }
  return refuse("what is stored is no budget of this version; nothing is drawn before the person clears it");
}

const askedBy = (id, round) => `${id} ${round}`;
const QUESTION = /^[0-9a-f]{64} [1-9][0-9]*$/; // an agreement and a round of it
const isBudget = (value) => Number.isFinite(value) && value > 0;

/** Whether a value is an object and no list, with these fields and no others if any are named. */
function isRecord(value, fields) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return false;
  return fields === undefined || Object.keys(value).sort().join() === fields.join();
}

function isAnswer([question, answer]) {
  if (!QUESTION.test(question) || !isRecord(answer, ["epsilon", "sample"])) return false;
  return isBudget(answer.epsilon) && ["string", "number", "boolean"].includes(typeof answer.sample);
}

/** What answers have cost, and so much more; of these questions alone if they are named. */
function spent({ answers }, more = 0, questions) {
  const counted = questions === undefined ? Object.values(answers) : questions.map(([id, round]) => answers[askedBy(id, round)]).filter(Boolean);
  return counted.reduce((sum, { epsilon }) => plus(sum, decimalOf(epsilon)), decimalOf(more));
}

function ownStorage() {
  try {
    if (globalThis.localStorage) return globalThis.localStorage;
  } catch {
    // said below: a page may be denied the very question
  }
  return refuse("this browser keeps nothing (private browsing, or storage is blocked), so nothing may be drawn");
}
