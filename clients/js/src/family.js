/**
 * The distributions that clients may have: all distributions on the outcomes (a simplex), or those within constant factors of a reference mu
 * (a band). A design is a band.
 *
 * mu is computed from the listed weights by the same operations as in Python, with sums in the same order. The agreement holds a digest of the
 * bits of mu, and mu is checked against it.
 */
import { isDigest } from "./domain.js";
import { fractionOf, nearest } from "./exact.js";
import { quoted, refuse } from "./errors.js";
import { digestOfFloats } from "./sha256.js";

const LARGEST_TRIED = 2 ** 24; // most outcomes of a band for which a uniform reference is tried if no weights are given
const SIMPLEX = ["kind", "size", "labels", "interval"];
const KINDS = { simplex: SIMPLEX, band: [...SIMPLEX, "lower", "upper", "weights", "everybody", "reference"], rows: ["kind", "columns"] };
const CONTINUOUS = ["atoms", "dim", "box", "scale", "radius", "density", "table"]; // fields of families that only Python can draw for
const FIELDS = [...Object.values(KINDS).flat(), ...CONTINUOUS];

/** The fields, if they are a JSON object that has every field in `needed` and none outside `names`; others are refused. */
export function known(where, fields, names, needed = names) {
  if (fields === null || typeof fields !== "object" || Array.isArray(fields)) refuse(`${where} is not a JSON object`);
  for (const name of needed) if (!(name in fields)) refuse(`${where} has no field "${name}"`);
  for (const name in fields) {
    if (!names.includes(name)) refuse(`${where} has a field ${quoted(name)} that this version does not know`);
  }
  return fields;
}

/** The fields of a family that are not null. A field that belongs only to other kinds must be null or absent. */
export function familyFields(fields) {
  if (fields?.kind !== undefined && !(typeof fields.kind === "string" && Object.hasOwn(KINDS, fields.kind))) {
    refuse(`family.kind = ${quoted(fields.kind)} is not one of ${Object.keys(KINDS).join(", ")}: this client does not know how to draw for it`);
  }
  const { kind } = known("family", fields, FIELDS, ["kind"]);
  known("family", fields, FIELDS, [kind === "rows" ? "columns" : "size"]);
  const set = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
  for (const name in set) if (!KINDS[kind].includes(name)) refuse(`family.${name} has no meaning for ${kind === "rows" ? kind : `a ${kind}`}`);
  return set;
}

/** The family as {lower, upper, reference, terms}, of a band also `everybody`. `reference` is one number if it is uniform, else an array. */
export function familyOf(fields, domain, weights) {
  const { size } = domain;
  if (fields.kind === "simplex") {
    return { lower: 0, upper: size, reference: 1 / size, terms: { kind: "simplex", ...domain.terms } };
  }
  const { lower, upper, everybody } = fields;
  if (!(typeof lower === "number" && typeof upper === "number" && lower >= 0 && lower < 1 && upper > 1)) {
    refuse(`family.lower = ${quoted(lower)}, family.upper = ${quoted(upper)}; a band needs 0 <= lower < 1 < upper`);
  }
  if (!isDigest(fields.weights)) refuse("family.weights is not 'sha256:' and 64 hexadecimal digits");
  if (everybody !== undefined && !(everybody === true && lower === 0)) {
    refuse("family.everybody is true, where family.lower is 0, or left out");
  }
  if (size === 1) refuse("there is one distribution on one outcome, and nothing to keep private");
  const { reference, least, sum } = referenceOf(fields, size, weights);
  checkAttained(lower, upper, least, sum, everybody);
  const terms = { kind: "band", ...domain.terms, lower, upper, weights: fields.weights };
  if (everybody) terms.everybody = true;
  return { lower, upper, everybody, reference, terms };
}

function referenceOf(fields, size, weights) {
  let listed = fields.reference ?? weights;
  if (listed instanceof ArrayBuffer || ArrayBuffer.isView(listed)) listed = floatsOf(listed, size);
  if (listed === undefined) {
    if (size <= LARGEST_TRIED && digestOfFloats(size, () => 1 / size) === fields.weights) {
      return { reference: 1 / size, least: 1, sum: size };
    }
    refuse("the agreement holds a digest of its weights; pass the file of weights that was written beside it");
  }
  if (listed.length !== size) refuse(`family.reference is not a list of ${size} weights, one for each outcome`);
  let largest = 0;
  for (const weight of listed) {
    if (!(typeof weight === "number" && weight > 0 && weight <= 1)) {
      refuse(`family.reference holds ${quoted(weight)}, which is not in (0, 1]; weights are relative to the largest`);
    }
    if (weight > largest) largest = weight;
  }
  const scaled = Float64Array.from(listed, (weight) => weight / largest);
  const sum = pairwiseSum(scaled, 0, size);
  const mu = scaled.map((weight) => weight / sum);
  const reference = mu.every((mass) => mass === mu[0]) ? 1 / size : mu;
  const at = typeof reference === "number" ? () => reference : (place) => mu[place];
  if (digestOfFloats(size, at) !== fields.weights || !mu.every((mass) => mass > 0)) {
    refuse(`the weights are not those whose digest is ${fields.weights}; get the file anew`);
  }
  return { reference, least: scaled.reduce((one, other) => Math.min(one, other)), sum: exactSum(scaled) };
}

function floatsOf(given, size) {
  const bytes = ArrayBuffer.isView(given)
    ? new DataView(given.buffer, given.byteOffset, given.byteLength)
    : new DataView(given);
  if (bytes.byteLength !== 8 * size) refuse(`the file of weights holds ${bytes.byteLength} bytes, not ${size} weights`);
  return Float64Array.from({ length: size }, (_, place) => bytes.getFloat64(8 * place, true));
}

/** The sum in numpy's order of addition: eight running sums for up to 128 numbers, and longer lists by halves. */
function pairwiseSum(values, start, count) {
  if (count < 8) {
    let sum = -0;
    for (let i = 0; i < count; i++) sum += values[start + i];
    return sum;
  }
  if (count > 128) {
    const half = (count >> 1) - ((count >> 1) % 8);
    return pairwiseSum(values, start, half) + pairwiseSum(values, start + half, count - half);
  }
  const r = Array.from(values.subarray(start, start + 8));
  let i = 8;
  for (; i < count - (count % 8); i += 8) for (let lane = 0; lane < 8; lane++) r[lane] += values[start + i + lane];
  let sum = r[0] + r[1] + (r[2] + r[3]) + (r[4] + r[5] + (r[6] + r[7]));
  for (; i < count; i++) sum += values[start + i];
  return sum;
}

/** The float nearest to the exact sum of numbers in (0, 1]. */
function exactSum(values) {
  let sum = 0n;
  for (const value of values) {
    const [numerator, denominator] = fractionOf(value);
    sum += (numerator << 1074n) / denominator;
  }
  return nearest(sum, 1n << 1074n);
}

/**
 * Refuse a bound that no distribution in the band attains. Tighter bounds state the same band, but have another box. Python writes the bounds
 * that are attained, so it reads only those.
 */
function checkAttained(lower, upper, least, sum, everybody) {
  if (everybody) return;
  const [l, u, m, s] = [lower, upper, least, sum].map((value) => {
    const [numerator, denominator] = fractionOf(value);
    return { n: numerator, d: denominator };
  });
  // The least mass is m/s. No density in the band exceeds highest = l + (1 - l) s/m, or is less than lowest = u - (u - 1) s/m.
  const scale = { n: s.n * m.d, d: s.d * m.n };
  const highest = { n: l.n * scale.d + (l.d - l.n) * scale.n, d: l.d * scale.d };
  const lowest = { n: u.n * scale.d - (u.n - u.d) * scale.n, d: u.d * scale.d };
  if (nearest(highest.n, highest.d) === upper || nearest(lowest.n, lowest.d) === lower) return;
  if (u.n * highest.d > highest.n * u.d || l.n * lowest.d < lowest.n * l.d) {
    refuse(`the agreement has bounds ${lower} and ${upper}, of which no distribution attains both; make a new agreement`);
  }
}
