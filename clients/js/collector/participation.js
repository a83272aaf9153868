/**
 * What this browser remembers of collections: a person's secret, their limit for each, and under which agreement they speak in each round.
 *
 * A client speaks once in a round of a collection, under whichever of its agreements. So the first agreement is written down before anything is
 * drawn, and stays: a page that is reloaded, or opened for an agreement that follows, finds it and draws under no other.
 */
import { refuse } from "../src/errors.js";
import { phrase } from "../page/catalogue.js";
import { hexed, nameIn } from "./identity.js";

const KEY = "discreet collector";
const VERSION = 1;

/** Where the record of a person is kept: "" is the only one, or the first, of a browser. */
export const speakerKey = (name = "") => (name === "" ? KEY : `${KEY} ${name}`);

export class Speaker {
  #storage;
  #locks;
  #key;

  /** `name`: whose record it is, where several people share a browser. */
  constructor({ name, storage, locks = globalThis.navigator?.locks } = {}) {
    this.#key = speakerKey(name);
    this.#storage = storage ?? ownStorage();
    this.#locks = locks ?? refuse(phrase("no-locks"));
  }

  /** {agreement, questions, key, at}: under which agreement, and by which questions, it speaks in a round; `key`, `at`: with which it was heard, and when. */
  spoken(collection, round) {
    return this.#read()?.spoken[`${collection} ${round}`];
  }

  /** The most that may be spent in a collection, if the person has said so. */
  limitOf(collection) {
    return this.#read()?.limits?.[collection];
  }

  /** What was asked in a collection so far: [agreement's id, round] each. */
  questions(collection) {
    const rounds = Object.entries(this.#read()?.spoken ?? {}).filter(([place]) => place.startsWith(`${collection} `));
    return rounds.map(([place, { agreement }]) => [agreement, Number(place.slice(collection.length + 1))]);
  }

  /** In how many collections something was asked. */
  get collections() {
    return new Set(Object.keys(this.#read()?.spoken ?? {}).map((place) => place.split(" ")[0])).size;
  }

  /** Speak under this agreement in this round, within this limit for the collection; what was written down first stays, and is what this returns. */
  async speak(collection, round, agreement, limit, questions) {
    return this.#locks.request(this.#key, () => {
      const book = this.#read() ?? { discreet: VERSION, secret: secret(), spoken: {} };
      book.limits = { ...book.limits, [collection]: limit };
      const place = `${collection} ${round}`;
      book.spoken[place] ??= { agreement, questions };
      this.#write(book);
      return book.spoken[place];
    });
  }

  /** It was heard in this round, with this key. The name stays out of it: where it is a token it is a person's. */
  async heard(collection, round, key, at) {
    return this.#locks.request(this.#key, () => {
      const book = this.#read();
      Object.assign(book.spoken[`${collection} ${round}`], { key, at });
      this.#write(book);
    });
  }

  /** Keep what everybody is given who has taken part in a collection; it says nothing about the person. */
  async keepTicket(collection, ticket) {
    return this.#locks.request(this.#key, () => {
      const book = this.#read();
      book.tickets = { ...book.tickets, [collection]: ticket };
      this.#write(book);
    });
  }

  ticketOf(collection) {
    return this.#read()?.tickets?.[collection];
  }

  /** What this browser is called in a collection, where no token is asked for. */
  name(collection) {
    return nameIn(collection, this.#read().secret);
  }

  #read() {
    const text = kept(() => this.#storage.getItem(this.#key));
    return text === null || text === undefined ? undefined : bookOf(text);
  }

  #write(book) {
    const text = JSON.stringify(book);
    kept(() => this.#storage.setItem(this.#key, text));
    if (this.#storage.getItem(this.#key) !== text) refuse(phrase("kept-otherwise"));
  }
}

function secret() {
  if (typeof globalThis.crypto?.getRandomValues !== "function") {
    refuse(phrase("no-entropy"));
  }
  return hexed(globalThis.crypto.getRandomValues(new Uint8Array(32)));
}

function kept(touch) {
  try {
    return touch();
  } catch {
    return refuse(phrase("keeps-nothing"));
  }
}

export const ownStorage = () => kept(() => globalThis.localStorage) ?? refuse(phrase("keeps-nothing"));

/** What a stored text says, if it is ours; another one is not taken for an empty one. */
function bookOf(text) {
  try {
    const book = JSON.parse(text);
    const whole = book.discreet === VERSION && /^[0-9a-f]{64}$/.test(book.secret);
    const limits = Object.values(book.limits ?? {}).every((limit) => Number.isFinite(limit) && limit > 0);
    if (whole && limits && Object.values(book.spoken).every(({ agreement }) => /^[0-9a-f]{64}$/.test(agreement))) return book;
  } catch {
    // said below
  }
  return refuse(phrase("not-what-it-wrote"));
}
