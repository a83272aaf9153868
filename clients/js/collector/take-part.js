/**
 * The page to take part by. What a person enters stays on it; a sample is drawn once, shown with the whole request, and leaves by a click.
 *
 * In order: the agreement is written down as that of this browser's one sample, the budget is charged and the sample drawn and kept
 * (`Budget`), it is shown, sent until it is answered, and then remembered as heard. Whatever breaks off in between goes on where it was.
 *
 * Between loading and sending the page asks its service nothing. An answer that a survey's column does not have is told on the page alone, before
 * anything is drawn; nothing else that a person enters keeps it from sending. Whoever collects sees a request of one length, or that somebody left. Leaving the page empties it, so that going back shows nothing.
 *
 * A person has a limit for each collection and a total for the site, which only their click raises: a service that calls everything a new
 * collection gets no more than the total. Several people have a record each (`people.js`); in field mode nobody has one (`field-mode.js`).
 */
import { Budget } from "../src/budget.js";
import { pageLanguage, phrase, rewordPage, speakOf, useCatalogue } from "../page/catalogue.js";
import { element, told } from "../page/element.js";
import { readLong } from "../page/long-paste.js";
import { atMost, certainty, coinOf, labelled, percent, percentAtMost, sentence, strength } from "../page/words.js";
import { agreed, words } from "./agreement-terms.js";
import { addressed, chosen, headingOf, titled } from "./agreement-choice.js";
import { drawnFrom } from "./output-bars.js";
import { inField, nextTurn, PageMemory, Turn } from "./field-mode.js";
import { keyOf } from "./identity.js";
import { isOffline, keepPage, Outbox } from "./outbox.js";
import { forgetRecord, nextPerson, nameInAddress, openFor, takeToken, peopleHere, personButtons, personOf } from "./people.js";
import { Choice, Form, questionsOf } from "./question.js";
import { allowed, noneOf, outsideTold, Records } from "./records.js";
import { bodyOf, sent } from "./sending.js";
import { json, posted, Refused, Unreachable } from "./service.js";
import { Speaker } from "./participation.js";
import { calledIn, reportTold, sampleTold } from "./sample-text.js";

const FIRST_ASKED = 3; // facts of the agreement that stand above the others, where a question is asked
const WAITING = 20_000; // milliseconds until what waits is sent again
const AGAIN = 3000; // milliseconds until the service is asked again, where it did not answer
const by = (id) => document.getElementById(id);
const say = (id, text) => (by(id).textContent = text);
const sayPhrase = (id, key, values) => say(id, phrase(key, values));

let choice = chosen();
const field = inField();
const offline = isOffline();
let here; // {collection, round, enrolment, agreement, id, questions, speaker, record}
let turn; // of a person, in field mode
let records;
let law; // of what was entered
let answered; // the sample, once it is drawn
let stop = new AbortController();
let linkToken = takeToken(); // of a person who came by a link of their own
let sendingKey; // of the request that is on its way

/** The limit that just covers an agreement, all rounds of it: rounded up, whatever floats make of the product. */
const upwards = new Intl.NumberFormat("en", { maximumSignificantDigits: 12, roundingMode: "ceil", useGrouping: false });
const roundedUp = (budget) => Number(upwards.format(budget * (1 - 1e-14)));
const covering = ({ epsilon, rounds }) => roundedUp(epsilon * rounds);

async function open() {
  try {
    say("problem", await found());
  } catch (error) {
    say("problem", error instanceof Unreachable ? `${sentence(error.message)} ${phrase("goes-on-trying")}` : sentence(error.message));
    if (error instanceof Unreachable) setTimeout(open, AGAIN);
  }
  by("loading").hidden = true;
  document.documentElement.dataset.ready = "true";
  if (here) await keepWorking();
}

/** Send what waits now and whenever there is a network again; with `?offline`, let the page be opened without one. */
async function keepWorking() {
  if (field && !offline) return;
  addEventListener("online", sendWaiting);
  setInterval(() => new Outbox().waitingFor(here.collection).length && sendWaiting(), WAITING);
  if (offline) document.documentElement.dataset.offline = (await keepPage()) || "";
  await sendWaiting();
}

/** What is collected here, and what this browser has said of it. Returns what the person should know besides. */
async function found() {
  const { value } = await json("collection", { agreement: choice.agreement });
  const { round } = value; // the open one: a sample of another would be charged and not taken
  if (!globalThis.isSecureContext) {
    throw new Error(phrase("plain-http"));
  }
  const record = recordHere();
  const speaker = record && new Speaker(record);
  const spoken = speaker?.spoken(value.collection, round);
  const id = spoken?.agreement ?? choice.agreement ?? value.agreement;
  const known = await agreed(id);
  const questions = await questionsOf(id, value.agreements.find(({ agreement }) => agreement === id)?.questions);
  by("live").href = by("see").href = addressed("./", { ...choice, agreement: choice.agreement && known.id });
  by("live").hidden = value.shown !== "always" && !(value.shown === "after" && spoken?.at);
  by("see").hidden = value.shown === "never";
  speakOf(questions ? "answer" : ["reports", "survey"].includes(known.fields.mechanism) ? "report" : "sample");
  rewordPage();
  tellAgreement(known, value, questions);
  if (!known.agreement) throw new Error(phrase("not-from-here", { problem: known.problem }));
  if (!record) {
    chooseWho();
    return "";
  }
  here = { collection: value.collection, round, enrolment: value.enrolment, agreement: known.agreement, id: known.id, questions, speaker, record };
  if (field) beginTurn();
  const answer = spoken && budget()?.answered(known.agreement, { round });
  if (answer) shown(answer, spoken);
  else if (value.closed) {
    by("asked-card").hidden = true;
    throw new Refused(phrase("closed-here", { day: value.closed }));
  } else ask();
  if (!field) tellDevice();
  return answer && spoken.questions && spoken.questions !== questions?.digest ? phrase("words-changed") : "";
}

/** What is asked, and what the person would agree to. What whoever asks wrote stands apart from what the agreement says. */
function tellAgreement(known, collection, questions) {
  const { purpose } = known.fields;
  say("purpose", questions?.columns ? labelled(questions.title) : purpose ? headingOf(purpose) : phrase("take-part"));
  document.title = titled(questions?.title ?? purpose, phrase("tab-take-part"));
  const pairs = words(known, collection).map((pair) => told([pair]));
  const its = [element("dt", {}, phrase("its-id")), element("dd", {}, element("code", {}, known.id), ` ${phrase("id-told")}`)];
  const theirs = questions ? [element("dt", {}, phrase("who-wrote")), element("dd", {}, phrase("wrote"), " ", element("code", {}, questions.digest))] : [];
  const first = questions ? FIRST_ASKED : pairs.length;
  by("asked").replaceChildren(...pairs.slice(0, first).flat(), ...(questions ? [] : its));
  by("asked-rest").replaceChildren(...(questions ? [...pairs.slice(first).flat(), ...theirs, ...its] : []));
  by("asked-more").hidden = !questions;
  by("asked-card").hidden = false;
  if (questions || known.agreement?.survey) sayPhrase("lead", "lead-survey");
  if (!questions) return;
  document.documentElement.dataset.survey = "true";
  sayPhrase("draw-heading", "draw-heading-survey");
  sayPhrase("draw", "draw-mine-survey");
  sayPhrase("drawn-heading", "drawn-heading-survey");
  by("drawn-part").open = by("budget-part").open = by("exact-part").open = false;
  sayPhrase("asked-heading", "asked-survey");
}

/** {name, storage}: where the record of whoever is here is kept; undefined where several people have one and the address names none. */
function recordHere() {
  if (field) return { storage: new PageMemory() };
  const people = peopleHere();
  const name = personOf() ?? (people.length > 1 ? undefined : (people[0] ?? ""));
  return name === undefined ? undefined : { name };
}

/** The person's total for this site; undefined before their first sample. */
const totalHere = () => Budget.limitOf(here.record);

/** Their budget, if they have one yet. */
const budget = () => (totalHere() === undefined ? undefined : new Budget({ ...here.record, limit: totalHere() }));

/** What they have spent in this collection. */
const spentHere = () => budget()?.spentOn(here.speaker.questions(here.collection)) ?? 0;

/** Let somebody say which record is theirs; nothing of any is shown before. */
function chooseWho() {
  by("people").replaceChildren(...personButtons(peopleHere()));
  by("people-card").hidden = false;
}

/** What this browser keeps of the person, and what can be done about it. */
function tellDevice() {
  const others = peopleHere().filter((name) => name !== here.record.name).length;
  const mine = budget();
  by("device-card").hidden = !mine && !others;
  const many = here.speaker.collections;
  const own = mine && phrase("device-keeps", { spent: mine.spent, total: totalHere(), n: many });
  say("device-told", own ? `${own}${others ? ` ${phrase("device-also", { n: others })}` : ""}` : phrase("device-others", { n: others }));
  by("else-part").hidden = by("forget-part").hidden = !mine;
  by("others-part").hidden = !others;
}

/** Field mode: nothing is kept, and the page says so. */
function beginTurn() {
  document.documentElement.dataset.field = "true";
  by("field-card").hidden = false;
  for (const id of ["live", "see"]) by(id).hidden = true;
  if (offline) sayPhrase("field-told", here.enrolment ? "field-told-offline-token" : "field-told-offline");
  turn ??= new Turn((left, done) => {
    by("stay").hidden = left === null || done;
    say("turn-told", left === null ? "" : phrase("starts-again", { left }));
    if ((by("turn-listened").textContent === "") === (left !== null)) say("turn-listened", by("turn-told").textContent); // once, and not every second
  });
}

/** Let the person say what they hold. */
function ask() {
  const { agreement, speaker, collection } = here;
  const { domain } = agreement;
  by("draw-card").hidden = false;
  const limit = speaker.limitOf(collection);
  const needed = roundedUp(spentHere() + agreement.epsilon);
  by("limit-field").hidden = field || limit >= needed;
  by("limit").value = limit ?? covering(agreement);
  by("total-field").hidden = field || totalHere() === undefined;
  by("total").value = totalHere() ?? "";
  tellTotal();
  const factor = Math.exp(agreement.epsilon);
  say("odds", `${phrase("your-odds", { factor: atMost(factor), sure: percentAtMost(certainty(factor)) })} ${strength(agreement.epsilon).said}`);
  const { epsilon } = agreement;
  say("cost", field ? phrase("cost-field", { epsilon }) : limit === undefined ? phrase("cost", { epsilon }) : phrase("cost-of-limit", { epsilon, limit, spent: spentHere() }));
  if (agreement.reports) {
    if (!here.questions) sayPhrase("drawn-heading", "may-name");
    sayPhrase("drawn-law", "how-likely-named");
  }
  askWhat();
}

/** The question, or what the person holds where none is written. */
function askWhat() {
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
    records = survey ? new Form(survey, questions, by("question"), () => records && changed()) : new Choice(domain, questions, part, changed);
    return changed();
  }
  if (questions) {
    say("held-heading", labelled(questions.title));
    say("held-told", questions.text ?? "");
  }
  say("entry-told", domain.labels ? phrase("type-outcome") : phrase("type-allowed", { allowed: allowed(domain) }));
  sayPhrase("draw-first", "enter-first", { none: noneOf(domain) });
  records = new Records(
    domain,
    { list: by("held"), offered: by("offered"), offeredTold: by("offered-told"), moreOffered: by("more-offered"), problem: by("held-problem"), rest: by("held-rest"), strange: by("strange") },
    changed,
  );
  changed();
}

/** What the person's total allows, and what it means to raise it. */
function tellTotal() {
  const total = totalHere();
  if (field || total === undefined) return;
  const { epsilon } = here.agreement;
  const spent = budget().spent;
  const needed = roundedUp(spent + epsilon);
  const wanted = Number(by("total").value);
  const factor = Math.exp(Math.max(needed, wanted || 0));
  const many = here.speaker.collections;
  const so = phrase("spent-so-far", { spent, total, n: many, needed });
  const most = Math.max(needed, wanted || 0);
  const means = `${phrase("total-means", { most, factor: atMost(factor), sure: percentAtMost(certainty(factor)) })} ${strength(most).said}`;
  say("total-told", needed > total || wanted > total ? `${so} ${needed > total ? `${phrase("total-too-small")} ` : ""}${means}` : so);
  if (needed > total) by("budget-part").open = true;
  by("raise").hidden = wanted >= needed;
  sayPhrase("raise", "raise-to", { needed });
  by("raise").value = needed;
}

function changed() {
  const { agreement } = here;
  const { held } = records;
  by("drawn-card").hidden = by("draw").disabled = !held;
  by("draw-first").hidden = Boolean(held);
  law = held && agreement.law(held);
  if (agreement.survey) return tellCoin(agreement.survey);
  say("outside", outsideTold(records, agreement, records.outside < records.total || agreement.domain.interval));
  if (law) drawnFrom(by("drawn"), by("rest"), agreement, law);
  else for (const id of ["drawn", "rest"]) by(id).replaceChildren();
}

/** What the coin may choose, and how many questions are left. */
function tellCoin(survey) {
  const { left } = records;
  sayPhrase("draw-first", "answer-all-first", { n: left });
  sayPhrase("drawn-heading", "coin-heading");
  by("drawn-key").hidden = true;
  by("drawn").replaceChildren(
    ...[...coinOf(survey, calledIn(here.questions))].map(([part, share]) => {
      const bar = element("span", { class: "held" });
      bar.style.inlineSize = `${100 * share}%`;
      return element("li", { class: "bar" }, element("bdi", { class: "name" }, part), element("span", { class: "track", "aria-hidden": "true" }, bar), element("span", { class: "told" }, percent(share)));
    }),
  );
}

/** Empty every field and whatever was shown of it: browsers keep pages that were left, and what fields hold. */
function forget() {
  for (const id of ["entry", "pasted", "token"]) by(id).value = "";
  if (answered) by("token").dispatchEvent(new Event("input"));
  records?.offer("");
  records?.clear();
}

/** Draw the one sample, once and for all. `event`: of the person's click, which may raise their total. */
async function draw(event) {
  const { collection, round, agreement, id, speaker, record } = here;
  try {
    const limit = field ? covering(agreement) : Number(by("limit").value);
    const known = totalHere();
    const total = known === undefined ? limit : Number(by("total").value);
    const own = law;
    const part = { limit, questions: speaker.questions(collection) };
    if (limit < agreement.epsilon) throw new Error(phrase("limit-too-small", { limit, epsilon: agreement.epsilon }));
    const book = new Budget({ ...record, limit: known ?? total }); // refused before anything is written down
    if (total !== known && known !== undefined) await book.raise(total, event);
    book.check(agreement, { round, part });
    const spoken = await speaker.speak(collection, round, id, limit, here.questions?.digest);
    if (spoken.agreement !== id) return location.reload(); // another tab was first, under another agreement
    shown(await book.release(agreement, own, { round, part: { limit, questions: speaker.questions(collection) } }), spoken);
    if (!field) tellDevice();
    by("sample-heading").focus();
  } catch (error) {
    say("draw-problem", sentence(error.message));
    if (!by("limit-field").hidden || !by("total-field").hidden) by("budget-part").open = true;
    tellTotal();
  }
}

/** The whole request, as it would leave; null until there is a token where one is asked for. */
function request(answer) {
  const { collection, round, enrolment, id, speaker } = here;
  const client = enrolment ? by("token").value.trim() : speaker.name(collection);
  return client ? { agreement: id, round, client, key: keyOf(client, id, round), sample: answer.sample } : null;
}

/** The sample, and what would be sent, before it is. */
function shown(answer, spoken) {
  const { agreement, enrolment, round } = here;
  answered = answer;
  forget();
  for (const id of ["held-card", "question-card", "drawn-card", "draw-card"]) by(id).hidden = true;
  by("sample-card").hidden = false;
  by("sample").textContent = sampleTold(agreement, answer.sample, here.questions);
  say("sample-told", reportTold(agreement, answer.sample, here.questions));
  by("sample").classList.toggle("named", Boolean(agreement.reports ?? agreement.survey));
  if (field) sayPhrase("kept-told", "kept-in-field");
  by("sample").dataset.sample = JSON.stringify(answer.sample);
  by("token-field").hidden = !enrolment;
  if (enrolment && linkToken) by("token").value = linkToken;
  const preview = () => {
    const body = request(answer);
    by("send").disabled = !body;
    by("request").textContent = body ? JSON.stringify(body, null, 2) : phrase("token-first");
    say("padding", body ? paddingTold(body) : "");
    by("words").replaceChildren(
      ...told([
        [phrase("where-to"), `${new URL("samples", location.href)}`],
        [phrase("the-sample"), agreement.reports ?? agreement.survey ? phrase("sent-report", { report: answer.sample }) : phrase("sent-sample", { sample_name: sampleTold(agreement, answer.sample) })],
        [phrase("under-which"), phrase("under", { round })],
        [phrase("from-whom"), phrase(enrolment ? "from-token" : field ? "from-field" : "from-name")],
        [phrase("a-key"), phrase("key-told")],
      ]),
    );
  };
  by("token").addEventListener("input", preview);
  preview();
  by("send").onclick = () => {
    const body = request(answer);
    send({ text: bodyOf(body, agreement), key: body.key });
  };
  const waits = !field && !spoken.at && new Outbox().waitingFor(here.collection).find((each) => each.collection === here.collection && each.round === round && each.record === here.record.name);
  if (waits) send(waits); // as the person decided before
  if (spoken.at) heard(spoken, phrase("taken-part-already"));
}

/** How the body that leaves differs from what is shown: it has no line breaks, and spaces at its end. */
function paddingTold(body) {
  const padded = bodyOf(body, here.agreement);
  const spaces = padded.length - JSON.stringify(body).length;
  const bytes = new TextEncoder().encode(padded).length;
  return phrase("padding", { spaces: spaces ? phrase("spaces", { n: spaces }) : phrase("no-spaces"), bytes });
}

/** Send what a person agreed to, {text, key}: kept until it is answered, where anything is kept. */
async function send({ text, key }) {
  stop = new AbortController();
  sendingKey = key;
  const outbox = field && !offline ? undefined : new Outbox();
  await outbox?.keep({ key, text, record: field ? undefined : here.record.name, collection: here.collection, round: here.round });
  by("send").disabled = by("token").disabled = true;
  by("stop").hidden = false;
  if (turn) turn.busy = true;
  say("send-problem", "");
  sayPhrase("sending", "sending");
  try {
    const answer = await sent(text, (trouble) => tellTrouble(trouble), stop.signal);
    const at = new Date().toISOString();
    await here.speaker.heard(here.collection, here.round, key, at);
    if (typeof answer.ticket === "string" && !field) await here.speaker.keepTicket(here.collection, answer.ticket);
    await outbox?.drop(key);
    heard({ key, at }, phrase(answer.counted ? "has-arrived" : "arrived-before"));
  } catch (error) {
    if (field && offline && error instanceof Unreachable) heard({}, phrase(here.enrolment ? "thanks-offline-token" : "thanks-offline"));
    else {
      await outbox?.drop(key); // refused, or stopped by the person
      refused(error);
    }
  } finally {
    sendingKey = undefined;
    say("sending", "");
    if (turn) turn.busy = false;
    by("stop").hidden = true;
    by("send").disabled = by("token").disabled = false;
  }
}

/** Nobody answers: the same goes out again, or waits on the device of several people, so that the next one can take part. */
function tellTrouble({ attempt, problem, wait }) {
  if (field && offline) return stop.abort();
  say("sending", `${sentence(problem)} ${phrase("attempt", { attempt, wait: Math.ceil(wait) })}${field ? "" : ` ${phrase("kept-for-network")}`}`);
}

/** Send what waits from before, of whomever, and say what is left. */
async function sendWaiting() {
  const outbox = new Outbox();
  const arrived = async ({ record, collection, round, key }, answer) => {
    if (record === undefined) return;
    const speaker = new Speaker({ name: record });
    await speaker.heard(collection, round, key, new Date().toISOString());
    if (typeof answer.ticket === "string") await speaker.keepTicket(collection, answer.ticket);
  };
  await outbox.send(posted, arrived, here.collection, sendingKey);
  tellRefused();
  const n = outbox.waitingFor(here.collection).length;
  if (field) say("outbox-told", n ? phrase("so-many-wait", { n }) : document.documentElement.dataset.offline ? phrase("offline-ready") : "");
}

/** How many requests that waited were refused: it stays here until somebody has read it. */
function tellRefused() {
  const { refused: many } = new Outbox();
  by("refused-card").hidden = !many;
  const told = many ? phrase("so-many-refused", { n: many.n, said: sentence(many.said) }) : "";
  if (by("refused-told").textContent !== told) say("refused-told", told);
}

function refused(error) {
  if (error instanceof Refused && error.status === 409) {
    sayPhrase("send-problem", "has-spoken");
  } else if (error instanceof Unreachable) say("send-problem", `${sentence(error.message)} ${phrase(field ? "still-here" : "nothing-lost")}`);
  else say("send-problem", sentence(error.message));
}

/** The receipt. */
function heard({ key, at }, thanks) {
  sayPhrase("send", "send-again");
  by("send").classList.replace("action", "plain");
  by("receipt-card").hidden = false;
  say("thanks", thanks);
  if (field) return thankAndForget();
  by("receipt").replaceChildren(
    ...told([
      [phrase("when"), new Date(at).toLocaleString(pageLanguage())],
      [phrase("agreement-and-round"), phrase("id-and-round", { id: here.id.slice(0, 12), round: here.round })],
      [phrase("its-key"), key],
    ]),
  );
  by("receipt-heading").focus();
}

/** A receipt that shows nothing of the person, for a while. */
function thankAndForget() {
  for (const id of ["sample-card", "asked-card", "field-card"]) by(id).hidden = true;
  forget();
  answered = undefined;
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
readLong(by("pasted"), (text) => records.paste(text));
for (const id of ["clear", "clear-question"]) by(id).addEventListener("click", forget);
by("draw").addEventListener("click", draw);
by("stop").addEventListener("click", () => stop.abort());
by("total").addEventListener("input", tellTotal);
by("raise").addEventListener("click", () => {
  by("total").value = by("raise").value;
  tellTotal();
  by("draw").focus();
});
for (const id of ["somebody-else", "nobody-of-these"]) by(id).addEventListener("click", () => openFor(nextPerson(peopleHere())));
by("back-to-others").addEventListener("click", () => {
  nameInAddress("person", undefined);
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
  tellRefused();
});
for (const id of ["next", "next-after"]) by(id).addEventListener("click", nextTurn);
for (const id of ["entry", "pasted", "token"]) by(id).value = ""; // which a browser may have filled in
addEventListener("pagehide", () => {
  linkToken = undefined;
  forget();
});
addEventListener("pageshow", ({ persisted }) => persisted && forget()); // a page that comes back from memory
useCatalogue(JSON.parse(by("catalogue").textContent));
open();
