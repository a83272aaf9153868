/**
 * A question as whoever asks wrote it: a public file beside the agreement, which says what outcomes are called and whether a person may choose several.
 *
 * It is no part of the agreement, and no text of it changes what is promised. All of it, in every language, has one digest: a link that names the
 * digest opens no other words. Whoever chooses several outcomes holds all of them in equal parts. Whoever prefers not to say holds nothing: their
 * sample is drawn without looking at them, and nobody can tell.
 */
import { pageLanguage, phrase } from "../page/catalogue.js";
import { element } from "../page/element.js";
import { containing } from "../page/search.js";
import { labelled } from "../page/words.js";
import { sha256 } from "../src/sha256.js";
import { allowed, outcomeOf } from "./records.js";
import { Refused, text } from "./service.js";

const ALL = 30; // options that are all shown; of more, those that contain what somebody types
const DIGEST = /^[0-9a-f]{12,64}$/;

/** The first digits of the questions that the address names after its #, which browsers do not send; undefined where it names none. */
function pinned() {
  const named = new URLSearchParams(location.hash.slice(1)).get("questions");
  return DIGEST.test(named) ? named : undefined;
}

/** What a document says under a name; undefined where it says nothing, also for names that all objects know, such as "constructor". */
export const saidOf = (object, name) => (object && Object.hasOwn(object, name) ? object[name] : undefined);

/** The questions beside an agreement, in the person's language; undefined where there are none. `digest`: as the collection names it; `language`: before the browser's own. */
export async function questionsOf(id, digest, language = new URLSearchParams(location.search).get("lang")) {
  if (pinned() && !digest?.startsWith(pinned())) throw new Refused(phrase("other-questions"));
  if (!digest) return undefined;
  const document = await text("questions", { agreement: id });
  if (sha256(new TextEncoder().encode(document)) !== digest) throw new Refused(phrase("other-questions"));
  const { translations = {}, ...original } = JSON.parse(document);
  const versions = { [original.language]: original, ...translations };
  const wanted = [language, ...navigator.languages, pageLanguage()].filter(Boolean);
  const found = wanted.flatMap((code) => [code, code.split("-")[0]]).find((code) => Object.hasOwn(versions, code)) ?? original.language;
  const { columns } = original;
  const translated = columns && Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, { ...column, ...saidOf(versions[found].columns, name) }]));
  return { ...original, ...versions[found], ...(columns ? { columns: translated } : {}), language: found, digest };
}

/** What an option is called: in the words of whoever asks, and as the agreement has it where that is something else. */
export function optionTold(question, name) {
  const words = saidOf(question?.options, name);
  return words === undefined || words === name ? labelled(name) : phrase("option", { words: labelled(words), name: labelled(name) });
}

/** A random whole number below another, by the browser's generator. */
function randomBelow(size) {
  const most = 2 ** 32 - (2 ** 32 % size);
  for (;;) {
    const [drawn] = crypto.getRandomValues(new Uint32Array(1));
    if (drawn < most) return drawn % size;
  }
}

/** A question with its options. What is chosen stays on the page: no field has a name, and `clear` empties them. */
export class Choice {
  #chosen = new Set();
  #declined = false;
  #typed = "";

  /** `unit`: of numbers; `column`: whether it is one of several questions. */
  constructor(domain, question, body, onchange, { unit, column = false } = {}) {
    const dated = domain.first !== undefined;
    Object.assign(this, { domain, question, onchange, column, several: question.choice === "multiple", typed: dated || !domain.labels });
    this.list = element("div", { class: "options" });
    const search = !this.typed && domain.size > ALL;
    const limits = dated ? { type: "date", min: domain.first, max: domain.last } : this.typed ? { type: "number", step: domain.interval ? "any" : 1, min: domain.low ?? 0, max: domain.high ?? domain.size - 1 } : { type: "text" };
    this.field = element("input", { ...limits, autocomplete: "off", spellcheck: "false", oninput: () => this.#type() });
    this.more = element("small", { role: "status" });
    this.allowed = dated ? phrase("a-date", domain) : unit ? phrase("allowed-in-unit", { allowed: allowed(domain), unit }) : allowed(domain);
    const wanted = dated ? phrase("your-date", domain) : this.typed ? phrase("your-number", { allowed: this.allowed }) : phrase("find-option");
    const typed = element("label", { class: "field" }, wanted, this.field);
    body.replaceChildren(
      element("legend", { lang: question.language, dir: "auto" }, labelled(question.title)),
      ...(question.text ? [element("p", { lang: question.language, dir: "auto" }, question.text)] : []),
      ...(this.several ? [element("p", { class: "quiet" }, phrase("several-told"))] : []),
      ...(search || this.typed ? [typed] : []), this.list, this.more,
    );
    this.#show();
  }

  get total() {
    return this.#chosen.size + this.#declined + this.outside;
  }

  /** 1 where a number was typed that is none of the outcomes: it counts by the agreement's rule, and is not refused. */
  get outside() {
    return Number(this.typed && !this.#chosen.size && this.#typed.trim() !== "");
  }

  /** Whether a column of a survey has neither such a value nor a nearest one: all answers of the person would be left out, so nothing is drawn before it is corrected. */
  get wrong() {
    return this.column && this.outside === 1 && !(this.domain.nearest(Number(this.#typed)) >= 0);
  }

  /** As a law is made of it; null where nothing was chosen. */
  get held() {
    if (!this.total) return null;
    const end = this.domain.nearest(Number(this.#typed));
    if (this.outside) return { counts: new Map([[end >= 0 ? end : {}, 1]]) };
    return { counts: new Map([...this.#chosen].map((place) => [this.domain.labels ? this.domain.named(place) : place, 1])) };
  }

  /** One value for the column of a survey: an option by chance of those that were chosen, of all where the person prefers not to say. */
  get value() {
    if (this.outside) return Number(this.#typed); // which counts as the nearest end
    const chosen = [...this.#chosen];
    return this.domain.named(chosen.length ? chosen[randomBelow(chosen.length)] : randomBelow(this.domain.size));
  }

  /** The outcome that stands for "prefer not to say" in the agreement itself; -1 where none does. */
  get #silent() {
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
    const alone = !this.several || place === this.#silent || this.#chosen.has(this.#silent);
    if (alone || this.#declined) this.#chosen.clear();
    this.#declined = false;
    on ? this.#chosen.add(place) : this.#chosen.delete(place);
    if (this.typed) this.#empty();
    this.#check();
  }

  #empty() {
    this.field.value = this.#typed = "";
    this.#tellOutside();
  }

  #decline(on) {
    this.#chosen.clear();
    this.#declined = on;
    if (this.typed) this.#empty();
    this.#check();
  }

  /** The options that there is room for: all, or those that contain what is typed, and always those that are chosen. */
  #show() {
    const { domain } = this;
    const silent = this.#silent;
    let places = [];
    if (!this.typed) {
      const found = domain.size > ALL ? containing(domain.labels, this.#typed) : Array.from({ length: domain.size }, (_, place) => place);
      places = [...new Set([...this.#chosen, ...found.slice(0, ALL)])].filter((place) => place !== silent);
      this.more.textContent = found.length > ALL ? phrase("more-options", { n: found.length - ALL }) : found.length ? "" : phrase("none-matches");
    }
    const rows = places.map((place) => this.#row(this.#told(place), (on) => this.#choose(place, on), () => this.#chosen.has(place)));
    if (silent >= 0) rows.push(this.#row(this.#told(silent), (on) => this.#choose(silent, on), () => this.#chosen.has(silent)));
    else if (this.question.prefer_not_to_say) {
      const told = [element("span", {}, phrase("prefer-not"), element("small", {}, phrase(this.column ? "prefer-not-column" : "prefer-not-told")))];
      rows.push(this.#row(told, (on) => this.#decline(on), () => this.#declined));
    }
    if (this.typed) this.#tellOutside();
    this.rows = rows;
    this.list.replaceChildren(...rows.map(({ line }) => line));
    this.#mark();
  }

  /** Say what is allowed where somebody typed something else. Nothing of it leaves the page. */
  #tellOutside() {
    this.field.setAttribute("aria-invalid", this.wrong);
    const nearest = () => phrase("answer-nearest", { end: Number(this.#typed) < this.domain.low ? this.domain.low : this.domain.high });
    this.more.textContent = this.wrong ? phrase("answer-outside", { allowed: this.allowed }) : this.column && this.outside ? nearest() : "";
  }

  #told(place) {
    const name = String(this.domain.name(place));
    const words = saidOf(this.question.options, name);
    return [element("span", {}, element("bdi", { lang: words === undefined ? undefined : this.question.language }, labelled(words ?? name)),
      ...(words === undefined || words === name ? [] : [element("small", {}, element("bdi", {}, labelled(name)))]))];
  }

  #row(told, choose, is) {
    const box = element("input", { type: this.several ? "checkbox" : "radio", autocomplete: "off", onchange: () => choose(box.checked), onkeydown: (event) => this.#step(event, box) });
    return { line: element("label", {}, box, ...told), box, is };
  }

  /** Arrow keys go from option to option, as between radio buttons that have a name in common: these have none, so that browsers keep nothing. */
  #step(event, box) {
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

  #check() {
    this.#mark();
    this.onchange();
  }
}

/**
 * The questions of a survey, one for each column that a report may be about. Whoever chooses several options, or prefers not to say, holds one of them by chance: a report
 * looks at one row that is drawn by chance, so its law is that of holding all of them in equal parts, independently in every column.
 */
export class Form {
  outside = 0;

  constructor({ columns, parts: seen }, questions, body, onchange) {
    const names = new Set(seen.flatMap(({ sees }) => sees.columns ?? [sees.column]));
    const asked = columns.filter(({ name }) => names.has(name));
    this.unasked = columns.filter(({ name }) => !names.has(name)).map(({ name, domain }) => [name, domain.named(0)]); // no report looks at it
    const parts = asked.map(() => element("fieldset"));
    this.choices = asked.map(({ name, domain, unit }, place) => {
      const words = saidOf(questions?.columns, name) ?? { title: name, prefer_not_to_say: true };
      return [name, new Choice(domain, { language: questions?.language, ...words }, parts[place], onchange, { unit, column: true })];
    });
    body.replaceChildren(...parts);
  }

  /** How many questions have no answer yet that their column has. */
  get left() {
    return this.choices.filter(([, choice]) => !choice.total || choice.wrong).length;
  }

  get held() {
    return this.left ? null : { records: [Object.fromEntries([...this.unasked, ...this.choices.map(([name, choice]) => [name, choice.value])])] };
  }

  clear() {
    for (const [, choice] of this.choices) choice.clear();
  }

  offer() {}
}
