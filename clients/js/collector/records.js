/** What a person holds, as they enter it: how often each outcome, by its number. It stays on the page, and nothing of it is stored. */
import { element } from "../page/element.js";
import { countsOf, isCount } from "../page/rows.js";
import { isolated, labelled } from "../page/words.js";

const ALL = 12; // outcomes that are all there to be clicked on; of more, those that are held
const MOST_OFFERED = 1000; // in the list that a field offers
const MOST_ROWS = 100_000;

/** What records are, where they are no labels. */
export const allowed = ({ low, high, size }) => (low === undefined ? `a whole number from 0 to ${size - 1}` : `a number from ${low} to ${high}`);

/** The outcome that a text means; what is none is said. */
export function outcomeOf(domain, text) {
  const meant = text.trim();
  if (!domain.labels) {
    const found = meant && Number.isFinite(Number(meant)) ? domain.number(Number(meant)) : -1;
    if (found < 0) throw new Error(`${isolated(text)} is not ${allowed(domain)}.`);
    return found;
  }
  for (const like of [(name) => name === text, (name) => name.trim() === meant, (name) => name.trim().toLowerCase() === meant.toLowerCase()]) {
    const found = domain.labels.findIndex((label) => like(String(label)));
    if (found >= 0) return found;
  }
  throw new Error(`${isolated(text)} is none of the ${domain.size.toLocaleString("en")} outcomes.`);
}

export class Records {
  counts = new Map();

  constructor(domain, { list, entry, offered, problem }, onchange) {
    Object.assign(this, { domain, list, entry, problem, onchange, rows: new Map() });
    if (domain.size <= ALL) for (let place = 0; place < domain.size; place++) this.row(place);
    const names = domain.labels ? domain.labels.slice(0, MOST_OFFERED) : [];
    offered.replaceChildren(...names.map((label) => element("option", { value: String(label) })));
  }

  /** As a law is made of it; nothing where nothing is held. */
  get held() {
    const { domain } = this;
    const counts = new Map([...this.counts].filter(([, count]) => count).map(([place, count]) => [domain.labels ? domain.named(place) : place, count]));
    return counts.size ? { counts } : null;
  }

  /** One more of what was typed. */
  add(text) {
    this.#said(() => {
      const place = outcomeOf(this.domain, text);
      this.set(place, (this.counts.get(place) ?? 0) + 1);
    });
  }

  /** Rows that were pasted, in place of what was there. */
  paste(text) {
    this.#said(() => {
      const found = [...countsOf(text, MOST_ROWS)].map(([label, count]) => [outcomeOf(this.domain, label), count]);
      this.clear();
      for (const [place, count] of found) this.set(place, (this.counts.get(place) ?? 0) + count);
    });
  }

  clear() {
    for (const place of [...this.counts.keys()]) this.set(place, 0);
  }

  set(place, count) {
    if (!isCount(count)) throw new Error("A count is a whole number from 0 to 1,000,000,000.");
    this.counts.set(place, count);
    const { line, field, less } = this.row(place);
    if (document.activeElement !== field || Number(field.value) !== count) field.value = count;
    less.disabled = !count;
    line.classList.toggle("some", count > 0);
    this.onchange();
  }

  /** The row of an outcome: fewer, how many, more. */
  row(place) {
    if (this.rows.has(place)) return this.rows.get(place);
    const name = labelled(this.domain.name(place));
    const change = (by) => () => this.#said(() => this.set(place, (this.counts.get(place) ?? 0) + by));
    const field = element("input", {
      type: "number", min: 0, step: 1, value: 0, inputmode: "numeric", "aria-label": `How many of ${name}`,
      oninput: () => this.#said(() => this.set(place, field.value === "" ? 0 : Number(field.value))),
    });
    const less = element("button", { type: "button", class: "plain", disabled: true, "aria-label": `One fewer of ${name}`, onclick: change(-1) }, "−");
    const more = element("button", { type: "button", class: "plain", "aria-label": `One more of ${name}`, onclick: change(1) }, "+");
    const line = element("li", {}, element("bdi", { class: "name" }, name), element("span", { class: "stepper" }, less, field, more));
    this.list.append(line);
    this.rows.set(place, { line, field, less });
    return this.rows.get(place);
  }

  #said(change) {
    this.problem.textContent = "";
    try {
      change();
    } catch (error) {
      this.problem.textContent = error.message;
    }
  }
}
