/** What a person types or pastes: "label, count", "label <tab> count", or one record a row. */
const LARGEST_COUNT = 1e9;

export const isCount = (value) => Number.isInteger(value) && value >= 0 && value <= LARGEST_COUNT;

/** How often each label comes, as a Map. What is neither of these is said, as are more than `most` labels. */
export function countsOf(text, most) {
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
    if (found.size > most) throw new Error(`There are more than ${most.toLocaleString("en")} different labels: group them.`);
  }
  const counts = [...found.values()];
  if (!counts.some(Boolean)) throw new Error("All counts are 0: a client without records holds nothing.");
  if (!counts.every(isCount)) throw new Error("The counts add up to more than a thousand million: divide them.");
  return found;
}
