/**
 * Field mode, /take-part?field: many people take part on one device, one after the other. What a person's page remembers is in its memory alone,
 * a receipt shows no sample, and the page starts anew for the next one: by their click, after the receipt, or when nobody has touched it for long.
 */
const [WARNED, LEFT, THANKED] = [120, 30, 20]; // seconds untouched until a warning, from there to the next person, and after a receipt
const TOUCHES = ["click", "keydown", "input", "wheel", "touchmove"]; // and no pointerdown: what it hides would move the page under the click

export const inField = (search = location.search) => new URLSearchParams(search).has("field");

/** A storage that is gone with the page. */
export class PageMemory {
  #held = new Map();
  getItem = (key) => this.#held.get(key) ?? null;
  setItem = (key, value) => void this.#held.set(key, value);
  removeItem = (key) => void this.#held.delete(key);
}

/** Start anew for the next person: nothing of this one stays, also where the page is shown again from memory. */
export function nextTurn() {
  document.querySelector("main").replaceChildren();
  location.reload();
}

/** The time of one person at the page. `say(left, done)` tells how many seconds are left of it, null where that is not at issue. */
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

  /** While something is being sent the page waits, however long that takes. */
  set busy(value) {
    this.#busy = value;
    if (!this.#done) this.#touch();
  }

  /** It was sent: thank the person for a while. */
  end() {
    this.#done = true;
    this.#left = THANKED;
    this.#say(this.#left, true);
  }

  #touch() {
    this.#left = WARNED + LEFT;
    this.#say(null, false);
  }

  #tick() {
    if (this.#busy || this.#left === Infinity) return;
    this.#left -= 1;
    if (this.#left <= 0) {
      this.#left = Infinity; // once
      nextTurn();
    } else if (this.#done || this.#left <= LEFT) this.#say(this.#left, this.#done);
  }
}
