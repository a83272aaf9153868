/**
 * A person's record in this browser: their secret, their limit for each collection, and the agreement under which they take part in each round.
 *
 * A client sends one sample in a round of a collection, under one of its agreements. So the first agreement is stored before anything is drawn,
 * and it stays. A page that is reloaded, or opened for a later agreement, finds it and draws under no other. A copy is on the disk before an entry
 * or the secret is used (`durable.js`), so this also holds for a browser that is killed. Every change looks for the copy first, and so does a page
 * that starts (`recover`).
 *
 * On a page of another site, entries and names depend on the collector's address. Those of earlier versions do not, and do not say which collector
 * they were made for. They go to the first collector that states their collection and to which the person then gives an answer. From then on they
 * are for that collector, and for the collectors of the page's own site, which can read the record anyway. So a false first one learns the name that
 * is used in this one collection, and the right one asks the person again, under another name. Entries of this version cannot be taken this way.
 */
import { DurableStorage, Mirror } from "../src/durable.js";
import { DiscreetError, refuse } from "../src/errors.js";
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
   * collection then touches neither the names nor the entries of other collectors. A `storage` without a `mirror` has no copies.
   */
  constructor({ name, storage, mirror = storage ? undefined : new Mirror(), locks = globalThis.navigator?.locks, address = "" } = {}) {
    this.#key = participationKey(name);
    this.#address = address;
    this.#storage = new DurableStorage(storage ?? ownStorage(), mirror);
    this.#locks = locks ?? refuse(phrase("no-locks"));
  }

  /** Restore what a browser that was killed has forgotten. `alongside`: called if what the storage has of this record was forgotten on purpose. */
  async recover(alongside) {
    return this.#locks.request(this.#key, () => this.#recover(alongside));
  }

  /**
   * The entry of a round, {agreement, questions, linkKey, to, key, at}; undefined if there is none. `agreement`, `questions`: the id and the digest
   * under which the person takes part. `linkKey`: the key that the sample has with the token of the link that was open at the draw, if one was.
   * `to`: the address under which the budget keeps the sample; none on the site's own page, and in entries of earlier versions.
   * `key`, `at`: the key of the sample and the time, once the service has answered.
   */
  entryOf(collection, round) {
    return this.#read()?.spoken[this.#placeOf(collection, round)];
  }

  /** The largest epsilon that the person allows for a collection; undefined if they have not set it. */
  limitOf(collection) {
    return this.#read()?.limits?.[this.#keyOf(collection)];
  }

  /** The questions of a collection that were asked so far, [agreement's id, round, address] each. */
  questionsIn(collection) {
    const start = this.#placeOf(collection, "");
    const rounds = Object.entries(this.#read()?.spoken ?? {}).filter(([place]) => place.startsWith(start));
    return rounds.map(([place, { agreement, to }]) => [agreement, Number(place.slice(start.length)), ...(to ? [to] : [])]);
  }

  /** The number of collections in which a question was asked. */
  get collectionCount() {
    return new Set(Object.keys(this.#read()?.spoken ?? {}).map((place) => place.split(" ")[0])).size;
  }

  /**
   * Store the limit for the collection and the entry of this round, and return the entry. An entry that was stored first stays: if it is for
   * another agreement, the person gives no answer, and nothing is stored.
   */
  async commit(collection, round, agreement, limit, questions, linkKey) {
    return this.#change(async () => {
      const stored = this.#read() ?? { discreet: VERSION, secret: randomSecret(), spoken: {} };
      const place = this.#placeOf(collection, round, stored);
      const entry = (stored.spoken[place] ??= { agreement, questions, linkKey, to: this.#addressIn(stored, collection) || undefined });
      if (entry.agreement !== agreement) return entry;
      stored.limits = { ...stored.limits, [this.#keyOf(collection, stored)]: limit };
      await this.#write(this.#withHolder(stored, collection));
      return entry;
    });
  }

  /** Store that the service has answered in this round, to this key. The name is not stored: if it is a token, it belongs to a person. */
  async markReceived(collection, round, key, at) {
    return this.#change(async () => {
      const stored = this.#read();
      const entry = stored?.spoken[this.#placeOf(collection, round, stored)];
      if (!entry) return; // deleted meanwhile, in another tab or by the browser
      Object.assign(entry, { key, at });
      await this.#write(this.#withHolder(stored, collection));
    });
  }

  /** Before a request leaves: keep what earlier versions noted about the collection for this collector. Returns the name that it may be sent. */
  async claimName(collection) {
    return this.#change(async () => {
      await this.#write(this.#withHolder(this.#read() ?? refuse(phrase("was-deleted")), collection));
      return this.clientName(collection);
    });
  }

  /** Store the ticket that everybody gets who has taken part in a collection. It says nothing about the person. */
  async keepTicket(collection, ticket) {
    return this.#change(async () => {
      const stored = this.#read();
      if (stored) await this.#write({ ...stored, tickets: { ...stored.tickets, [this.#keyOf(collection, stored)]: ticket } });
    });
  }

  ticketOf(collection) {
    return this.#read()?.tickets?.[this.#keyOf(collection)];
  }

  /** The name of this browser in a collection that asks for no token. */
  clientName(collection) {
    const stored = this.#read() ?? refuse(phrase("was-deleted"));
    return nameIn(collection, stored.secret, "", this.#addressIn(stored, collection));
  }

  /** What the record calls a collection. */
  #keyOf(collection, stored = this.#read()) {
    const address = this.#addressIn(stored, collection);
    return address ? `${collection}@${address}` : collection;
  }

  #placeOf(collection, round, stored = this.#read()) {
    return `${this.#keyOf(collection, stored)} ${round}`;
  }

  /** The address on which entries and names of the collection depend: none if this collector has, or may still take, those of earlier versions. */
  #addressIn(stored, collection) {
    const hasEntries = (key) => Object.keys(stored?.spoken ?? {}).some((place) => place.startsWith(`${key} `));
    const holder = stored?.holders?.[collection];
    const isFree = holder === undefined && hasEntries(collection) && !hasEntries(`${collection}@${this.#address}`);
    return isFree || holder === this.#address ? "" : this.#address;
  }

  /** The record with a note of the only address that uses the entries without one, if this collector does and no other is noted. */
  #withHolder(stored, collection) {
    return this.#addressIn(stored, collection) ? stored : { ...stored, holders: { [collection]: this.#address, ...stored.holders } };
  }

  #read() {
    const text = useStorage(() => this.#storage.getItem(this.#key));
    return text === null || text === undefined ? undefined : parseStored(text);
  }

  /** Take a turn with the record as it is on the disk. */
  #change(change) {
    return this.#locks.request(this.#key, async () => {
      await this.#recover();
      return change();
    });
  }

  #recover(alongside) {
    return useCopies(() => this.#storage.recover(this.#key, joinedRecords, alongside));
  }

  async #write(stored) {
    const text = JSON.stringify(stored);
    await useCopies(() => this.#storage.write(this.#key, text));
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

/** What an access to a storage with copies returns. */
export async function useCopies(access) {
  try {
    return await access();
  } catch (error) {
    if (error instanceof DiscreetError) throw error;
    return refuse(phrase("keeps-not-surely"));
  }
}

export const ownStorage = () => useStorage(() => globalThis.localStorage) ?? refuse(phrase("keeps-nothing"));

/** The record of all entries in these texts. Where they differ, the last text counts. */
function joinedRecords(texts) {
  const joined = {};
  for (const stored of texts.map(parseStored)) {
    for (const [name, value] of Object.entries(stored)) {
      joined[name] = typeof value === "object" ? { ...joined[name], ...value } : value;
    }
  }
  return JSON.stringify(joined);
}

/** The content of a stored text. A text that this page did not write is refused, not treated as empty. */
function parseStored(text) {
  try {
    const stored = JSON.parse(text);
    const whole = stored.discreet === VERSION && /^[0-9a-f]{64}$/.test(stored.secret);
    const limits = Object.values(stored.limits ?? {}).every((limit) => Number.isFinite(limit) && limit > 0);
    const holders = Object.values(stored.holders ?? {}).every((address) => typeof address === "string");
    if (whole && limits && holders && Object.values(stored.spoken).every(({ agreement }) => /^[0-9a-f]{64}$/.test(agreement))) return stored;
  } catch {
    // refused below
  }
  return refuse(phrase("not-what-it-wrote"));
}
