/** The explorer: the page shows a state, and its address contains that state. */
import { language, nouns, words } from "../../../src/discreet/collect/pages/en.json";
import { Agreement, randomInteger } from "../src/agreement.js";
import { useCatalogue } from "../page/catalogue.js";
import { element, termElements } from "../page/element.js";
import { readLongPaste } from "../page/long-paste.js";
import { agreementFacts, atMost, certainty, percent, percentAtMost, shortNumber } from "../page/words.js";
import { Bars, drawCurve, NAMES } from "./chart.js";
import { STEPS, verdict } from "./guide.js";
import { LARGEST_DISTANCE, MECHANISMS, pageNumbers, samplerOf } from "./model.js";
import { fitState, hashOf, parsePasted, stateOf, USUAL } from "./state.js";

useCatalogue({ language, nouns, words });
const by = (id) => document.getElementById(id);
const MEASURES = { tv: "total variation", kl: "KL divergence", hellinger: "squared Hellinger distance", chi2: "chi-squared" };
const DRAWS = 1000;
const LARGEST_FILE = 64 * 2 ** 20;

let state = stateOf(location.hash);
const bars = new Bars(by("bars"), setCount, dragBar);

/** Give one bar a count. */
function setCount(place, count) {
  const counts = state.counts.slice();
  counts[place] = count;
  if (counts.some(Boolean)) change({ counts });
  else say("problem", "A client needs at least one record. Leave one bar above 0.");
}

/** Drag one bar to a share; null ends the dragging. The others keep their proportions, by counts that are fine enough. */
function dragBar(place, share) {
  if (share === null) return show();
  const total = state.counts.reduce((sum, count) => sum + count, 0);
  const finer = total < 500 ? Math.ceil(500 / total) : 1;
  const counts = state.counts.map((count) => count * finer);
  const others = counts.reduce((sum, count, other) => sum + (other === place ? 0 : count), 0);
  if (!others) return say("problem", "This is the only bar above 0. Raise another one first.");
  counts[place] = Math.min(Math.round((others * Math.min(share, 0.99)) / (1 - Math.min(share, 0.99))), 1e9);
  return change({ counts });
}

const say = (id, text) => (by(id).textContent = text);

/** Show a number, rounded for people. `dataset.number` has all its digits, for checks. */
function showNumber(id, value, shown = shortNumber) {
  by(id).textContent = shown(value);
  by(id).dataset.number = value;
}

function drawCounts(sampler) {
  const counts = new Array(state.counts.length).fill(0);
  for (let draw = 0; draw < DRAWS; draw++) counts[sampler.draw(randomInteger())] += 1;
  return counts;
}

function change(changes) {
  state = fitState({ ...state, ...changes });
  show();
  clearTimeout(change.later);
  change.later = setTimeout(() => history.replaceState(null, "", hashOf(state)), 150); // browsers limit how often an address may change
}

function show() {
  say("problem", "");
  const { labels, counts, epsilon, spread, measure, target, clients, shown, tab } = state;
  const found = pageNumbers(state);
  const sampler = samplerOf(shown, counts, epsilon, spread);
  let draws = counts.map(() => 0);
  try {
    draws = drawCounts(sampler);
  } catch (error) {
    say("problem", error.message);
  }
  bars.show(state, sampler, draws);
  drawCurve(by("curve"), state);
  by("epsilon").value = epsilon;
  by("spread").max = labels.length - 0.01;
  by("spread").value = spread;
  by("measure").value = measure;
  by("target").max = Math.min(LARGEST_DISTANCE[measure], 100);
  for (const name of ["target", "clients"]) if (document.activeElement !== by(name)) by(name).value = state[name];
  for (const name of MECHANISMS) by(`show-${name}`).checked = name === shown;
  say("epsilon-told", epsilon.toFixed(2));
  say("spread-told", shortNumber(spread));
  showNumber("factor", found.factor, atMost);
  showNumber("sure", certainty(found.factor), percentAtMost);
  showNumber("floor", found.floor, percent);
  showNumber("ceiling", found.ceiling, percent);
  for (const name of MECHANISMS) {
    for (const what of ["own", "worst"]) showNumber(`${name}-${what}`, found[`${name}-${what}`]);
    showNumber(`${name}-kept`, found[`${name}-kept`], percent);
  }
  showNumber("epsilon-for", found["epsilon-for"]);
  showNumber("population-total", found["population-total"]);
  showNumber("population-share", found["population-share"], percent);
  document.querySelectorAll(".measure-name").forEach((each) => (each.textContent = MEASURES[measure]));
  document.querySelectorAll(".clients-told").forEach((each) => (each.textContent = clients.toLocaleString("en")));
  say("target-told", shortNumber(target));
  say("shown-name", NAMES[shown]);
  const strangers = draws.reduce((sum, count, place) => sum + (counts[place] ? 0 : count), 0);
  say("draws-told", `Of 1,000 draws, ${strangers} name an outcome that this client never had.`);
  by("curve").setAttribute("aria-label", `What the worst client pays (${MEASURES[measure]}) against epsilon. At ${epsilon.toFixed(2)} it is ${shortNumber(found["optimal-worst"])} for Q* and the linear mechanism, ${shortNumber(found["mollifier-worst"])} for the mollifier, ${shortNumber(found["designed-worst"])} for the designed one.`);
  showGuide(found);
  for (const name of ["explore", "agreement"]) {
    by(`tab-${name}`).setAttribute("aria-selected", name === tab);
    by(`tab-${name}`).tabIndex = name === tab ? 0 : -1;
    by(name).hidden = name !== tab;
  }
}

/** Show the step of the guided path, its question, and how far the page is from an answer. */
function showGuide(found) {
  const step = STEPS[state.step - 1];
  by("guide-step").hidden = !step;
  by("guide-intro").hidden = Boolean(step);
  for (const name of ["back", "again", "where", "solve"]) by(`guide-${name}`).hidden = !step;
  say("guide-next", step ? (state.step < STEPS.length ? "Next" : "Finish") : "Start");
  say("guide-heading", step ? `A guided path: step ${state.step} of ${STEPS.length}` : "A guided path");
  if (!step) return;
  const { solved, said } = verdict(step, found, state, USUAL);
  for (const name of ["title", "told", "question"]) say(`guide-${name}`, step[name]);
  by("guide-answer").classList.toggle("solved", solved);
  const text = `${solved ? "✓ " : ""}${said}`;
  if (by("guide-answer").textContent !== text) say("guide-answer", text);
}

/** Go to a step and set the page to its start. Step 0 leaves the path and keeps the page as it is. */
function goTo(number) {
  const step = STEPS[number - 1];
  change(step ? { ...USUAL, ...step.start, step: number } : { step: 0 });
  by("guide-heading").focus();
}

/** Offer the flights of aircraft. Python writes rows "tail number|place:count,place:count" and the names of places into the page. */
function offerFlights() {
  const { zones, aircraft } = JSON.parse(by("flights").textContent || '{"zones":[],"aircraft":""}');
  const books = new Map();
  for (const row of aircraft.split("\n").filter(Boolean)) {
    const [name, held] = row.split("|");
    const counts = zones.map(() => 0);
    for (const pair of held.split(",")) {
      const [place, count] = pair.split(":").map(Number);
      counts[place] = count;
    }
    books.set(name, counts);
  }
  by("aircraft-list").replaceChildren(...[...books.keys()].map((name) => element("option", { value: name })));
  by("aircraft").addEventListener("change", ({ target }) => {
    const counts = books.get(target.value.trim().toUpperCase());
    if (counts) change({ labels: zones, counts });
    else say("problem", `${target.value} is none of the ${books.size.toLocaleString("en")} aircraft. Choose one from the list, such as N725MQ.`);
  });
}

/** Show what an agreement says. `files`: its file, and that of its weights if it has one. */
async function openAgreement(files) {
  const words = by("agreement-words");
  const beside = [...files].find(({ name }) => name.endsWith(".weights"));
  const file = [...files].find((each) => each !== beside) ?? beside;
  try {
    for (const { size } of files) if (size > LARGEST_FILE) throw new Error("The file is larger than 64 MB, so it is not an agreement.");
    const weights = beside && (await beside.arrayBuffer());
    const agreement = Agreement.read(await file.arrayBuffer(), { weights });
    if (agreement.survey) throw new Error("The agreement is on a survey of several columns. This page does not explain surveys yet.");
    words.replaceChildren(
      ...termElements(agreementFacts(agreement)),
      element("dt", {}, "Its id"),
      element("dd", {}, element("code", {}, agreement.id), " is computed from the content of the agreement. Compare it with the id that you were given."),
    );
    say("agreement-problem", "");
    by("agreement-name").textContent = file.name;
  } catch (error) {
    words.replaceChildren();
    by("agreement-name").textContent = "";
    say("agreement-problem", `${file.name}: ${error.message}`);
  }
}

for (const name of ["epsilon", "spread"]) by(name).addEventListener("input", ({ target }) => change({ [name]: Number(target.value) }));
for (const [name, low, high] of [["target", 1e-4, 100], ["clients", 1, 1e9]]) {
  by(name).addEventListener("input", ({ target }) => {
    const value = Number(target.value);
    if (target.value !== "" && value >= low && value <= high) change({ [name]: value });
    else say("problem", `${name} is a number from ${low} to ${high.toLocaleString("en")}.`);
  });
}
by("measure").addEventListener("change", ({ target }) => change({ measure: target.value, target: Math.min(state.target, LARGEST_DISTANCE[target.value] * 0.99) }));
for (const name of MECHANISMS) by(`show-${name}`).addEventListener("change", () => change({ shown: name }));
by("again").addEventListener("click", show);
by("guide-next").addEventListener("click", () => goTo((state.step + 1) % (STEPS.length + 1)));
by("guide-back").addEventListener("click", () => goTo(state.step - 1));
by("guide-again").addEventListener("click", () => goTo(state.step));
by("guide-where").addEventListener("click", () => {
  const place = by(STEPS[state.step - 1].where);
  place.scrollIntoView({ block: "center" });
  place.focus();
});
by("guide-solve").addEventListener("click", () => {
  const step = STEPS[state.step - 1];
  const usual = { ...USUAL, ...step.start, step: state.step };
  change({ ...usual, ...step.solution(pageNumbers(usual), usual) });
});
by("reset").addEventListener("click", () => change({ ...USUAL, tab: "explore" }));
function readPasted(text) {
  try {
    change(parsePasted(text));
  } catch (error) {
    say("problem", error.message);
  }
}
by("read-pasted").addEventListener("click", () => readPasted(by("pasted").value));
readLongPaste(by("pasted"), readPasted);
by("file").addEventListener("change", ({ target }) => target.files.length && openAgreement(target.files));
by("agreement").addEventListener("dragover", (event) => event.preventDefault());
by("agreement").addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length) openAgreement(event.dataTransfer.files);
});
const tabs = ["explore", "agreement"];
for (const name of tabs) {
  by(`tab-${name}`).addEventListener("click", () => change({ tab: name }));
  by(`tab-${name}`).addEventListener("keydown", ({ key }) => {
    if (key !== "ArrowLeft" && key !== "ArrowRight") return;
    const other = tabs[1 - tabs.indexOf(name)];
    change({ tab: other });
    by(`tab-${other}`).focus();
  });
}
window.addEventListener("hashchange", () => {
  state = stateOf(location.hash);
  show();
});
offerFlights();
show();
document.documentElement.dataset.ready = "true";
