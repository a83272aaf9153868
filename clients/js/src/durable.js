/**
 * Texts in a storage, each with a copy that is on the disk before the text can be read.
 *
 * Browsers write `localStorage` to the disk some seconds late (Chromium: about five). If the browser is killed before, or the power fails, it is
 * as it was some seconds ago. So each text has a copy in IndexedDB, committed with strict durability. Callers hold the lock of the key.
 *
 * - `write` commits the copy, and only then writes the text. So everything that a page reads in the storage is on the disk already. A crash in
 *   between leaves a copy that is ahead; `recover` brings the text up to it.
 * - `recover` makes text and copy equal. If they differ, `merge` joins them, since a page of an earlier version writes the text alone.
 * - `forget` replaces the copy by a note of how often the key was forgotten, and then removes the text. A crash before the note leaves all as it
 *   was. After it, a storage may come back that still has the text. The text is then of an earlier count than the copy, and is removed.
 *   The storage has the count beside the text (`countKey`), once a text follows a forgotten one; without it the count is 0.
 */
const [DATABASE, STORE] = ["discreet", "copies"];
const PATIENCE = 10_000; // milliseconds that IndexedDB may take; in some browsers it never answers

/** The copies of a site, in IndexedDB: {text, forgotten} by key. `text`: null if it was forgotten. */
export class Mirror {
  #patience;

  constructor({ patience = PATIENCE } = {}) {
    this.#patience = patience;
  }

  /** The keys with a copy. */
  keys() {
    return this.#transact("readonly", (store, done) => (store.getAllKeys().onsuccess = ({ target }) => done(target.result)));
  }

  /** Replace the copies of these keys by what `next(copy, key)` returns, in one transaction that is on the disk when the promise resolves. */
  change(keys, next) {
    return this.#transact("readwrite", (store, _, attempt) => {
      for (const key of keys) {
        store.get(key).onsuccess = ({ target: { result: copy } }) =>
          attempt(() => {
            if (copy !== undefined && !isCopy(copy)) throw new Error("no copy of this version");
            const replacement = next(copy, key);
            if (replacement !== copy) store.put(replacement, key);
          });
      }
    });
  }

  #transact(mode, act) {
    return new Promise((resolve, reject) => {
      let connection, transaction, result;
      let isOver = false;
      const end = (settle, value) => {
        isOver = true;
        clearTimeout(timer);
        connection?.close();
        settle(value);
      };
      const attempt = (action) => {
        try {
          action();
        } catch (error) {
          end(reject, error);
          transaction?.abort();
        }
      };
      const giveUp = () => {
        throw new Error("IndexedDB does not answer");
      };
      const timer = setTimeout(attempt, this.#patience, giveUp);
      attempt(() => {
        const opening = globalThis.indexedDB.open(DATABASE, 1);
        opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
        opening.onerror = () => end(reject, opening.error);
        opening.onsuccess = () => {
          connection = opening.result;
          if (isOver) return connection.close();
          attempt(() => {
            transaction = connection.transaction(STORE, mode, { durability: "strict" });
            transaction.oncomplete = () => end(resolve, result);
            transaction.onabort = () => end(reject, transaction.error);
            act(transaction.objectStore(STORE), (value) => (result = value), attempt);
          });
        };
      });
    });
  }
}

const isCopy = (copy) => (copy.text === null || typeof copy.text === "string") && Number.isSafeInteger(copy.forgotten);
const countKey = (key) => `forgotten ${key}`;

/** A storage whose texts have copies in a mirror. Without a mirror it is the storage alone, and nothing waits. */
export class DurableStorage {
  #storage;
  #mirror;

  constructor(storage, mirror) {
    [this.#storage, this.#mirror] = [storage, mirror];
  }

  getItem(key) {
    return this.#storage.getItem(key) ?? null;
  }

  /** Remove a text from the storage alone. `forget` removes it for good. */
  removeItem(key) {
    this.#storage.removeItem(key);
  }

  /**
   * Make a text and its copy equal. `merge`: the valid text of one or two stored ones, of which the last is the copy; it refuses others.
   * `alongside`: called before the storage loses a text that was forgotten.
   */
  async recover(key, merge, alongside) {
    if (!this.#mirror) return;
    let text, current, isForgotten;
    await this.#mirror.change([key], (copy) => {
      text = this.getItem(key);
      const count = this.#countOf(key);
      isForgotten = text !== null && count < (copy?.forgotten ?? 0);
      const texts = [isForgotten ? null : text, copy?.forgotten >= count ? copy.text : null].filter((each) => each !== null);
      current = { text: texts.length ? merge(texts) : null, forgotten: Math.max(count, copy?.forgotten ?? 0) };
      const isSame = current.text === (copy?.text ?? null) && current.forgotten === (copy?.forgotten ?? 0);
      return isSame ? copy : current;
    });
    if (isForgotten && alongside) await alongside();
    if (current.text !== text) this.#set(key, current);
  }

  async write(key, text) {
    let current = { text, forgotten: this.#countOf(key) };
    if (this.#mirror) await this.#mirror.change([key], (copy) => (current = { text, forgotten: Math.max(current.forgotten, copy?.forgotten ?? 0) }));
    this.#set(key, current);
  }

  /** Forget the texts of these keys, all or none. `alongside`: called once they are forgotten for good, before the storage loses them. */
  async forget(keys, alongside) {
    if (this.#mirror) await this.#mirror.change(keys, (copy, key) => ({ text: null, forgotten: 1 + Math.max(this.#countOf(key), copy?.forgotten ?? 0) }));
    if (alongside) await alongside();
    for (const key of keys) this.#set(key, { text: null });
  }

  /** The count goes before the text: if the disk has only the first of the two, `recover` takes the text of the copy. */
  #set(key, { text, forgotten }) {
    if (text === null) return [key, countKey(key)].forEach((each) => this.#storage.removeItem(each));
    if (forgotten !== this.#countOf(key)) this.#storage.setItem(countKey(key), String(forgotten));
    this.#storage.setItem(key, text);
  }

  /** How often the key had been forgotten when its text was written. */
  #countOf(key) {
    const count = Number(this.#storage.getItem(countKey(key)));
    return Number.isSafeInteger(count) && count > 0 ? count : 0;
  }
}
