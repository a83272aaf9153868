/** The live page: what the samples show so far. It asks the service every two seconds while it is visible, and says when there is no answer. */
import { formatNumber, pageLanguage, phrase, rewordPage, setNoun, useCatalogue } from "../page/catalogue.js";
import { element, termElements } from "../page/element.js";
import { placesContaining, suggestedPlaces } from "../page/search.js";
import { atMost, certainty, percentAtMost, sentence, visibleLabel } from "../page/words.js";
import { hasOrderedOutcomes, loadAgreement, termsInWords } from "./agreement-terms.js";
import { answerPanels, changeRows, groupPanels, Panels, stagePanels, withinPanels } from "./answers.js";
import { addressOf, choiceInAddress, headingOf, showChoices, tabTitle } from "./agreement-choice.js";
import { showDays } from "./days.js";
import { FEW, largestPlaces, MANY, Rows, showHistogram, tableRows, widestMargin } from "./population.js";
import { loadQuestions, optionText } from "./question.js";
import { anyTicketOf, recoverPeople } from "./people.js";
import { getJson, Unreachable } from "./service.js";
import { readingText, trustFacts } from "./trust.js";

const [INTERVAL, INTERVAL_HIDDEN, LONGEST_INTERVAL] = [2000, 30_000, 5000]; // milliseconds between requests: usual, of a hidden page, longest after a failure
const PAUSE_FACTOR = 4; // the pause is at least so many times as long as an answer took
const COLLECTION_EVERY = 10_000;
const ANNOUNCED_EVERY = 10_000; // to people with a screen reader: a count every two seconds would interrupt everything else

const by = (id) => document.getElementById(id);
const say = (id, text) => {
  if (by(id).textContent !== text) by(id).textContent = text;
};
const clock = () => new Date().toLocaleTimeString(pageLanguage(), { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const rows = new Rows(by("rows"), by("scale"));
const [answers, groups, stages] = ["answers", "groups", "stages"].map((id) => new Panels(by(id)));

let choice = choiceInAddress();
let known = {}; // {collection, collectionAt, terms, questions, ticket, estimate, etag, compared, names}
let all = false;
let delay = INTERVAL;
let recovery; // of what a browser that was killed has forgotten, once
let currentRun = 0; // a new choice, or a return to the page, starts a new run; answers to requests of an earlier run are not shown
let timer = 0;

async function refresh() {
  const thisRun = currentRun;
  if (!known.collection || Date.now() - known.collectionAt > COLLECTION_EVERY) {
    const { value } = await getJson("collection", { agreement: choice.agreement });
    if (thisRun !== currentRun) return;
    Object.assign(known, { collection: value, collectionAt: Date.now() });
  }
  const named = known.collection.agreements.find(({ agreement }) => choice.agreement && agreement.startsWith(choice.agreement));
  const now = { agreement: named?.agreement ?? known.collection.agreement, round: choice.round ?? known.collection.round };
  showChoices(known.collection, now, {
    form: by("choice"), agreement: by("choice-agreement"), agreementField: by("choice-agreement-field"), round: by("choice-round"), roundField: by("choice-round-field"),
  });
  by("take-part").href = addressOf("take-part", choice);
  const { closed } = known.collection;
  by("take-part").hidden = Boolean(closed);
  say("closed", closed ? phrase("was-closed", { day: closed }) : "");
  if (known.terms?.id !== now.agreement) {
    const found = await loadAgreement(now.agreement);
    if (thisRun !== currentRun) return;
    const questions = await loadQuestions(now.agreement, known.collection.agreements.find(({ agreement }) => agreement === now.agreement)?.questions);
    if (thisRun !== currentRun) return;
    Object.assign(known, { terms: found, questions });
    showAgreement();
  }
  if (known.collection.shown === "after") await (recovery ??= recoverPeople().catch(() => {})); // without copies, the tickets in the storage are used
  known.ticket = known.collection.shown === "after" ? anyTicketOf(known.collection.collection) : undefined;
  const found = await getJson("estimate", now, known.etag, known.ticket);
  if (thisRun !== currentRun) return;
  if (found) {
    Object.assign(known, { estimate: unifyEstimate(found.value), etag: found.etag });
    say("changed", phrase("last-change", { time: clock() }));
    showEstimate();
  }
  await refreshComparisons(now, thisRun); // each time, since samples of other groups and rounds leave this estimate unchanged
}

/** Show the answer of a path, if it is not on the page yet. Returns false if a new run has begun meanwhile. */
async function showAnswer(path, query, thisRun, showValue) {
  const question = JSON.stringify(query), last = known.compared?.[path];
  const found = await getJson(path, query, last?.question === question ? last.etag : null, known.ticket);
  if (thisRun !== currentRun) return false;
  if (found) {
    showValue(found.value);
    known.compared = { ...known.compared, [path]: { question, etag: found.etag } };
  }
  return true;
}

/** Show groups side by side, stages together, and the change from the previous round, if the collection has them. */
async function refreshComparisons(now, thisRun) {
  if (known.estimate.hidden) {
    known.compared = {};
    for (const id of ["groups-card", "stages-card", "change-card"]) by(id).hidden = true;
    return;
  }
  const { groups: several = [], within = [] } = known.collection;
  const columns = JSON.stringify(within);
  if (by("within").dataset.known !== columns) {
    const all = several.length > 1 ? [element("option", { value: "" }, phrase("by-agreement"))] : [];
    by("within").replaceChildren(...all, ...within.map((name) => element("option", { value: name, dir: "auto" }, visibleLabel(name))));
    by("within").dataset.known = columns;
  }
  by("within-field").hidden = !within.length;
  const column = by("within").value;
  const shown = known.estimate.samples > 0 && (several.length > 1 || within.length > 0);
  if (shown && !(await showAnswer("groups", column ? { ...now, by: column } : now, thisRun, (value) => showGroups(value, column)))) return;
  by("groups-card").hidden = !shown;
  const staged = (known.collection.stages ?? []).length > 1;
  if (!staged) by("stages-card").hidden = true;
  else if (!(await showAnswer("pooled", now, thisRun, showStages))) return;
  const changing = now.round > 1 && known.estimate.samples > 0;
  if (changing && !(await showAnswer("change", now, thisRun, showChange))) return;
  by("change-card").hidden = !changing;
}

function showGroups(value, column) {
  groups.show(column ? withinPanels(value) : groupPanels(value));
  const often = `${formatNumber(100 * value.confidence)}\u00a0%`;
  say("groups-reading", [...(value.notes ?? []).map(sentence), phrase(column ? "within-reading" : "groups-reading", { often })].join(" "));
}

function showStages(pooled) {
  by("stages-card").hidden = !pooled.shares.length;
  if (!pooled.shares.length) return;
  stages.show(stagePanels(pooled));
  by("stages-told").replaceChildren(...pooled.stages.map(({ purpose, agreement, clients, epsilon }) => element("li", { dir: "auto" }, phrase("stage", { stage: headingOf(purpose || agreement.slice(0, 12)), n: clients, epsilon }))));
  say("stages-reading", phrase(pooled.identifiable ? "stages-reading" : "stages-narrowed", { often: `${formatNumber(100 * pooled.confidence)}\u00a0%` }));
}

function showChange(value) {
  say("change-heading", phrase("change-since", { round: value.rounds[0] }));
  by("change-table").hidden = !value.changes.length;
  by("changes").replaceChildren(...changeRows(value));
  say("change-reading", value.changes.length ? phrase("change-reading", { often: `${formatNumber(100 * value.confidence)}\u00a0%` }) : phrase("change-few"));
}

/** An estimate from samples, reports or a survey in one form: all are counted as samples, and outcomes have the names of the questions. */
const unifyEstimate = (estimate) => {
  if (estimate.questions) return { ...estimate, mechanism: estimate.agreement.mechanism, samples: estimate.clients, shares: [] };
  const told = (share) => ({ ...share, samples: share.samples ?? share.reports, outcome: known.questions ? optionText(known.questions, String(share.outcome)) : share.outcome });
  return { ...estimate, samples: estimate.samples ?? estimate.reports, shares: estimate.shares.map(told) };
};

/** Show what was agreed on. It does not depend on the samples. */
function showAgreement() {
  const { collection, terms: found } = known;
  const { purpose, privacy, epsilon, mechanism } = found.fields;
  const reported = mechanism === "reports" || mechanism === "survey";
  const { questions } = known;
  setNoun(questions ? "answer" : reported ? "report" : "sample");
  rewordPage();
  say("purpose", questions ? visibleLabel(questions.title) : purpose ? headingOf(purpose) : phrase("what-they-tell"));
  by("purpose").lang = questions?.language ?? "";
  say("what", questions ? [questions.text, phrase("what-answered")].filter(Boolean).join(" ") : phrase(mechanism === "survey" ? "what-surveyed" : reported ? "what-reported" : "what-sampled"));
  say("named-told", phrase(reported ? "that-name-it" : "column-samples"));
  const each = Object.values(questions?.columns ?? { only: questions ?? {} });
  const means = { "meaning-several": each.some((one) => one.choice === "multiple"), [questions?.columns ? "meaning-silent-survey" : "meaning-silent"]: each.some((one) => one.prefer_not_to_say === true) };
  say("meaning", Object.keys(means).filter((key) => means[key]).map((key) => phrase(key)).join(" "));
  document.title = tabTitle(questions?.title ?? purpose, phrase("tab-live"));
  by("odds-figure").hidden = privacy !== undefined; // only pure epsilon bounds the odds
  showNumber("odds", Math.exp(epsilon), (factor) => phrase("to-one", { factor: atMost(factor) }));
  showNumber("sure", certainty(Math.exp(epsilon)), percentAtMost);
  by("reveal").replaceChildren(...termElements([...termsInWords(found, collection), [phrase("its-id"), phrase("id-computed", { id: found.id })]]));
}

function showEstimate() {
  const { estimate, collection } = known;
  const { samples, shares } = estimate;
  const shown = shares.length > 0; // there are no shares until enough samples have come
  const surveyed = estimate.questions?.length > 0;
  showCount(samples);
  say("population-heading", phrase(estimate.questions ? "the-answers" : "the-population"));
  by("answers").hidden = !surveyed;
  if (surveyed) answers.show(answerPanels(estimate, known.questions));
  say("answers-reading", surveyed ? phrase("answers-reading", { often: `${formatNumber(100 * estimate.confidence)}\u00a0%` }) : "");
  by("width-figure").hidden = !shown;
  by("liars-figure").hidden = !shown || !estimate.liars;
  if (shown) showNumber("width", estimate.margin_at_worst ?? widestMargin(shares), (share) => `±\u00a0${percentAtMost(share)}`);
  if (shown && estimate.liars) showNumber("liars", estimate.liars.one, percentAtMost);
  say("width-told", phrase("margin", { confidence: `${formatNumber(100 * estimate.confidence)}\u00a0%` }));
  say("reading", estimate.questions ? "" : readingText(estimate, !hasOrderedOutcomes(known.terms) && shares.length > FEW));
  by("nothing").hidden = shown || surveyed;
  say("nothing", waitingText(estimate, collection.closed));
  by("population").hidden = !shown;
  showStatistics(shown && hasOrderedOutcomes(known.terms) ? (estimate.statistics ?? []) : []);
  if (shown) showPopulation();
  showTrust(trustFacts(estimate, collection.enrolment));
  by("days-card").hidden = !estimate.days?.length;
  showDays(by("days"), estimate.days ?? []);
}

/** Why no estimate is shown. */
function waitingText({ samples, least, hidden }, closed) {
  if (hidden) return `${phrase(`hidden-${hidden}`)} ${phrase("so-many-came", { n: samples })}`;
  if (least) return `${phrase("least", { least })} ${phrase(`${samples ? "some" : "none"}-came${closed ? "" : "-so-far"}`, { n: samples })}`;
  return phrase(closed ? "none-have-come" : "none-yet");
}

/** Show mean and median with their intervals, if outcomes are numbers. */
function showStatistics(found) {
  by("statistics").hidden = !found.length;
  by("statistics").replaceChildren(
    ...termElements(found.map(({ name, estimate, low, high }) => [phrase(`statistic-${name}`), phrase("statistic", { estimate: formatValue(estimate), low: formatValue(low), high: formatValue(high), sure: `${formatNumber(100 * known.estimate.confidence)}\u00a0%` })])),
  );
}
const formatValue = (number) => formatNumber(number, { maximumSignificantDigits: 4 }).replace("-", "−");

/** Show the population in the available width. */
function showPopulation() {
  const { shares } = known.estimate;
  const inOrder = hasOrderedOutcomes(known.terms);
  by("rows-part").hidden = inOrder;
  by("histogram").toggleAttribute("hidden", !inOrder);
  const top = soughtPlaces(shares) ?? largestPlaces(shares, all ? MANY : FEW);
  if (inOrder) {
    const width = Math.max(280, Math.floor(by("population").clientWidth));
    by("key").classList.toggle("banded", showHistogram(by("histogram"), shares, width));
    by("histogram").setAttribute("aria-label", phrase("histogram", { n: shares.length, largest: visibleLabel(shares[top[0]].outcome) }));
  } else {
    rows.show(shares, top);
    by("key").classList.remove("banded");
  }
  by("search-field").hidden = inOrder || shares.length <= FEW;
  by("more").hidden = inOrder || shares.length <= FEW || Boolean(by("search").value.trim());
  by("all").setAttribute("aria-expanded", all);
  say("all", all ? phrase("show-largest", { few: FEW }) : phrase("show-all", { n: shares.length }));
  say("cut", shares.length > MANY && all ? phrase("cut", { many: MANY, size: shares.length }) : "");
  if (by("table-part").open) by("table").replaceChildren(...tableRows(shares));
}

/** The places of the outcomes that match the search, or else of similar ones; null if nothing is searched for. */
function soughtPlaces(shares) {
  const text = by("search").value;
  if (!text.trim() || by("search-field").hidden) {
    say("search-told", "");
    return null;
  }
  known.names ??= shares.map(({ outcome }) => outcome);
  const found = placesContaining(known.names, text);
  const near = found.length ? [] : suggestedPlaces(known.names, text);
  say("search-told", found.length ? phrase(found.length > MANY ? "matches-cut" : "matches", { n: found.length, size: shares.length, many: MANY }) : phrase(near.length ? "did-you-mean" : "none-matches"));
  return (found.length ? found : near).slice(0, MANY);
}

/** Show how far to trust the estimate. An unchanged text is left alone, since somebody may be reading it. */
function showTrust(pairs) {
  const said = JSON.stringify(pairs);
  if (by("trust").dataset.said === said) return;
  by("trust").dataset.said = said;
  by("trust").replaceChildren(...termElements(pairs));
}

/** Show a number, rounded for people. `dataset.number` has all its digits, for checks. */
function showNumber(id, value, shown) {
  say(id, shown(value));
  by(id).dataset.number = value;
}

function showCount(samples) {
  showNumber("samples", samples, formatNumber);
  const last = Number(by("listened").dataset.at ?? 0);
  if (Date.now() - last < ANNOUNCED_EVERY || by("listened").dataset.samples === String(samples)) return;
  Object.assign(by("listened").dataset, { at: Date.now(), samples });
  say("listened", phrase("so-many-so-far", { n: samples }));
}

/** Say what is wrong, and only once while the service stays unreachable. The last estimate stays on the page. */
function showTrouble(error) {
  const gone = error instanceof Unreachable;
  const state = gone ? "unreachable" : "refused";
  if (document.documentElement.dataset.state !== state || !gone) {
    const since = known.estimate ? ` ${phrase("said-last", { time: clock() })}` : "";
    say("problem", gone ? `${sentence(error.message)}${since} ${phrase("goes-on-trying")}` : sentence(error.message));
  }
  document.documentElement.dataset.state = state;
  known.collectionAt = 0; // another service may answer next
  delay = Math.min(Math.max(delay, INTERVAL) * 1.5, LONGEST_INTERVAL);
}

async function poll() {
  clearTimeout(timer);
  const thisRun = currentRun, began = performance.now();
  try {
    await refresh();
    if (thisRun === currentRun) {
      delay = Math.max(INTERVAL, PAUSE_FACTOR * (performance.now() - began)); // so that a large estimate on a slow line is not requested all the time
      document.documentElement.dataset.state = "live";
      say("problem", "");
    }
  } catch (error) {
    if (thisRun === currentRun) showTrouble(error);
  }
  if (thisRun === currentRun) timer = setTimeout(poll, document.hidden ? INTERVAL_HIDDEN : delay);
}

/** Show another agreement or round from now on. */
function choose(next) {
  choice = next;
  currentRun += 1;
  known = {};
  poll();
}

by("choice").addEventListener("submit", (event) => event.preventDefault());
for (const id of ["choice-agreement", "choice-round"]) {
  by(id).addEventListener("change", () => {
    const same = id === "choice-round";
    if (same && !by(id).reportValidity()) return;
    const next = { agreement: by("choice-agreement").value, round: same ? Number(by(id).value) : undefined, lang: choice.lang };
    history.pushState(null, "", addressOf(location.pathname, next));
    choose(next);
  });
}
addEventListener("popstate", () => choose(choiceInAddress()));
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  currentRun += 1;
  poll();
});
by("within").addEventListener("change", () => {
  currentRun += 1;
  poll();
});
by("search").addEventListener("input", () => known.estimate?.shares.length && showPopulation());
by("all").addEventListener("click", () => {
  all = !all;
  showPopulation();
});
by("table-part").addEventListener("toggle", () => known.estimate?.shares.length && showPopulation());
new ResizeObserver(() => known.estimate?.shares.length && hasOrderedOutcomes(known.terms) && showPopulation()).observe(by("population"));
useCatalogue(JSON.parse(by("catalogue").textContent));
poll();
