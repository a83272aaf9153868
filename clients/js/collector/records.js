/**
 * A person's records as they enter them: a count for each outcome, by its number, and apart from these the entries that are not on the list.
 *
 * The entries stay on the page and are not stored: no field has a name, browsers are told not to keep the values, and `forget` in take-part.js
 * empties them. An entry that is not on the list is accepted. It counts by the rule of the agreement, is shown, and can be corrected.
 */
import { formatNumber, phrase } from "../page/catalogue.js";
import { element } from "../page/element.js";
import { entriesOf, isCount, LARGEST_COUNT } from "../page/rows.js";
import { foldText, placesContaining, suggestedPlaces } from "../page/search.js";
import { quotedLabel, visibleLabel } from "../page/words.js";

const MOST_LISTED = 12; // if there are more outcomes, only those with a count have a row
const FIRST_OFFERED = 8; // outcomes of a longer list that are offered before somebody asks for more
const MORE_OFFERED = 100;
const MOST_SHOWN = 200; // outcomes with a row of their own, at most
const MOST_UNLISTED = 20; // entries that are not on the list and have a row of their own, at most

/** Which numbers are allowed, in a domain without labels. */
export const allowedValues = ({ low, high, size }) => (low === undefined ? phrase("a-whole-number", { most: size - 1 }) : phrase("a-number", { low, high }));

/** The name of the choice for a person who has none of the outcomes. */
export const noneLabel = ({ labels }) => phrase(labels ? "none-of-these" : "no-number");

/** Ways to compare an entry with labels, the strictest first. If one of them makes two labels equal, the entry means the first label. */
const NORMALISATIONS = [(name) => name, (name) => name.trim(), foldText];
const namesByDomain = new WeakMap();
function namesOf(domain) {
  if (!namesByDomain.has(domain)) {
    const last = domain.labels.map((label, place) => [String(label), place]).reverse(); // so that of equal names the first label stays
    namesByDomain.set(domain, NORMALISATIONS.map((like) => new Map(last.map(([name, place]) => [like(name), place]))));
  }
  return namesByDomain.get(domain);
}

/** The outcome that a text means, -1 if it means none. */
export function outcomeOf(domain, text) {
  if (!domain.labels) {
    const meant = text.trim();
    return meant ? domain.number(Number(meant)) : -1;
  }
  for (const [way, names] of namesOf(domain).entries()) {
    const found = names.get(NORMALISATIONS[way](text));
    if (found !== undefined) return found;
  }
  return -1;
}

/** Attributes by which browsers neither store the value of a field nor send it to a spelling checker. */
const NOT_STORED = { autocomplete: "off", autocorrect: "off", autocapitalize: "off", spellcheck: "false" };

export class Records {
  counts = new Map(); // by the number of the outcome
  unlisted = new Map(); // by text, of entries that are not on the list
  none = 0; // how often "none of these" was chosen

  constructor(domain, parts, onchange) {
    Object.assign(this, { domain, parts, onchange, rows: new Map(), asked: FIRST_OFFERED });
    if (domain.size <= MOST_LISTED) for (let place = 0; place < domain.size; place++) this.#row(place);
    this.noneRow = this.#counterRow(noneLabel(domain), () => this.none, (count) => (this.none = count));
    this.noneRow.line.classList.add("none");
    parts.list.append(this.noneRow.line);
    this.offer("");
  }

  /** How many entries there are. */
  get total() {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0) + this.outside;
  }

  /** How many of them are not on the list. */
  get outside() {
    return [...this.unlisted.values()].reduce((sum, count) => sum + count, this.none);
  }

  /** The entries in the form that `Agreement.law` takes; null if there are none. */
  get personData() {
    const { domain } = this;
    const counts = [...this.counts].map(([place, count]) => [domain.labels ? domain.named(place) : place, count]);
    for (const [text, count] of this.unlisted) if (this.#nearestEnd(text) >= 0) counts.push([this.#nearestEnd(text), count]);
    const lost = this.outside - [...this.unlisted].reduce((sum, [text, count]) => sum + (this.#nearestEnd(text) >= 0 ? count : 0), 0);
    const given = new Map();
    for (const [name, count] of counts) given.set(name, (given.get(name) ?? 0) + count);
    if (lost) given.set({}, lost); // an object is no outcome of any domain
    return this.total ? { counts: given } : null;
  }

  /** The outcome at the nearest end of an interval, for a number outside it; -1 if there is none. */
  #nearestEnd(text) {
    return text.trim() ? this.domain.nearest(Number(text)) : -1;
  }

  /** Add one record of what was typed. */
  add(text) {
    this.#change(() => {
      const place = outcomeOf(this.domain, text);
      if (place < 0 && !text.trim()) throw new Error(phrase("type-first"));
      this.#addCount(place, text.trim(), 1);
    });
  }

  /** Replace all entries by rows that were pasted. */
  paste(text) {
    this.#change(() => {
      const found = entriesOf(text);
      if (!found.length) throw new Error(phrase("nothing-pasted"));
      this.#empty();
      for (const [label, count] of found) this.#addCount(outcomeOf(this.domain, label), label, count);
    });
  }

  /** Remove all entries, and empty their fields. */
  clear() {
    this.#change(() => this.#empty());
  }

  #empty() {
    this.counts.clear();
    for (const [place, row] of this.rows) {
      row.show();
      if (this.domain.size <= MOST_LISTED) continue;
      row.line.remove(); // in a long list only outcomes with a count have a row
      this.rows.delete(place);
    }
    this.unlisted.clear();
    this.none = 0;
    this.noneRow.show();
  }

  /** Add to the count of an outcome, or of a text that is not on the list. */
  #addCount(place, text, count) {
    if (place >= 0) this.#setCount(place, Math.min((this.counts.get(place) ?? 0) + count, LARGEST_COUNT));
    else this.unlisted.set(text, Math.min((this.unlisted.get(text) ?? 0) + count, LARGEST_COUNT));
  }

  #setCount(place, count) {
    this.counts.set(place, count);
    const row = this.rows.get(place) ?? (this.rows.size < MOST_SHOWN && count ? this.#row(place) : null);
    row?.show();
  }

  #showChanges() {
    const hidden = [...this.counts].filter(([place, count]) => count && !this.rows.has(place)).length;
    this.parts.rest.textContent = hidden ? phrase("more-counted", { n: hidden }) : "";
    this.#showUnlisted();
    this.onchange();
  }

  /** Show buttons for the outcomes that contain what is typed. A short list needs none, since all its outcomes have a row. */
  offer(text) {
    const { domain, parts: { offered, offeredTold, moreOffered } } = this;
    if (!domain.labels || domain.size <= MOST_LISTED) return;
    if (text !== this.sought) [this.sought, this.asked] = [text, FIRST_OFFERED];
    const found = placesContaining(domain.labels, text);
    const near = found.length ? [] : suggestedPlaces(domain.labels, text);
    const shown = found.length ? found.slice(0, this.asked) : near;
    offered.replaceChildren(...shown.map((place) => element("li", {}, this.#offerButton(place, () => this.#change(() => this.#addCount(place, "", 1))))));
    offeredTold.textContent = found.length
      ? phrase(text.trim() ? "offered-matching" : "offered-all", { n: found.length, size: domain.size })
      : phrase(near.length ? "did-you-mean" : "none-matches-here");
    moreOffered.hidden = found.length <= this.asked;
    moreOffered.textContent = phrase("show-more", { n: Math.min(MORE_OFFERED, found.length - this.asked) });
  }

  offerMore() {
    this.asked += MORE_OFFERED;
    this.offer(this.sought);
  }

  #offerButton(place, onclick) {
    const name = visibleLabel(this.domain.name(place));
    return element("button", { type: "button", class: "plain", "aria-label": phrase("add-named", { name }), onclick }, element("bdi", {}, name));
  }

  /** Show the entries that are not on the list, each with suggestions and a button to take it out. */
  #showUnlisted() {
    const { domain, parts: { strange } } = this;
    const replaced = (text, place) => () => this.#change(() => {
      const count = this.unlisted.get(text);
      this.unlisted.delete(text);
      if (place !== undefined) this.#addCount(place, "", count);
    });
    const rows = [...this.unlisted].slice(0, MOST_UNLISTED).map(([text, count]) => {
      const name = visibleLabel(text);
      const meant = domain.labels ? suggestedPlaces(domain.labels, text) : [];
      return element(
        "li", {},
        element("bdi", { class: "name" }, name), element("span", { class: "count" }, count === 1 ? "" : ` × ${formatNumber(count)}`),
        element("span", { class: "buttons" },
          ...meant.map((place) => element("button", { type: "button", class: "plain", "aria-label": phrase("means", { name, outcome: visibleLabel(domain.name(place)) }), onclick: replaced(text, place) }, phrase("i-mean"), " ", element("bdi", {}, visibleLabel(domain.name(place))))),
          element("button", { type: "button", class: "plain", "aria-label": phrase("take-out-named", { name }), onclick: replaced(text) }, phrase("take-out")),
        ),
      );
    });
    const more = this.unlisted.size - rows.length;
    strange.replaceChildren(...rows, ...(more > 0 ? [element("li", {}, phrase("so-many-more", { n: more }))] : []));
  }

  #row(place) {
    const row = this.#counterRow(visibleLabel(this.domain.name(place)), () => this.counts.get(place) ?? 0, (count) => this.counts.set(place, count));
    this.noneRow ? this.noneRow.line.before(row.line) : this.parts.list.append(row.line);
    this.rows.set(place, row);
    return row;
  }

  /** A row with a field for a count, and buttons for one fewer and one more. */
  #counterRow(name, read, write) {
    const set = (count) => this.#change(() => {
      if (!isCount(count)) throw new Error(phrase("no-count", { most: LARGEST_COUNT }));
      write(count);
      show();
    });
    const field = element("input", {
      type: "number", min: 0, step: 1, value: 0, inputmode: "numeric", "aria-label": phrase("how-many-of", { name }), ...NOT_STORED,
      oninput: () => set(field.value === "" ? 0 : Number(field.value)),
    });
    const less = element("button", { type: "button", class: "plain", disabled: true, "aria-label": phrase("one-fewer-of", { name }), onclick: () => set(read() - 1) }, "−");
    const more = element("button", { type: "button", class: "plain", "aria-label": phrase("one-more-of", { name }), onclick: () => set(read() + 1) }, "+");
    const line = element("li", {}, element("bdi", { class: "name" }, name), element("span", { class: "stepper" }, less, field, more));
    const show = () => {
      const count = read();
      if (document.activeElement !== field || Number(field.value) !== count) field.value = count;
      less.disabled = !count;
      line.classList.toggle("some", count > 0);
    };
    return { line, show };
  }

  #change(change) {
    this.parts.problem.textContent = "";
    try {
      change();
      this.#showChanges();
    } catch (error) {
      this.parts.problem.textContent = error.message;
    }
  }
}

/** How entries that are not on the list are counted, in words; empty if there are none. `left`: whether any entry still counts. */
export function outsideText({ total, outside }, { domain, other }, left) {
  if (!outside) return "";
  const rule = domain.interval ? "interval" : other !== undefined ? "other" : "left-out";
  const values = { n: outside, total, low: domain.low, high: domain.high, other: other === undefined ? "" : quotedLabel(domain.name(other)) };
  const of = phrase(`${total === 1 ? "entry" : outside === total ? "all-entries" : "some-entries"}-outside${domain.interval ? "-interval" : ""}`, values);
  const how = phrase(`counts-${rule}`, values) + (left || rule === "other" ? "" : phrase("and-not-looking"));
  return `${of} ${how}. ${phrase("can-correct")}`;
}
