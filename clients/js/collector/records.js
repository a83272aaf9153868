/**
 * What a person holds, as they enter it: how often each outcome, by its number, and apart from these what is not on the list.
 *
 * It stays on the page, and nothing of it is stored: no field has a name, browsers are told not to keep their values, and `forget` empties them.
 * Nothing that somebody enters is refused. What is not on the list counts by the rule of the agreement, is shown, and can be corrected.
 */
import { numbered, phrase } from "../page/catalogue.js";
import { element } from "../page/element.js";
import { entriesOf, isCount, LARGEST_COUNT } from "../page/rows.js";
import { containing, folded, suggested } from "../page/search.js";
import { labelled, quotedLabel } from "../page/words.js";

const ALL = 12; // outcomes that are all there to be clicked on; of more, those that are held
const FIRST_OFFERED = 8; // of a longer list, before somebody asks for more
const MORE_OFFERED = 100;
const MOST_SHOWN = 200; // outcomes with a row of their own
const MOST_STRANGE = 20; // entries that are not on the list, with a row of their own

/** What records are, where they are no labels. */
export const allowed = ({ low, high, size }) => (low === undefined ? phrase("a-whole-number", { most: size - 1 }) : phrase("a-number", { low, high }));

/** What somebody chooses who holds nothing of it. */
export const noneOf = ({ labels }) => phrase(labels ? "none-of-these" : "no-number");

/** Outcomes by what people may call them: a label as it is, or nearly. Of two that differ in that alone, the first. */
const LIKE = [(name) => name, (name) => name.trim(), folded];
const called = new WeakMap();
function namesOf(domain) {
  if (!called.has(domain)) {
    const last = domain.labels.map((label, place) => [String(label), place]).reverse(); // so that the first stays
    called.set(domain, LIKE.map((like) => new Map(last.map(([name, place]) => [like(name), place]))));
  }
  return called.get(domain);
}

/** The outcome that a text means, -1 if it means none. */
export function outcomeOf(domain, text) {
  if (!domain.labels) {
    const meant = text.trim();
    return meant ? domain.number(Number(meant)) : -1;
  }
  for (const [way, names] of namesOf(domain).entries()) {
    const found = names.get(LIKE[way](text));
    if (found !== undefined) return found;
  }
  return -1;
}

/** What keeps a field's value out of what browsers store, and of what they send to check the spelling. */
const UNKEPT = { autocomplete: "off", autocorrect: "off", autocapitalize: "off", spellcheck: "false" };

export class Records {
  counts = new Map(); // by outcome
  strange = new Map(); // by text, of what is not on the list
  none = 0; // how often "none of these"

  constructor(domain, parts, onchange) {
    Object.assign(this, { domain, parts, onchange, rows: new Map(), asked: FIRST_OFFERED });
    if (domain.size <= ALL) for (let place = 0; place < domain.size; place++) this.#row(place);
    this.noneRow = this.#stepper(noneOf(domain), () => this.none, (count) => (this.none = count));
    this.noneRow.line.classList.add("none");
    parts.list.append(this.noneRow.line);
    this.offer("");
  }

  /** How many entries there are, and how many of them are not on the list. */
  get total() {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0) + this.outside;
  }

  get outside() {
    return [...this.strange.values()].reduce((sum, count) => sum + count, this.none);
  }

  /** As a law is made of it; null where nothing was entered. */
  get held() {
    const { domain } = this;
    const counts = [...this.counts].map(([place, count]) => [domain.labels ? domain.named(place) : place, count]);
    for (const [text, count] of this.strange) if (this.#end(text) >= 0) counts.push([this.#end(text), count]);
    const lost = this.outside - [...this.strange].reduce((sum, [text, count]) => sum + (this.#end(text) >= 0 ? count : 0), 0);
    const given = new Map();
    for (const [name, count] of counts) given.set(name, (given.get(name) ?? 0) + count);
    if (lost) given.set({}, lost); // which is no outcome, whatever the list
    return this.total ? { counts: given } : null;
  }

  /** The nearest end of an interval, for a number that is outside. */
  #end(text) {
    return text.trim() ? this.domain.nearest(Number(text)) : -1;
  }

  /** One more of what was typed. */
  add(text) {
    this.#change(() => {
      const place = outcomeOf(this.domain, text);
      if (place < 0 && !text.trim()) throw new Error(phrase("type-first"));
      this.#count(place, text.trim(), 1);
    });
  }

  /** Rows that were pasted, in place of what was there. */
  paste(text) {
    this.#change(() => {
      const found = entriesOf(text);
      if (!found.length) throw new Error(phrase("nothing-pasted"));
      this.#empty();
      for (const [label, count] of found) this.#count(outcomeOf(this.domain, label), label, count);
    });
  }

  /** Empty everything, and every field. */
  clear() {
    this.#change(() => this.#empty());
  }

  #empty() {
    this.counts.clear();
    for (const [place, row] of this.rows) {
      row.show();
      if (this.domain.size <= ALL) continue;
      row.line.remove(); // of a long list those that are held have a row
      this.rows.delete(place);
    }
    this.strange.clear();
    this.none = 0;
    this.noneRow.show();
  }

  /** So many more of an outcome, or of a text that is none. */
  #count(place, text, count) {
    if (place >= 0) this.#write(place, Math.min((this.counts.get(place) ?? 0) + count, LARGEST_COUNT));
    else this.strange.set(text, Math.min((this.strange.get(text) ?? 0) + count, LARGEST_COUNT));
  }

  #write(place, count) {
    this.counts.set(place, count);
    const row = this.rows.get(place) ?? (this.rows.size < MOST_SHOWN && count ? this.#row(place) : null);
    row?.show();
  }

  #changed() {
    const hidden = [...this.counts].filter(([place, count]) => count && !this.rows.has(place)).length;
    this.parts.rest.textContent = hidden ? phrase("more-counted", { n: hidden }) : "";
    this.#showStrange();
    this.onchange();
  }

  /** The outcomes that contain what is typed, to be clicked on; of a short list all are there already. */
  offer(text) {
    const { domain, parts: { offered, offeredTold, moreOffered } } = this;
    if (!domain.labels || domain.size <= ALL) return;
    if (text !== this.sought) [this.sought, this.asked] = [text, FIRST_OFFERED];
    const found = containing(domain.labels, text);
    const near = found.length ? [] : suggested(domain.labels, text);
    const shown = found.length ? found.slice(0, this.asked) : near;
    offered.replaceChildren(...shown.map((place) => element("li", {}, this.#choice(place, () => this.#change(() => this.#count(place, "", 1))))));
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

  #choice(place, onclick) {
    const name = labelled(this.domain.name(place));
    return element("button", { type: "button", class: "plain", "aria-label": phrase("add-named", { name }), onclick }, element("bdi", {}, name));
  }

  /** The entries that are not on the list: what they may mean, and a way to take each out. */
  #showStrange() {
    const { domain, parts: { strange } } = this;
    const replaced = (text, place) => () => this.#change(() => {
      const count = this.strange.get(text);
      this.strange.delete(text);
      if (place !== undefined) this.#count(place, "", count);
    });
    const rows = [...this.strange].slice(0, MOST_STRANGE).map(([text, count]) => {
      const name = labelled(text);
      const meant = domain.labels ? suggested(domain.labels, text) : [];
      return element(
        "li", {},
        element("bdi", { class: "name" }, name), element("span", { class: "count" }, count === 1 ? "" : ` × ${numbered(count)}`),
        element("span", { class: "buttons" },
          ...meant.map((place) => element("button", { type: "button", class: "plain", "aria-label": phrase("means", { name, outcome: labelled(domain.name(place)) }), onclick: replaced(text, place) }, phrase("i-mean"), " ", element("bdi", {}, labelled(domain.name(place))))),
          element("button", { type: "button", class: "plain", "aria-label": phrase("take-out-named", { name }), onclick: replaced(text) }, phrase("take-out")),
        ),
      );
    });
    const more = this.strange.size - rows.length;
    strange.replaceChildren(...rows, ...(more > 0 ? [element("li", {}, phrase("so-many-more", { n: more }))] : []));
  }

  #row(place) {
    const row = this.#stepper(labelled(this.domain.name(place)), () => this.counts.get(place) ?? 0, (count) => this.counts.set(place, count));
    this.noneRow ? this.noneRow.line.before(row.line) : this.parts.list.append(row.line);
    this.rows.set(place, row);
    return row;
  }

  /** A row: fewer, how many, more. */
  #stepper(name, read, write) {
    const set = (count) => this.#change(() => {
      if (!isCount(count)) throw new Error(phrase("no-count", { most: LARGEST_COUNT }));
      write(count);
      show();
    });
    const field = element("input", {
      type: "number", min: 0, step: 1, value: 0, inputmode: "numeric", "aria-label": phrase("how-many-of", { name }), ...UNKEPT,
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
      this.#changed();
    } catch (error) {
      this.parts.problem.textContent = error.message;
    }
  }
}

/** What becomes of entries that are not on the list, in a sentence; empty where there are none. `left`: whether anything is left. */
export function outsideTold({ total, outside }, { domain, other }, left) {
  if (!outside) return "";
  const rule = domain.interval ? "interval" : other !== undefined ? "other" : "left-out";
  const values = { n: outside, total, low: domain.low, high: domain.high, other: other === undefined ? "" : quotedLabel(domain.name(other)) };
  const of = phrase(`${total === 1 ? "entry" : outside === total ? "all-entries" : "some-entries"}-outside${domain.interval ? "-interval" : ""}`, values);
  const how = phrase(`counts-${rule}`, values) + (left || rule === "other" ? "" : phrase("and-not-looking"));
  return `${of} ${how}. ${phrase("can-correct")}`;
}
