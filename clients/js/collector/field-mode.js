/**
 * Field mode, /take-part?field: many people take part on one device, one after the other. A person's record exists only in the memory of the
 * page, and a receipt shows no sample. The page starts again for the next person: by a click, some time after the receipt, or after a long time
 * without input.
 */
const [WARN_AFTER, WARNING_TIME, THANKS_TIME] = [120, 30, 20]; // seconds: without input until the warning, from the warning to the next person, and after a receipt
const TOUCHES = ["click", "keydown", "input", "wheel", "touchmove"]; // without pointerdown: it would hide the warning, and so move the page under the click

export const isFieldMode = (search = location.search) => new URLSearchParams(search).has("field");

/** A storage that lasts as long as the page. */
export class PageMemory {
  #values = new Map();
  getItem = (key) => this.#values.get(key) ?? null;
  setItem = (key, value) => void this.#values.set(key, value);
  removeItem = (key) => void this.#values.delete(key);
}

/** Start again for the next person. The page is emptied first, so that it is empty even if the browser shows it again from memory. */
export function startNextTurn() {
  document.querySelector("main").replaceChildren();
  location.reload();
}

/** The time of one person at the page. `say(left, done)` gets the seconds that are left, null if no countdown is due. `done`: it was sent. */
export class Turn {
  #say;
  #left = Infinity; // seconds
  #busy = false;
  #done = false;

  constructor(say) {
    this.#say = say;
    for (const kind of TOUCHES) addEventListener(kind, () => this.#done || this.#touch(), { capture: true, passive: true });
    addEventListener("pagehide", () => document.querySelector("main").replaceChildren());
    addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
    setInterval(() => this.#tick(), 1000);
  }

  /** Whether a request is being sent. The page waits for it without a time limit. */
  set busy(value) {
    this.#busy = value;
    if (!this.#done) this.#touch();
  }

  /** The sample was sent: show the thanks for a while. */
  end() {
    this.#done = true;
    this.#left = THANKS_TIME;
    this.#say(this.#left, true);
  }

  #touch() {
    this.#left = WARN_AFTER + WARNING_TIME;
    this.#say(null, false);
  }

  #tick() {
    if (this.#busy || this.#left === Infinity) return;
    this.#left -= 1;
    if (this.#left <= 0) {
      this.#left = Infinity; // so that it happens once
      startNextTurn();
    } else if (this.#done || this.#left <= WARNING_TIME) this.#say(this.#left, this.#done);
  }
}
