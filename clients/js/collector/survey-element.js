/**
 * <discreet-survey collector="https://…" agreement="ID" questions="DIGEST">: take part from a page of another site, which embeds this element.
 *
 * The script comes from the embedding site, not from the collector. So the collector cannot change it, and `agreement` and `questions` are checked by
 * a script that it did not send: another agreement, or other words, are refused. The embedding site itself can read what people enter.
 *
 * The order is that of /take-part: the agreement is written down, the budget is charged and the sample drawn and kept, it is shown with the whole
 * request, and leaves by a click. The record and the budget are those of the embedding site. The collector has to allow the site: --allow-origin.
 */
import de from "../../../src/discreet/collect/pages/de.json";
import en from "../../../src/discreet/collect/pages/en.json";
import { phrase, speakOf, useCatalogue } from "../page/catalogue.js";
import { element, told } from "../page/element.js";
import { labelled, sentence, strength } from "../page/words.js";
import { Budget } from "../src/budget.js";
import { agreed, words } from "./agreement-terms.js";
import { keyOf } from "./identity.js";
import { Choice, Form, questionsOf } from "./question.js";
import { bodyOf, sent } from "./sending.js";
import { json, Refused, useService } from "./service.js";
import { Speaker } from "./participation.js";
import { reportTold, sampleTold } from "./sample-text.js";

const CATALOGUES = { en, de };
const ID = /^[0-9a-f]{64}$/;
const STYLE = `
:host { display: block; font: inherit; max-inline-size: 44rem; } * { box-sizing: border-box; }
fieldset { border: 0; padding: 0; margin: 0 0 1.2em; min-inline-size: 0; } legend { font-weight: 600; font-size: 1.15em; padding: 0; margin-block-end: .4em; }
.options label { display: flex; gap: .7em; align-items: start; padding: .45em 0; overflow-wrap: anywhere; } small { display: block; opacity: .8; } label.field { display: grid; gap: .3em; }
input, button { font: inherit; } button { padding: .5em 1em; margin: .6em .6em .6em 0; cursor: pointer; } pre { white-space: pre-wrap; overflow-wrap: anywhere; }
dt { font-weight: 600; } dd { margin: 0 0 .6em; overflow-wrap: anywhere; } [role=alert]:empty, [role=status]:empty { display: none; } .sample { font-size: 1.3em; font-weight: 600; overflow-wrap: anywhere; }
`;
/** The limit that just covers an agreement, all rounds of it. */
const roundedUp = (budget) => Number(new Intl.NumberFormat("en", { maximumSignificantDigits: 12, roundingMode: "ceil", useGrouping: false }).format(budget * (1 - 1e-14)));

export class DiscreetSurvey extends HTMLElement {
  #root = this.attachShadow({ mode: "open" });
  #body = element("div");
  #problem = element("p", { role: "alert" });
  #here;

  connectedCallback() {
    if (this.#here) return;
    const { language: code, nouns, words: shared, collector, take } = CATALOGUES[this.#language.split("-")[0]] ?? en;
    useCatalogue({ language: code, nouns, words: shared, collector, take });
    this.#root.replaceChildren(element("style", {}, STYLE), this.#problem, this.#body);
    this.#body.replaceChildren(phrase("loading-agreement"));
    this.#open().catch((error) => this.#say(error));
  }

  get #language() {
    return this.getAttribute("lang") ?? document.documentElement.lang;
  }

  #say(error) {
    this.#body.replaceChildren();
    this.#problem.textContent = sentence(error.message);
    this.dispatchEvent(new CustomEvent("discreet-problem", { detail: { message: error.message } }));
  }

  async #open() {
    const [collector, id] = [this.getAttribute("collector"), this.getAttribute("agreement")];
    if (!collector || !ID.test(id)) throw new Error(phrase("element-needs"));
    useService(`${collector.replace(/\/+$/, "")}/`);
    const { value } = await json("collection", { agreement: id });
    const known = await agreed(id); // whose id is computed from what it says
    const listed = value.agreements.find(({ agreement }) => agreement === id);
    const pinned = this.getAttribute("questions");
    if (pinned && !listed?.questions?.startsWith(pinned)) throw new Refused(phrase("other-questions"));
    const questions = await questionsOf(id, listed?.questions, this.#language);
    if (!known.agreement) throw new Error(phrase("not-from-here", { problem: known.problem }));
    if (value.enrolment) throw new Error(phrase("element-no-tokens"));
    const speaker = new Speaker();
    this.#here = { id, known, questions, collection: value, agreement: known.agreement, round: value.round, speaker };
    speakOf("answer");
    const spoken = speaker.spoken(value.collection, value.round);
    const answer = spoken && this.#book()?.answered(known.agreement, { round: value.round });
    if (answer && spoken.agreement === id) return this.#show(answer, spoken);
    if (value.closed) throw new Refused(phrase("closed-here", { day: value.closed }));
    return this.#ask();
  }

  #book() {
    const limit = Budget.limitOf();
    return limit === undefined ? undefined : new Budget({ limit });
  }

  /** What the person would agree to: the agreement's own facts, whatever the questions say. */
  #facts() {
    const { known, collection, questions, id } = this.#here;
    const pairs = [...words(known, collection), [phrase("its-id"), id], ...(questions ? [[phrase("who-wrote"), `${phrase("wrote")} ${questions.digest}`]] : [])];
    return element("details", {}, element("summary", {}, phrase("asked-survey")), element("dl", {}, ...told(pairs)));
  }

  #ask() {
    const { agreement, questions } = this.#here;
    const { survey, domain, epsilon } = agreement;
    const [part, note, button] = [element("div"), element("p", { role: "status" }), element("button", { type: "button", disabled: true }, phrase("draw-mine-survey"))];
    const fieldset = element("fieldset");
    if (!survey) part.append(fieldset);
    const asked = questions ?? { title: agreement.purpose || phrase("take-part"), prefer_not_to_say: true };
    const changed = () => {
      if (form) button.disabled = !form.held;
    };
    let form;
    form = survey ? new Form(survey, questions, part, changed) : new Choice(domain, asked, fieldset, changed);
    const needed = roundedUp((this.#book()?.spent ?? 0) + epsilon);
    const total = Budget.limitOf();
    if (total !== undefined && needed > total) {
      note.textContent = `${phrase("spent-so-far", { spent: this.#book().spent, total, n: this.#here.speaker.collections, needed })} ${strength(needed).said}`;
      button.textContent = phrase("raise-and-draw", { needed });
    }
    button.addEventListener("click", (event) => this.#draw(form, event, needed).catch((error) => (this.#problem.textContent = sentence(error.message))));
    this.#body.replaceChildren(
      ...(survey && questions ? [element("h2", { dir: "auto", lang: questions.language }, labelled(questions.title)), element("p", {}, questions.text ?? "")] : []),
      element("p", {}, phrase("lead-survey")), ...(survey ? [element("p", {}, phrase("coin-told"))] : []), this.#facts(), part, note, button, element("p", {}, phrase("nothing-sent-yet")),
    );
  }

  /** Draw the one answer, once and for all. `event`: of the person's click, which may raise their total as the button says. */
  async #draw(form, event, needed) {
    const { agreement, collection: { collection }, round, id, speaker, questions } = this.#here;
    const law = agreement.law(form.held);
    const limit = roundedUp(agreement.epsilon * agreement.rounds);
    const known = Budget.limitOf();
    const book = new Budget({ limit: known ?? limit });
    if (known !== undefined && needed > known) await book.raise(needed, event);
    const spoken = await speaker.speak(collection, round, id, limit, questions?.digest);
    if (spoken.agreement !== id) throw new Refused(phrase("has-spoken"));
    const answer = await book.release(agreement, law, { round, part: { limit, questions: speaker.questions(collection) } });
    form.clear();
    this.#show(answer, spoken);
    this.#body.querySelector("h2").focus();
  }

  /** What would be sent, before it is. */
  #show(answer, spoken) {
    const { agreement, questions, collection: { collection }, round, id, speaker } = this.#here;
    const client = speaker.name(collection);
    const request = { agreement: id, round, client, key: keyOf(client, id, round), sample: answer.sample };
    const status = element("p", { role: "status" });
    const button = element("button", { type: "button" }, phrase("send-it"));
    button.addEventListener("click", async () => {
      button.disabled = true;
      this.#problem.textContent = "";
      try {
        const body = bodyOf(request, agreement);
        const found = await sent(body, ({ attempt, problem, wait }) => (status.textContent = `${sentence(problem)} ${phrase("attempt", { attempt, wait: Math.ceil(wait) })}`), new AbortController().signal);
        await speaker.heard(collection, round, request.key, new Date().toISOString());
        status.textContent = phrase(found.counted ? "has-arrived" : "arrived-before");
        button.remove();
        this.dispatchEvent(new CustomEvent("discreet-sent", { detail: { agreement: id, round, counted: Boolean(found.counted) } }));
      } catch (error) {
        this.#problem.textContent = error.status === 409 ? phrase("has-spoken") : sentence(error.message);
        button.disabled = false;
      }
    });
    if (spoken.at) status.textContent = phrase("taken-part-already");
    this.#body.replaceChildren(
      element("h2", { tabindex: "-1" }, phrase("your-sample")), element("p", { class: "sample", dir: "auto" }, sampleTold(agreement, answer.sample, questions)),
      element("p", {}, reportTold(agreement, answer.sample, questions)), element("p", {}, phrase("kept-told")), this.#facts(),
      element("details", { open: true }, element("summary", {}, phrase("all-that-is-sent")), element("pre", { tabindex: "0" }, JSON.stringify(request, null, 2))),
      status, ...(spoken.at ? [] : [button]),
    );
  }
}

customElements.define("discreet-survey", DiscreetSurvey);
