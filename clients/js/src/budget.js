/**
 * What a person has spent, kept in the browser: charged before a sample leaves, and the same question has the same answer for ever.
 *
 * An answer is stored beside its charge in one write, and handed out only once it reads back. So a page that is closed in between, reloaded
 * or opened twice never draws a second time: it finds the first answer. Tabs wait for each other (`navigator.locks`).
 * Only the person clears it: `clear` takes the event of a real click or key.
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

export class Budget {
  #storage;
  #locks;
  #limit;

  /** `limit`: the epsilon that may be spent in all. `storage`, `locks`: for where they are not the browser's own. */
  constructor({ limit, storage, locks = globalThis.navigator?.locks } = {}) {
    if (typeof limit !== "number" || !(limit > 0 && limit < Infinity)) refuse(`limit = ${quoted(limit)} is not in (0, inf)`);
    this.#storage = storage ?? ownStorage();
    this.#locks = locks ?? refuse("this browser has no locks, so two tabs could each draw a sample; use a newer one");
    this.#limit = limit;
    this.#read();
  }

  /** One private sample of a round that was agreed on; the one drawn before, if there is one, whatever is held by now. */
  async release(agreement, law, { round = 1 } = {}) {
    if (!(agreement instanceof Agreement)) refuse("agreement is not one that Agreement.read gave");
    agreement.checked(law);
    if (count("round", round, Number.MAX_SAFE_INTEGER) > agreement.rounds) {
      refuse(`round = ${round} is more than the ${agreement.rounds} agreed on`);
    }
    return this.#locks.request(KEY, () => this.#answer(agreement, law, round));
  }

  #answer(agreement, law, round) {
    const book = this.#read();
    const question = `${agreement.id} ${round}`;
    if (!(question in book.answers)) {
      if (exceeds(spent(book, agreement.epsilon), decimalOf(this.#limit))) {
        refuse(`the budget of ${this.#limit} does not allow another epsilon = ${agreement.epsilon}; nothing was drawn or charged`);
      }
      book.answers[question] = { epsilon: agreement.epsilon, sample: agreement.release(law).sample };
      this.#write(book);
    }
    return { sample: book.answers[question].sample, agreement: agreement.id };
  }

  /** The sample of a round that was drawn before; undefined if none was. */
  answered(agreement, { round = 1 } = {}) {
    const sample = this.#read().answers[`${agreement.id} ${round}`]?.sample;
    return sample === undefined ? undefined : { sample, agreement: agreement.id };
  }

  /** What has been spent, as the number nearest to it. */
  get spent() {
    return nearest(...spent(this.#read()));
  }

  /** Forget everything, as the person asks by a click or key: `event` is that event. */
  clear(event) {
    if (!event?.isTrusted) refuse("only the person clears a budget: pass the event of the click");
    this.#storage.removeItem(KEY);
  }

  #read() {
    let text;
    try {
      text = this.#storage.getItem(KEY);
    } catch {
      refuse("this browser keeps nothing (private browsing, or storage is blocked), so nothing may be drawn");
    }
    if (text === null || text === undefined) return { discreet: VERSION, limit: this.#limit, answers: {} };
    const book = bookOf(text);
    if (book.limit !== this.#limit) {
      refuse(`limit = ${this.#limit} is not the ${book.limit} that this browser was given first; the person may clear it`);
    }
    return book;
  }

  #write(book) {
    const text = JSON.stringify(book);
    try {
      this.#storage.setItem(KEY, text);
      if (this.#storage.getItem(KEY) === text) return;
    } catch {
      // said below
    }
    refuse("the charge could not be stored, so no sample leaves: storage is full or blocked");
  }
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

function spent(book, more = 0) {
  return Object.values(book.answers).reduce((sum, { epsilon }) => plus(sum, decimalOf(epsilon)), decimalOf(more));
}

function ownStorage() {
  try {
    if (globalThis.localStorage) return globalThis.localStorage;
  } catch {
    // said below: a page may be denied the very question
  }
  return refuse("this browser keeps nothing (private browsing, or storage is blocked), so nothing may be drawn");
}
