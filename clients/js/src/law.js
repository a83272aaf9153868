/** A person's records or counts as a distribution: outcomes in order and their shares, count/total, of those that were seen at all. */
import { quoted, refuse } from "./errors.js";
import { canonical } from "./json.js";
import { dense } from "./lattice.js";

const MOST = Number.MAX_SAFE_INTEGER; // whole numbers up to it are added up exactly
const ROUNDING = 1e-9; // by which shares that were rounded may miss 1
const SLACK = 1e-9; // by which rounding may leave a band
const origins = new WeakMap(); // the domain that a law was made for, since outcome 2 of another may be another thing; and its counts
const UNITS = 2 ** 53; // of which masses without counts are multiples

/**
 * Refuse what is wrong with records or counts by themselves. It needs no agreement: call it before an agreement is asked for, since whoever
 * offers one sees whether a sample comes. Whatever passes has a law under every agreement.
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
  for (const [name, count] of entriesOf(counts)) {
    if (typeof count !== "number" || !Number.isInteger(count) || count < 0 || count > MOST) {
      refuse(`counts of ${quoted(name)} is ${quoted(count)}, not a whole number from 0 on`);
    }
  }
}

const isListed = (counts) => Array.isArray(counts) || ArrayBuffer.isView(counts);
const entriesOf = (counts) => (isListed(counts) || counts instanceof Map ? counts.entries() : Object.entries(counts));

/**
 * {outcomes, masses, outside} of what was seen: either `records` (values) or `counts` (a list for each outcome, or an object or Map by name).
 * `outside`: how many of them are not in the domain, which only the device learns. No agreement makes it refuse what `checkSeen` takes.
 */
export function lawOf(agreement, given) {
  checkSeen(given);
  const { domain, other } = agreement;
  const { records, counts } = given;
  const found = new Map();
  const add = (outcome, count) => found.set(outcome, (found.get(outcome) ?? 0) + count);
  let outside = 0, unplaced = 0, placed = 0;
  for (const [outcome, count, value] of records === undefined ? tallied(domain, counts) : recorded(domain, records)) {
    const place = outcome < 0 ? domain.nearest(value) : outcome;
    if (outcome < 0) outside += count;
    if (place < 0) unplaced += count;
    else if (count) {
      add(place, count);
      placed += count;
    }
  }
  if (unplaced && other !== undefined && !isMisfit(domain, counts)) {
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

/** The law of a survey's rows: outcomes are the places of the different rows that were seen. Without any there is none, and a report is uniform. */
function rowsLaw(domain, found, placed, outside) {
  const rows = Object.freeze([...found.keys()].sort((one, other) => (one < other ? -1 : 1)));
  const counted = Float64Array.from(rows, (row) => found.get(row));
  const law = { outcomes: Float64Array.from(rows.keys()), masses: counted.map((count) => count / placed), rows, outside };
  origins.set(law, { domain, counted, placed, rows });
  return law;
}

/** Whole numbers in proportion to a law: the counts that it was made of, or multiples of a unit where it was made or changed by hand. */
export function numbersOf(law) {
  const { counted = [], placed } = origins.get(law) ?? {};
  const same = counted.length === law.masses.length && counted.every((count, place) => count / placed === law.masses[place]);
  return Array.from(same ? counted : law.masses.map((mass) => Math.floor(mass * UNITS)), BigInt);
}

/** Whether counts are a list for another number of outcomes, none of which is known then. */
const isMisfit = (domain, counts) => counts !== undefined && isListed(counts) && counts.length !== domain.size;

/** The reference itself: what a person with nothing in the domain is served as, so that nobody can tell. */
function referenceOf({ domain: { size }, family: { reference } }, outside) {
  const masses = new Float64Array(size).map((_, place) => (typeof reference === "number" ? reference : reference[place]));
  return { outcomes: Float64Array.from(masses.keys()), masses, outside };
}

/**
 * The linear mechanism serves members of its band alone, since the law of others would not be linear in theirs. Others are moved straight
 * towards the reference, as far as it takes: `bandShare` is how much of the law is kept, 1 for a member.
 */
function withinBand({ mechanism, family, domain: { size } }, law) {
  const kept = mechanism === "linear" ? bandShare(law, family, size) : 1;
  if (kept === 1) return law;
  const { reference } = family;
  const masses = dense(law, size).map((mass, place) => kept * mass + (1 - kept) * (typeof reference === "number" ? reference : reference[place]));
  return { outcomes: Float64Array.from(masses.keys()), masses, outside: law.outside };
}

export function bandShare(law, { lower, upper, reference }, size) {
  const fewest = typeof reference === "number" ? reference : reference.reduce((one, other) => Math.min(one, other));
  if (lower === 0 && upper * fewest >= 1 - SLACK) return 1;
  const slack = SLACK * upper;
  return dense(law, size).reduce((kept, mass, place) => {
    const own = typeof reference === "number" ? reference : reference[place];
    if (mass > (upper + slack) * own) return Math.min(kept, ((upper - 1) * own) / (mass - own));
    return mass < (lower - slack) * own ? Math.min(kept, ((1 - lower) * own) / (own - mass)) : kept;
  }, 1);
}

/** A law as it is handed in, if it is one on these outcomes: arrays can be written to, and objects made by hand. */
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

/** Also those of another frame, which have another constructor. */
const isFloats = (value) => ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === "[object Float64Array]";

function* recorded(domain, records) {
  for (const record of records) yield [domain.number(record), 1, record];
}

/**
 * Cells and numbers are counted by the number of the outcome, which is no value: one that is out of range is near to nothing. A list of
 * another length than the domain says nothing of any outcome. Rows are counted by themselves.
 */
function* tallied(domain, counts) {
  const listed = isListed(counts), misfit = isMisfit(domain, counts);
  for (const [name, count] of entriesOf(counts)) yield [misfit ? -1 : listed ? name : domain.key(name), count, domain.columns && name];
}
