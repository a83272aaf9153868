/** The state of the explorer, and its form in the address. A field of the address that makes no sense is left at its usual value. */
import { countsOf, isCount } from "../page/rows.js";

export const USUAL = {
  labels: ["red", "orange", "yellow", "green", "blue", "violet"],
  counts: [60, 25, 10, 5, 0, 0],
  epsilon: 1, spread: 2, measure: "tv", target: 0.3, clients: 1000, shown: "optimal", tab: "explore", step: 0,
};
export const MOST_OUTCOMES = 120;
const WORDS = { measure: ["tv", "kl", "hellinger", "chi2"], shown: ["optimal", "linear", "mollifier", "designed"], tab: ["explore", "agreement"] };
const RANGES = { epsilon: [0.01, 20], spread: [1, MOST_OUTCOMES], target: [1e-4, 100], clients: [1, 1e9], step: [0, 5] };

export function stateOf(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const state = structuredClone(USUAL);
  const labels = fields.getAll("o");
  const counts = (fields.get("c") ?? "").split(",").map((count) => (/^[0-9]+$/.test(count) ? Number(count) : NaN));
  const many = labels.length >= 2 && labels.length <= MOST_OUTCOMES && new Set(labels).size === labels.length;
  if (many && counts.length === labels.length && counts.every(isCount) && counts.some(Boolean)) Object.assign(state, { labels, counts });
  for (const [name, [low, high]] of Object.entries(RANGES)) {
    const value = Number(fields.get(name) ?? NaN);
    if (value >= low && value <= high) state[name] = value;
  }
  for (const [name, words] of Object.entries(WORDS)) if (words.includes(fields.get(name))) state[name] = fields.get(name);
  return fitState(state);
}

/** The state with a spread that its number of outcomes allows, and with whole numbers of clients and of steps. */
export function fitState(state) {
  const most = state.labels.length - 0.01;
  return { ...state, spread: Math.min(Math.max(state.spread, 1), most), clients: Math.round(state.clients), step: Math.round(state.step) };
}

export function hashOf(state) {
  const fields = new URLSearchParams();
  for (const name of ["epsilon", "spread", "measure", "target", "clients", "shown", "tab", "step"]) {
    if (state[name] !== USUAL[name]) fields.set(name, state[name]);
  }
  if (state.labels.join("\n") !== USUAL.labels.join("\n") || state.counts.join() !== USUAL.counts.join()) {
    state.labels.forEach((label) => fields.append("o", label));
    fields.set("c", state.counts.join());
  }
  return `#${fields}`;
}

/** Labels and counts from pasted rows. It throws an error that says what is wrong with other texts. */
export function parsePasted(text) {
  const found = countsOf(text, MOST_OUTCOMES);
  if (found.size < 2) throw new Error("There is only one label. With one outcome there is nothing to keep private.");
  return { labels: [...found.keys()], counts: [...found.values()] };
}
