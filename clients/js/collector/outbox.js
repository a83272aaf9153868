/**
 * Requests that a person sent, and that nobody has answered yet. They are kept in the browser until they are, so that a lost network loses nothing:
 * the same text goes out under the same key, and is counted once. What is kept is what would leave anyway: a sample that was drawn and charged before.
 *
 * Field mode keeps nothing of a person, and so no request either, unless the address says `offline`: then a request waits here without any record.
 * Waiting requests leave in an order by chance, which does not tell in which order people came.
 */
import { Refused } from "./service.js";
import { ownStorage } from "./speaker.js";

const KEY = "discreet outbox";

export const isOffline = (search = location.search) => new URLSearchParams(search).has("offline");

export class Outbox {
  #storage;
  #locks;

  constructor({ storage = ownStorage(), locks = navigator.locks } = {}) {
    [this.#storage, this.#locks] = [storage, locks];
  }

  /** [{key, text, record, collection, round}]: what waits. `record`: the name of the person's record, undefined where there is none. */
  get waiting() {
    try {
      const found = JSON.parse(this.#storage.getItem(KEY) ?? "[]");
      return Array.isArray(found) ? found.filter(({ key, text }) => typeof key === "string" && typeof text === "string") : [];
    } catch {
      return []; // what is not ours is not sent
    }
  }

  async keep(request) {
    await this.#change((waiting) => [...waiting.filter(({ key }) => key !== request.key), request]);
  }

  async drop(key) {
    await this.#change((waiting) => waiting.filter((each) => each.key !== key));
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

  /** Send what waits, once each, but what `except` names. `heard(request, answer)` is told of every answer; a refusal ends the waiting as well. */
  async send(post, heard, except) {
    const order = this.waiting.filter(({ key }) => key !== except).map((request) => [crypto.getRandomValues(new Uint32Array(1))[0], request]);
    for (const [, request] of order.sort(([one], [other]) => one - other)) {
      try {
        const answer = await post(request.text);
        await heard(request, answer);
      } catch (error) {
        if (!(error instanceof Refused)) return; // later
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
