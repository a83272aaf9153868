/** A person's records or counts as a distribution: outcomes in order and their shares, count/total, of those that were seen at all. */
import { quoted, refuse } from "./errors.js";
import { canonical } from "./json.js";

const MOST = Number.MAX_SAFE_INTEGER; // whole numbers up to it are added up exactly
const ROUNDING = 1e-9; // by which shares that were rounded may miss 1
const origins = new WeakMap(); // the domain that a law was made for: outcome 2 of another may be another thing

/** {outcomes, masses} of what was seen: either `records` (values) or `counts` (a list for each outcome, or an object or Map by name). */
export function lawOf(domain, given) {
  const { records, counts } = given ?? {};
  if ((records === undefined) === (counts === undefined)) {
    refuse("pass either records (what was seen) or counts (how often), not both and not neither");
  }
  const found = new Map();
  const add = (outcome, count) => found.set(outcome, (found.get(outcome) ?? 0) + count);
  if (records !== undefined) for (const outcome of domain.numbers(records)) add(outcome, 1);
  else for (const [outcome, count] of counted(domain, counts)) if (count) add(outcome, count);
  let total = 0;
  for (const count of found.values()) total += count;
  if (total > MOST) refuse(`counts add up to more than ${MOST}; divide them`);
  if (!total) refuse("there are no records: nobody can be drawn for; leave this client out");
  const outcomes = Float64Array.from(found.keys()).sort();
  const law = { outcomes, masses: outcomes.map((outcome) => found.get(outcome) / total) };
  origins.set(law, domain);
  return law;
}

/** A law as it is handed in, if it is one on these outcomes: arrays can be written to, and objects made by hand. */
export function checkedLaw(domain, law) {
  const { outcomes, masses } = law ?? {};
  if (!isFloats(outcomes) || !isFloats(masses)) refuse("law is none that agreement.law gave; make it of records or counts");
  const origin = origins.get(law);
  if (origin && origin !== domain && canonical(origin.terms) !== canonical(domain.terms)) {
    refuse("law was made for other outcomes than those of this agreement; make it by this agreement's law");
  }
  if (outcomes.length !== masses.length) refuse(`law has ${outcomes.length} outcomes and ${masses.length} masses; it needs as many`);
  let last = -1, sum = 0;
  for (let place = 0; place < outcomes.length; place++) {
    const outcome = outcomes[place], mass = masses[place];
    if (!Number.isInteger(outcome) || outcome <= last || outcome >= domain.size) {
      refuse(`law holds ${outcome}, which is no outcome from 0 to ${domain.size - 1} in increasing order; make it by this agreement's law`);
    }
    if (!(mass >= 0 && mass <= 1)) refuse(`law gives outcome ${outcome} the mass ${mass}, which is not in [0, 1]`);
    last = outcome;
    sum += mass;
  }
  if (!(Math.abs(sum - 1) <= ROUNDING)) refuse(`law has masses that sum to ${sum}, not to 1`);
  return { outcomes, masses };
}

/** Also those of another frame, which have another constructor. */
const isFloats = (value) => ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === "[object Float64Array]";

function* counted(domain, counts) {
  if (counts === null || typeof counts !== "object") refuse("counts is neither a list nor an object");
  const listed = Array.isArray(counts) || ArrayBuffer.isView(counts);
  if (listed && counts.length !== domain.size) {
    refuse(`counts has ${counts.length} entries; it needs one for each of the ${domain.size} outcomes`);
  }
  const entries = listed || counts instanceof Map ? counts.entries() : Object.entries(counts);
  for (const [name, count] of entries) {
    const outcome = listed ? name : domain.key(name);
    if (outcome < 0) refuse(`unknown ${domain.what}: ${quoted(name)}; the domain is public and fixed`);
    if (typeof count !== "number" || !Number.isInteger(count) || count < 0 || count > MOST) {
      refuse(`counts of ${quoted(name)} is ${quoted(count)}, not a whole number from 0 on`);
    }
    yield [outcome, count];
  }
}
