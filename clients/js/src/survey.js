/**
 * A survey: public columns, questions about them, and the one report of each client.
 *
 * A public coin chooses one part of the survey, which is asked with the whole budget: part i with n_i of 2^62 words. The coin does not look at
 * the client. A part sees an outcome of a row, and reports it by blocks as in `reports.js`. So Q(report | part) is epsilon-LDP. The number of
 * a report is that of its block plus the capacities of all earlier parts. Parts, numbers and draw are those of `discreet.survey` in Python.
 */
import { outcomeIn } from "./columns.js";
import { count } from "./domain.js";
import { quoted, refuse } from "./errors.js";
import { known } from "./family.js";
import { Blocks, blocksOf, drawReport, growthBound, isPrime, leastWeight, noReport, reportOf, WORDS } from "./reports.js";

const LARGEST_REPORT = 1n << 64n;
const NO_QUESTION = -1; // for a part that is a wider table, to which no question belongs
const SHARE_UNITS = 2 ** 30; // most units of the share of a part
const MOST_PARTS = 4096;
const MOST_TOGETHER = 3; // columns of one question
const MOST_OUTCOMES = 1e7; // of one question
const MOST_CELLS = 4096; // of a histogram or a tree, and points of a mean
const MOST_WEIGHTED = 200; // outcomes of weighted blocks
const MOST_RANKED = 2 ** 22; // most binomial coefficients that Python keeps, for all parts together

/** Windows on the points of a line. Reports are the numbers below points + width - 1. Point x is held by the reports x to x + width - 1. */
class Windows extends Blocks {
  constructor(size, width) {
    super();
    Object.assign(this, { name: "windows", size, width, blocks: BigInt(size - 1 + width), holding: BigInt(width) });
  }

  reportHolding(outcome, rank) {
    return BigInt(outcome) + rank;
  }

  outcomesOf(report) {
    return Array.from({ length: this.size }, (_, x) => x).filter((x) => x <= report && report < x + this.width);
  }
}

/** Blocks that are drawn in proportion to their copies. All outcomes are held by the same number of copies. A report is the place of a block. */
class WeightedBlocks extends Blocks {
  name = "weighted";

  constructor({ blocks, copies }, size, where) {
    super();
    if (!Array.isArray(blocks) || !blocks.every((each) => typeof each === "string" && /^[1-9a-f][0-9a-f]*$/.test(each))) refuse(`${where}.blocks is not a list of hexadecimal masks such as "3f"`);
    if (!Array.isArray(copies) || !copies.every((each) => typeof each === "string" && /^[1-9a-f][0-9a-f]{0,15}$/.test(each))) refuse(`${where}.copies is not a list of hexadecimal texts such as "3f"`);
    const less = (one, other) => one.length < other.length || (one.length === other.length && one < other);
    if (!blocks.length || blocks.some((mask, place) => place && !less(blocks[place - 1], mask))) refuse(`${where}.blocks do not increase`);
    this.size = size;
    this.members = blocks.map((mask) => bitsOf(mask, size) ?? refuse(`${where}.blocks holds ${quoted(mask)}, with more than ${size} bits`));
    this.copies = copies.map((each) => BigInt(`0x${each}`));
    if (copies.length !== blocks.length) refuse(`${where} has ${blocks.length} blocks and ${copies.length} copies`);
    const held = Array(size).fill(0n);
    this.members.forEach((bits, place) => bits.forEach((bit, x) => bit && (held[x] += this.copies[place])));
    this.blocks = this.copies.reduce((sum, each) => sum + each, 0n);
    this.holding = held[0];
    if (held.some((each) => each !== held[0])) refuse(`${where}: outcomes are held by different numbers of copies; privacy needs one number`);
    if (this.blocks > WORDS || held[0] * BigInt(size) > WORDS) refuse(`${where}: the copies of all blocks are more than 2^62`);
  }

  get largest() {
    return BigInt(this.members.length - 1);
  }

  /** The first block at which the running sum of copies exceeds `rank`, over the blocks whose place satisfies `isIncluded`. */
  #blockAtRank(rank, isIncluded) {
    return BigInt(this.copies.findIndex((each, place) => isIncluded(place) && (rank -= each) < 0n));
  }

  report(rank) {
    return this.#blockAtRank(rank, () => true);
  }

  reportHolding(outcome, rank) {
    return this.#blockAtRank(rank, (place) => this.members[place][outcome]);
  }

  outcomesOf(report) {
    return Array.from({ length: this.size }, (_, x) => x).filter((x) => this.members[report][x]);
  }

  /** Whether the blocks determine all shares: together with the block of all outcomes they span all vectors. The test is exact, see `spans`. */
  get tells() {
    return spans([Array(this.size).fill(1), ...this.members], this.size);
  }
}

/** The bits of a hexadecimal number, the lowest first; undefined if there are more than `size`. */
function bitsOf(digits, size) {
  const bits = new Uint8Array(size);
  for (let place = 0; place < digits.length; place++) {
    const digit = parseInt(digits[digits.length - 1 - place], 16);
    for (let bit = 0; bit < 4; bit++) {
      if (!((digit >> bit) & 1)) continue;
      if (4 * place + bit >= size) return undefined;
      bits[4 * place + bit] = 1;
    }
  }
  return bits;
}

/**
 * Whether rows of zeros and ones span all vectors with `size` entries, at most 200. A determinant of 200 such rows is less than
 * 201^100.5/2^200 < 2^570 [Hadamard]. So if it is not 0, at least one of 23 different primes above 2^25 does not divide it.
 */
function spans(rows, size) {
  const primes = [];
  for (let number = 2 ** 26 - 1; primes.length < 23; number -= 2) if (isPrime(number)) primes.push(number);
  return primes.some((prime) => rankModulo(rows, size, prime) === size);
}

/** The rank of the rows modulo a prime below 2^26: products of residues are exact as floats. */
function rankModulo(rows, size, prime) {
  const basis = [];
  let rank = 0;
  for (const given of rows) {
    const row = Float64Array.from(given);
    for (let pivot = 0; pivot < size; pivot++) {
      if (!row[pivot]) continue;
      if (!basis[pivot]) {
        basis[pivot] = row;
        if (++rank === size) return rank;
        break;
      }
      const [own, other] = [basis[pivot][pivot], prime - row[pivot]];
      for (let x = pivot; x < size; x++) row[x] = (row[x] * own + other * basis[pivot][x]) % prime;
    }
  }
  return rank;
}

const jointOutcomeCount = (columns) => columns.reduce((all, { domain }) => all * domain.size, 1);
const OPTIONS = { shares: [], histogram: ["cells"], mean: [], quantiles: ["at"], linear: ["matrix"] };

/** A question as {kind, columns, cells}. One that the columns cannot answer is refused. */
function questionOf(terms, rows, where) {
  if (terms === null || typeof terms !== "object" || Array.isArray(terms)) refuse(`${where} is not a question`);
  const [kind, another] = Object.keys(terms).filter((name) => Object.hasOwn(OPTIONS, name));
  if (kind === undefined || another !== undefined) refuse(`${where} does not name one of ${Object.keys(OPTIONS).join(", ")}`);
  known(where, terms, [kind, "weight", ...OPTIONS[kind]], [kind]);
  const { [kind]: given, weight = 1, cells = 20, at = [0.5], matrix } = terms;
  if (!(typeof weight === "number" && weight >= 1e-6 && weight <= 1e6)) refuse(`${where}.weight = ${quoted(weight)} is not in [1e-06, 1e+06]`);
  const columns = rows.columnsNamed(Array.isArray(given) ? given : [given], where), numbers = columns.filter(({ domain }) => domain.interval);
  if (kind === "shares" || kind === "linear") {
    const outcomes = jointOutcomeCount(columns);
    if (columns.length > MOST_TOGETHER || numbers.length || outcomes < 2 || outcomes > MOST_OUTCOMES) {
      refuse(`${where}: shares are of one to three columns of labels or whole numbers, with 2 to ${MOST_OUTCOMES} outcomes together`);
    }
    if (kind === "linear") checkMatrix(matrix, outcomes, where);
    return { kind, columns };
  }
  if (columns.length !== 1 || !numbers.length) refuse(`${where}: ${kind} is about one column of numbers between bounds`);
  const read = columns[0].domain.size;
  if (kind === "histogram") count(`${where}.cells`, cells, Math.min(MOST_CELLS, read), 2);
  const levels = Array.isArray(at) && at.length && at.every((level) => typeof level === "number" && level > 0 && level < 1);
  if (!levels) refuse(`${where}.at = ${quoted(at)} is not a list of shares between 0 and 1`);
  if (kind === "quantiles" && read < 2) refuse(`${where}: the column has one cell`);
  return { kind, columns, cells };
}

/** Refuse what is not a list of rows, or one row, with a number for each outcome. */
function checkMatrix(matrix, outcomes, where) {
  const lists = Array.isArray(matrix) && matrix.every(Array.isArray) ? matrix : [matrix];
  const good = (row) => Array.isArray(row) && row.length === outcomes && row.every((each) => typeof each === "number" && Math.abs(each) <= 1e100);
  if (!lists.length || !lists.every(good)) refuse(`${where}.matrix does not have ${outcomes} numbers of at most 1e100 in every row`);
}

/** What a part sees of a row: {columns}, their joint outcome; {column, cells}, the cell of a number; {column, points}, a point next to a number. */
function viewOf(terms, rows, where) {
  const names = terms !== null && typeof terms === "object" && !Array.isArray(terms) ? Object.keys(terms).sort().join() : "";
  if (names === "columns") {
    const columns = rows.columnsNamed(Array.isArray(terms.columns) ? terms.columns : [], `${where}.columns`), size = jointOutcomeCount(columns);
    if (columns.some(({ domain }) => domain.interval) || size > MOST_OUTCOMES) refuse(`${where}.columns are no table of labels or whole numbers with at most ${MOST_OUTCOMES} outcomes`);
    return { columns, size, outcome: (row) => columns.reduce((all, column) => all * column.domain.size + outcomeIn(row, column), 0) };
  }
  if (names !== "cells,column" && names !== "column,points") refuse(`${where} has not the field columns, nor column with cells or points`);
  const [column] = rows.columnsNamed([terms.column], `${where}.column`), read = column.domain.size;
  if (names === "cells,column") {
    const cells = count(`${where}.cells`, terms.cells, Math.min(MOST_CELLS, read), 2);
    return { column, cells, size: cells, outcome: (row) => Math.floor((outcomeIn(row, column) * cells) / read) };
  }
  const points = count(`${where}.points`, terms.points, MOST_CELLS, 2), whole = 2 * read;
  /** One of the two points next to the middle of the row's cell, at random: its expectation is that middle. */
  const outcome = (row, below) => {
    const beyond = (2 * outcomeIn(row, column) + 1) * (points - 1);
    return Math.floor(beyond / whole) + Number(below(BigInt(whole)) < BigInt(beyond % whole));
  };
  return { column, points, size: points, outcome };
}

function partBlocks(terms, view, where) {
  if (terms?.kind === "weighted" && view.columns) {
    if (view.size > MOST_WEIGHTED) refuse(`${where}: weighted blocks are for ${MOST_WEIGHTED} outcomes at most`);
    return new WeightedBlocks(known(where, terms, ["kind", "blocks", "copies"]), view.size, where);
  }
  if (!view.points) return blocksOf(terms, view.size, where);
  const { kind, w } = known(where, terms, ["kind", "w"]);
  if (kind !== "windows") refuse(`${where}.kind = ${quoted(kind)} is not windows`);
  return new Windows(view.points, count(`${where}.w`, w, MOST_CELLS));
}

function readPart(terms, questions, rows, where) {
  const { question, share, sees, blocks } = known(where, terms, ["question", "share", "sees", "blocks"]);
  const view = viewOf(sees, rows, `${where}.sees`);
  return {
    question: count(`${where}.question`, question, questions - 1, NO_QUESTION),
    units: BigInt(count(`${where}.share`, share, SHARE_UNITS)),
    sees,
    view,
    blocks: partBlocks(blocks, view, `${where}.blocks`),
  };
}

const sameColumns = (one, other) => one?.length === other.length && one.every((column, place) => column === other[place]);

/** Whether these parts answer a question: Python makes estimates from them. */
function isAnsweredBy({ kind, columns, cells }, parts) {
  const views = parts.map(({ view }) => view), [column] = columns;
  if (kind === "mean") return views.every((view) => view.points && view.column === column);
  if (kind === "quantiles") return views.every((view) => view.cells && view.column === column) && isTree(views.map((view) => view.cells));
  if (parts.length !== 1) return false;
  if (kind === "histogram") return views[0].cells === cells && views[0].column === column;
  const [{ blocks }] = parts, weighted = blocks instanceof WeightedBlocks;
  return sameColumns(views[0].columns, columns) && (!weighted || (kind === "linear" && blocks.tells));
}

/** Whether numbers of cells are levels of one tree: increasing powers of one base, which is 2, 3, 5 or 7. */
function isTree(cellCounts) {
  const base = [2, 3, 5, 7].find((prime) => cellCounts.at(-1) % prime === 0);
  const isPower = (number) => {
    while (number % base === 0) number /= base;
    return number === 1;
  };
  return base !== undefined && cellCounts.every((each, place) => isPower(each) && (!place || cellCounts[place - 1] < each));
}

/** Refuse a part without a question, unless it is a table of two or three columns whose shares are asked, without weighted blocks. */
function checkWider({ view, blocks }, questions, where) {
  const asked = new Set(questions.filter(({ kind }) => kind === "shares").flatMap(({ columns }) => columns));
  const { columns = [] } = view;
  if (columns.length < 2 || columns.length > MOST_TOGETHER || !columns.every((column) => asked.has(column)) || blocks instanceof WeightedBlocks) {
    refuse(`${where}: a part without a question is a table of two or three columns whose shares are asked`);
  }
}

export class Survey {
  #ends;
  #offsets;
  #rows;

  /** `fields`: questions and parts as an agreement states them; `rows`: its columns. */
  constructor(fields, rows, epsilon) {
    known("survey", fields, ["questions", "parts"]);
    if (!Array.isArray(fields.questions) || !fields.questions.length) refuse("survey.questions is not a list of questions");
    if (!Array.isArray(fields.parts) || !fields.parts.length || fields.parts.length > MOST_PARTS) refuse(`survey.parts is not a list of 1 to ${MOST_PARTS} parts`);
    const questions = fields.questions.map((terms, place) => questionOf(terms, rows, `survey.questions[${place}]`));
    const parts = fields.parts.map((terms, place) => readPart(terms, questions.length, rows, `survey.parts[${place}]`));
    checkParts(parts, questions);
    const bound = growthBound(epsilon);
    let units = 0n;
    this.#ends = parts.map((part) => (units += part.units)).map((end) => (WORDS * end) / units);
    this.#offsets = [0n];
    for (const { blocks } of parts) this.#offsets.push(this.#offsets.at(-1) + blocks.largest + 1n);
    if (this.#offsets.at(-1) > LARGEST_REPORT) refuse("the questions have more than 2^64 reports");
    this.#rows = rows;
    this.columns = rows.columns;
    this.questions = fields.questions;
    this.parts = parts.map(({ question, sees, view, blocks }, place) => {
      const words = this.#ends[place] - (this.#ends[place - 1] ?? 0n), uniformWeight = leastWeight(blocks, bound);
      return { question, sees, view, blocks, words, uniformWeight, share: Number(words) / Number(WORDS), blind: Number(uniformWeight) / Number(WORDS) };
    });
    this.terms = fields;
  }

  /** The number of every row, as Python's `SurveyColumns.encode` gives it; a row with a value outside its column is refused. */
  numbers(records) {
    return this.#rows.numbers(records);
  }

  /**
   * The report of a client. The first 62-bit word decides which part is asked, and the next ones decide as in `drawReport`.
   * `rows`: the numbers of the different rows. `numbers`: how often each was seen. Without rows the report is uniform.
   */
  draw({ outcomes, rows }, numbers, word) {
    const asked = word(), place = this.#ends.findIndex((end) => asked < end);
    const { view, blocks, uniformWeight } = this.parts[place];
    const outcomeOf = (drawn, below) => view.outcome(rows[outcomes[drawn]] ?? 0n, below);
    return this.#offsets[place] + drawReport(blocks, uniformWeight, numbers, outcomeOf, word);
  }

  /** The digits of the largest number that reports range to: no report has more. */
  get longest() {
    return String(this.#offsets.at(-1) - 1n);
  }

  /** The place of the part that a report is about. `report`: a bigint, or its digits. */
  partOf(report) {
    return this.#partAndBlock(report)[0];
  }

  /** The numbers of the outcomes that a report names, of those that its part sees. */
  outcomesOf(report) {
    const [place, block] = this.#partAndBlock(report);
    return this.parts[place].blocks.outcomesOf(block);
  }

  #partAndBlock(given) {
    const report = reportOf(given), place = this.parts.findIndex((_, each) => report < this.#offsets[each + 1]);
    if (place < 0 || !this.parts[place].blocks.isBlock(report - this.#offsets[place])) noReport(given);
    return [place, report - this.#offsets[place]];
  }
}

/** Refuse parts that do not answer the questions, or are not in the order of the questions. */
function checkParts(parts, questions) {
  parts.forEach((part, place) => part.question === NO_QUESTION && checkWider(part, questions, `survey.parts[${place}]`));
  if (parts.reduce((sum, { blocks }) => sum + (blocks.name === "ranks" ? blocks.size * (blocks.members + 1) : 0), 0) > MOST_RANKED) {
    refuse("survey.parts: subsets by their ranks on so many outcomes take too much memory");
  }
  questions.forEach((question, place) => {
    const own = parts.filter((part) => part.question === place);
    if (!own.length || !isAnsweredBy(question, own)) refuse(`survey.parts: no part, or not the right ones, answer survey.questions[${place}]`);
  });
  const order = parts.map(({ question }) => (question === NO_QUESTION ? questions.length : question));
  if (order.some((each, place) => each < order[place - 1])) refuse("survey.parts are not in the order of the questions, with those that no question names at the end");
}
