/**
 * The public columns of a survey. A row has a value in each of them, and is one whole number, the same as in Python
 * (`discreet.survey._columns`): with the outcome numbers x_1, x_2, ... of columns that have k_1, k_2, ... outcomes it is
 * x_1 + k_1 (x_2 + k_2 (x_3 + ...)). There may be 2^62 different rows, so their numbers are bigints.
 */
import { count, day, Days, Domain, Interval, Labels, Numbers } from "./domain.js";
import { quoted, refuse } from "./errors.js";

const RESOLUTION = 192_000; // cells that a number is read to
const MOST_ROWS = 1n << 62n;
const LARGEST_COLUMN = 0xfffffff9; // outcomes that Python's tables can code
const MOST_LISTED = 1 << 16; // labels and days of all columns together
const LISTED = new Set(["labels", "first,last"]); // the kinds that these are of
const LARGEST_WHOLE = 1e21; // from here on Python reads a number as a float

/** The domain of a column, by the fields that state it, and these fields. `room`: how many labels and days the columns before leave. */
const KINDS = {
  labels: ({ labels }, where, room) => [new Labels(labelsOf(labels, where, room), where), { labels }],
  size: ({ size }, where) => [new Numbers(count(`${where}.size`, size, LARGEST_COLUMN)), { size }],
  "high,low": (fields, where) => [cellsOf(fields, RESOLUTION, where), pick(fields, ["low", "high"])],
  "high,low,unit": (fields, where) => [cellsOf(fields, RESOLUTION, where), { ...pick(fields, ["low", "high"]), ...unitOf(fields.unit, where) }],
  "cells,high,low": (fields, where) => [cellsOf(fields, count(`${where}.cells`, fields.cells, LARGEST_COLUMN), where), pick(fields, ["low", "high", "cells"])],
  "first,last": ({ first, last }, where, room) => [daysOf(day(`${where}.first`, first), day(`${where}.last`, last), room), { first, last }],
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

/** Refuse more listed outcomes than there is room for, by their number alone: a short agreement can name many days. */
const checkRoom = (listed, room) => listed > room && refuse(`the columns have more than ${MOST_LISTED} labels`);

function daysOf(first, last, room) {
  const days = new Days(first, last);
  checkRoom(days.size, room);
  return days;
}

/** Labels are all texts, or all whole numbers. */
function labelsOf(labels, where, room) {
  if (!Array.isArray(labels) || !labels.length) refuse(`${where}.labels is not a list of labels`);
  checkRoom(labels.length, room);
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
    let stride = 1n, room = MOST_LISTED;
    for (const [place, fields] of listed.entries()) {
      const where = `family.columns[${place}]`, { name } = fields ?? {};
      if (typeof name !== "string" || name.includes("\0")) refuse(`${where} has no name that a column can have`);
      if (places.has(name)) refuse(`family.columns names ${quoted(name)} twice`);
      const stated = Object.keys(fields).filter((field) => field !== "name").sort().join();
      if (!Object.hasOwn(KINDS, stated)) refuse(`${where} is not a column; give labels, size, low and high (with unit), or first and last (dates)`);
      const [domain, terms] = KINDS[stated](fields, where, room);
      columns.push({ name, domain, unit: terms.unit ?? "", stride, terms: { name, ...terms } });
      places.set(name, columns.at(-1));
      if (LISTED.has(stated)) room -= domain.size;
      stride *= BigInt(domain.size);
      if (stride > MOST_ROWS) refuse("the columns have more than 2^62 different rows");
    }
    super(Number(stride));
    Object.assign(this, { columns, places });
    this.terms = { columns: columns.map(({ terms }) => terms) };
  }

  /** The columns of these names, each of which is named once. */
  columnsNamed(names, where) {
    const found = names.map((name) => this.places.get(name) ?? refuse(`${where}: there is no column ${quoted(name)}`));
    return found.length && new Set(found).size === found.length ? found : refuse(`${where} does not name columns, each of them once`);
  }

  /** The number of a row; -1n where a column has no such value. */
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

  /** The same, with the nearest end for numbers outside their bounds. */
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
