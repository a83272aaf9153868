/**
 * Epsilon-LDP as a statement about integers. A sample is drawn with integer weights W_x of sum 2^62, by one uniform 62-bit integer. All weights
 * obey L_x <= W_x <= U_x <= e^epsilon L_x. So W_x <= e^epsilon W'_x for any two clients, and no error in a float can break it.
 *
 * The weights, and the outcome on which an integer falls, are those of `discreet.release._lattice` in Python. Integers fall on four parts of
 * the weights, in this order:
 *
 * 1. L, which does not depend on the client
 * 2. what the client's distribution adds to L, rounded down to whole units
 * 3. over a reference that is not uniform, the portions of outcomes outside the client's support
 * 4. the units that are still missing from 2^62, which go to outcomes below U, in order
 */
import { atMostExp, exponentOf, power } from "./exact.js";
import { refuse } from "./errors.js";
import { NEGLIGIBLE, solveHeld, solveUniform } from "./projection.js";

export const BITS = 62;
export const TOTAL = 1n << 62n;
const FLOAT_TOTAL = 2 ** 62;
const HALF = 2 ** 31; // a running sum is kept in two floats: multiples of 2^31, and the rest
const UNITS = [0, 1, -1, 2, -2, 4, -4, 8, -8]; // of 2^-52, by which lower bounds are moved until they are sound

const least = (one, other) => (one < other ? one : other);
const most = (one, other) => (one > other ? one : other);

/**
 * A function that maps a whole number of at least 0 to min(cap, a lower bound of floor(value numerator/denominator)). As in Python, it uses the
 * leading 64 bits of the factor.
 */
function floorProduct(numerator, denominator, cap) {
  const whole = numerator / denominator;
  const shift = whole ? BigInt(whole.toString(2).length) : 0n;
  if (shift >= 63n) return (value) => (value > 0n ? cap : 0n);
  const mantissa = (numerator << (64n - shift)) / denominator;
  return (value) => least((value * mantissa) >> (64n - shift), cap);
}

/** The largest whole number at most this one that a float holds exactly. */
function representable(value) {
  const spare = BigInt(Math.max(exponentOf(Number(value)) - 53, 0));
  return (value >> spare) << spare;
}

/** Whole numbers near the lower bounds, best first. */
function* lowerCandidates(exact, upwards) {
  const whole = (value) => BigInt(Math.min(Math.max(value, 1), FLOAT_TOTAL));
  if (upwards) yield (place) => whole(Math.ceil(exact(place)));
  for (const units of UNITS) yield (place) => whole(Math.floor(exact(place) * (1 + units * 2 ** -52)));
  yield (place) => whole(Math.ceil(exact(place)));
}

/**
 * The lattice of integers nearest to a box: {lower, upper, shared, ...} with L, U and the sum of L. Over a uniform reference L and U are one
 * number each, else arrays.
 */
export function latticeOf(box, epsilon) {
  const uniform = typeof box.lower === "number";
  const length = uniform ? 1 : box.size;
  const times = uniform ? BigInt(box.size) : 1n;
  const at = (bound) => (uniform ? () => bound : (place) => bound[place]);
  const [low, high] = [at(box.lower), at(box.upper)];
  const ratio = atMostExp(epsilon);
  const largestExcess = floorProduct(ratio[0] - ratio[1], ratio[1], TOTAL);
  for (const candidate of lowerCandidates((place) => low(place) * FLOAT_TOTAL, ratio[0] > BigInt(box.size) * ratio[1])) {
    const lower = Array.from({ length }, (_, place) => candidate(place));
    const widest = lower.map((each) => representable(each + least(largestExcess(each), TOTAL - each)));
    const clipped = widest.map((each, place) => {
      const ceiling = BigInt(Math.ceil(high(place) * FLOAT_TOTAL));
      return most(least(each, most(ceiling, lower[place])), lower[place]);
    });
    for (const upper of [clipped, widest]) {
      const found = soundLattice(box, lower, upper, times);
      if (found) return found;
    }
  }
  return refuse(`epsilon = ${epsilon} is too small for an exact release over ${box.size} outcomes in 62-bit integers`);
}

function soundLattice(box, lower, upper, times) {
  let shared = 0n, highest = 0n;
  for (let place = 0; place < lower.length; place++) {
    if (lower[place] < 1n || lower[place] > upper[place] || upper[place] > TOTAL) return null;
    shared += lower[place] * times;
    highest += upper[place] * times;
  }
  if (shared > TOTAL || highest < TOTAL) return null;
  return typeof box.lower === "number"
    ? new UniformLattice(box, shared, lower[0], upper[0])
    : new ReferencedLattice(box, shared, lower, upper);
}

/**
 * What is left of a whole number of at most 2^62 from which others are subtracted, in two floats. Both floats are exact, and rounding does not
 * change the sign of their sum.
 */
class Remainder {
  constructor(limit) {
    this.high = Number(limit >> 31n);
    this.low = Number(limit & 0x7fffffffn);
  }

  /** Subtract value - lower, where both are whole numbers as floats. Returns whether the remainder is now negative. */
  subtract(value, lower) {
    const top = Math.floor(value / HALF), bottom = Math.floor(lower / HALF);
    this.high -= top - bottom;
    this.low -= value - top * HALF - (lower - bottom * HALF);
    if (this.low > 2 ** 52 || this.low < -(2 ** 52)) {
      const carried = Math.floor(this.low / HALF);
      this.high += carried;
      this.low -= carried * HALF;
    }
    return this.high * HALF + this.low < 0;
  }

  get left() {
    return (BigInt(this.high) << 31n) + BigInt(this.low);
  }
}

/** A probability in units of 2^-62, clipped to [L, U] and rounded down to a whole number, as a float. NaN gives L. */
const clipAndFloor = (value, low, high) => (value > low ? Math.floor(Math.min(value, high)) : low);

class UniformLattice {
  constructor(box, shared, lower, upper) {
    Object.assign(this, { box, shared, lower, upper, low: Number(lower), high: Number(upper) });
  }

  lowerAt() {
    return this.lower;
  }

  upperAt() {
    return this.upper;
  }

  /**
   * The first two parts of the weights, as floats, before they are cut off at the sum 2^62: `held` for each outcome in the client's support,
   * `base` for every other outcome.
   */
  wanted({ masses }) {
    const { box, low, high } = this;
    const [slope, lift] = box.slope === undefined ? solveUniform(masses, box.size - masses.length, box) : [box.slope, box.lift];
    const steep = slope * FLOAT_TOTAL;
    const floor = lift * box.lower * FLOAT_TOTAL;
    const held = masses.map((mass) => clipAndFloor((steep === Infinity ? FLOAT_TOTAL : mass * steep) + floor, low, high));
    return { held, base: clipAndFloor(floor, low, high) };
  }

  /** The outcome on which an integer of [0, 2^62) falls. */
  outcome(law, integer) {
    if (integer < this.shared) return Number(integer / this.lower);
    const { held, base } = this.wanted(law);
    const first = this.findUnit(law, integer - this.shared, (place) => held[place], base, this.low);
    if (first.found >= 0) return first.found;
    return this.findUnit(law, first.rest, () => this.high, this.high, (place) => held[place], base).found;
  }

  /**
   * The outcome on which unit number `rest` falls if outcome x takes high_x - low_x units, in order, as {found}. If `rest` lies beyond all of
   * them, `found` is -1 and `rest` is what is left. `highs` and `lows` are for outcomes in the support, `base` and `lowBase` for the others.
   */
  findUnit({ outcomes }, rest, highs, base, lows, lowBase = lows) {
    const lowAt = typeof lows === "number" ? () => lows : lows;
    const gap = BigInt(base) - BigInt(lowBase);
    const remainder = new Remainder(rest);
    let next = 0;
    for (let place = 0; place <= outcomes.length; place++) {
      const here = place < outcomes.length ? outcomes[place] : this.box.size;
      if (gap > 0n && here > next) {
        const left = remainder.left, steps = left / gap;
        if (steps < BigInt(here - next)) return { found: next + Number(steps) };
        Object.assign(remainder, new Remainder(left - gap * BigInt(here - next)));
      }
      if (place < outcomes.length && remainder.subtract(highs(place), lowAt(place))) return { found: here };
      next = here + 1;
    }
    return { found: -1, rest: remainder.left };
  }

  /** The integer weights, with sum 2^62. */
  weights(law) {
    const { held, base } = this.wanted(law);
    const all = new Array(this.box.size).fill(BigInt(base));
    law.outcomes.forEach((outcome, place) => (all[outcome] = BigInt(held[place])));
    return fillWeights(all, () => this.lower, () => this.upper, TOTAL - this.shared);
  }
}

/**
 * The weights: L, plus what each outcome wants above L while `available` units last, plus the portions if there are any. The units that are then
 * left go to outcomes below U, in order.
 */
function fillWeights(wanted, lowerAt, upperAt, available, portion) {
  const weights = wanted.map((each, place) => {
    const given = least(each - lowerAt(place), available);
    available -= given;
    return lowerAt(place) + given;
  });
  if (portion) available -= portion(weights, available);
  return weights.map((each, place) => {
    const given = least(upperAt(place) - each, available);
    available -= given;
    return each + given;
  });
}

class ReferencedLattice {
  constructor(box, shared, lower, upper) {
    const [lows, highs] = [lower, upper].map((bound) => Float64Array.from(bound, Number));
    Object.assign(this, { box, shared, lower, upper, lows, highs });
    this.edges = runningSums(lower);
    this.portionSizes = portionSizes(box, lower, upper, shared);
  }

  lowerAt(place) {
    return this.lower[place];
  }

  upperAt(place) {
    return this.upper[place];
  }

  /** [slope, lift] of the output. A projection has an infinite slope if U on the support plus L elsewhere is at most 2^62, compared in integers. */
  slopeAndLift({ outcomes, masses }) {
    const { box } = this;
    if (box.slope !== undefined) return [box.slope, box.lift];
    const unheld = new Remainder(this.shared), room = new Remainder(TOTAL - this.shared);
    for (const outcome of outcomes) {
      unheld.subtract(this.lows[outcome], 0);
      room.subtract(this.highs[outcome], this.lows[outcome]);
    }
    if (room.left >= 0n) return [Infinity, 0];
    const at = (bound) => (place) => bound[outcomes[place]];
    return solveHeld(masses, Number(unheld.left) / FLOAT_TOTAL, at(box.lower), at(box.upper));
  }

  /**
   * {want, portioning}: want(mass, outcome) gives the first two parts of an outcome's weight, as a float, before they are cut off at the sum
   * 2^62. `portioning`: whether outcomes outside the support get portions.
   */
  wanted(law) {
    const [slope, given] = this.slopeAndLift(law);
    const steep = slope * FLOAT_TOTAL;
    const portioning = steep === Infinity || given === 0;
    const lift = portioning ? 0 : given;
    const want = (mass, place) => {
      const own = mass > NEGLIGIBLE ? (steep === Infinity ? FLOAT_TOTAL : mass * steep) : 0;
      return clipAndFloor(own + lift * this.box.lower[place] * FLOAT_TOTAL, this.lows[place], this.highs[place]);
    };
    return { want, portioning };
  }

  outcome(law, integer) {
    if (integer < this.shared) return firstPlaceAbove(this.edges, integer);
    const { want, portioning } = this.wanted(law);
    const mass = dense(law, this.box.size);
    const remainder = new Remainder(integer - this.shared);
    for (let place = 0; place < mass.length; place++) {
      if (remainder.subtract(want(mass[place], place), this.lows[place])) return place;
    }
    let left = remainder.left;
    const available = TOTAL - this.shared;
    const spent = integer - this.shared - left;
    const { whole, limit } = portioning ? this.portions(mass, available - spent) : { whole: 0n, limit: 0n };
    if (left < limit) {
      let within = (left * whole) / limit;
      for (let place = 0; place < mass.length; place++) {
        if (mass[place] <= NEGLIGIBLE && (within -= this.portionSizes[place]) < 0n) return place;
      }
    }
    left -= limit;
    let after = whole, given = 0n;
    for (let place = 0; place < mass.length; place++) {
      let room = this.upper[place] - BigInt(want(mass[place], place));
      if (limit > 0n && mass[place] <= NEGLIGIBLE) {
        after -= this.portionSizes[place];
        const end = limit - (after * limit) / whole;
        room -= end - given;
        given = end;
      }
      left -= room;
      if (left < 0n) return place;
    }
    return refuse("no outcome was found; nothing was released"); // unreachable: the upper bounds sum to at least 2^62
  }

  /** {whole, limit}: the sum of the sizes outside the support, and how many of the missing units are portioned out in proportion to size. */
  portions(mass, missing) {
    let whole = 0n;
    for (let place = 0; place < mass.length; place++) if (mass[place] <= NEGLIGIBLE) whole += this.portionSizes[place];
    return { whole, limit: least(missing, (whole * (TOTAL - this.shared)) >> 62n) };
  }

  weights(law) {
    const { want, portioning } = this.wanted(law);
    const mass = dense(law, this.box.size);
    const portion = (weights, missing) => {
      const { whole, limit } = this.portions(mass, missing);
      let after = whole, given = 0n;
      for (let place = 0; place < mass.length && limit > 0n; place++) {
        if (mass[place] > NEGLIGIBLE) continue;
        after -= this.portionSizes[place];
        const end = limit - (after * limit) / whole;
        weights[place] += end - given;
        given = end;
      }
      return given;
    };
    const all = Array.from(mass, (each, place) => BigInt(want(each, place)));
    const at = (bound) => (place) => bound[place];
    return fillWeights(all, at(this.lower), at(this.upper), TOTAL - this.shared, portioning ? portion : undefined);
  }
}

/** S: the floors in units that sum to at most 2^62, each reduced where U - L requires it. */
function portionSizes(box, lower, upper, shared) {
  const largest = box.lower.reduce((one, other) => Math.max(one, other));
  const scale = BITS - 1 - exponentOf(largest);
  const halves = [Math.min(scale, 1000), Math.max(scale - 1000, 0)].map(power); // two factors, since their product may exceed the largest float
  const whole = Array.from(box.lower, (floor) => BigInt(Math.trunc(floor * halves[0] * halves[1])));
  const fine = floorProduct(TOTAL, whole.reduce((one, other) => one + other, 0n), TOTAL);
  const rest = TOTAL - shared;
  if (rest === 0n) return whole.map(fine);
  const fitting = floorProduct(TOTAL, rest, TOTAL);
  return whole.map((each, place) => least(fine(each), fitting(most(upper[place] - lower[place] - 1n, 0n))));
}

function runningSums(values) {
  let sum = 0n;
  return values.map((value) => (sum += value));
}

/** The first place whose running sum exceeds the value. */
function firstPlaceAbove(edges, value) {
  let low = 0, high = edges.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (edges[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function dense({ outcomes, masses }, size) {
  const found = new Float64Array(size);
  for (let place = 0; place < outcomes.length; place++) found[outcomes[place]] = masses[place];
  return found;
}
