/**
 * The page on which a person takes part. What they enter stays on the page. A sample is drawn once, shown with the whole request, and sent by a
 * click.
 *
 * The steps in order: the agreement of this browser's only sample is stored, the budget is charged, and the sample is drawn and stored
 * (`Budget`). Then the sample is shown, sent until it is answered, and marked as received. If a step breaks off, the page later continues there.
 *
 * Between loading and sending the page asks its service nothing. If a person enters an answer that a survey's column does not have, only the page
 * says so, before anything is drawn. Nothing else that they enter prevents sending. So the collector sees either a request of fixed length, or
 * that somebody left. Leaving the page empties it, so that going back shows nothing.
 *
 * A person has a limit for each collection and a total for the site, which only their click raises. So a service that calls everything a new
 * collection gets no more than the total. Each of several people has a record (`people.js`); in field mode nobody has one (`field-mode.js`).
 */
import { Budget, coveringLimit } from "../src/budget.js";
import { pageLanguage, phrase, rewordPage, setNoun, useCatalogue } from "../page/catalogue.js";
import { element, termElements } from "../page/element.js";
import { readLongPaste } from "../page/long-paste.js";
import { atMost, certainty, coinShares, percent, percentAtMost, sentence, strength, visibleLabel } from "../page/words.js";
import { loadAgreement, termsInWords } from "./agreement-terms.js";
import { addressOf, choiceInAddress, headingOf, tabTitle } from "./agreement-choice.js";
import { showOutputBars } from "./output-bars.js";
import { isFieldMode, PageMemory, startNextTurn, Turn } from "./field-mode.js";
import { keyOf } from "./identity.js";
import { isOffline, keepPage, Outbox } from "./outbox.js";
import { forgetRecord, newPersonName, openFor, peopleHere, personButtons, personInAddress, recoverPeople, setInAddress, takeToken } from "./people.js";
import { Choice, Form, loadQuestions } from "./question.js";
import { allowedValues, noneLabel, outsideText, Records } from "./records.js";
import { bodyOf, sendUntilAnswered } from "./sending.js";
import { getJson, postSample, Refused, Unreachable } from "./service.js";
import { Participation } from "./participation.js";
import { columnTitlesIn, reportText, sampleText } from "./sample-text.js";

const FIRST_FACTS = 3; // facts of the agreement that stand above the others, if the page asks a question
const RESEND_EVERY = 20_000; // milliseconds between attempts to send waiting requests
const RETRY_AFTER = 3000; // milliseconds until the service is asked again after it did not answer
const by = (id) => document.getElementById(id);
const say = (id, text) => (by(id).textContent = text);
const sayPhrase = (id, key, values) => say(id, phrase(key, values));

let choice = choiceInAddress();
const field = isFieldMode();
const offline = isOffline();
let here; // {collection, round, enrolment, agreement, id, questions, participation, record}
let turn; // of the person, in field mode
let records;
let law; // the distribution of what was entered
let drawnAnswer; // the sample, once it is drawn
let stop = new AbortController();
let linkToken = takeToken(); // of a person who opened a link of their own, until they draw or send
let sendingKey; // of the request that is being sent

async function open() {
  try {
    say("problem", await loadCollection());
  } catch (error) {
    say("problem", error instanceof Unreachable ? `${sentence(error.message)} ${phrase("goes-on-trying")}` : sentence(error.message));
    if (error instanceof Unreachable) setTimeout(open, RETRY_AFTER);
  }
  by("loading").hidden = true;
  document.documentElement.dataset.ready = "true";
  try {
    if (here) await startBackgroundWork();
  } catch (error) {
    say("problem", sentence(error.message)); // such as a browser without storage, for requests that are to wait
  }
}

/** Send waiting requests now, at intervals, and when the network returns. With `?offline`, store the page for use without a network. */
async function startBackgroundWork() {
  if (field && !offline) return;
  addEventListener("online", sendWaiting);
  setInterval(() => new Outbox().waitingFor(here.collection).length && sendWaiting(), RESEND_EVERY);
  if (offline) document.documentElement.dataset.offline = (await keepPage()) || "";
  await sendWaiting();
}

/** Load the collection, and show the question or the sample that this browser already has. Returns a note for the person, often empty. */
async function loadCollection() {
  const { value } = await getJson("collection", { agreement: choice.agreement });
  const { round } = value; // the open one: a sample of another round would be charged but not accepted
  if (!globalThis.isSecureContext) {
    throw new Error(phrase("plain-http"));
  }
  if (!field) await recoverPeople();
  const record = recordHere();
  const participation = record && new Participation(record);
  const entry = participation?.entryOf(value.collection, round);
  const id = entry?.agreement ?? choice.agreement ?? value.agreement;
  const terms = await loadAgreement(id);
  const questions = await loadQuestions(id, value.agreements.find(({ agreement }) => agreement === id)?.questions);
  by("live").href = by("see").href = addressOf("./", { ...choice, agreement: choice.agreement && terms.id });
  by("live").hidden = value.shown !== "always" && !(value.shown === "after" && entry?.at);
  by("see").hidden = value.shown === "never";
  setNoun(questions ? "answer" : ["reports", "survey"].includes(terms.fields.mechanism) ? "report" : "sample");
  rewordPage();
  showTerms(terms, value, questions);
  if (!terms.agreement) throw new Error(phrase("not-from-here", { problem: terms.problem }));
  if (!record) {
    chooseWho();
    return "";
  }
  here = { collection: value.collection, round, enrolment: value.enrolment, agreement: terms.agreement, id: terms.id, questions, participation, record };
  if (field) beginTurn();
  const answer = entry && budget()?.answered(terms.agreement, { round });
  if (answer) showSample(answer, entry);
  else if (value.closed) {
    by("asked-card").hidden = true;
    throw new Refused(phrase("closed-here", { day: value.closed }));
  } else askPerson();
  if (!field) showDevice();
  return answer && entry.questions && entry.questions !== questions?.digest ? phrase("words-changed") : "";
}

/** Show what is asked, and what the person would agree to. The author's words stand apart from the facts of the agreement. */
function showTerms(terms, collection, questions) {
  const { purpose } = terms.fields;
  say("purpose", questions?.columns ? visibleLabel(questions.title) : purpose ? headingOf(purpose) : phrase("take-part"));
  document.title = tabTitle(questions?.title ?? purpose, phrase("tab-take-part"));
  const pairs = termsInWords(terms, collection).map((pair) => termElements([pair]));
  const its = [element("dt", {}, phrase("its-id")), element("dd", {}, element("code", {}, terms.id), ` ${phrase("id-told")}`)];
  const theirs = questions ? [element("dt", {}, phrase("who-wrote")), element("dd", {}, phrase("wrote"), " ", element("code", {}, questions.digest))] : [];
  const first = questions ? FIRST_FACTS : pairs.length;
  by("asked").replaceChildren(...pairs.slice(0, first).flat(), ...(questions ? [] : its));
  by("asked-rest").replaceChildren(...(questions ? [...pairs.slice(first).flat(), ...theirs, ...its] : []));
  by("asked-more").hidden = !questions;
  by("asked-card").hidden = false;
  if (questions || terms.agreement?.survey) sayPhrase("lead", "lead-survey");
  if (!questions) return;
  document.documentElement.dataset.survey = "true";
  sayPhrase("draw-heading", "draw-heading-survey");
  sayPhrase("draw", "draw-mine-survey");
  sayPhrase("drawn-heading", "drawn-heading-survey");
  by("drawn-part").open = by("budget-part").open = by("exact-part").open = false;
  sayPhrase("asked-heading", "asked-survey");
}

/** {name, storage}: where the person's record is stored; undefined if several people have one and the address names none. */
function recordHere() {
  if (field) return { storage: new PageMemory() };
  const people = peopleHere();
  const name = personInAddress() ?? (people.length > 1 ? undefined : (people[0] ?? ""));
  return name === undefined ? undefined : { name };
}

/** The person's total for this site; undefined before their first sample. */
const totalHere = () => Budget.limitOf(here.record);

/** Their budget, if they have one yet. */
const budget = () => (totalHere() === undefined ? undefined : new Budget({ ...here.record, limit: totalHere() }));

/** What they have spent in this collection. */
const spentHere = () => budget()?.spentOn(here.participation.questionsIn(here.collection)) ?? 0;

/** Let the person say which record is theirs. Nothing of any record is shown before. */
function chooseWho() {
  by("people").replaceChildren(...personButtons(peopleHere(), linkToken));
  by("people-card").hidden = false;
}

/** Show what this browser stores about the person, and what they can do about it. */
function showDevice() {
  const others = peopleHere().filter((name) => name !== here.record.name).length;
  const mine = budget();
  by("device-card").hidden = !mine && !others;
  const many = here.participation.collectionCount;
  const own = mine && phrase("device-keeps", { spent: mine.spent, total: totalHere(), n: many });
  say("device-told", own ? `${own}${others ? ` ${phrase("device-also", { n: others })}` : ""}` : phrase("device-others", { n: others }));
  by("else-part").hidden = by("forget-part").hidden = !mine;
  by("others-part").hidden = !others;
}

/** Begin a turn in field mode. Nothing of the person is kept, and the page says so. */
function beginTurn() {
  document.documentElement.dataset.field = "true";
  by("field-card").hidden = false;
  for (const id of ["live", "see"]) by(id).hidden = true;
  if (offline) sayPhrase("field-told", here.enrolment ? "field-told-offline-token" : "field-told-offline");
  turn ??= new Turn((left, done) => {
    by("stay").hidden = left === null || done;
    say("turn-told", left === null ? "" : phrase("starts-again", { left }));
    if ((by("turn-listened").textContent === "") === (left !== null)) say("turn-listened", by("turn-told").textContent); // announced once, not every second
  });
}

/** Let the person enter their data, and show what a sample costs. */
function askPerson() {
  const { agreement, participation, collection } = here;
  const { domain } = agreement;
  by("draw-card").hidden = false;
  const limit = participation.limitOf(collection);
  const needed = budget()?.limitWith(agreement.epsilon, participation.questionsIn(collection)) ?? coveringLimit({ epsilon: agreement.epsilon, rounds: 1 });
  by("limit-field").hidden = field || limit >= needed;
  by("limit").value = limit ?? coveringLimit(agreement);
  by("total-field").hidden = field || totalHere() === undefined;
  by("total").value = totalHere() ?? "";
  showTotal();
  const factor = Math.exp(agreement.epsilon);
  say("odds", `${phrase("your-odds", { factor: atMost(factor), sure: percentAtMost(certainty(factor)) })} ${strength(agreement.epsilon).said}`);
  const { epsilon } = agreement;
  say("cost", field ? phrase("cost-field", { epsilon }) : limit === undefined ? phrase("cost", { epsilon }) : phrase("cost-of-limit", { epsilon, limit, spent: spentHere() }));
  if (agreement.reports) {
    if (!here.questions) sayPhrase("drawn-heading", "may-name");
    sayPhrase("drawn-law", "how-likely-named");
  }
  showQuestion();
}

/** Show the questions with their options, or the form for records if there are none. */
function showQuestion() {
  const { agreement: { domain, survey }, questions } = here;
  const chosen = survey || (questions && questions.choice !== "records");
  by("question-card").hidden = !chosen;
  by("held-card").hidden = chosen;
  if (chosen) {
    sayPhrase("draw-first", "choose-first");
    const part = element("fieldset");
    by("coin").hidden = !survey;
    by("survey-told").hidden = !(survey && questions?.text);
    by("survey-told").lang = questions?.language ?? "";
    say("survey-told", survey && questions?.text ? questions.text : "");
    by("question").replaceChildren(part);
    records = survey ? new Form(survey, questions, by("question"), () => records && updateDraw()) : new Choice(domain, questions, part, updateDraw);
    return updateDraw();
  }
  if (questions) {
    say("held-heading", visibleLabel(questions.title));
    say("held-told", questions.text ?? "");
  }
  say("entry-told", domain.labels ? phrase("type-outcome") : phrase("type-allowed", { allowed: allowedValues(domain) }));
  sayPhrase("draw-first", "enter-first", { none: noneLabel(domain) });
  records = new Records(
    domain,
    { list: by("held"), offered: by("offered"), offeredTold: by("offered-told"), moreOffered: by("more-offered"), problem: by("held-problem"), rest: by("held-rest"), strange: by("strange") },
    updateDraw,
  );
  updateDraw();
}

/** Show what the person's total allows, and what it means to raise it. */
function showTotal() {
  const total = totalHere();
  if (field || total === undefined) return;
  const { epsilon } = here.agreement;
  const { spent } = budget();
  const needed = budget().limitWith(epsilon);
  const wanted = Number(by("total").value);
  const factor = Math.exp(Math.max(needed, wanted || 0));
  const many = here.participation.collectionCount;
  const so = phrase("spent-so-far", { spent, total, n: many, needed });
  const most = Math.max(needed, wanted || 0);
  const means = `${phrase("total-means", { most, factor: atMost(factor), sure: percentAtMost(certainty(factor)) })} ${strength(most).said}`;
  say("total-told", needed > total || wanted > total ? `${so} ${needed > total ? `${phrase("total-too-small")} ` : ""}${means}` : so);
  if (needed > total) by("budget-part").open = true;
  by("raise").hidden = wanted >= needed;
  sayPhrase("raise", "raise-to", { needed });
  by("raise").value = needed;
}

function updateDraw() {
  const { agreement } = here;
  const { personData } = records;
  by("drawn-card").hidden = by("draw").disabled = !personData;
  by("draw-first").hidden = Boolean(personData);
  law = personData && agreement.law(personData);
  if (agreement.survey) return showCoin(agreement.survey);
  say("outside", outsideText(records, agreement, records.outside < records.total || agreement.domain.interval));
  if (law) showOutputBars(by("drawn"), by("rest"), agreement, law);
  else for (const id of ["drawn", "rest"]) by(id).replaceChildren();
}

/** Show the parts of a survey that the coin may choose, and how many questions are left. */
function showCoin(survey) {
  const { left } = records;
  sayPhrase("draw-first", "answer-all-first", { n: left });
  sayPhrase("drawn-heading", "coin-heading");
  by("drawn-key").hidden = true;
  by("drawn").replaceChildren(
    ...[...coinShares(survey, columnTitlesIn(here.questions))].map(([part, share]) => {
      const bar = element("span", { class: "held" });
      bar.style.inlineSize = `${100 * share}%`;
      return element("li", { class: "bar" }, element("bdi", { class: "name" }, part), element("span", { class: "track", "aria-hidden": "true" }, bar), element("span", { class: "told" }, percent(share)));
    }),
  );
}

/** Empty every field, and everything that was shown of it. Browsers keep pages that were left, with the values of their fields. */
function forget() {
  for (const id of ["entry", "pasted", "token"]) by(id).value = "";
  if (drawnAnswer) by("token").dispatchEvent(new Event("input"));
  records?.offer("");
  records?.clear();
}

/** Draw the person's only sample. `event`: their click, which may raise their total. */
async function draw(event) {
  const { collection, round, agreement, id, participation, record } = here;
  try {
    const limit = field ? coveringLimit(agreement) : Number(by("limit").value);
    const known = totalHere();
    const total = known === undefined ? limit : Number(by("total").value);
    const ownLaw = law; // `law` may change while this function waits
    const part = { limit, questions: participation.questionsIn(collection) };
    if (limit < agreement.epsilon) throw new Error(phrase("limit-too-small", { limit, epsilon: agreement.epsilon }));
    const ownBudget = new Budget({ ...record, limit: known ?? total }); // an invalid limit is refused before anything is stored
    if (total !== known && known !== undefined) await ownBudget.raise(total, event);
    ownBudget.check(agreement, { round, part });
    const entry = await participation.commit(collection, round, id, limit, here.questions?.digest, linkKey());
    if (entry.agreement !== id) return location.reload(); // another tab was first, under another agreement
    showSample(await ownBudget.release(agreement, ownLaw, { round, part: { limit, questions: participation.questionsIn(collection) } }), entry);
    if (isOfLink(entry)) linkToken = undefined;
    if (!field) showDevice();
    by("sample-heading").focus();
  } catch (error) {
    say("draw-problem", sentence(error.message));
    if (!by("limit-field").hidden || !by("total-field").hidden) by("budget-part").open = true;
    showTotal();
  }
}

/** The key that the sample of this round has with the token of the link; undefined without a link. */
const linkKey = () => linkToken && keyOf(linkToken, here.id, here.round);

/** Whether the sample of an entry was sent with the token of the link, or drawn on a page that the same link had opened. */
const isOfLink = (entry) => linkToken !== undefined && (entry.key ?? entry.linkKey) === linkKey();

/** The whole request as it would be sent; null while a required token is missing. */
function requestFor(answer) {
  const { collection, round, enrolment, id, participation } = here;
  const client = enrolment ? by("token").value.trim() : participation.clientName(collection);
  return client ? { agreement: id, round, client, key: keyOf(client, id, round), sample: answer.sample } : null;
}

/** Show the sample and the whole request, before it is sent. */
function showSample(answer, entry) {
  const { agreement, enrolment, round } = here;
  drawnAnswer = answer;
  forget();
  for (const id of ["held-card", "question-card", "drawn-card", "draw-card"]) by(id).hidden = true;
  by("sample-card").hidden = false;
  by("sample").textContent = sampleText(agreement, answer.sample, here.questions);
  say("sample-told", reportText(agreement, answer.sample, here.questions));
  by("sample").classList.toggle("named", Boolean(agreement.reports ?? agreement.survey));
  if (field) sayPhrase("kept-told", "kept-in-field");
  by("sample").dataset.sample = JSON.stringify(answer.sample);
  by("token-field").hidden = !enrolment;
  if (enrolment && isOfLink(entry)) by("token").value = linkToken; // otherwise the sample may be another person's
  const preview = () => {
    const body = requestFor(answer);
    by("send").disabled = !body;
    by("request").textContent = body ? JSON.stringify(body, null, 2) : phrase("token-first");
    say("padding", body ? paddingText(body) : "");
    by("words").replaceChildren(
      ...termElements([
        [phrase("where-to"), `${new URL("samples", location.href)}`],
        [phrase("the-sample"), agreement.reports ?? agreement.survey ? phrase("sent-report", { report: answer.sample }) : phrase("sent-sample", { sample_name: sampleText(agreement, answer.sample) })],
        [phrase("under-which"), phrase("under", { round })],
        [phrase("from-whom"), phrase(enrolment ? "from-token" : field ? "from-field" : "from-name")],
        [phrase("a-key"), phrase("key-told")],
      ]),
    );
  };
  by("token").addEventListener("input", preview);
  preview();
  by("send").onclick = () => {
    const body = requestFor(answer);
    send({ text: bodyOf(body, agreement), key: body.key });
  };
  const waits = !field && !entry.at && new Outbox().waitingFor(here.collection).find((each) => each.collection === here.collection && each.round === round && each.record === here.record.name);
  if (waits) send(waits); // the person has already decided to send it
  if (entry.at) showReceipt(entry, phrase("taken-part-already"));
}

/** How the body that is sent differs from the text that is shown: it has no line breaks, and spaces at its end. */
function paddingText(body) {
  const padded = bodyOf(body, here.agreement);
  const spaces = padded.length - JSON.stringify(body).length;
  const bytes = new TextEncoder().encode(padded).length;
  return phrase("padding", { spaces: spaces ? phrase("spaces", { n: spaces }) : phrase("no-spaces"), bytes });
}

/** Send a request that the person agreed to, {text, key}. It is stored until it is answered, except in field mode without `offline`. */
async function send({ text, key }) {
  stop = new AbortController();
  sendingKey = key;
  linkToken = undefined;
  let outbox;
  try {
    outbox = field && !offline ? undefined : new Outbox();
    await outbox?.keep({ key, text, record: field ? undefined : here.record.name, collection: here.collection, round: here.round });
  } catch (error) {
    sendingKey = undefined;
    return say("send-problem", sentence(error.message));
  }
  by("send").disabled = by("token").disabled = true;
  by("stop").hidden = false;
  if (turn) turn.busy = true;
  say("send-problem", "");
  sayPhrase("sending", "sending");
  try {
    const answer = await sendUntilAnswered(text, (trouble) => showTrouble(trouble), stop.signal);
    const at = new Date().toISOString();
    await here.participation.markReceived(here.collection, here.round, key, at);
    if (typeof answer.ticket === "string" && !field) await here.participation.keepTicket(here.collection, answer.ticket);
    await outbox?.drop(key);
    showReceipt({ key, at }, phrase(answer.counted ? "has-arrived" : "arrived-before"));
  } catch (error) {
    if (field && offline && error instanceof Unreachable) showReceipt({}, phrase(here.enrolment ? "thanks-offline-token" : "thanks-offline"));
    else {
      await outbox?.drop(key); // refused, or stopped by the person
      showSendProblem(error);
    }
  } finally {
    sendingKey = undefined;
    say("sending", "");
    if (turn) turn.busy = false;
    by("stop").hidden = true;
    by("send").disabled = by("token").disabled = false;
  }
}

/** Say that an attempt failed and will be repeated. In field mode with `offline` the request waits instead, so that the next person can take part. */
function showTrouble({ attempt, problem, wait }) {
  if (field && offline) return stop.abort();
  say("sending", `${sentence(problem)} ${phrase("attempt", { attempt, wait: Math.ceil(wait) })}${field ? "" : ` ${phrase("kept-for-network")}`}`);
}

/** Send the waiting requests of all people, and in field mode say how many are left. */
async function sendWaiting() {
  const outbox = new Outbox();
  const arrived = async ({ record, collection, round, key }, answer) => {
    if (record === undefined) return;
    const participation = new Participation({ name: record });
    await participation.markReceived(collection, round, key, new Date().toISOString());
    if (typeof answer.ticket === "string") await participation.keepTicket(collection, answer.ticket);
  };
  await outbox.send(postSample, arrived, here.collection, sendingKey);
  showRefused();
  const n = outbox.waitingFor(here.collection).length;
  if (field) say("outbox-told", n ? phrase("so-many-wait", { n }) : document.documentElement.dataset.offline ? phrase("offline-ready") : "");
}

/** Show how many waiting requests were refused. The number stays on the page until somebody dismisses it. */
function showRefused() {
  const { refused: many } = new Outbox();
  by("refused-card").hidden = !many;
  const told = many ? phrase("so-many-refused", { n: many.n, said: sentence(many.said) }) : "";
  if (by("refused-told").textContent !== told) say("refused-told", told);
}

function showSendProblem(error) {
  if (error instanceof Refused && error.status === 409) {
    sayPhrase("send-problem", "has-spoken");
  } else if (error instanceof Unreachable) say("send-problem", `${sentence(error.message)} ${phrase(field ? "still-here" : "nothing-lost")}`);
  else say("send-problem", sentence(error.message));
}

/** Show the receipt. */
function showReceipt({ key, at }, thanks) {
  sayPhrase("send", "send-again");
  by("send").classList.replace("action", "plain");
  by("receipt-card").hidden = false;
  say("thanks", thanks);
  if (field) return thankAndForget();
  by("receipt").replaceChildren(
    ...termElements([
      [phrase("when"), new Date(at).toLocaleString(pageLanguage())],
      [phrase("agreement-and-round"), phrase("id-and-round", { id: here.id.slice(0, 12), round: here.round })],
      [phrase("its-key"), key],
    ]),
  );
  by("receipt-heading").focus();
}

/** Show a receipt without data of the person, for a while. */
function thankAndForget() {
  for (const id of ["sample-card", "asked-card", "field-card"]) by(id).hidden = true;
  forget();
  drawnAnswer = undefined;
  for (const id of ["sample", "sample-told", "request", "padding", "words", "receipt"]) by(id).replaceChildren();
  delete by("sample").dataset.sample;
  by("send").onclick = null;
  by("next-after").hidden = false;
  turn.end();
  by("receipt-heading").focus();
}

by("add").addEventListener("submit", (event) => {
  event.preventDefault();
  records.add(by("entry").value);
  if (by("held-problem").textContent) return;
  by("entry").value = "";
  records.offer("");
});
by("entry").addEventListener("input", () => records?.offer(by("entry").value));
by("more-offered").addEventListener("click", () => records.offerMore());
by("read-pasted").addEventListener("click", () => records.paste(by("pasted").value));
readLongPaste(by("pasted"), (text) => records.paste(text));
for (const id of ["clear", "clear-question"]) by(id).addEventListener("click", forget);
by("draw").addEventListener("click", draw);
by("stop").addEventListener("click", () => stop.abort());
by("total").addEventListener("input", showTotal);
by("raise").addEventListener("click", () => {
  by("total").value = by("raise").value;
  showTotal();
  by("draw").focus();
});
for (const id of ["somebody-else", "nobody-of-these"]) by(id).addEventListener("click", () => openFor(newPersonName(peopleHere()), linkToken));
by("back-to-others").addEventListener("click", () => {
  setInAddress("person", undefined);
  setInAddress("token", linkToken);
  location.reload();
});
by("forget").addEventListener("click", async (event) => {
  try {
    await forgetRecord(here.record.name, event);
    openFor(here.record.name);
  } catch (error) {
    say("device-problem", sentence(error.message));
  }
});
by("dismiss-refused").addEventListener("click", async () => {
  await new Outbox().dismissRefused();
  showRefused();
});
for (const id of ["next", "next-after"]) by(id).addEventListener("click", startNextTurn);
for (const id of ["entry", "pasted", "token"]) by(id).value = ""; // a browser may have filled them in
addEventListener("pagehide", () => {
  linkToken = undefined;
  forget();
});
addEventListener("hashchange", () => location.reload()); // another link was opened in this tab: its token, its questions
addEventListener("pageshow", ({ persisted }) => persisted && forget()); // for a page that comes back from memory
useCatalogue(JSON.parse(by("catalogue").textContent));
open();
