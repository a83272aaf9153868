/** The live page: what the samples tell so far. It asks the service every two seconds while somebody looks, and says when nobody answers. */
import { numbered, pageLanguage, phrase, rewordPage, speakOf, useCatalogue } from "../page/catalogue.js";
import { element, told } from "../page/element.js";
import { containing, suggested } from "../page/search.js";
import { atMost, certainty, labelled, percentAtMost, sentence } from "../page/words.js";
import { agreed, ordered, words } from "./agreement-terms.js";
import { answersOf, changesOf, groupsOf, Panels, stagesOf, withinOf } from "./answers.js";
import { addressed, chosen, headingOf, offer, titled } from "./agreement-choice.js";
import { days } from "./days.js";
import { FEW, histogram, largest, MANY, Rows, rowsOfTable, widest } from "./population.js";
import { optionTold, questionsOf } from "./question.js";
import { ticketHere } from "./people.js";
import { json, Unreachable } from "./service.js";
import { reading, trusted } from "./trust.js";

const [LOOKED_AT, UNSEEN, SLOWEST] = [2000, 30_000, 5000]; // milliseconds between two questions
const PART = 4; // times as long as an answer took, until the next question
const COLLECTION_EVERY = 10_000;
const TOLD_EVERY = 10_000; // to people who listen: a count that is read out every two seconds drowns everything else

const by = (id) => document.getElementById(id);
const say = (id, text) => {
  if (by(id).textContent !== text) by(id).textContent = text;
};
const clock = () => new Date().toLocaleTimeString(pageLanguage(), { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const rows = new Rows(by("rows"), by("scale"));
const [answers, groups, stages] = ["answers", "groups", "stages"].map((id) => new Panels(by(id)));

let choice = chosen();
let known = {}; // {collection, collectionAt, agreed, estimate, etag, compared}
let all = false;
let delay = LOOKED_AT;
let turn = 0; // of the choice: what was asked for an earlier one is not shown
let timer = 0;

async function refresh() {
  const asked = turn;
  if (!known.collection || Date.now() - known.collectionAt > COLLECTION_EVERY) {
    const { value } = await json("collection", { agreement: choice.agreement });
    if (asked !== turn) return;
    Object.assign(known, { collection: value, collectionAt: Date.now() });
  }
  const named = known.collection.agreements.find(({ agreement }) => choice.agreement && agreement.startsWith(choice.agreement));
  const now = { agreement: named?.agreement ?? known.collection.agreement, round: choice.round ?? known.collection.round };
  offer(known.collection, now, {
    form: by("choice"), agreement: by("choice-agreement"), agreementField: by("choice-agreement-field"), round: by("choice-round"), roundField: by("choice-round-field"),
  });
  by("take-part").href = addressed("take-part", choice);
  const { closed } = known.collection;
  by("take-part").hidden = Boolean(closed);
  say("closed", closed ? phrase("was-closed", { day: closed }) : "");
  if (known.agreed?.id !== now.agreement) {
    const found = await agreed(now.agreement);
    if (asked !== turn) return;
    const questions = await questionsOf(now.agreement, known.collection.agreements.find(({ agreement }) => agreement === now.agreement)?.questions);
    if (asked !== turn) return;
    Object.assign(known, { agreed: found, questions });
    promise();
  }
  known.ticket = known.collection.shown === "after" ? ticketHere(known.collection.collection) : undefined;
  const found = await json("estimate", now, known.etag, known.ticket);
  if (asked !== turn) return;
  if (found) {
    Object.assign(known, { estimate: inSamples(found.value), etag: found.etag });
    say("changed", phrase("last-change", { time: clock() }));
    show();
  }
  await compare(now, asked); // each time: samples of other groups and rounds leave this estimate as it was
}

/** Show what a path answers, if that is not on the page yet. False where the page has come to speak of something else. */
async function showAnswer(path, query, asked, put) {
  const question = JSON.stringify(query), last = known.compared?.[path];
  const found = await json(path, query, last?.question === question ? last.etag : null, known.ticket);
  if (asked !== turn) return false;
  if (found) {
    put(found.value);
    known.compared = { ...known.compared, [path]: { question, etag: found.etag } };
  }
  return true;
}

/** Groups side by side, stages together, and the change from the round before, where the collection has them. */
async function compare(now, asked) {
  if (known.estimate.hidden) {
    known.compared = {};
    for (const id of ["groups-card", "stages-card", "change-card"]) by(id).hidden = true;
    return;
  }
  const { groups: several = [], within = [] } = known.collection;
  const columns = JSON.stringify(within);
  if (by("within").dataset.known !== columns) {
    const all = several.length > 1 ? [element("option", { value: "" }, phrase("by-agreement"))] : [];
    by("within").replaceChildren(...all, ...within.map((name) => element("option", { value: name, dir: "auto" }, labelled(name))));
    by("within").dataset.known = columns;
  }
  by("within-field").hidden = !within.length;
  const column = by("within").value;
  const shown = known.estimate.samples > 0 && (several.length > 1 || within.length > 0);
  if (shown && !(await showAnswer("groups", column ? { ...now, by: column } : now, asked, (value) => putGroups(value, column)))) return;
  by("groups-card").hidden = !shown;
  const staged = (known.collection.stages ?? []).length > 1;
  if (!staged) by("stages-card").hidden = true;
  else if (!(await showAnswer("pooled", now, asked, putStages))) return;
  const changing = now.round > 1 && known.estimate.samples > 0;
  if (changing && !(await showAnswer("change", now, asked, putChange))) return;
  by("change-card").hidden = !changing;
}

function putGroups(value, column) {
  groups.show(column ? withinOf(value) : groupsOf(value));
  const often = `${numbered(100 * value.confidence)}\u00a0%`;
  say("groups-reading", [...(value.notes ?? []).map(sentence), phrase(column ? "within-reading" : "groups-reading", { often })].join(" "));
}

function putStages(pooled) {
  by("stages-card").hidden = !pooled.shares.length;
  if (!pooled.shares.length) return;
  stages.show(stagesOf(pooled));
  by("stages-told").replaceChildren(...pooled.stages.map(({ purpose, agreement, clients, epsilon }) => element("li", { dir: "auto" }, phrase("stage", { stage: headingOf(purpose || agreement.slice(0, 12)), n: clients, epsilon }))));
  say("stages-reading", phrase(pooled.identifiable ? "stages-reading" : "stages-narrowed", { often: `${numbered(100 * pooled.confidence)}\u00a0%` }));
}

function putChange(value) {
  say("change-heading", phrase("change-since", { round: value.rounds[0] }));
  by("change-table").hidden = !value.changes.length;
  by("changes").replaceChildren(...changesOf(value));
  say("change-reading", value.changes.length ? phrase("change-reading", { often: `${numbered(100 * value.confidence)}\u00a0%` }) : phrase("change-few"));
}

/** An estimate from reports calls them so; this page counts both alike. Outcomes are called as the questions call them. */
const inSamples = (estimate) => {
  if (estimate.questions) return { ...estimate, mechanism: estimate.agreement.mechanism, samples: estimate.clients, shares: [] };
  const told = (share) => ({ ...share, samples: share.samples ?? share.reports, outcome: known.questions ? optionTold(known.questions, String(share.outcome)) : share.outcome });
  return { ...estimate, samples: estimate.samples ?? estimate.reports, shares: estimate.shares.map(told) };
};

/** What was agreed on, which no sample changes. */
function promise() {
  const { collection, agreed: found } = known;
  const { purpose, privacy, epsilon, mechanism } = found.fields;
  const reported = mechanism === "reports" || mechanism === "survey";
  const { questions } = known;
  speakOf(questions ? "answer" : reported ? "report" : "sample");
  rewordPage();
  say("purpose", questions ? labelled(questions.title) : purpose ? headingOf(purpose) : phrase("what-they-tell"));
  by("purpose").lang = questions?.language ?? "";
  say("what", questions ? [questions.text, phrase("what-answered")].filter(Boolean).join(" ") : phrase(mechanism === "survey" ? "what-surveyed" : reported ? "what-reported" : "what-sampled"));
  say("named-told", phrase(reported ? "that-name-it" : "column-samples"));
  const each = Object.values(questions?.columns ?? { only: questions ?? {} });
  const means = { "meaning-several": each.some((one) => one.choice === "multiple"), [questions?.columns ? "meaning-silent-survey" : "meaning-silent"]: each.some((one) => one.prefer_not_to_say === true) };
  say("meaning", Object.keys(means).filter((key) => means[key]).map((key) => phrase(key)).join(" "));
  document.title = titled(questions?.title ?? purpose, phrase("tab-live"));
  by("odds-figure").hidden = privacy !== undefined; // odds are bounded by pure epsilon alone
  tell("odds", Math.exp(epsilon), (factor) => phrase("to-one", { factor: atMost(factor) }));
  tell("sure", certainty(Math.exp(epsilon)), percentAtMost);
  by("reveal").replaceChildren(...told([...words(found, collection), [phrase("its-id"), phrase("id-computed", { id: found.id })]]));
}

function show() {
  const { estimate, collection } = known;
  const { samples, shares } = estimate;
  const shown = shares.length > 0; // not before enough have come
  const surveyed = estimate.questions?.length > 0;
  count(samples);
  say("population-heading", phrase(estimate.questions ? "the-answers" : "the-population"));
  by("answers").hidden = !surveyed;
  if (surveyed) answers.show(answersOf(estimate, known.questions));
  say("answers-reading", surveyed ? phrase("answers-reading", { often: `${numbered(100 * estimate.confidence)}\u00a0%` }) : "");
  by("width-figure").hidden = !shown;
  by("liars-figure").hidden = !shown || !estimate.liars;
  if (shown) tell("width", estimate.margin_at_worst ?? widest(shares), (share) => `±\u00a0${percentAtMost(share)}`);
  if (shown && estimate.liars) tell("liars", estimate.liars.one, percentAtMost);
  say("width-told", phrase("margin", { confidence: `${numbered(100 * estimate.confidence)}\u00a0%` }));
  say("reading", estimate.questions ? "" : reading(estimate, !ordered(known.agreed) && shares.length > FEW));
  by("nothing").hidden = shown || surveyed;
  say("nothing", waiting(estimate, collection.closed));
  by("population").hidden = !shown;
  statistics(shown && ordered(known.agreed) ? (estimate.statistics ?? []) : []);
  if (shown) picture();
  trust(trusted(estimate, collection.enrolment));
  by("days-card").hidden = !estimate.days?.length;
  days(by("days"), estimate.days ?? []);
}

/** Why no estimate is shown. */
function waiting({ samples, least, hidden }, closed) {
  if (hidden) return `${phrase(`hidden-${hidden}`)} ${phrase("so-many-came", { n: samples })}`;
  if (least) return `${phrase("least", { least })} ${phrase(`${samples ? "some" : "none"}-came${closed ? "" : "-so-far"}`, { n: samples })}`;
  return phrase(closed ? "none-have-come" : "none-yet");
}

/** Mean and median where outcomes are numbers, with their intervals. */
function statistics(found) {
  by("statistics").hidden = !found.length;
  by("statistics").replaceChildren(
    ...told(found.map(({ name, estimate, low, high }) => [phrase(`statistic-${name}`), phrase("statistic", { estimate: value(estimate), low: value(low), high: value(high), sure: `${numbered(100 * known.estimate.confidence)}\u00a0%` })])),
  );
}
const value = (number) => numbered(number, { maximumSignificantDigits: 4 }).replace("-", "−");

/** The population, as wide as there is room. */
function picture() {
  const { shares } = known.estimate;
  const inOrder = ordered(known.agreed);
  by("rows-part").hidden = inOrder;
  by("histogram").toggleAttribute("hidden", !inOrder);
  const top = sought(shares) ?? largest(shares, all ? MANY : FEW);
  if (inOrder) {
    const width = Math.max(280, Math.floor(by("population").clientWidth));
    by("key").classList.toggle("banded", histogram(by("histogram"), shares, width));
    by("histogram").setAttribute("aria-label", phrase("histogram", { n: shares.length, largest: labelled(shares[top[0]].outcome) }));
  } else {
    rows.show(shares, top);
    by("key").classList.remove("banded");
  }
  by("search-field").hidden = inOrder || shares.length <= FEW;
  by("more").hidden = inOrder || shares.length <= FEW || Boolean(by("search").value.trim());
  by("all").setAttribute("aria-expanded", all);
  say("all", all ? phrase("show-largest", { few: FEW }) : phrase("show-all", { n: shares.length }));
  say("cut", shares.length > MANY && all ? phrase("cut", { many: MANY, size: shares.length }) : "");
  if (by("table-part").open) by("table").replaceChildren(...rowsOfTable(shares));
}

/** The places of the outcomes that somebody looks for, as they stand in the list; null where nobody looks. */
function sought(shares) {
  const text = by("search").value;
  if (!text.trim() || by("search-field").hidden) {
    say("search-told", "");
    return null;
  }
  known.names ??= shares.map(({ outcome }) => outcome);
  const found = containing(known.names, text);
  const near = found.length ? [] : suggested(known.names, text);
  say("search-told", found.length ? phrase(found.length > MANY ? "matches-cut" : "matches", { n: found.length, size: shares.length, many: MANY }) : phrase(near.length ? "did-you-mean" : "none-matches"));
  return (found.length ? found : near).slice(0, MANY);
}

/** How far to trust it, which is left alone where it says the same: somebody may be reading it. */
function trust(pairs) {
  const said = JSON.stringify(pairs);
  if (by("trust").dataset.said === said) return;
  by("trust").dataset.said = said;
  by("trust").replaceChildren(...told(pairs));
}

/** A number on the page: rounded for people, and to all its digits for whoever checks it. */
function tell(id, value, shown) {
  say(id, shown(value));
  by(id).dataset.number = value;
}

function count(samples) {
  tell("samples", samples, numbered);
  const last = Number(by("listened").dataset.at ?? 0);
  if (Date.now() - last < TOLD_EVERY || by("listened").dataset.samples === String(samples)) return;
  Object.assign(by("listened").dataset, { at: Date.now(), samples });
  say("listened", phrase("so-many-so-far", { n: samples }));
}

/** What is the matter, said once however long it lasts; what was known stays on the page. */
function troubled(error) {
  const gone = error instanceof Unreachable;
  const state = gone ? "unreachable" : "refused";
  if (document.documentElement.dataset.state !== state || !gone) {
    const since = known.estimate ? ` ${phrase("said-last", { time: clock() })}` : "";
    say("problem", gone ? `${sentence(error.message)}${since} ${phrase("goes-on-trying")}` : sentence(error.message));
  }
  document.documentElement.dataset.state = state;
  known.collectionAt = 0; // another service may answer next
  delay = Math.min(Math.max(delay, LOOKED_AT) * 1.5, SLOWEST);
}

async function ask() {
  clearTimeout(timer);
  const asked = turn, began = performance.now();
  try {
    await refresh();
    if (asked === turn) {
      delay = Math.max(LOOKED_AT, PART * (performance.now() - began)); // a great estimate on a slow line is not asked for all the time
      document.documentElement.dataset.state = "live";
      say("problem", "");
    }
  } catch (error) {
    if (asked === turn) troubled(error);
  }
  if (asked === turn) timer = setTimeout(ask, document.hidden ? UNSEEN : delay);
}

/** Speak of another agreement or round from now on. */
function choose(next) {
  choice = next;
  turn += 1;
  known = {};
  ask();
}

by("choice").addEventListener("submit", (event) => event.preventDefault());
for (const id of ["choice-agreement", "choice-round"]) {
  by(id).addEventListener("change", () => {
    const same = id === "choice-round";
    if (same && !by(id).reportValidity()) return;
    const next = { agreement: by("choice-agreement").value, round: same ? Number(by(id).value) : undefined, lang: choice.lang };
    history.pushState(null, "", addressed(location.pathname, next));
    choose(next);
  });
}
addEventListener("popstate", () => choose(chosen()));
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  turn += 1;
  ask();
});
by("within").addEventListener("change", () => {
  turn += 1;
  ask();
});
by("search").addEventListener("input", () => known.estimate?.shares.length && picture());
by("all").addEventListener("click", () => {
  all = !all;
  picture();
});
by("table-part").addEventListener("toggle", () => known.estimate?.shares.length && picture());
new ResizeObserver(() => known.estimate?.shares.length && ordered(known.agreed) && picture()).observe(by("population"));
useCatalogue(JSON.parse(by("catalogue").textContent));
ask();
