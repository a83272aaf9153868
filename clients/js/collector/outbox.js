/**
 * Requests that a person sent and that are not answered yet. The browser keeps them until they are answered, so nothing is lost without a
 * network. The same text is sent again under the same key, and is counted once. A stored request contains only what would leave anyway: a
 * sample that was drawn and charged before.
 *
 * A request goes only to the collector whose page sent it. A site may have several collectors under paths of their own, and they share one
 * storage. So the address is stored with the request, and only pages with that address send it. Requests that a collector refuses for good are
 * counted, and the page shows their number.
 *
 * Field mode stores nothing of a person, and so no request, unless the address says `offline`. Then a request waits here without a record of the
 * person. In a collection with tokens, the waiting request contains the person's token.
 * Waiting requests leave in random order, which does not show the order in which people came.
 */
import { Refused } from "./service.js";
import { ownStorage, useStorage } from "./participation.js";

const KEY = "discreet outbox";
const REFUSED = "discreet refused"; // {n, said}: how many waiting requests were refused, and the service's last message

export const isOffline = (search = location.search) => new URLSearchParams(search).has("offline");

export class Outbox {
  #storage;
  #locks;

  /** `address`: where the requests of this page go. */
  constructor({ storage = ownStorage(), locks = navigator.locks, address = `${new URL("samples", location.href)}` } = {}) {
    [this.#storage, this.#locks, this.address] = [storage, locks, address];
  }

  /**
   * [{key, text, address, record, collection, round}]: the waiting requests, for all collectors. `record`: the name of the person's record,
   * undefined if there is none.
   */
  get waiting() {
    try {
      const found = JSON.parse(this.#storage.getItem(KEY) ?? "[]");
      return Array.isArray(found) ? found.filter(({ key, text }) => typeof key === "string" && typeof text === "string") : [];
    } catch {
      return []; // a text that this page did not write is not sent
    }
  }

  /** The requests that wait for the collector of this page. Those of earlier versions have no address, and match by collection. */
  waitingFor(collection) {
    return this.waiting.filter((each) => (each.address === undefined ? each.collection === collection : each.address === this.address));
  }

  async keep(request) {
    await this.#change((waiting) => [...this.#without(waiting, request.key), { ...request, address: this.address }]);
  }

  async drop(key) {
    await this.#change((waiting) => this.#without(waiting, key));
  }

  /** The waiting requests without that of a key to this page's collector. The same agreement at two collectors makes the same key. */
  #without(waiting, key) {
    return waiting.filter((each) => each.key !== key || (each.address ?? this.address) !== this.address);
  }

  /** {n, said}: how many waiting requests were refused for good since somebody last dismissed this; undefined if none was. */
  get refused() {
    try {
      const found = JSON.parse(this.#storage.getItem(REFUSED));
      return Number.isSafeInteger(found?.n) && typeof found.said === "string" ? found : undefined;
    } catch {
      return undefined; // a text that this page did not write is not shown
    }
  }

  async #countRefused({ message }) {
    await this.#locks.request(KEY, () => this.#storage.setItem(REFUSED, JSON.stringify({ n: 1 + (this.refused?.n ?? 0), said: message })));
  }

  /** Forget the refused requests, once the person has read about them. */
  async dismissRefused() {
    await this.#locks.request(KEY, () => this.#storage.removeItem(REFUSED));
  }

  async dropRecord(name) {
    await this.#change((waiting) => waiting.filter(({ record }) => record !== name));
  }

  async #change(change) {
    await this.#locks.request(KEY, () => {
      const left = change(this.waiting);
      useStorage(() => (left.length ? this.#storage.setItem(KEY, JSON.stringify(left)) : this.#storage.removeItem(KEY)));
    });
  }

  /**
   * Send each request that waits for the collector of this page once, except the one with the key `except`. `onAnswer(request, answer)` is
   * called with each answer. A refused request stops waiting too, and is counted.
   */
  async send(post, heard, collection, except) {
    const order = this.waitingFor(collection).filter(({ key }) => key !== except).map((request) => [crypto.getRandomValues(new Uint32Array(1))[0], request]);
    for (const [, request] of order.sort(([one], [other]) => one - other)) {
      try {
        const answer = await post(request.text);
        await heard(request, answer);
      } catch (error) {
        if (!(error instanceof Refused)) return; // try again later
        await this.#countRefused(error);
      }
      await this.drop(request.key);
    }
  }
}

/** Store the page, so that it can be opened without a network. Resolves to whether that is possible. */
export async function keepPage() {
  try {
    await navigator.serviceWorker.register("worker.js");
  } catch {
    return false; // the browser has no service workers, or may not run them here
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
