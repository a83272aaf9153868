/**
 * Requests that a person sent, and that nobody has answered yet. They are kept in the browser until they are, so that a lost network loses nothing:
 * the same text goes out under the same key, and is counted once. What is kept is what would leave anyway: a sample that was drawn and charged before.
 *
 * A request goes to the collector whose page it was sent from, and to no other: a site may have several, under paths of their own, and all of them see
 * one storage. So its address is kept with it, and only pages with that address send it. What a collector refuses for good is told by its number.
 *
 * Field mode keeps nothing of a person, and so no request either, unless the address says `offline`: then a request waits here without any record. Where
 * tokens are asked for, the request holds the person's, which waits with it.
 * Waiting requests leave in an order by chance, which does not tell in which order people came.
 */
import { Refused } from "./service.js";
import { ownStorage } from "./participation.js";

const KEY = "discreet outbox";
const REFUSED = "discreet refused"; // {n, said}: of what waited here, and the service's last sentence about it

export const isOffline = (search = location.search) => new URLSearchParams(search).has("offline");

export class Outbox {
  #storage;
  #locks;

  /** `address`: where requests of this page go. */
  constructor({ storage = ownStorage(), locks = navigator.locks, address = `${new URL("samples", location.href)}` } = {}) {
    [this.#storage, this.#locks, this.address] = [storage, locks, address];
  }

  /** [{key, text, address, record, collection, round}]: what waits, for whichever collector. `record`: the name of the person's record, undefined where there is none. */
  get waiting() {
    try {
      const found = JSON.parse(this.#storage.getItem(KEY) ?? "[]");
      return Array.isArray(found) ? found.filter(({ key, text }) => typeof key === "string" && typeof text === "string") : [];
    } catch {
      return []; // what is not ours is not sent
    }
  }

  /** What waits for the collector of this page. Requests of earlier versions have no address, and go where their collection is. */
  waitingFor(collection) {
    return this.waiting.filter((each) => (each.address === undefined ? each.collection === collection : each.address === this.address));
  }

  async keep(request) {
    await this.#change((waiting) => [...this.#without(waiting, request.key), { ...request, address: this.address }]);
  }

  async drop(key) {
    await this.#change((waiting) => this.#without(waiting, key));
  }

  /** One agreement at two collectors makes one key. */
  #without(waiting, key) {
    return waiting.filter((each) => each.key !== key || (each.address ?? this.address) !== this.address);
  }

  /** {n, said}: how many requests that waited were refused for good, which nobody has read of yet; undefined where none was. */
  get refused() {
    try {
      const found = JSON.parse(this.#storage.getItem(REFUSED));
      return Number.isSafeInteger(found?.n) && typeof found.said === "string" ? found : undefined;
    } catch {
      return undefined; // what is not ours is not said
    }
  }

  async #countRefused({ message }) {
    await this.#locks.request(KEY, () => this.#storage.setItem(REFUSED, JSON.stringify({ n: 1 + (this.refused?.n ?? 0), said: message })));
  }

  /** The person has read of it. */
  async dismissRefused() {
    await this.#locks.request(KEY, () => this.#storage.removeItem(REFUSED));
  }

  async dropRecord(name) {
    await this.#change((waiting) => waiting.filter(({ record }) => record !== name));
  }

  async #change(change) {
    await this.#locks.request(KEY, () => {
      const left = change(this.waiting);
      left.length ? this.#storage.setItem(KEY, JSON.stringify(left)) : this.#storage.removeItem(KEY);
    });
  }

  /** Send what waits for the collector of this page, once each, but what `except` names. `heard(request, answer)` is told of every answer; a refusal ends the waiting as well, and is counted. */
  async send(post, heard, collection, except) {
    const order = this.waitingFor(collection).filter(({ key }) => key !== except).map((request) => [crypto.getRandomValues(new Uint32Array(1))[0], request]);
    for (const [, request] of order.sort(([one], [other]) => one - other)) {
      try {
        const answer = await post(request.text);
        await heard(request, answer);
      } catch (error) {
        if (!(error instanceof Refused)) return; // later
        await this.#countRefused(error);
      }
      await this.drop(request.key);
    }
  }
}

/** Let the page be opened without a network from now on; resolves to whether it can be. */
export async function keepPage() {
  try {
    await navigator.serviceWorker.register("worker.js");
  } catch {
    return false; // a browser that has no workers, or may not run them here
  }
  const { active } = await navigator.serviceWorker.ready;
  const addresses = [location.href.split("#")[0], ...performance.getEntriesByType("resource").map(({ name }) => name)];
  await new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = resolve;
    active.postMessage({ addresses }, [channel.port2]);
  });
  return true;
}
