/**
 * A question in the words of its author: a public file beside the agreement, which names the outcomes and says whether a person may choose several.
 *
 * The file is no part of the agreement, and its texts do not change what is promised. The whole file, with all languages, has one digest. A page
 * opened by a link with the digest accepts no other file. A person who chooses several outcomes has all of them in equal shares. A person who
 * prefers not to say has no data: the sample is drawn without looking at them, and nobody can tell.
 */
import { pageLanguage, phrase } from "../page/catalogue.js";
import { element } from "../page/element.js";
import { placesContaining } from "../page/search.js";
import { visibleLabel } from "../page/words.js";
import { sha256 } from "../src/sha256.js";
import { allowedValues, outcomeOf } from "./records.js";
import { getText, Refused } from "./service.js";

const MOST_LISTED = 30; // a longer list shows only so many options, those that contain what somebody types
const DIGEST = /^[0-9a-f]{12,64}$/;

/** The first digits of the questions' digest, if the address has them after its #, which browsers do not send; otherwise undefined. */
function pinnedDigest() {
  const named = new URLSearchParams(location.hash.slice(1)).get("questions");
  return DIGEST.test(named) ? named : undefined;
}

/** The value of an object's own field. It is undefined for a missing one, also for inherited names such as "constructor". */
export const ownField = (object, name) => (object && Object.hasOwn(object, name) ? object[name] : undefined);

/**
 * The questions beside an agreement, in the person's language; undefined if there are none. `digest`: that of the questions in the collection.
 * `language`: preferred to the languages of the browser.
 */
export async function loadQuestions(id, digest, language = new URLSearchParams(location.search).get("lang"), service = "") {
  if (pinnedDigest() && !digest?.startsWith(pinnedDigest())) throw new Refused(phrase("other-questions"));
  if (!digest) return undefined;
  const document = await getText(`${service}questions`, { agreement: id });
  if (sha256(new TextEncoder().encode(document)) !== digest) throw new Refused(phrase("other-questions"));
  const { translations = {}, ...original } = JSON.parse(document);
  const versions = { [original.language]: original, ...translations };
  const wanted = [language, ...navigator.languages, pageLanguage()].filter(Boolean);
  const found = wanted.flatMap((code) => [code, code.split("-")[0]]).find((code) => Object.hasOwn(versions, code)) ?? original.language;
  const { columns } = original;
  const translated = columns && Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, { ...column, ...ownField(versions[found].columns, name) }]));
  return { ...original, ...versions[found], ...(columns ? { columns: translated } : {}), language: found, digest };
}

/** The name of an option in the words of the question, followed by the label in the agreement if that is different. */
export function optionText(question, name) {
  const words = ownField(question?.options, name);
  return words === undefined || words === name ? visibleLabel(name) : phrase("option", { words: visibleLabel(words), name: visibleLabel(name) });
}

/** A uniform random whole number below `size`, from the browser's generator. */
function randomBelow(size) {
  const most = 2 ** 32 - (2 ** 32 % size);
  for (;;) {
    const [drawn] = crypto.getRandomValues(new Uint32Array(1));
    if (drawn < most) return drawn % size;
  }
}

/** A question with its options. The choice stays on the page: no field has a name, and `clear` empties them. */
export class Choice {
  #chosen = new Set();
  #declined = false;
  #typed = "";

  /** `unit`: of numbers. `column`: whether it is the question of a survey's column. */
  constructor(domain, question, body, onchange, { unit, column = false } = {}) {
    const dated = domain.first !== undefined;
    Object.assign(this, { domain, question, onchange, column, several: question.choice === "multiple", typed: dated || !domain.labels });
    this.list = element("div", { class: "options" });
    const search = !this.typed && domain.size > MOST_LISTED;
    const limits = dated ? { type: "date", min: domain.first, max: domain.last } : this.typed ? { type: "number", step: domain.interval ? "any" : 1, min: domain.low ?? 0, max: domain.high ?? domain.size - 1 } : { type: "text" };
    this.field = element("input", { ...limits, autocomplete: "off", spellcheck: "false", oninput: () => this.#type() });
    this.more = element("small", { role: "status" });
    this.allowed = dated ? phrase("a-date", domain) : unit ? phrase("allowed-in-unit", { allowed: allowedValues(domain), unit }) : allowedValues(domain);
    const wanted = dated ? phrase("your-date", domain) : this.typed ? phrase("your-number", { allowed: this.allowed }) : phrase("find-option");
    const typed = element("label", { class: "field" }, wanted, this.field);
    body.replaceChildren(
      element("legend", { lang: question.language, dir: "auto" }, visibleLabel(question.title)),
      ...(question.text ? [element("p", { lang: question.language, dir: "auto" }, question.text)] : []),
      ...(this.several ? [element("p", { class: "quiet" }, phrase("several-told"))] : []),
      ...(search || this.typed ? [typed] : []), this.list, this.more,
    );
    this.#show();
  }

  get total() {
    return this.#chosen.size + this.#declined + this.outside;
  }

  /** 1 if a value was typed that is none of the outcomes, otherwise 0. It counts by the agreement's rule, and is not refused. */
  get outside() {
    return Number(this.typed && !this.#chosen.size && this.#typed.trim() !== "");
  }

  /**
   * Whether a survey's column has neither the typed value nor a nearest one. All answers of the person would be left out, so nothing is drawn
   * before it is corrected.
   */
  get wrong() {
    return this.column && this.outside === 1 && !(this.domain.nearest(Number(this.#typed)) >= 0);
  }

  /** The choice in the form that `Agreement.law` takes; null if nothing was chosen. */
  get personData() {
    if (!this.total) return null;
    const end = this.domain.nearest(Number(this.#typed));
    if (this.outside) return { counts: new Map([[end >= 0 ? end : {}, 1]]) };
    return { counts: new Map([...this.#chosen].map((place) => [this.domain.labels ? this.domain.named(place) : place, 1])) };
  }

  /** One value for the column of a survey: a random one of the chosen options, or of all options if the person prefers not to say. */
  get value() {
    if (this.outside) return Number(this.#typed); // it counts as the nearest end
    const chosen = [...this.#chosen];
    return this.domain.named(chosen.length ? chosen[randomBelow(chosen.length)] : randomBelow(this.domain.size));
  }

  /** The outcome that means "prefer not to say" in the agreement itself; -1 if there is none. */
  get #declineOutcome() {
    const { prefer_not_to_say: silent } = this.question;
    return typeof silent === "string" ? outcomeOf(this.domain, silent) : -1;
  }

  clear() {
    this.#chosen.clear();
    this.#declined = false;
    this.field.value = this.#typed = "";
    this.#show();
    this.onchange();
  }

  offer() {}

  #type() {
    this.#typed = this.field.value;
    if (this.typed) {
      const place = outcomeOf(this.domain, this.#typed);
      this.#declined = false;
      this.#chosen = new Set(place < 0 ? [] : [place]);
    }
    this.#show();
    this.onchange();
  }

  #choose(place, on) {
    const alone = !this.several || place === this.#declineOutcome || this.#chosen.has(this.#declineOutcome);
    if (alone || this.#declined) this.#chosen.clear();
    this.#declined = false;
    on ? this.#chosen.add(place) : this.#chosen.delete(place);
    if (this.typed) this.#clearField();
    this.#markAndNotify();
  }

  #clearField() {
    this.field.value = this.#typed = "";
    this.#showOutside();
  }

  #decline(on) {
    this.#chosen.clear();
    this.#declined = on;
    if (this.typed) this.#clearField();
    this.#markAndNotify();
  }

  /** Show all options, or of many only the first that contain what is typed. The chosen ones are always shown. */
  #show() {
    const { domain } = this;
    const silent = this.#declineOutcome;
    let places = [];
    if (!this.typed) {
      const found = domain.size > MOST_LISTED ? placesContaining(domain.labels, this.#typed) : Array.from({ length: domain.size }, (_, place) => place);
      places = [...new Set([...this.#chosen, ...found.slice(0, MOST_LISTED)])].filter((place) => place !== silent);
      this.more.textContent = found.length > MOST_LISTED ? phrase("more-options", { n: found.length - MOST_LISTED }) : found.length ? "" : phrase("none-matches");
    }
    const rows = places.map((place) => this.#optionRow(this.#optionWords(place), (on) => this.#choose(place, on), () => this.#chosen.has(place)));
    if (silent >= 0) rows.push(this.#optionRow(this.#optionWords(silent), (on) => this.#choose(silent, on), () => this.#chosen.has(silent)));
    else if (this.question.prefer_not_to_say) {
      const told = [element("span", {}, phrase("prefer-not"), element("small", {}, phrase(this.column ? "prefer-not-column" : "prefer-not-told")))];
      rows.push(this.#optionRow(told, (on) => this.#decline(on), () => this.#declined));
    }
    if (this.typed) this.#showOutside();
    this.rows = rows;
    this.list.replaceChildren(...rows.map(({ line }) => line));
    this.#mark();
  }

  /** If a value outside the column was typed, say what is allowed or what it counts as. Nothing of it leaves the page. */
  #showOutside() {
    this.field.setAttribute("aria-invalid", this.wrong);
    const nearest = () => phrase("answer-nearest", { end: Number(this.#typed) < this.domain.low ? this.domain.low : this.domain.high });
    this.more.textContent = this.wrong ? phrase("answer-outside", { allowed: this.allowed }) : this.column && this.outside ? nearest() : "";
  }

  #optionWords(place) {
    const name = String(this.domain.name(place));
    const words = ownField(this.question.options, name);
    return [element("span", {}, element("bdi", { lang: words === undefined ? undefined : this.question.language }, visibleLabel(words ?? name)),
      ...(words === undefined || words === name ? [] : [element("small", {}, element("bdi", {}, visibleLabel(name)))]))];
  }

  #optionRow(told, choose, is) {
    const box = element("input", { type: this.several ? "checkbox" : "radio", autocomplete: "off", onchange: () => choose(box.checked), onkeydown: (event) => this.#moveFocus(event, box) });
    return { line: element("label", {}, box, ...told), box, is };
  }

  /** Arrow keys move between options, as between radio buttons with a common name. These have no name, so that browsers store nothing. */
  #moveFocus(event, box) {
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (this.several || !by) return;
    event.preventDefault();
    const boxes = this.rows.map((row) => row.box);
    const next = boxes[(boxes.indexOf(box) + by + boxes.length) % boxes.length];
    next.focus();
    next.click();
  }

  #mark() {
    for (const { box, is } of this.rows) box.checked = is();
  }

  #markAndNotify() {
    this.#mark();
    this.onchange();
  }
}

/**
 * The questions of a survey, one for each column that a report may be about. If a person chooses several options, their row gets a random one of
 * them; if they prefer not to say, a random one of all options. A report looks at one random row. So its distribution is that of a person who has
 * all these options in equal shares, independently in every column.
 */
export class Form {
  outside = 0;

  constructor({ columns, parts: seen }, questions, body, onchange) {
    const names = new Set(seen.flatMap(({ sees }) => sees.columns ?? [sees.column]));
    const asked = columns.filter(({ name }) => names.has(name));
    this.unasked = columns.filter(({ name }) => !names.has(name)).map(({ name, domain }) => [name, domain.named(0)]); // no report looks at these columns
    const parts = asked.map(() => element("fieldset"));
    this.choices = asked.map(({ name, domain, unit }, place) => {
      const words = ownField(questions?.columns, name) ?? { title: name, prefer_not_to_say: true };
      return [name, new Choice(domain, { language: questions?.language, ...words }, parts[place], onchange, { unit, column: true })];
    });
    body.replaceChildren(...parts);
  }

  /** How many questions have no answer yet, or one that their column does not have. */
  get left() {
    return this.choices.filter(([, choice]) => !choice.total || choice.wrong).length;
  }

  get personData() {
    return this.left ? null : { records: [Object.fromEntries([...this.unasked, ...this.choices.map(([name, choice]) => [name, choice.value])])] };
  }

  clear() {
    for (const [, choice] of this.choices) choice.clear();
  }

  offer() {}
}
