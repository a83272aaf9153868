/** What the explorer shows, and how it stands in the address: whatever an address says that makes no sense is left at its usual value. */
export const USUAL = {
  labels: ["red", "orange", "yellow", "green", "blue", "violet"],
  counts: [60, 25, 10, 5, 0, 0],
  epsilon: 1, spread: 2, measure: "tv", target: 0.3, clients: 1000, shown: "optimal", tab: "explore",
};
export const MOST_OUTCOMES = 120;
export const LARGEST_COUNT = 1e9;
const WORDS = { measure: ["tv", "kl", "hellinger", "chi2"], shown: ["optimal", "linear", "mollifier", "designed"], tab: ["explore", "agreement"] };
const RANGES = { epsilon: [0.01, 20], spread: [1, MOST_OUTCOMES], target: [1e-4, 100], clients: [1, 1e9] };

export const isCount = (value) => Number.isInteger(value) && value >= 0 && value <= LARGEST_COUNT;

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
  return fitted(state);
}

/** The state with a spread that is possible for so many outcomes, and whole clients. */
export function fitted(state) {
  const most = state.labels.length - 0.01;
  return { ...state, spread: Math.min(Math.max(state.spread, 1), most), clients: Math.round(state.clients) };
}

export function hashOf(state) {
  const fields = new URLSearchParams();
  for (const name of ["epsilon", "spread", "measure", "target", "clients", "shown", "tab"]) {
    if (state[name] !== USUAL[name]) fields.set(name, state[name]);
  }
  if (state.labels.join("\n") !== USUAL.labels.join("\n") || state.counts.join() !== USUAL.counts.join()) {
    state.labels.forEach((label) => fields.append("o", label));
    fields.set("c", state.counts.join());
  }
  return `#${fields}`;
}

/** Labels and counts from pasted rows: "label, count", "label <tab> count", or one record a row. What is none of these is said. */
export function pasted(text) {
  const rows = text.split(/\r\n|\r|\n/).filter((row) => row.trim());
  if (!rows.length) throw new Error("There is nothing to read: paste rows of a label and a count, or one record a row.");
  const pairs = rows.map((row) => /^(.*?)[\t,;]\s*(-?[0-9.eE+]+)\s*$/u.exec(row));
  const counted = pairs.every(Boolean);
  if (!counted && pairs.filter(Boolean).length > rows.length / 2) {
    throw new Error(`Row ${pairs.indexOf(null) + 1} has no count: give every row one, or none.`);
  }
  const found = new Map();
  for (let place = 0; place < rows.length; place++) {
    const label = (counted ? pairs[place][1] : rows[place]).trim();
    const count = counted ? Number(pairs[place][2]) : 1;
    if (!isCount(count)) throw new Error(`Row ${place + 1} has the count ${pairs[place][2].slice(0, 20)}: counts are whole numbers from 0 on.`);
    found.set(label, (found.get(label) ?? 0) + count);
    if (found.size > MOST_OUTCOMES) throw new Error(`There are more than ${MOST_OUTCOMES} different labels: group them.`);
  }
  if (found.size < 2) throw new Error("There is one label only: with one outcome there is nothing to keep private.");
  const counts = [...found.values()];
  if (!counts.some(Boolean)) throw new Error("All counts are 0: a client without records holds nothing.");
  if (!counts.every(isCount)) throw new Error("The counts add up to more than a thousand million: divide them.");
  return { labels: [...found.keys()], counts };
}
