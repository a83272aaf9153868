/**
 * Reports: a report names a block of outcomes by one whole number. A population can be estimated from the reports of few clients.
 *
 * Blocks and draw are those of `discreet.mechanisms.ReportSampler` in Python. With N of 2^62 words a report is a uniform block. Otherwise it is
 * uniform among the blocks that hold an outcome of the client. There are b blocks, and r of them hold a given outcome. So the probabilities
 * of a report under two clients differ by a factor of at most 1 + (2^62 - N) b/(N r) <= e^epsilon. This is epsilon-LDP in integers, however
 * the outcome is drawn.
 */
import { count } from "./domain.js";
import { atMostExp } from "./exact.js";
import { quoted, refuse } from "./errors.js";

export const WORDS = 1n << 62n; // also the most blocks that there may be
const LARGEST_MASK = 64; // most outcomes of masks, which have a bit for each
const MOST_ENTRIES = 1e7; // of the table of binomial coefficients that Python keeps
const MOST_DIGITS = 63; // most digits of an outcome
const LARGEST_PARAMETER = 2 ** 31; // largest q, t, c and w
const SMALL_PRIME = 2 ** 26; // products of smaller numbers are exact as floats

/** The binomial coefficient C(n, i), as a bigint. */
function binomial(n, i) {
  let found = 1n;
  for (let j = 0n; j < BigInt(i); j++) found = (found * (BigInt(n) - j)) / (j + 1n);
  return n < i ? 0n : found;
}

/** The outcomes of the subset with this rank, in decreasing order. The rank of x_1 < x_2 < ... is C(x_1, 1) + C(x_2, 2) + ... < C(size, members). */
function membersOf(rank, members, size) {
  const found = [];
  for (let i = members, high = size; i > 0; i--) {
    let low = i - 1; // C(low, i) = 0 <= rank < C(high, i)
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (binomial(middle, i) <= rank) low = middle;
      else high = middle;
    }
    rank -= binomial(low, i);
    found.push(low);
    high = low;
  }
  return found;
}

/** The members of the subset with this rank among those that hold an outcome. It is the rank of the other members, renumbered without the outcome. */
function membersHolding({ members, size }, outcome, rank) {
  const others = membersOf(rank, members - 1, size - 1).map((other) => other + (other >= outcome));
  return [...others, outcome].sort((one, other) => other - one);
}

/** A set of blocks. Reports are the whole numbers below the number of blocks, unless a subclass says otherwise. */
export class Blocks {
  /** The largest report. */
  get largest() {
    return this.blocks - 1n;
  }

  report(rank) {
    return rank;
  }

  isBlock(report) {
    return report <= this.largest;
  }
}

/** Blocks of one outcome each: a report is the number of the outcome. */
class Values extends Blocks {
  constructor(size) {
    super();
    Object.assign(this, { name: "values", size, points: BigInt(size), width: 1n, blocks: BigInt(size), holding: 1n });
  }

  reportHolding(outcome) {
    return BigInt(outcome);
  }

  outcomesOf(report) {
    return [Number(report)];
  }
}

/** All subsets with `members` of the outcomes. */
class Subsets extends Blocks {
  constructor(size, members) {
    super();
    const [blocks, holding] = [binomial(size, members), binomial(size - 1, members - 1)];
    Object.assign(this, { size, members, points: BigInt(size), width: BigInt(members), blocks, holding });
  }

  report(rank) {
    return this.written(membersOf(rank, this.members, this.size));
  }

  reportHolding(outcome, rank) {
    return this.written(membersHolding(this, outcome, rank));
  }
}

/** Subsets of at most 64 outcomes: bit x of a report is outcome x. */
class MaskedSubsets extends Subsets {
  name = "masks";

  written(members) {
    return members.reduce((mask, x) => mask | (1n << BigInt(x)), 0n);
  }

  get largest() {
    return (1n << this.points) - 1n;
  }

  isBlock(report) {
    return super.isBlock(report) && this.outcomesOf(report).length === this.members;
  }

  outcomesOf(report) {
    return Array.from({ length: this.size }, (_, x) => x).filter((x) => (report >> BigInt(x)) & 1n);
  }
}

/** Subsets with few members of many outcomes: a report is the rank of the subset. */
class RankedSubsets extends Subsets {
  name = "ranks";

  written(members) {
    return members.reduce((sum, x, place) => sum + binomial(x, this.members - place), 0n);
  }

  outcomesOf(report) {
    return membersOf(report, this.members, this.size).reverse();
  }
}

/**
 * Blocks {x : (<a, x> + s) mod q < c}, where a and x are numbers of t digits in base q, read as vectors of their digits, the lowest first.
 * A report is (a - 1) q + s.
 */
class AffineBlocks extends Blocks {
  constructor(size, prime, digits, window) {
    super();
    const q = BigInt(prime), points = q ** BigInt(digits), c = BigInt(window);
    Object.assign(this, { name: "affine", size, prime, digits, window, points, width: (c * points) / q, blocks: (points - 1n) * q, holding: (points - 1n) * c });
  }

  /** The t digits of a vector or an outcome. */
  digitsOf(number) {
    const q = BigInt(this.prime), found = [];
    for (let left = BigInt(number), place = 0; place < this.digits; place++, left /= q) found.push(Number(left % q));
    return found;
  }

  /** <a, x> mod q; products of large digits are computed in bigints. */
  product(a, x) {
    const { prime } = this;
    const times = (one, other) => (prime <= SMALL_PRIME ? (one * other) % prime : Number((BigInt(one) * BigInt(other)) % BigInt(prime)));
    return a.reduce((sum, digit, place) => (sum + times(digit, x[place])) % prime, 0);
  }

  reportHolding(outcome, rank) {
    const { prime } = this, c = BigInt(this.window);
    const before = rank / c, inner = this.product(this.digitsOf(before + 1n), this.digitsOf(outcome));
    return before * BigInt(prime) + BigInt((Number(rank % c) - inner + prime) % prime);
  }

  outcomesOf(report) {
    const { prime, window, size } = this, q = BigInt(prime);
    const a = this.digitsOf(report / q + 1n), s = Number(report % q), x = a.map(() => 0), found = [];
    for (let outcome = 0; outcome < size; outcome++) {
      if ((this.product(a, x) + s) % prime < window) found.push(outcome);
      for (let place = 0; place < x.length && (x[place] = (x[place] + 1) % prime) === 0; place++);
    }
    return found;
  }
}

export function isPrime(number) {
  for (let factor = 2; factor * factor <= number; factor++) if (number % factor === 0) return false;
  return number > 1;
}

const KINDS = { values: [], masks: ["w"], ranks: ["w"], affine: ["q", "t", "c"] };

/** The blocks on `size` outcomes that terms state. Terms are {kind} and the parameters of that kind. */
export function blocksOf(terms, size, where = "blocks") {
  const { kind, w, q, t, c } = termsOf(terms, where);
  if (kind === "values") return new Values(size);
  const refuseTerms = () => refuse(`${where} = ${quoted(terms)} are none on ${size} outcomes`);
  if (kind === "affine") {
    if (!isPrime(q) || t > MOST_DIGITS || c >= q) refuseTerms();
    const found = new AffineBlocks(size, q, t, c);
    return size < 2 || found.points < BigInt(size) || found.points * BigInt(q) > WORDS ? refuseTerms() : found;
  }
  if (w >= size) refuseTerms();
  if (kind === "masks") return size <= LARGEST_MASK ? new MaskedSubsets(size, w) : refuseTerms();
  const found = (w + 1) * size <= MOST_ENTRIES && new RankedSubsets(size, w);
  return found && found.blocks <= WORDS ? found : refuseTerms();
}

/** The terms of blocks as an agreement holds them. What is not such terms is refused. */
function termsOf(fields, where) {
  if (fields === null || typeof fields !== "object" || Array.isArray(fields)) refuse(`${where} is not a JSON object; a report needs blocks`);
  const names = typeof fields.kind === "string" && Object.hasOwn(KINDS, fields.kind) ? KINDS[fields.kind] : refuse(`${where}.kind = ${quoted(fields.kind)} is not one of ${Object.keys(KINDS).join(", ")}`);
  for (const name in fields) {
    if (name !== "kind" && !names.includes(name)) refuse(`${where} has a field ${quoted(name)} that has no meaning for ${fields.kind}`);
  }
  return { kind: fields.kind, ...Object.fromEntries(names.map((name) => [name, count(`${where}.${name}`, fields[name], LARGEST_PARAMETER)])) };
}

/** A uniform whole number below a bound. Words from the largest multiple of the bound up to 2^62 are rejected, and another is drawn. */
function nextBelow(word, bound) {
  const limit = (WORDS / bound) * bound;
  let found = word();
  while (found >= limit) found = word();
  return found % bound;
}

const gcd = (one, other) => (other ? gcd(other, one % other) : one);
const sumOf = (numbers) => numbers.reduce((sum, each) => sum + each, 0n);

/**
 * The place of the record that is drawn. `numbers`: how often each was seen. They are divided by their common divisor and then, as long as
 * their sum exceeds 2^62, halved and rounded down: one word chooses among them.
 */
function drawPlace(numbers, below) {
  const common = numbers.reduce(gcd, 0n);
  let shares = numbers.map((each) => each / common);
  while (sumOf(shares) > WORDS) shares = shares.map((each) => each >> 1n);
  let left = below(sumOf(shares)), place = 0;
  for (; left >= shares[place]; place++) left -= shares[place];
  return place;
}

/** E, a rational at most e^epsilon, as [numerator, denominator]. */
export function growthBound(epsilon) {
  const [numerator, denominator] = atMostExp(epsilon);
  if ((numerator - denominator) * 10n ** 12n < denominator) refuse(`epsilon = ${epsilon}: a report would say nothing; take a larger epsilon`);
  return [numerator, denominator];
}

/** N: the least whole number with N/2^62 >= b/(b + (E - 1) r). */
export function leastWeight({ blocks, holding }, [numerator, denominator]) {
  const top = denominator * blocks, bottom = top + (numerator - denominator) * holding;
  return (WORDS * top + bottom - 1n) / bottom;
}

/**
 * The report of a client. 62-bit words decide, in this order: whether it is uniform, which record is drawn, what `outcomeOf(place, below)`
 * draws to find the record's outcome, and which report it is. A uniform report and one that holds the outcome are both computed from the same
 * words, and one of them is discarded. The number of steps does not reveal which one. Without records the report is uniform.
 */
export function drawReport(blocks, weight, numbers, outcomeOf, word) {
  const own = word() >= weight && numbers.length > 0, words = [];
  const replay = () => {
    let next = 0;
    return (bound) => nextBelow(() => (words[next++] ??= word()), bound);
  };
  const below = replay(), uniform = blocks.report(replay()(blocks.blocks));
  const outcome = outcomeOf(drawPlace(numbers.length ? numbers : [1n], below), below);
  const holding = blocks.reportHolding(outcome, below(blocks.holding));
  return own ? holding : uniform;
}

export const noReport = (given) => refuse(`report = ${quoted(given)} is no report of this agreement`);

/** A report as a bigint, from a bigint of at least 0 or its digits; anything else is refused. */
export function reportOf(given) {
  const report = typeof given === "string" && /^(0|[1-9][0-9]{0,19})$/.test(given) ? BigInt(given) : given;
  return typeof report === "bigint" && report >= 0n ? report : noReport(given);
}

/** The mechanism: its blocks, N, and the draw of a report. */
export class Reports {
  constructor(size, epsilon, blocks) {
    const bound = growthBound(epsilon);
    this.terms = termsOf(blocks, "blocks");
    this.blocks = blocksOf(blocks, size);
    this.uniformWeight = leastWeight(this.blocks, bound);
  }

  /** The report that words determine. `numbers`: whole numbers in proportion to how often each outcome was seen. */
  draw({ outcomes }, numbers, word) {
    return drawReport(this.blocks, this.uniformWeight, numbers, (place) => outcomes[place], word);
  }

  /**
   * Three probabilities. `blind`: that a report is drawn without looking at the client. `inside`, `outside`: that it names a given outcome, if
   * all records of the client are that outcome, or all are one other outcome.
   */
  get chances() {
    const { width, points } = this.blocks;
    const blind = Number(this.uniformWeight) / Number(WORDS), uniform = (blind * Number(width)) / Number(points);
    const together = points > 1n ? Number(width - 1n) / Number(points - 1n) : 0;
    return { blind, inside: uniform + (1 - blind), outside: uniform + (1 - blind) * together };
  }

  /** About how many outcomes a report names. */
  get named() {
    const { size, width, points } = this.blocks;
    return Math.max(1, Math.round((Number(width) * size) / Number(points)));
  }

  /** The digits of the largest number that reports range to: no report has more. */
  get longest() {
    return String(this.blocks.largest);
  }

  /** The numbers of the outcomes that a report names. `report`: a bigint, or its digits. */
  outcomesOf(report) {
    const found = reportOf(report);
    return this.blocks.isBlock(found) ? this.blocks.outcomesOf(found) : noReport(report);
  }
}
