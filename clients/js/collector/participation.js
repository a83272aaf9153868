/**
 * A person's record in this browser: their secret, their limit for each collection, and the agreement under which they take part in each round.
 *
 * A client sends one sample in a round of a collection, under one of its agreements. So the first agreement is stored before anything is drawn,
 * and it stays. A page that is reloaded, or opened for a later agreement, finds it and draws under no other.
 */
import { refuse } from "../src/errors.js";
import { phrase } from "../page/catalogue.js";
import { hexOf, nameIn } from "./identity.js";

const KEY = "discreet collector";
const VERSION = 1;

/** The storage key of a person's record. The only person at a browser, or the first, has the name "". */
export const participationKey = (name = "") => (name === "" ? KEY : `${KEY} ${name}`);

export class Participation {
  #storage;
  #locks;
  #key;
  #address;

  /**
   * `name`: whose record it is, where several people share a browser. `address`: of a collector on another site. What it states about its
   * collection then touches neither the names nor the entries of other collectors.
   */
  constructor({ name, storage, locks = globalThis.navigator?.locks, address = "" } = {}) {
    this.#key = participationKey(name);
    this.#address = address;
    this.#storage = storage ?? ownStorage();
    this.#locks = locks ?? refuse(phrase("no-locks"));
  }

  /**
   * The entry of a round, {agreement, questions, key, at}; undefined if there is none. `agreement`, `questions`: the id and the digest under
   * which the person takes part. `key`, `at`: the key of the sample and the time, once the service has answered.
   */
  entryOf(collection, round) {
    return this.#read()?.spoken[this.#placeOf(collection, round)];
  }

  /** The largest epsilon that the person allows for a collection; undefined if they have not set it. */
  limitOf(collection) {
    return this.#read()?.limits?.[this.#keyOf(collection)];
  }

  /** The questions of a collection that were asked so far, [agreement's id, round] each. */
  questionsIn(collection) {
    const start = this.#placeOf(collection, "");
    const rounds = Object.entries(this.#read()?.spoken ?? {}).filter(([place]) => place.startsWith(start));
    return rounds.map(([place, { agreement }]) => [agreement, Number(place.slice(start.length))]);
  }

  /** The number of collections in which a question was asked. */
  get collectionCount() {
    return new Set(Object.keys(this.#read()?.spoken ?? {}).map((place) => place.split(" ")[0])).size;
  }

  /** Store the limit for the collection and the entry of this round. An entry that was stored first stays. Returns the entry. */
  async commit(collection, round, agreement, limit, questions) {
    return this.#locks.request(this.#key, () => {
      const stored = this.#read() ?? { discreet: VERSION, secret: randomSecret(), spoken: {} };
      stored.limits = { ...stored.limits, [this.#keyOf(collection)]: limit };
      const place = this.#placeOf(collection, round);
      stored.spoken[place] ??= { agreement, questions };
      this.#write(stored);
      return stored.spoken[place];
    });
  }

  /** Store that the service has answered in this round, to this key. The name is not stored: if it is a token, it belongs to a person. */
  async markReceived(collection, round, key, at) {
    return this.#locks.request(this.#key, () => {
      const stored = this.#read();
      Object.assign(stored.spoken[this.#placeOf(collection, round)], { key, at });
      this.#write(stored);
    });
  }

  /** Store the ticket that everybody gets who has taken part in a collection. It says nothing about the person. */
  async keepTicket(collection, ticket) {
    return this.#locks.request(this.#key, () => {
      const stored = this.#read();
      stored.tickets = { ...stored.tickets, [this.#keyOf(collection)]: ticket };
      this.#write(stored);
    });
  }

  ticketOf(collection) {
    return this.#read()?.tickets?.[this.#keyOf(collection)];
  }

  /** The name of this browser in a collection that asks for no token. */
  clientName(collection) {
    return nameIn(collection, this.#read().secret, "", this.#address);
  }

  /** What the record calls a collection. */
  #keyOf(collection) {
    return this.#address ? `${collection}@${this.#address}` : collection;
  }

  #placeOf(collection, round) {
    return `${this.#keyOf(collection)} ${round}`;
  }

  #read() {
    const text = useStorage(() => this.#storage.getItem(this.#key));
    return text === null || text === undefined ? undefined : parseStored(text);
  }

  #write(stored) {
    const text = JSON.stringify(stored);
    useStorage(() => this.#storage.setItem(this.#key, text));
    if (this.#storage.getItem(this.#key) !== text) refuse(phrase("kept-otherwise"));
  }
}

function randomSecret() {
  if (typeof globalThis.crypto?.getRandomValues !== "function") {
    refuse(phrase("no-entropy"));
  }
  return hexOf(globalThis.crypto.getRandomValues(new Uint8Array(32)));
}

/** What an access to the storage returns. */
export function useStorage(access) {
  try {
    return access();
  } catch {
    return refuse(phrase("keeps-nothing"));
  }
}

export const ownStorage = () => useStorage(() => globalThis.localStorage) ?? refuse(phrase("keeps-nothing"));

/** The content of a stored text. A text that this page did not write is refused, not treated as empty. */
function parseStored(text) {
  try {
    const stored = JSON.parse(text);
    const whole = stored.discreet === VERSION && /^[0-9a-f]{64}$/.test(stored.secret);
    const limits = Object.values(stored.limits ?? {}).every((limit) => Number.isFinite(limit) && limit > 0);
    if (whole && limits && Object.values(stored.spoken).every(({ agreement }) => /^[0-9a-f]{64}$/.test(agreement))) return stored;
  } catch {
    // refused below
  }
  return refuse(phrase("not-what-it-wrote"));
}
