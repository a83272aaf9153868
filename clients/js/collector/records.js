/** What a person holds, as they enter it: how often each outcome, by its number. It stays on the page, and nothing of it is stored. */
import { element } from "../page/element.js";
import { countsOf, isCount } from "../page/rows.js";
import { isolated, labelled } from "../page/words.js";

const ALL = 12; // outcomes that are all there to be clicked on; of more, those that are held
const MOST_OFFERED = 1000; // in the list that a field offers
const MOST_LABELS = 100_000; // of a paste
const MOST_SHOWN = 200; // outcomes with a row of their own

/** What records are, where they are no labels. */
export const allowed = ({ low, high, size }) => (low === undefined ? `a whole number from 0 to ${size - 1}` : `a number from ${low} to ${high}`);

/** Outcomes by what people may call them: a label as it is, or nearly. Of two that differ in that alone, the first. */
const LIKE = [(name) => name, (name) => name.trim(), (name) => name.trim().toLowerCase()];
const called = new WeakMap();
function namesOf(domain) {
  if (!called.has(domain)) {
    const last = domain.labels.map((label, place) => [String(label), place]).reverse(); // so that the first stays
    called.set(domain, LIKE.map((like) => new Map(last.map(([name, place]) => [like(name), place]))));
  }
  return called.get(domain);
}

/** The outcome that a text means; what is none is said. */
export function outcomeOf(domain, text) {
  const meant = text.trim();
  if (!domain.labels) {
    const found = meant && Number.isFinite(Number(meant)) ? domain.number(Number(meant)) : -1;
    if (found < 0) throw new Error(`${isolated(text)} is not ${allowed(domain)}.`);
    return found;
  }
  for (const [way, names] of namesOf(domain).entries()) {
    const found = names.get(LIKE[way](text));
    if (found !== undefined) return found;
  }
  throw new Error(`${isolated(text)} is none of the ${domain.size.toLocaleString("en")} outcomes.`);
}

export class Records {
  counts = new Map();

  constructor(domain, { list, offered, problem, rest }, onchange) {
    Object.assign(this, { domain, list, problem, rest, onchange, rows: new Map() });
    if (domain.size <= ALL) for (let place = 0; place < domain.size; place++) this.#row(place);
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
      const found = [...countsOf(text, MOST_LABELS)].map(([label, count]) => [outcomeOf(this.domain, label), count]);
      for (const place of this.counts.keys()) this.#write(place, 0);
      for (const [place, count] of found) this.#write(place, (this.counts.get(place) ?? 0) + count);
      this.#changed();
    });
  }

  clear() {
    this.#said(() => {
      for (const place of this.counts.keys()) this.#write(place, 0);
      this.#changed();
    });
  }

  set(place, count) {
    this.#write(place, count);
    this.#changed();
  }

  #write(place, count) {
    if (!isCount(count)) throw new Error("A count is a whole number from 0 to 1,000,000,000.");
    this.counts.set(place, count);
    const row = this.rows.get(place) ?? (this.rows.size < MOST_SHOWN && count ? this.#row(place) : null);
    if (!row) return;
    if (document.activeElement !== row.field || Number(row.field.value) !== count) row.field.value = count;
    row.less.disabled = !count;
    row.line.classList.toggle("some", count > 0);
  }

  #changed() {
    const hidden = [...this.counts].filter(([place, count]) => count && !this.rows.has(place)).length;
    this.rest.textContent = hidden ? `${hidden.toLocaleString("en")} more are counted, and not listed here.` : "";
    this.onchange();
  }

  /** The row of an outcome: fewer, how many, more. */
  #row(place) {
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
