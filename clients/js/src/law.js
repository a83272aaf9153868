/** A person's records or counts as a distribution: outcomes in order and their shares, count/total, of those that were seen at all. */
import { quoted, refuse } from "./errors.js";

const MOST = Number.MAX_SAFE_INTEGER; // whole numbers up to it are added up exactly

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
  return { outcomes, masses: outcomes.map((outcome) => found.get(outcome) / total) };
}

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
