/**
 * The public columns of a survey. A row has one value in each column, and is encoded as one whole number, the same as in Python
 * (`discreet.survey._columns`). If column i has k_i outcomes, and x_i is the outcome number of the row in column i, the number of the row is
 * x_1 + k_1 (x_2 + k_2 (x_3 + ...)). There may be 2^62 different rows, so their numbers are bigints.
 */
import { count, day, Days, Domain, Interval, Labels, Numbers } from "./domain.js";
import { quoted, refuse } from "./errors.js";

const RESOLUTION = 192_000; // cells of a column of numbers, unless it states how many
const MOST_ROWS = 1n << 62n;
const LARGEST_COLUMN = 0xfffffff9; // most outcomes of a column: Python's tables can code no more
const MOST_LISTED = 1 << 16; // most labels and days, of all columns together
const LISTED = new Set(["labels", "first,last"]); // the kinds of columns that list labels or days
const LARGEST_WHOLE = 1e21; // from here on Python reads a number as a float

/**
 * For each set of fields that states a column: a function that returns the column's domain, and these fields. `room`: how many labels and days
 * may still be listed after the columns before.
 */
const KINDS = {
  labels: ({ labels }, where, remaining) => [new Labels(labelsOf(labels, where, remaining), where), { labels }],
  size: ({ size }, where) => [new Numbers(count(`${where}.size`, size, LARGEST_COLUMN)), { size }],
  "high,low": (fields, where) => [cellsOf(fields, RESOLUTION, where), pick(fields, ["low", "high"])],
  "high,low,unit": (fields, where) => [cellsOf(fields, RESOLUTION, where), { ...pick(fields, ["low", "high"]), ...unitOf(fields.unit, where) }],
  "cells,high,low": (fields, where) => [cellsOf(fields, count(`${where}.cells`, fields.cells, LARGEST_COLUMN), where), pick(fields, ["low", "high", "cells"])],
  "first,last": ({ first, last }, where, remaining) => [daysOf(day(`${where}.first`, first), day(`${where}.last`, last), remaining), { first, last }],
};

const pick = (fields, names) => Object.fromEntries(names.map((name) => [name, fields[name]]));

function unitOf(unit, where) {
  if (typeof unit !== "string") refuse(`${where}.unit = ${quoted(unit)} is not a text`);
  return unit ? { unit } : {};
}

function cellsOf({ low, high }, cells, where) {
  if (typeof low !== "number" || typeof high !== "number") refuse(`${where}: low and high are not numbers`);
  return new Interval(low, high, cells, where);
}

/** Refuse more labels or days than may still be listed. Their number suffices, and no list is made: a short agreement can name many days. */
const checkListedNumber = (listed, remaining) => listed > remaining && refuse(`the columns have more than ${MOST_LISTED} labels`);

function daysOf(first, last, remaining) {
  const days = new Days(first, last);
  checkListedNumber(days.size, remaining);
  return days;
}

/** The labels of a column, which must be all texts or all whole numbers. */
function labelsOf(labels, where, remaining) {
  if (!Array.isArray(labels) || !labels.length) refuse(`${where}.labels is not a list of labels`);
  checkListedNumber(labels.length, remaining);
  const whole = (label) => Number.isInteger(label) && Math.abs(label) < LARGEST_WHOLE;
  if (labels.every((label) => typeof label === "string") || labels.every(whole)) return labels;
  return refuse(`${where}: labels are neither all texts nor all whole numbers`);
}

/** The rows of a survey as a domain: a record is an object with a value for each column. */
export class Rows extends Domain {
  what = "rows";

  /** `listed`: the columns as an agreement states them. */
  constructor(listed) {
    if (!Array.isArray(listed) || !listed.length) refuse("family.columns is not a list of columns, each with its name");
    const columns = [], places = new Map();
    let stride = 1n, remaining = MOST_LISTED;
    for (const [place, fields] of listed.entries()) {
      const where = `family.columns[${place}]`, { name } = fields ?? {};
      if (typeof name !== "string" || name.includes("\0")) refuse(`${where} has no name that a column can have`);
      if (places.has(name)) refuse(`family.columns names ${quoted(name)} twice`);
      const stated = Object.keys(fields).filter((field) => field !== "name").sort().join();
      if (!Object.hasOwn(KINDS, stated)) refuse(`${where} is not a column; give labels, size, low and high (with unit), or first and last (dates)`);
      const [domain, terms] = KINDS[stated](fields, where, remaining);
      columns.push({ name, domain, unit: terms.unit ?? "", stride, terms: { name, ...terms } });
      places.set(name, columns.at(-1));
      if (LISTED.has(stated)) remaining -= domain.size;
      stride *= BigInt(domain.size);
      if (stride > MOST_ROWS) refuse("the columns have more than 2^62 different rows");
    }
    super(Number(stride));
    Object.assign(this, { columns, places });
    this.terms = { columns: columns.map(({ terms }) => terms) };
  }

  /** The columns with these names, of which there is at least one. Unknown and repeated names are refused. */
  columnsNamed(names, where) {
    const found = names.map((name) => this.places.get(name) ?? refuse(`${where}: there is no column ${quoted(name)}`));
    return found.length && new Set(found).size === found.length ? found : refuse(`${where} does not name columns, each of them once`);
  }

  /** The number of a row; -1n if some value is not in the domain of its column. */
  number(record, outcomeOf = (domain, value) => domain.number(value)) {
    if (record === null || typeof record !== "object") return -1n;
    let row = 0n;
    for (const { name, domain, stride } of this.columns) {
      const outcome = outcomeOf(domain, record[name]);
      if (outcome < 0) return -1n;
      row += BigInt(outcome) * stride;
    }
    return row;
  }

  /** The number of a row in which numbers outside their bounds count as the nearest end; -1n as above. */
  nearest(record) {
    return this.number(record, (domain, value) => {
      const outcome = domain.number(value);
      return outcome < 0 ? domain.nearest(value) : outcome;
    });
  }

  key(record) {
    return this.number(record);
  }

  /** A row with this number: labels, whole numbers, and the middles of cells. */
  named(row) {
    return Object.fromEntries(this.columns.map((column) => [column.name, column.domain.named(outcomeIn(row, column))]));
  }

  name(row) {
    return this.columns.map((column) => column.domain.name(outcomeIn(row, column))).join(", ");
  }
}

/** The outcome number of one column in a row. */
export const outcomeIn = (row, { stride, domain }) => Number((row / stride) % BigInt(domain.size));
