/** A person's records or counts as a distribution: the outcomes that were seen, in order, and their shares count/total. */
import { quoted, refuse } from "./errors.js";
import { canonical } from "./json.js";
import { dense } from "./lattice.js";

const LARGEST_COUNT = Number.MAX_SAFE_INTEGER; // up to it whole numbers are exact as floats
const ROUNDING = 1e-9; // largest distance from 1 of a sum of rounded shares
const SLACK = 1e-9; // by which rounding may move a law out of its band, relative to `upper`
const origins = new WeakMap(); // the domain and the counts that each law was made from: in another domain outcome 2 may be something else
const UNITS = 2 ** 53; // masses without counts are rounded down to multiples of 2^-53

/**
 * Refuse records or counts that are invalid in themselves. Call it before you ask for an agreement, because the curator who offers one sees
 * whether a sample follows. All that passes has a law under every agreement.
 */
export function checkSeen(given) {
  const { records, counts } = given ?? {};
  if ((records === undefined) === (counts === undefined)) {
    refuse("pass either records (what was seen) or counts (how often), not both and not neither");
  }
  if (counts === undefined) {
    if (typeof records === "string" || typeof records?.[Symbol.iterator] !== "function") {
      refuse("records is not a list; pass one value for each record");
    }
    return;
  }
  if (counts === null || typeof counts !== "object") refuse("counts is neither a list nor an object");
  for (const [name, count] of namedCounts(counts)) {
    if (typeof count !== "number" || !Number.isInteger(count) || count < 0 || count > LARGEST_COUNT) {
      refuse(`counts of ${quoted(name)} is ${quoted(count)}, not a whole number from 0 on`);
    }
  }
}

const isListed = (counts) => Array.isArray(counts) || ArrayBuffer.isView(counts);
const namedCounts = (counts) => (isListed(counts) || counts instanceof Map ? counts.entries() : Object.entries(counts));

/**
 * {outcomes, masses, outside} of either `records` (values) or `counts` (a list with a count for each outcome, or an object or Map by name).
 * `outside`: how many records are not in the domain; only the device learns it. What `checkSeen` accepts is accepted under every agreement.
 */
export function lawOf(agreement, given) {
  checkSeen(given);
  const { domain, other } = agreement;
  const { records, counts } = given;
  const found = new Map();
  const add = (outcome, count) => found.set(outcome, (found.get(outcome) ?? 0) + count);
  let outside = 0, unplaced = 0, placed = 0;
  for (const [outcome, count, value] of records === undefined ? entriesOfCounts(domain, counts) : entriesOfRecords(domain, records)) {
    const place = outcome < 0 ? domain.nearest(value) : outcome;
    if (outcome < 0) outside += count;
    if (place < 0) unplaced += count;
    else if (count) {
      add(place, count);
      placed += count;
    }
  }
  if (unplaced && other !== undefined && !hasOtherLength(domain, counts)) {
    add(other, unplaced);
    placed += unplaced;
  }
  if (domain.columns) return rowsLaw(domain, found, placed, outside);
  const outcomes = Float64Array.from(found.keys()).sort();
  const counted = outcomes.map((outcome) => found.get(outcome));
  const law = placed ? withinBand(agreement, { outcomes, masses: counted.map((count) => count / placed), outside }) : referenceOf(agreement, outside);
  origins.set(law, { domain, counted, placed });
  return law;
}

/** The law of a survey's rows: outcomes are places in `rows`, the different rows that were seen. It may be empty; then a report is uniform. */
function rowsLaw(domain, found, placed, outside) {
  const rows = Object.freeze([...found.keys()].sort((one, other) => (one < other ? -1 : 1)));
  const counted = Float64Array.from(rows, (row) => found.get(row));
  const law = { outcomes: Float64Array.from(rows.keys()), masses: counted.map((count) => count / placed), rows, outside };
  origins.set(law, { domain, counted, placed, rows });
  return law;
}

/** Whole numbers in proportion to a law: the counts whose shares its masses are, or floor(2^53 mass) if there are none, as in a law made by hand. */
export function numbersOf(law) {
  const { counted = [], placed } = origins.get(law) ?? {};
  const same = counted.length === law.masses.length && counted.every((count, place) => count / placed === law.masses[place]);
  return Array.from(same ? counted : law.masses.map((mass) => Math.floor(mass * UNITS)), BigInt);
}

/** Whether counts are a list of another length than the domain. Then it is unknown which outcome a count belongs to. */
const hasOtherLength = (domain, counts) => counts !== undefined && isListed(counts) && counts.length !== domain.size;

/** The reference as a law. A person without records in the domain gets it and takes part like everybody else, so that nobody can tell. */
function referenceOf({ domain: { size }, family: { reference } }, outside) {
  const masses = new Float64Array(size).map((_, place) => (typeof reference === "number" ? reference : reference[place]));
  return { outcomes: Float64Array.from(masses.keys()), masses, outside };
}

/**
 * The law, moved into the band if the mechanism is linear. This mechanism serves only members of its band: for other clients the output would
 * not be linear in the client's distribution. A law P outside the band is moved straight towards the reference mu, just as far as necessary:
 * it becomes kept P + (1 - kept) mu.
 */
function withinBand({ mechanism, family, domain: { size } }, law) {
  const kept = mechanism === "linear" ? bandShare(law, family, size) : 1;
  if (kept === 1) return law;
  const { reference } = family;
  const masses = dense(law, size).map((mass, place) => kept * mass + (1 - kept) * (typeof reference === "number" ? reference : reference[place]));
  return { outcomes: Float64Array.from(masses.keys()), masses, outside: law.outside };
}

/** kept: the largest share of a law that may stay when the rest is replaced by the reference, so that the sum lies in the band. 1 for a member. */
export function bandShare(law, { lower, upper, reference }, size) {
  const leastMass = typeof reference === "number" ? reference : reference.reduce((one, other) => Math.min(one, other));
  if (lower === 0 && upper * leastMass >= 1 - SLACK) return 1;
  const slack = SLACK * upper;
  return dense(law, size).reduce((kept, mass, place) => {
    const own = typeof reference === "number" ? reference : reference[place];
    if (mass > (upper + slack) * own) return Math.min(kept, ((upper - 1) * own) / (mass - own));
    return mass < (lower - slack) * own ? Math.min(kept, ((1 - lower) * own) / (own - mass)) : kept;
  }, 1);
}

/** The arrays of a law, after a check that it is one on these outcomes. Every law is checked: arrays can be overwritten, and objects made by hand. */
export function checkedLaw(domain, law) {
  const { outcomes, masses } = law ?? {};
  if (!isFloats(outcomes) || !isFloats(masses)) refuse("law is none that agreement.law gave; make it of records or counts");
  const { domain: origin, rows } = origins.get(law) ?? {};
  if (domain.columns && !origin) refuse("law is none that agreement.law gave; a survey draws from no other");
  if (origin && origin !== domain && canonical(origin.terms) !== canonical(domain.terms)) {
    refuse("law was made for other outcomes than those of this agreement; make it by this agreement's law");
  }
  if (outcomes.length !== masses.length) refuse(`law has ${outcomes.length} outcomes and ${masses.length} masses; it needs as many`);
  const size = rows?.length ?? domain.size;
  let last = -1, sum = 0;
  for (let place = 0; place < outcomes.length; place++) {
    const outcome = outcomes[place], mass = masses[place];
    if (!Number.isInteger(outcome) || outcome <= last || outcome >= size) {
      refuse(`law holds ${outcome}, which is no outcome from 0 to ${size - 1} in increasing order; make it by this agreement's law`);
    }
    if (!(mass >= 0 && mass <= 1)) refuse(`law gives outcome ${outcome} the mass ${mass}, which is not in [0, 1]`);
    last = outcome;
    sum += mass;
  }
  if (size && !(Math.abs(sum - 1) <= ROUNDING)) refuse(`law has masses that sum to ${sum}, not to 1`);
  return { outcomes, masses, rows };
}

/** Whether a value is a Float64Array, also one of another frame, which has another constructor. */
const isFloats = (value) => ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === "[object Float64Array]";

/** [outcome, count, value] of every record. */
function* entriesOfRecords(domain, records) {
  for (const record of records) yield [domain.number(record), 1, record];
}

/**
 * [outcome, count, value] of every entry of counts. Counts of cells and whole numbers have the outcome number as their key. It is not a value,
 * so a key out of range has no nearest outcome. All entries of a list of another length than the domain are outside. The key of a survey's
 * row is the row itself, and so its value.
 */
function* entriesOfCounts(domain, counts) {
  const listed = isListed(counts), otherLength = hasOtherLength(domain, counts);
  for (const [name, count] of namedCounts(counts)) yield [otherLength ? -1 : listed ? name : domain.key(name), count, domain.columns && name];
}
