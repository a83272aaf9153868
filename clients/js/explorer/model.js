/**
 * All numbers of the explorer, computed from a state: the client's draw, by the code of the browser client, and closed forms.
 *
 * On the simplex with k outcomes the worst client of a sampler is a point mass. The output gives its outcome the probability t. With
 * a = 1/t - 1 the client pays TV a/(1 + a), KL log(1 + a), squared Hellinger 2 - 2/sqrt(1 + a) and chi-squared a. For Q* and the linear
 * mechanism a = (k - 1) e^-epsilon.
 */
import { boxOf, constants } from "../src/box.js";
import { exp } from "../src/exact.js";
import { latticeOf } from "../src/lattice.js";
import { solveUniform } from "../src/projection.js";

export const MECHANISMS = ["optimal", "linear", "mollifier", "designed"];
const NORMAL_95 = 1.959963984540054; // 95 % of a normal distribution lie within so many standard deviations of its mean

/** What the worst client pays by each measure, as a function of a. */
export const WORST = {
  tv: (a) => a / (1 + a),
  kl: Math.log1p,
  hellinger: (a) => (2 * a) / (Math.sqrt(1 + a) * (Math.sqrt(1 + a) + 1)),
  chi2: (a) => a,
};

/** The inverse functions: the a at which the worst client pays this much. */
const WORST_INVERSE = {
  tv: (paid) => paid / (1 - paid),
  kl: Math.expm1,
  hellinger: (paid) => 1 / ((1 - paid / 2) * (1 - paid / 2)) - 1,
  chi2: (paid) => paid,
};

/** The largest value of each measure, for distributions without a common outcome. */
export const LARGEST_DISTANCE = { tv: 1, kl: Infinity, hellinger: 2, chi2: Infinity };

/** D(P||Q) by each measure. Outcomes with P = 0 add nothing to KL. */
const DISTANCES = {
  tv: (p, q) => 0.5 * sum(p, (mass, x) => Math.abs(mass - q[x])),
  kl: (p, q) => Math.max(0, sum(p, (mass, x) => (mass ? mass * Math.log(mass / q[x]) : 0))),
  hellinger: (p, q) => sum(p, (mass, x) => (Math.sqrt(mass) - Math.sqrt(q[x])) ** 2),
  chi2: (p, q) => sum(p, (mass, x) => (mass - q[x]) ** 2 / q[x]),
};

const sum = (values, term) => values.reduce((total, value, place) => total + term(value, place), 0);

const familyOf = (name, size, spread) => ({ lower: 0, upper: name === "designed" ? size / spread : size, reference: 1 / size });
const mechanismOf = (name) => (name === "designed" ? "optimal" : name);

/** The value a of a mechanism's worst client. */
export function worstOf(name, size, epsilon, spread) {
  const { b, B, above } = constants(familyOf(name, size, spread), mechanismOf(name), epsilon);
  if (name !== "designed") return above;
  const lost = Math.max(1 - B / size, b * (1 - 1 / size), 0);
  return lost / (1 - lost);
}

/** The smallest epsilon at which Q*, and so any sampler, has a worst case of at most `target`; 0 if a draw without data has it. */
export function epsilonFor(measure, target, size) {
  if (target >= LARGEST_DISTANCE[measure]) return 0;
  const a = WORST_INVERSE[measure](target);
  return Math.max(0, Math.log((size - 1) / a));
}

/** A client's distribution, from its counts. */
export function lawOf(counts) {
  const total = sum(counts, (count) => count);
  return counts.map((count) => (total ? count / total : 0));
}

/** {box, p, output, draw}: the client's distribution, its projection or mixture on the box, and the sampler's exact draw. */
export function samplerOf(name, counts, epsilon, spread) {
  const size = counts.length;
  const box = boxOf(familyOf(name, size, spread), size, mechanismOf(name), epsilon);
  const p = lawOf(counts);
  const outcomes = Float64Array.from(p.keys()).filter((place) => p[place] > 0);
  const law = { outcomes, masses: outcomes.map((place) => p[place]) };
  const [slope, lift] = box.slope === undefined ? solveUniform(law.masses, size - outcomes.length, box) : [box.slope, box.lift];
  const output = p.map((mass) => {
    const own = slope === Infinity && mass === 0 ? 0 : mass * slope;
    return Math.min(Math.max(own + lift * box.lower, box.lower), box.upper);
  });
  return { box, p, output, draw: (integer) => latticeFor(box, epsilon).outcome(law, integer) };
}

const lattices = new WeakMap();
function latticeFor(box, epsilon) {
  if (!lattices.has(box)) lattices.set(box, latticeOf(box, epsilon));
  return lattices.get(box);
}

/** Accuracy of an estimate from samples of the linear mechanism: its expected total variation distance, and the largest 95 % margin of a share. */
export function populationAccuracy(size, epsilon, clients) {
  const { b, B, gamma } = constants(familyOf("linear", size), "linear", epsilon);
  const mass = 1 / size;
  const spread = (Math.sqrt((mass * (1 - mass)) / clients) * size) / gamma;
  const least = Math.max(b * mass, 1 - B * (1 - mass));
  const most = Math.max(least, Math.min(B * mass, 1 - b * (1 - mass)));
  const q = Math.min(Math.max(0.5, least), most);
  return {
    total: Math.min(1, 0.5 * Math.sqrt(2 / Math.PI) * spread),
    share: Math.min(1, (NORMAL_95 * Math.sqrt((q * (1 - q)) / clients)) / gamma),
  };
}

/** All numbers of a state, by name. */
export function pageNumbers({ counts, epsilon, spread, measure, target, clients, shown }) {
  const size = counts.length;
  const chosen = samplerOf(shown, counts, epsilon, spread);
  const found = {
    factor: exp(epsilon), floor: chosen.box.lower, ceiling: chosen.box.upper,
    "epsilon-for": epsilonFor(measure, target, size),
  };
  for (const name of MECHANISMS) {
    const { p, output } = samplerOf(name, counts, epsilon, spread);
    found[`${name}-own`] = DISTANCES[measure](p, output);
    found[`${name}-worst`] = WORST[measure](worstOf(name, size, epsilon, spread));
    found[`${name}-kept`] = 1 - DISTANCES.tv(p, output);
  }
  const { total, share } = populationAccuracy(size, epsilon, clients);
  return { ...found, "population-total": total, "population-share": share };
}
