/**
 * The box b mu <= Q <= B mu of each mechanism, in floats: for the band lower <= dP/dmu <= upper with alpha = (1 - lower)/(upper - lower),
 *
 *     optimal and linear: b = 1/(alpha e^eps + 1 - alpha), B = b e^eps      mollifier: b = e^(-eps/2), B = e^(eps/2)
 *
 * IEEE 754 fixes the rounding of every operation used here. Operations are in the same order as in Python (`discreet.privacy.tradeoff`,
 * `discreet.projection._box`), and every exponential is the nearest float. So the box is the same as in Python, to the last bit.
 */
import { above, below, exp, expm1 } from "./exact.js";

const SMALLEST_NORMAL = 2 ** -1022;
const LARGEST_EXPONENT = 554; // above it the floor stays e^-554 of the ceiling, since smaller floats would lose its shape
const ROUNDING = 1e-14; // bound on the rounding of a summed mass

/** {alpha, b, B, gamma} and, for risks, below = 1 - r1 and above = r2 - 1, to full precision. */
export function constants({ lower, upper }, mechanism, epsilon) {
  if (mechanism === "mollifier") return mollifier(lower, upper, epsilon / 2);
  const alpha = (1 - lower) / (upper - lower);
  const shrink = exp(-epsilon);
  if (upper * shrink <= lower) {
    return { alpha, b: lower, B: shrink ? lower / shrink : Infinity, gamma: 1, below: 0, above: 0 };
  }
  const B = 1 / (alpha + (1 - alpha) * shrink);
  const grown = -expm1(-epsilon);
  const gamma = grown / (grown * (1 - lower) + (upper - lower) * shrink);
  const room = upper * shrink - lower;
  return {
    alpha, b: B * shrink, B, gamma,
    below: lower ? (alpha * room) / shrink : 1,
    above: ((upper - 1) / (upper - lower)) * room,
  };
}

function mollifier(lower, upper, half) {
  const b = exp(-half);
  const B = half < 700 ? exp(half) : Infinity;
  const room = (upper - 1) * b;
  const grown = -expm1(-half);
  const gamma = Math.min(1, grown / (1 - lower), room > 0 ? grown / room : Infinity);
  const left = Math.max(0, (b - lower) / (1 - lower), upper > 1 ? (upper - B) / (upper - 1) : 0);
  return {
    alpha: (1 - lower) / (upper - lower), b, B, gamma,
    below: left ? (left * (1 - lower)) / (left + gamma * lower) : 0,
    above: (left * (upper - 1)) / (1 + gamma * (upper - 1)),
  };
}

/**
 * The box as {size, lower, upper, ceiling}, for the linear mechanism with {slope, lift} of its mixture. Bounds are numbers over a uniform
 * reference, else arrays. `ceiling` is `upper`, or infinity over a uniform reference where nothing can be clipped from above.
 */
export function boxOf(family, size, mechanism, epsilon) {
  const { reference } = family;
  const { b, B, gamma } = constants(family, mechanism, epsilon);
  const steep = below(exp(Math.min(epsilon, LARGEST_EXPONENT)));
  const high = (mass) => Math.min(B * mass, 1);
  const low = (mass) => Math.min(Math.max(b * mass, SMALLEST_NORMAL, above(high(mass) / steep)), high(mass));
  const mixing = mechanism === "linear" ? { slope: gamma, lift: family.lower ? (1 - gamma) / b : 1 } : {};
  if (typeof reference !== "number") {
    const upper = reference.map(high);
    return { size, lower: reference.map(low), upper, ceiling: upper, ...mixing };
  }
  const [lower, upper] = [low(reference), high(reference)];
  const ceiling = upper + (size - 1) * lower >= 1 - ROUNDING ? Infinity : upper;
  return { size, lower, upper, ceiling, ...mixing };
}
