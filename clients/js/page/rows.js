/** Reads what a person types or pastes: "label, count", "label <tab> count", or one record a row. */
export const LARGEST_COUNT = 1e9;

export const isCount = (value) => Number.isInteger(value) && value >= 0 && value <= LARGEST_COUNT;

/** [{row, label, count}] of the rows that are not blank. `count` is undefined if a row has none. It may be invalid, such as -1, 1.5 or NaN. */
export function readRows(text) {
  return text.split(/\r\n|\r|\n/).filter((row) => row.trim()).map((row) => {
    const [, label, count] = /^(.*?)[\t,;]\s*(-?[0-9.eE+]+)\s*$/u.exec(row) ?? [];
    return { row, label: label?.trim(), count: count === undefined ? undefined : Number(count) };
  });
}

/**
 * How often each label occurs, as a Map. It throws an error that says what is wrong: no rows, less than half of the rows without a count, an
 * invalid count or sum, or more than `most` labels.
 */
export function countsOf(text, most) {
  const rows = readRows(text);
  if (!rows.length) throw new Error("There is nothing to read. Paste rows of a label and a count, or one record a row.");
  const without = rows.filter(({ count }) => count === undefined);
  if (without.length && without.length < rows.length / 2) {
    throw new Error(`Row ${rows.indexOf(without[0]) + 1} has no count: give every row one, or none.`);
  }
  const found = new Map();
  rows.forEach((each, place) => {
    const [label, count] = without.length ? [each.row.trim(), 1] : [each.label, each.count];
    if (!isCount(count)) throw new Error(`Row ${place + 1} has the count ${String(count).slice(0, 20)}: counts are whole numbers from 0 on.`);
    found.set(label, (found.get(label) ?? 0) + count);
    if (found.size > most) throw new Error(`There are more than ${most.toLocaleString("en")} different labels. Group them.`);
  });
  const counts = [...found.values()];
  if (!counts.some(Boolean)) throw new Error("All counts are 0. A client needs at least one record.");
  if (!counts.every(isCount)) throw new Error("The counts add up to more than a thousand million. Divide them.");
  return found;
}

/**
 * The same as [[text, count], ...], without errors, for pages that must accept every entry. If most rows have a count, a row without a valid
 * count counts once, by its whole text. Otherwise every row counts once, by its whole text. Counts and sums are cut off at a thousand million.
 */
export function entriesOf(text) {
  const rows = readRows(text);
  const counted = rows.filter(({ count }) => count !== undefined).length > rows.length / 2;
  const found = new Map();
  for (const { row, label, count } of rows) {
    const whole = counted && Number.isInteger(count) && count >= 0;
    const [name, often] = whole ? [label, Math.min(count, LARGEST_COUNT)] : [row.trim(), 1];
    if (often) found.set(name, Math.min((found.get(name) ?? 0) + often, LARGEST_COUNT));
  }
  return [...found];
}
