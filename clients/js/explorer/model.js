/**
 * Every number of the explorer, from a state: the client's own draw as the client for browsers makes it, and closed forms.
 *
 * On the simplex with k outcomes the worst client of a sampler is a point mass, which keeps t of its mass. With a = 1/t - 1 it pays
 * TV a/(1 + a), KL log(1 + a), squared Hellinger 2 - 2/sqrt(1 + a), chi-squared a; for Q* and the linear mechanism a = (k - 1) e^-epsilon.
 */
import { boxOf, constants } from "../src/box.js";
import { exp } from "../src/exact.js";
import { latticeOf } from "../src/lattice.js";
import { solveUniform } from "../src/projection.js";

export const MECHANISMS = ["optimal", "linear", "mollifier", "designed"];
const NORMAL_95 = 1.959963984540054; // of a normal variable, 95 % lie so many deviations around its mean

/** What the worst client pays, by the measure, where it keeps 1/(1 + a) of its mass. */
export const WORST = {
  tv: (a) => a / (1 + a),
  kl: Math.log1p,
  hellinger: (a) => (2 * a) / (Math.sqrt(1 + a) * (Math.sqrt(1 + a) + 1)),
  chi2: (a) => a,
};

/** The a at which it pays so much. */
const PAYING = {
  tv: (paid) => paid / (1 - paid),
  kl: Math.expm1,
  hellinger: (paid) => 1 / ((1 - paid / 2) * (1 - paid / 2)) - 1,
  chi2: (paid) => paid,
};

/** The most that anybody can pay: laws that share no outcome. */
export const MOST = { tv: 1, kl: Infinity, hellinger: 2, chi2: Infinity };

/** D(P||Q) by the measure; outcomes that P does not hold add nothing to KL. */
const OWN = {
  tv: (p, q) => 0.5 * sum(p, (mass, x) => Math.abs(mass - q[x])),
  kl: (p, q) => Math.max(0, sum(p, (mass, x) => (mass ? mass * Math.log(mass / q[x]) : 0))),
  hellinger: (p, q) => sum(p, (mass, x) => (Math.sqrt(mass) - Math.sqrt(q[x])) ** 2),
  chi2: (p, q) => sum(p, (mass, x) => (mass - q[x]) ** 2 / q[x]),
};

const sum = (values, term) => values.reduce((total, value, place) => total + term(value, place), 0);

const familyOf = (name, size, spread) => ({ lower: 0, upper: name === "designed" ? size / spread : size, reference: 1 / size });
const drawnBy = (name) => (name === "designed" ? "optimal" : name);

/** a of a mechanism's worst client. */
export function worstOf(name, size, epsilon, spread) {
  const { b, B, above } = constants(familyOf(name, size, spread), drawnBy(name), epsilon);
  if (name !== "designed") return above;
  const lost = Math.max(1 - B / size, b * (1 - 1 / size), 0);
  return lost / (1 - lost);
}

/** The smallest epsilon at which Q*, and so any sampler, has so small a worst case; 0 where a draw without data does. */
export function epsilonFor(measure, target, size) {
  if (target >= MOST[measure]) return 0;
  const a = PAYING[measure](target);
  return Math.max(0, Math.log((size - 1) / a));
}

/** A client's distribution, from its counts. */
export function lawOf(counts) {
  const total = sum(counts, (count) => count);
  return counts.map((count) => (total ? count / total : 0));
}

/** The projection or mixture of a law on a box, and the sampler's exact draw. */
export function samplerOf(name, counts, epsilon, spread) {
  const size = counts.length;
  const box = boxOf(familyOf(name, size, spread), size, drawnBy(name), epsilon);
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

/** What n samples of the linear mechanism tell of the population: the expected distance of the whole estimate, and of one share at worst. */
export function population(size, epsilon, clients) {
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
export function numbers({ counts, epsilon, spread, measure, target, clients, shown }) {
  const size = counts.length;
  const chosen = samplerOf(shown, counts, epsilon, spread);
  const found = {
    factor: exp(epsilon), floor: chosen.box.lower, ceiling: chosen.box.upper,
    "epsilon-for": epsilonFor(measure, target, size),
  };
  for (const name of MECHANISMS) {
    const { p, output } = samplerOf(name, counts, epsilon, spread);
    found[`${name}-own`] = OWN[measure](p, output);
    found[`${name}-worst`] = WORST[measure](worstOf(name, size, epsilon, spread));
    found[`${name}-kept`] = 1 - OWN.tv(p, output);
  }
  const { total, share } = population(size, epsilon, clients);
  return { ...found, "population-total": total, "population-share": share };
}
