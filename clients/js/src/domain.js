/** The public outcomes: labels, whole numbers, or the cells of an interval. Values become outcome numbers, and outcome numbers become samples. */
import { exponentOf, power } from "./exact.js";
import { canonical } from "./json.js";
import { quoted, refuse } from "./errors.js";
import { digestOfText } from "./sha256.js";

const DIGEST = /^sha256:[0-9a-f]{64}$/;
const LARGEST = 2 ** 40; // most outcomes: each of them needs a share of the 2^62 integers
const DAY = 86_400_000; // milliseconds
const LEAST_CELL_WIDTH = 4; // least width of a cell, in spacings of floats

export const isDigest = (value) => typeof value === "string" && DIGEST.test(value);

/** The value, if it is a whole number from `least` to `most`; others are refused. */
export function count(name, value, most = LARGEST, least = 1) {
  if (!Number.isInteger(value) || value < least) refuse(`${name} = ${quoted(value)} is not a whole number from ${least} on`);
  return value <= most ? value : refuse(`${name} is more than ${most}`);
}

/** The value, if it is a date as Python writes it, such as 2026-11-17, from the year 1 on; others are refused. */
export function day(name, value) {
  const time = typeof value === "string" && /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(value) ? Date.parse(value) : NaN;
  if (Number.isNaN(time) || dayOf(time) !== value || value < "0001") refuse(`${name} = ${quoted(value)} is no date; write it as 2026-11-17`);
  return value;
}

const dayOf = (time) => new Date(time).toISOString().slice(0, 10);

const firstThree = (items) => items.slice(0, 3).map(quoted).join(", ") + (items.length > 3 ? ` and ${items.length - 3} more` : "");

export class Domain {
  constructor(size) {
    this.size = size;
  }

  /** The outcome number of every record. A record outside the domain is refused, and never counted as another outcome. */
  numbers(records) {
    if (typeof records === "string" || typeof records?.[Symbol.iterator] !== "function") {
      refuse("records is not a list; pass one value for each record");
    }
    const found = [], unknown = [];
    for (const record of records) {
      const number = this.number(record);
      if (number < 0) unknown.push(record);
      else found.push(number);
    }
    return unknown.length ? refuse(`unknown ${this.what}: ${firstThree(unknown)}; the domain is public and fixed`) : found;
  }

  /** The outcome nearest to a value outside the domain; -1 if there is none. */
  nearest() {
    return -1;
  }
}

/** The outcome number that is a key of counts, as a number or, in an object, as its digits; -1 for any other key. */
function numberOfKey(name, size) {
  const number = typeof name === "string" && /^(0|[1-9][0-9]*)$/.test(name) ? Number(name) : name;
  return Number.isInteger(number) && number >= 0 && number < size ? number : -1;
}

export class Numbers extends Domain {
  what = "outcomes";
  terms = { size: this.size };

  number(record) {
    return Number.isInteger(record) && record >= 0 && record < this.size ? record : -1;
  }

  key(name) {
    return numberOfKey(name, this.size);
  }

  named(number) {
    return number;
  }

  name(number) {
    return String(number);
  }
}

export class Interval extends Domain {
  what = "values";
  interval = true;

  constructor(low, high, size, where = "family.interval") {
    super(size);
    Object.assign(this, { low, high, width: high - low });
    const spacing = power(Math.max(exponentOf(Math.max(Math.abs(low), Math.abs(high))) - 53, -1074));
    if (!(low < high) || !(this.width < Infinity && this.width > 1 / Number.MAX_VALUE)) {
      refuse(`${where} = [${low}, ${high}] does not enclose an interval whose length and its reciprocal a float can hold`);
    }
    if (this.width / size < LEAST_CELL_WIDTH * spacing) {
      refuse(`${where} = [${low}, ${high}] in ${size} cells: floats cannot tell so many apart there`);
    }
    this.terms = { size, interval: [low, high] };
  }

  number(record) {
    if (typeof record !== "number" || !(record >= this.low && record <= this.high)) return -1;
    return Math.min(Math.max(Math.floor((record - this.low) * (1 / this.width) * this.size), 0), this.size - 1);
  }

  nearest(value) {
    if (typeof value !== "number" || Number.isNaN(value)) return -1;
    return value < this.low ? 0 : this.size - 1;
  }

  key(name) {
    return numberOfKey(name, this.size);
  }

  /** The middle of a cell. */
  named(number) {
    return Math.min(Math.max(this.low + ((number + 0.5) / this.size) * this.width, this.low), this.high);
  }

  name(number) {
    const edge = (place) => Number((this.low + (place / this.size) * this.width).toPrecision(6));
    return `${edge(number)} to ${edge(number + 1)}`;
  }
}

/** A label as it is looked up. In Python true equals 1 and false equals 0, so here too they are the same outcome. */
const lookupKey = (label) => (typeof label === "boolean" ? Number(label) : label);

export class Labels extends Domain {
  what = "labels";

  constructor(labels, where = "family.labels") {
    super(labels.length);
    this.labels = labels;
    this.places = new Map(labels.map((label, place) => [lookupKey(label), place]));
    if (this.places.size < labels.length) {
      refuse(`${where} lists ${quoted(labels.find((label, place) => this.number(label) !== place))} twice`);
    }
    this.terms = { size: this.size, labels: digestOfText(canonical(labels)) };
  }

  number(record) {
    return this.places.get(lookupKey(record)) ?? -1;
  }

  key(name) {
    return this.number(name);
  }

  named(number) {
    return this.labels[number];
  }

  name(number) {
    return String(this.labels[number]);
  }
}

/** The days from `first` to `last`, both included. A value is a text such as 2026-11-17, or a Date at midnight UTC, as date fields of a page give. */
export class Days extends Domain {
  what = "labels";
  #labels;

  constructor(first, last) {
    const [start, end] = [first, last].map((each) => Date.parse(each) / DAY);
    if (end < start) refuse(`last = ${last} comes before first = ${first}; exchange them`);
    super(end - start + 1);
    Object.assign(this, { first, last, start });
  }

  /** All days as texts, made on first use: a short agreement can name many. */
  get labels() {
    return (this.#labels ??= Array.from({ length: this.size }, (_, place) => this.named(place)));
  }

  number(record) {
    const time = record instanceof Date ? record.getTime() : typeof record === "string" ? Date.parse(record) : NaN;
    const place = time / DAY - this.start;
    const found = Number.isInteger(place) && place >= 0 && place < this.size;
    return found && (record instanceof Date || this.named(place) === record) ? place : -1;
  }

  key(name) {
    return this.number(name);
  }

  named(number) {
    return dayOf((this.start + number) * DAY);
  }

  name(number) {
    return this.named(number);
  }
}

/** The domain that the fields of a family state. `given`: the labels, if the document holds only their digest. */
export function domainOf(fields, given) {
  const size = count("family.size", fields.size);
  const { labels, interval } = fields;
  if (interval !== undefined) {
    if (labels !== undefined) refuse("family.labels and family.interval are both set; outcomes are labels or cells");
    const pair = Array.isArray(interval) && interval.length === 2 && interval.every((end) => typeof end === "number");
    return pair ? new Interval(...interval, size) : refuse(`family.interval = ${quoted(interval)} is not [low, high]`);
  }
  if (labels === undefined) return new Numbers(size);
  const digested = isDigest(labels);
  const listed = digested ? given : labels;
  if (digested && given === undefined) refuse("the agreement holds a digest of its labels; pass the labels too");
  if (!Array.isArray(listed)) refuse(`family.labels = ${quoted(listed)} is neither a list nor a digest`);
  if (!listed.every((label) => ["string", "boolean"].includes(typeof label) || Number.isFinite(label))) {
    refuse("family.labels holds a label that is neither a text nor a number");
  }
  if (listed.length !== size) refuse(`family.labels lists ${listed.length} labels for family.size = ${size}`);
  const found = new Labels(Array.from(listed));
  if (digested && found.terms.labels !== labels) refuse(`the labels are not those whose digest is ${labels}`);
  return found;
}
