/**
 * The page to take part by. What a person enters stays on it; a sample is drawn once, shown with the whole request, and leaves by a click.
 *
 * In order: the agreement is written down as that of this browser's one sample, the budget is charged and the sample drawn and kept
 * (`Budget`), it is shown, sent until it is answered, and then remembered as heard. Whatever breaks off in between goes on where it was.
 *
 * Between loading and sending the page asks its service nothing, and nothing that a person enters keeps it from sending: whoever collects
 * sees a request of one length, or that somebody left. Leaving the page empties it, so that going back shows nothing.
 *
 * A person has a limit for each collection and a total for the site, which only their click raises: a service that calls everything a new
 * collection gets no more than the total. Several people have a record each (`people.js`); in field mode nobody has one (`field.js`).
 */
import { Budget } from "../src/budget.js";
import { element, told } from "../page/element.js";
import { readLong } from "../page/pasting.js";
import { atMost, certainty, inWordsOf, isolated, labelled, percentAtLeast, percentAtMost, rewordPage, rewordPairs, sentence, strength } from "../page/words.js";
import { agreed, words } from "./agreed.js";
import { addressed, chosen, titled } from "./choice.js";
import { drawnFrom } from "./drawn.js";
import { inField, nextTurn, PageMemory, Turn } from "./field.js";
import { keyOf } from "./identity.js";
import { forgetRecord, nextPerson, openFor, peopleHere, personButtons, personOf } from "./people.js";
import { allowed, noneOf, outsideTold, Records } from "./records.js";
import { bodyOf, sent } from "./sending.js";
import { json, Refused, Unreachable } from "./service.js";
import { Speaker } from "./speaker.js";

const MOST_NAMED = 200; // outcomes of a report that are listed
const WITHOUT_REGARD = "Decide without regard to what it says: if samples that look wrong are kept back, what all of them tell becomes wrong.";
const AGAIN = 3000; // milliseconds until the service is asked again, where it did not answer
const by = (id) => document.getElementById(id);
const say = (id, text) => (by(id).textContent = inWordsOf(here?.agreement.reports, text));

let choice = chosen();
const field = inField();
let here; // {collection, round, enrolment, agreement, id, speaker, record}
let turn; // of a person, in field mode
let records;
let law; // of what was entered
let answered; // the sample, once it is drawn
let stop = new AbortController();

/** The limit that just covers an agreement, all rounds of it: rounded up, whatever floats make of the product. */
const upwards = new Intl.NumberFormat("en", { maximumSignificantDigits: 12, roundingMode: "ceil", useGrouping: false });
const roundedUp = (budget) => Number(upwards.format(budget * (1 - 1e-14)));
const covering = ({ epsilon, rounds }) => roundedUp(epsilon * rounds);

async function open() {
  try {
    await found();
    say("problem", "");
  } catch (error) {
    say("problem", error instanceof Unreachable ? `${sentence(error.message)} This page goes on trying.` : sentence(error.message));
    if (error instanceof Unreachable) setTimeout(open, AGAIN);
  }
  by("loading").hidden = true;
  document.documentElement.dataset.ready = "true";
}

/** What is collected here, and what this browser has said of it. */
async function found() {
  const { value } = await json("collection", { agreement: choice.agreement });
  const { round } = value; // the open one: a sample of another would be charged and not taken
  if (!globalThis.isSecureContext) {
    throw new Error("This page came over plain http, where anybody on the way could have changed it, and where browsers keep nothing safely: open it by https, or on the machine itself as localhost");
  }
  const record = recordHere();
  const speaker = record && new Speaker(record);
  const spoken = speaker?.spoken(value.collection, round);
  const id = spoken?.agreement ?? choice.agreement ?? value.agreement;
  const known = await agreed(id);
  by("live").href = by("see").href = addressed("./", { ...choice, agreement: choice.agreement && known.id });
  by("purpose").textContent = known.fields.purpose ? labelled(known.fields.purpose) : "Take part";
  const reported = known.fields.mechanism === "reports";
  rewordPage(reported);
  document.title = titled(known.fields.purpose, "take part");
  by("asked").replaceChildren(...told(rewordPairs(reported, words(known, value))), element("dt", {}, "Its id"), element("dd", {}, element("code", {}, known.id), " is computed from what it says: compare it with the one you were given."));
  by("asked-card").hidden = false;
  if (!known.agreement) throw new Error(`From this page you cannot take part: ${known.problem}. Python's client may be able to`);
  if (!record) return chooseWho();
  here = { collection: value.collection, round, enrolment: value.enrolment, agreement: known.agreement, id: known.id, speaker, record };
  if (field) beginTurn();
  const answer = spoken && budget()?.answered(known.agreement, { round });
  if (answer) shown(answer, spoken);
  else if (value.closed) {
    by("asked-card").hidden = true;
    throw new Refused(`this collection was closed on ${value.closed}. Nothing more is counted, so nothing is drawn here`);
  } else ask();
  if (!field) tellDevice();
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
  const also = others ? `${others === 1 ? "one other person" : `${others.toLocaleString("en")} other people`}` : "";
  say("device-told", mine
    ? `This browser keeps a record of you at this site: your samples, a secret behind your names, and that you have spent ${mine.spent} of a total of ${totalHere()}, in ${many === 1 ? "one collection" : `${many.toLocaleString("en")} collections`}.${also ? ` It keeps another one of ${also}.` : ""}`
    : `This browser keeps a record of ${also} at this site. You get a record and a budget of your own, with your first sample.`);
  by("else-part").hidden = by("forget-part").hidden = !mine;
  by("others-part").hidden = !others;
}

/** Field mode: nothing is kept, and the page says so. */
function beginTurn() {
  document.documentElement.dataset.field = "true";
  by("field-card").hidden = false;
  for (const id of ["live", "see"]) by(id).hidden = true;
  turn ??= new Turn((left, done) => {
    by("stay").hidden = left === null || done;
    say("turn-told", left === null ? "" : `This page starts again for the next person in ${left} s.`);
    if ((by("turn-listened").textContent === "") === (left !== null)) say("turn-listened", by("turn-told").textContent); // once, and not every second
  });
}

/** Let the person say what they hold. */
function ask() {
  const { agreement, speaker, collection } = here;
  const { domain } = agreement;
  by("held-card").hidden = by("draw-card").hidden = false;
  const limit = speaker.limitOf(collection);
  const needed = roundedUp(spentHere() + agreement.epsilon);
  by("limit-field").hidden = field || limit >= needed;
  by("limit").value = limit ?? covering(agreement);
  by("total-field").hidden = field || totalHere() === undefined;
  by("total").value = totalHere() ?? "";
  tellTotal();
  const factor = Math.exp(agreement.epsilon);
  say("odds", `Whoever sees your sample can move their odds about you from 1 to 1 to at most ${atMost(factor)} to 1: from 50\u00a0% sure to ${percentAtMost(certainty(factor))} sure. ${strength(agreement.epsilon).said}`);
  say("cost", field
    ? `It costs epsilon = ${agreement.epsilon}. This device keeps no budget of yours. If you take part more than once, here or elsewhere, what your samples tell about you adds up.`
    : `It costs epsilon = ${agreement.epsilon}${limit === undefined ? "" : `; your limit for this collection is ${limit}, of which ${spentHere()} is spent`}.`);
  if (agreement.reports) {
    say("drawn-heading", "What your report may name");
    say("drawn-law", "how likely your report names it");
    say("draw", "Draw my report");
  }
  say("entry-told", domain.labels ? "Type one of the outcomes" : `Type ${allowed(domain)}`);
  say("draw-first", `Enter first what you hold, or choose “${noneOf(domain)}”.`);
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
  const so = `You have spent ${spent} of your total of ${total}, in ${many === 1 ? "one collection" : `${many.toLocaleString("en")} collections`} at this site. With this sample it is ${needed}.`;
  const means = `With a total of ${Math.max(needed, wanted || 0)}, whoever puts all your samples from this site together can move their odds about you from 1 to 1 to at most ${atMost(factor)} to 1: from 50\u00a0% sure to ${percentAtMost(certainty(factor))} sure. ${strength(Math.max(needed, wanted || 0)).said}`;
  say("total-told", needed > total || wanted > total ? `${so} ${needed > total ? "Your total does not allow it, unless you raise it. " : ""}${means}` : so);
  by("raise").hidden = wanted >= needed;
  say("raise", `Raise my total to ${needed}`);
  by("raise").value = needed;
}

function changed() {
  const { agreement } = here;
  const { held } = records;
  by("drawn-card").hidden = by("draw").disabled = !held;
  by("draw-first").hidden = Boolean(held);
  law = held && agreement.law(held);
  say("outside", outsideTold(records, agreement, records.outside < records.total || agreement.domain.interval));
  if (law) drawnFrom(by("drawn"), by("rest"), agreement, law);
  else for (const id of ["drawn", "rest"]) by(id).replaceChildren();
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
    if (limit < agreement.epsilon) throw new Error(`A limit of ${limit} does not allow this sample, which costs ${agreement.epsilon}`);
    const book = new Budget({ ...record, limit: known ?? total }); // refused before anything is written down
    if (total !== known && known !== undefined) await book.raise(total, event);
    book.check(agreement, { round, part });
    const spoken = await speaker.speak(collection, round, id, limit);
    if (spoken.agreement !== id) return location.reload(); // another tab was first, under another agreement
    shown(await book.release(agreement, own, { round, part: { limit, questions: speaker.questions(collection) } }), spoken);
    if (!field) tellDevice();
    by("sample-heading").focus();
  } catch (error) {
    say("draw-problem", sentence(error.message));
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
  for (const id of ["held-card", "drawn-card", "draw-card"]) by(id).hidden = true;
  by("sample-card").hidden = false;
  by("sample").textContent = sampleTold(agreement, answer.sample);
  say("sample-told", reportTold(agreement, answer.sample));
  by("sample").classList.toggle("named", Boolean(agreement.reports));
  if (agreement.reports) say("sample-heading", "Your report");
  if (field) say("kept-told", `It was drawn once, for you alone. This device keeps it in memory until it is sent, and forgets it then, or when you leave. ${WITHOUT_REGARD}`);
  by("sample").dataset.sample = JSON.stringify(answer.sample);
  by("token-field").hidden = !enrolment;
  const preview = () => {
    const body = request(answer);
    by("send").disabled = !body;
    by("request").textContent = body ? JSON.stringify(body, null, 2) : "Enter your token first: it is a part of what is sent.";
    say("padding", body ? paddingTold(body) : "");
    by("words").replaceChildren(
      ...told([
        ["Where to", `${new URL("samples", location.href)}`],
        agreement.reports ? ["The report", `The number ${answer.sample}, which stands for the outcomes above. It is all that is said about you.`] : ["The sample", `${sampleTold(agreement, answer.sample)}, which is all that is said about you.`],
        ["Under which agreement", `The one that this page shows, in round ${round.toLocaleString("en")}.`],
        ["From whom", enrolment ? "The token that you were given. Whoever gave it to you knows that it is yours." : field ? "A name that was made up for you a moment ago. It says nothing about you, and is forgotten with the rest." : "A name that this browser made up for this collection. It says nothing about you, and another collection gets another one."],
        ["A key", "It is made of the agreement, the round and the name. Should the answer get lost, the same is sent again, and counted once."],
      ]),
    );
  };
  by("token").addEventListener("input", preview);
  preview();
  by("send").onclick = () => send(request(answer));
  if (spoken.at) heard(spoken, "You have taken part already, thank you. This is what you said then: a person speaks once in a round, so there is nothing more to do.");
}

/** A sample as people call it, or the outcomes that a report names. */
function sampleTold(agreement, sample) {
  const { domain, reports } = agreement;
  if (!reports) return labelled(domain.name(domain.number(sample)));
  const named = agreement.outcomesOf(sample);
  return named.slice(0, MOST_NAMED).map((place) => isolated(domain.name(place))).join(", ") + (named.length > MOST_NAMED ? ` and ${(named.length - MOST_NAMED).toLocaleString("en")} more` : "");
}

/** What a report is: nothing where it is a sample. */
function reportTold(agreement, sample) {
  if (!agreement.reports) return "";
  const many = agreement.outcomesOf(sample).length;
  return `${many === 1 ? "This is your report. What it names is yours, perhaps" : `This is your report. One of these ${many.toLocaleString("en")} is yours, perhaps`}: with a chance of ${percentAtLeast(agreement.reports.chances.blind)} it was drawn without looking at what you hold. Nobody who sees it can be sure which one is yours, or whether any is.`;
}

/** How the body that leaves differs from what is shown: it has no line breaks, and spaces at its end. */
function paddingTold(body) {
  const padded = bodyOf(body, here.agreement);
  const spaces = padded.length - JSON.stringify(body).length;
  const bytes = new TextEncoder().encode(padded).length;
  return `It leaves as one line, with ${spaces ? `${spaces.toLocaleString("en")} space${spaces === 1 ? "" : "s"}` : "no spaces"} after it, ${bytes.toLocaleString("en")} bytes in all. It would be as long with any other sample: so its length tells nobody on the way which one it is.`;
}

async function send(body) {
  stop = new AbortController();
  by("send").disabled = by("token").disabled = true;
  by("stop").hidden = false;
  if (turn) turn.busy = true;
  say("send-problem", "");
  say("sending", "Sending …");
  try {
    const answer = await sent(bodyOf(body, here.agreement), ({ attempt, problem, wait }) => say("sending", `${sentence(problem)} That was attempt ${attempt}; the same is sent again in ${Math.ceil(wait)} s.`), stop.signal);
    const at = new Date().toISOString();
    await here.speaker.heard(here.collection, here.round, body.key, at);
    heard({ key: body.key, at }, answer.counted ? "Your sample has arrived and is counted. Thank you." : "Your sample had arrived before. It is counted once, as it should be.");
  } catch (error) {
    refused(error);
  } finally {
    say("sending", "");
    if (turn) turn.busy = false;
    by("stop").hidden = true;
    by("send").disabled = by("token").disabled = false;
  }
}

function refused(error) {
  if (error instanceof Refused && error.status === 409) {
    say("send-problem", "Somebody with this name has spoken in this round already, with another sample. That one counts, this one was not taken, and there is nothing more to do. Thank you for taking part.");
  } else if (error instanceof Unreachable) say("send-problem", `${sentence(error.message)} ${field ? "Your sample is still here: try again, or leave it, and nothing was sent." : "Nothing is lost: the same sample can be sent later, also after this page was closed."}`);
  else say("send-problem", sentence(error.message));
}

/** The receipt. */
function heard({ key, at }, thanks) {
  say("send", "Send the same again");
  by("send").classList.replace("action", "plain");
  by("receipt-card").hidden = false;
  say("thanks", thanks);
  if (field) return thankAndForget();
  by("receipt").replaceChildren(
    ...told([
      ["When", new Date(at).toLocaleString()],
      ["Agreement and round", `${here.id.slice(0, 12)}, round ${here.round.toLocaleString("en")}`],
      ["The key that it was sent with", key],
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
by("clear").addEventListener("click", forget);
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
  history.replaceState(null, "", `${location.pathname}${location.search}`);
  location.reload();
});
by("forget").addEventListener("click", (event) => {
  try {
    forgetRecord(here.record.name, event);
    openFor(here.record.name);
  } catch (error) {
    say("device-problem", sentence(error.message));
  }
});
for (const id of ["next", "next-after"]) by(id).addEventListener("click", nextTurn);
for (const id of ["entry", "pasted", "token"]) by(id).value = ""; // which a browser may have filled in
addEventListener("pagehide", forget);
addEventListener("pageshow", ({ persisted }) => persisted && forget()); // a page that comes back from memory
open();
