/**
 * <discreet-survey collector="https://…" agreement="ID" questions="DIGEST">: take part from a page of another site, which embeds this element.
 *
 * The script comes from the embedding site, so the collector cannot change it. It checks `agreement` and `questions`: another agreement, or
 * other words, are refused. The embedding site itself can read what people enter.
 *
 * The steps are those of /take-part. The agreement is stored, the budget is charged, and the sample is drawn and stored. The sample is shown with
 * the whole request, and a click sends it. The record and the budget are those of the embedding site, and each collector's entries are apart:
 * one that states another's collection learns no name that is used there. Entries that earlier versions made are an exception
 * (`participation.js`). The collector has to allow the site: --allow-origin.
 */
import de from "../../../src/discreet/collect/pages/de.json";
import en from "../../../src/discreet/collect/pages/en.json";
import { phrase, setNoun, useCatalogue } from "../page/catalogue.js";
import { element, termElements } from "../page/element.js";
import { sentence, strength, visibleLabel } from "../page/words.js";
import { Budget, coveringLimit } from "../src/budget.js";
import { loadAgreement, termsInWords } from "./agreement-terms.js";
import { keyOf } from "./identity.js";
import { Choice, Form, loadQuestions } from "./question.js";
import { bodyOf, sendUntilAnswered } from "./sending.js";
import { getJson, Refused } from "./service.js";
import { Participation } from "./participation.js";
import { recoverRecord } from "./people.js";
import { reportText, sampleText } from "./sample-text.js";

const CATALOGUES = { en, de };
const ID = /^[0-9a-f]{64}$/;
const STYLE = `
:host { display: block; font: inherit; max-inline-size: 44rem; } * { box-sizing: border-box; }
fieldset { border: 0; padding: 0; margin: 0 0 1.2em; min-inline-size: 0; } legend { font-weight: 600; font-size: 1.15em; padding: 0; margin-block-end: .4em; }
.options label { display: flex; gap: .7em; align-items: start; padding: .45em 0; overflow-wrap: anywhere; } small { display: block; opacity: .8; } label.field { display: grid; gap: .3em; }
input, button { font: inherit; } button { padding: .5em 1em; margin: .6em .6em .6em 0; cursor: pointer; } pre { white-space: pre-wrap; overflow-wrap: anywhere; }
dt { font-weight: 600; } dd { margin: 0 0 .6em; overflow-wrap: anywhere; } [role=alert]:empty, [role=status]:empty { display: none; } .sample { font-size: 1.3em; font-weight: 600; overflow-wrap: anywhere; }
`;

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
    const service = new URL(`${collector.replace(/\/+$/, "")}/`, location.href);
    const { value } = await getJson(`${service}collection`, { agreement: id });
    if (!ID.test(value.collection) || !Number.isSafeInteger(value.round)) throw new Error(phrase("broke-off"));
    const terms = await loadAgreement(id, service); // its id is computed from its content
    const listed = value.agreements.find(({ agreement }) => agreement === id);
    const pinned = this.getAttribute("questions");
    if (pinned && !listed?.questions?.startsWith(pinned)) throw new Refused(phrase("other-questions"));
    const questions = await loadQuestions(id, listed?.questions, this.#language, service);
    if (!terms.agreement) throw new Error(phrase("not-from-here", { problem: terms.problem }));
    if (value.enrolment) throw new Error(phrase("element-no-tokens"));
    await recoverRecord("");
    const participation = new Participation({ address: service.origin === location.origin ? "" : service.href }); // /take-part of the same site notes none
    this.#here = { id, service, terms, questions, collection: value, agreement: terms.agreement, round: value.round, participation };
    setNoun("answer");
    const entry = participation.entryOf(value.collection, value.round);
    const answer = entry && this.#budget()?.answered(terms.agreement, { round: value.round, to: entry.to });
    if (answer && entry.agreement === id) return this.#show(answer, entry);
    if (value.closed) throw new Refused(phrase("closed-here", { day: value.closed }));
    return this.#ask();
  }

  #budget() {
    const limit = Budget.limitOf();
    return limit === undefined ? undefined : new Budget({ limit });
  }

  /** What the person would agree to. The facts come from the agreement, not from the texts of the questions. */
  #facts() {
    const { terms, collection, questions, id } = this.#here;
    const pairs = [...termsInWords(terms, collection), [phrase("its-id"), id], ...(questions ? [[phrase("who-wrote"), `${phrase("wrote")} ${questions.digest}`]] : [])];
    return element("details", {}, element("summary", {}, phrase("asked-survey")), element("dl", {}, ...termElements(pairs)));
  }

  #ask() {
    const { agreement, questions } = this.#here;
    const { survey, domain, epsilon } = agreement;
    const [part, note, button] = [element("div"), element("p", { role: "status" }), element("button", { type: "button", disabled: true }, phrase("draw-mine-survey"))];
    const fieldset = element("fieldset");
    if (!survey) part.append(fieldset);
    const asked = questions ?? { title: agreement.purpose || phrase("take-part"), prefer_not_to_say: true };
    const changed = () => {
      if (form) button.disabled = !form.personData;
    };
    let form;
    form = survey ? new Form(survey, questions, part, changed) : new Choice(domain, asked, fieldset, changed);
    let needed;
    const showCost = () => {
      const total = Budget.limitOf();
      needed = this.#budget()?.limitWith(epsilon) ?? coveringLimit({ epsilon, rounds: 1 });
      if (total === undefined || needed <= total) return;
      note.textContent = `${phrase("spent-so-far", { spent: this.#budget().spent, total, n: this.#here.participation.collectionCount, needed })} ${strength(needed).said}`;
      button.textContent = phrase("raise-and-draw", { needed });
    };
    showCost();
    button.addEventListener("click", (event) => {
      const shown = button.textContent;
      showCost();
      if (button.textContent !== shown) return; // the person has spent something meanwhile, on this page or another, and is asked anew
      this.#draw(form, event, needed).catch((error) => (this.#problem.textContent = sentence(error.message)));
    });
    this.#body.replaceChildren(
      ...(survey && questions ? [element("h2", { dir: "auto", lang: questions.language }, visibleLabel(questions.title)), element("p", {}, questions.text ?? "")] : []),
      element("p", {}, phrase("lead-survey")), ...(survey ? [element("p", {}, phrase("coin-told"))] : []), this.#facts(), part, note, button, element("p", {}, phrase("nothing-sent-yet")),
    );
  }

  /** Draw the person's only answer. `event`: their click, which raises their total if the button says so. */
  async #draw(form, event, needed) {
    const { agreement, collection: { collection }, round, id, participation, questions } = this.#here;
    const law = agreement.law(form.personData);
    const limit = coveringLimit(agreement);
    const total = Budget.limitOf();
    const budget = new Budget({ limit: total ?? limit });
    if (total !== undefined && needed > total) await budget.raise(needed, event);
    const entry = await participation.commit(collection, round, id, limit, questions?.digest);
    if (entry.agreement !== id) throw new Refused(phrase("has-spoken"));
    const answer = await budget.release(agreement, law, { round, to: entry.to, part: { limit, questions: participation.questionsIn(collection) } });
    form.clear();
    this.#show(answer, entry);
    this.#body.querySelector("h2").focus();
  }

  /** Show what would be sent, with the button that sends it. */
  #show(answer, entry) {
    const { agreement, service, questions, collection: { collection }, round, id, participation } = this.#here;
    const client = participation.clientName(collection);
    const request = { agreement: id, round, client, key: keyOf(client, id, round), sample: answer.sample };
    const status = element("p", { role: "status" });
    const button = element("button", { type: "button" }, phrase("send-it"));
    button.addEventListener("click", async () => {
      button.disabled = true;
      this.#problem.textContent = "";
      try {
        if ((await participation.claimName(collection)) !== client) return await this.#open(); // another collector has claimed the name since it was shown
        const body = bodyOf(request, agreement);
        const found = await sendUntilAnswered(body, ({ attempt, problem, wait }) => (status.textContent = `${sentence(problem)} ${phrase("attempt", { attempt, wait: Math.ceil(wait) })}`), new AbortController().signal, service);
        await participation.markReceived(collection, round, request.key, new Date().toISOString());
        status.textContent = phrase(found.counted ? "has-arrived" : "arrived-before");
        button.remove();
        this.dispatchEvent(new CustomEvent("discreet-sent", { detail: { agreement: id, round, counted: Boolean(found.counted) } }));
      } catch (error) {
        this.#problem.textContent = error.status === 409 ? phrase("has-spoken") : sentence(error.message);
        button.disabled = false;
      }
    });
    if (entry.at) status.textContent = phrase("taken-part-already");
    this.#body.replaceChildren(
      element("h2", { tabindex: "-1" }, phrase("your-sample")), element("p", { class: "sample", dir: "auto" }, sampleText(agreement, answer.sample, questions)),
      element("p", {}, reportText(agreement, answer.sample, questions)), element("p", {}, phrase("kept-told")), this.#facts(),
      element("details", { open: true }, element("summary", {}, phrase("all-that-is-sent")), element("pre", { tabindex: "0" }, JSON.stringify(request, null, 2))),
      status, ...(entry.at ? [] : [button]),
    );
  }
}

customElements.define("discreet-survey", DiscreetSurvey);
