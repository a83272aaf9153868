/** The live page: what the samples tell so far. It asks the service every two seconds while somebody looks, and says when nobody answers. */
import { told } from "../page/element.js";
import { containing, suggested } from "../page/search.js";
import { atMost, certainty, inWordsOf, labelled, percentAtMost, rewordPage, rewordPairs, sentence } from "../page/words.js";
import { agreed, ordered, words } from "./agreed.js";
import { addressed, chosen, offer, titled } from "./choice.js";
import { days } from "./days.js";
import { FEW, histogram, largest, MANY, Rows, rowsOfTable, widest } from "./population.js";
import { json, Unreachable } from "./service.js";
import { reading, trusted } from "./trust.js";

const [LOOKED_AT, UNSEEN, SLOWEST] = [2000, 30_000, 5000]; // milliseconds between two questions
const PART = 4; // times as long as an answer took, until the next question
const COLLECTION_EVERY = 10_000;
const TOLD_EVERY = 10_000; // to people who listen: a count that is read out every two seconds drowns everything else

const SAMPLED = "Each person sends one sample that looks drawn from their own records. All samples together tell what people hold on average. How much one sample gives away about its person stands below.";
const REPORTED = "Each person sends one report. It names several outcomes at once, and one of them is theirs, perhaps. All reports together tell what people hold on average. How much one report gives away about its person stands below.";

const by = (id) => document.getElementById(id);
const say = (id, text) => {
  if (by(id).textContent !== text) by(id).textContent = text;
};
const clock = () => new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const rows = new Rows(by("rows"), by("scale"));

let choice = chosen();
let known = {}; // {collection, collectionAt, agreed, estimate, etag}
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
  say("closed", closed ? inWordsOf(known.agreed?.fields.mechanism === "reports", `This collection was closed on ${closed}. No more samples are counted, and this result stays.`) : "");
  if (known.agreed?.id !== now.agreement) {
    const found = await agreed(now.agreement);
    if (asked !== turn) return;
    known.agreed = found;
    promise();
  }
  const found = await json("estimate", now, known.etag);
  if (asked !== turn || !found) return;
  Object.assign(known, { estimate: inSamples(found.value), etag: found.etag });
  say("changed", `Last change at ${clock()}.`);
  show();
}

/** An estimate from reports calls them so; this page counts both alike. */
const inSamples = (estimate) =>
  estimate.reports === undefined ? estimate : { ...estimate, samples: estimate.reports, shares: estimate.shares.map((share) => ({ ...share, samples: share.reports })) };

/** What was agreed on, which no sample changes. */
function promise() {
  const { collection, agreed: found } = known;
  const { purpose, privacy, epsilon, mechanism } = found.fields;
  const reported = mechanism === "reports";
  say("purpose", purpose ? labelled(purpose) : inWordsOf(reported, "What these samples tell"));
  rewordPage(reported);
  say("what", reported ? REPORTED : SAMPLED);
  say("many-told", reported ? "reports" : "samples");
  say("named-told", reported ? "Reports that name it" : "Samples");
  document.title = titled(purpose, "live");
  by("odds-figure").hidden = privacy !== undefined; // odds are bounded by pure epsilon alone
  tell("odds", Math.exp(epsilon), (factor) => `${atMost(factor)} to 1`);
  tell("sure", certainty(Math.exp(epsilon)), percentAtMost);
  by("reveal").replaceChildren(...told([...rewordPairs(reported, words(found, collection)), ["Its id", `${found.id}, computed from what the agreement says.`]]));
}

function show() {
  const { estimate, collection } = known;
  const { samples, shares } = estimate;
  const shown = shares.length > 0; // not before enough have come
  count(samples);
  by("width-figure").hidden = !shown;
  by("liars-figure").hidden = !shown || !estimate.liars;
  if (shown) tell("width", estimate.margin_at_worst ?? widest(shares), (share) => `±\u00a0${percentAtMost(share)}`);
  if (shown && estimate.liars) tell("liars", estimate.liars.one, percentAtMost);
  say("confidence", `${100 * estimate.confidence}\u00a0%`);
  const reported = estimate.mechanism === "reports";
  say("reading", inWordsOf(reported, reading(estimate, !ordered(known.agreed) && shares.length > FEW)));
  by("nothing").hidden = shown;
  say("nothing", inWordsOf(reported, waiting(estimate, collection.closed)));
  by("population").hidden = !shown;
  statistics(shown && ordered(known.agreed) ? (estimate.statistics ?? []) : []);
  if (shown) picture();
  trust(rewordPairs(reported, trusted(estimate, collection.enrolment)));
  by("days-card").hidden = !estimate.days?.length;
  days(by("days"), estimate.days ?? []);
}

/** Why no estimate is shown. */
function waiting({ samples, least }, closed) {
  if (least) return `Estimates of fewer than ${least.toLocaleString("en")} samples are not shown. ${samples ? samples.toLocaleString("en") : "None"} ${samples === 1 ? "has" : "have"} come${closed ? "" : " so far"}.`;
  return closed ? "No samples have come." : "No samples have come yet. This page shows them as they come.";
}

/** Mean and median where outcomes are numbers, with their intervals. */
function statistics(found) {
  by("statistics").hidden = !found.length;
  by("statistics").replaceChildren(
    ...told(found.map(({ name, estimate, low, high }) => [`${name.charAt(0).toUpperCase()}${name.slice(1)}`, `${value(estimate)}; from ${value(low)} to ${value(high)}, ${100 * known.estimate.confidence}\u00a0% sure`])),
  );
}
const value = (number) => new Intl.NumberFormat("en", { maximumSignificantDigits: 4 }).format(number).replace("-", "−");

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
    by("histogram").setAttribute("aria-label", `A histogram of ${shares.length.toLocaleString("en")} outcomes in their order; the largest is ${labelled(shares[top[0]].outcome)}. All numbers are in the table below.`);
  } else {
    rows.show(shares, top);
    by("key").classList.remove("banded");
  }
  by("search-field").hidden = inOrder || shares.length <= FEW;
  by("more").hidden = inOrder || shares.length <= FEW || Boolean(by("search").value.trim());
  by("all").setAttribute("aria-expanded", all);
  say("all", all ? `Show the ${FEW} largest` : `Show all ${shares.length.toLocaleString("en")} outcomes`);
  say("cut", shares.length > MANY && all ? `These are the ${MANY.toLocaleString("en")} largest of ${shares.length.toLocaleString("en")}; all of them are at /estimate.` : "");
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
  const many = `${found.length.toLocaleString("en")} of ${shares.length.toLocaleString("en")} outcomes match`;
  say("search-told", found.length ? `${many}${found.length > MANY ? `; the first ${MANY.toLocaleString("en")} are shown` : ""}.` : near.length ? "None matches. Did you mean one of these?" : "None matches.");
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
  tell("samples", samples, (value) => value.toLocaleString("en"));
  const last = Number(by("listened").dataset.at ?? 0);
  if (Date.now() - last < TOLD_EVERY || by("listened").dataset.samples === String(samples)) return;
  Object.assign(by("listened").dataset, { at: Date.now(), samples });
  say("listened", inWordsOf(known.estimate?.mechanism === "reports", `${samples.toLocaleString("en")} samples so far.`));
}

/** What is the matter, said once however long it lasts; what was known stays on the page. */
function troubled(error) {
  const gone = error instanceof Unreachable;
  const state = gone ? "unreachable" : "refused";
  if (document.documentElement.dataset.state !== state || !gone) {
    const since = known.estimate ? ` What you see is what it said last, before ${clock()}.` : "";
    say("problem", gone ? `${sentence(error.message)}${since} This page goes on trying.` : sentence(error.message));
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
    const next = { agreement: by("choice-agreement").value, round: same ? Number(by(id).value) : undefined };
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
by("search").addEventListener("input", () => known.estimate?.shares.length && picture());
by("all").addEventListener("click", () => {
  all = !all;
  picture();
});
by("table-part").addEventListener("toggle", () => known.estimate?.shares.length && picture());
new ResizeObserver(() => known.estimate?.shares.length && ordered(known.agreed) && picture()).observe(by("population"));
ask();
