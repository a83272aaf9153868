/**
 * epsilon-LDP as a statement about whole numbers: weights W_x with sum 2^62 and L_x <= W_x <= U_x <= e^epsilon L_x are drawn from by one
 * uniform 62-bit integer, so whatever two clients hold, and however wrong a float is, W_x <= e^epsilon W'_x.
 *
 * The construction, and the outcome on which an integer falls, are those of `discreet.release._lattice` in Python: first L, which does not
 * look at the client, then what the client's own distribution adds in units rounded down, then, over a reference that is not uniform, the
 * portions of outcomes that are not held, then what is missing from 2^62 to whoever has room, in order.
 */
import { atMostExp, exponentOf, power } from "./exact.js";
import { refuse } from "./errors.js";
import { NEGLIGIBLE, solveHeld, solveUniform } from "./projection.js";

export const BITS = 62;
export const TOTAL = 1n << 62n;
const FLOAT_TOTAL = 2 ** 62;
const HALF = 2 ** 31; // sums are kept in two halves of a float each
const UNITS = [0, 1, -1, 2, -2, 4, -4, 8, -8];

const least = (one, other) => (one < other ? one : other);
const most = (one, other) => (one > other ? one : other);

/** min(cap, a lower bound of floor(value numerator/denominator)) of whole numbers of at least 0: as Python, by the factor's leading 64 bits. */
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

/** {lower, upper, shared, ...}: of one outcome over a uniform reference, else of each. */
export function latticeOf(box, epsilon) {
  const uniform = typeof box.lower === "number";
  const length = uniform ? 1 : box.size;
  const times = uniform ? BigInt(box.size) : 1n;
  const at = (bound) => (uniform ? () => bound : (place) => bound[place]);
  const [low, high] = [at(box.lower), at(box.upper)];
  const ratio = atMostExp(epsilon);
  const room = floorProduct(ratio[0] - ratio[1], ratio[1], TOTAL);
  for (const candidate of lowerCandidates((place) => low(place) * FLOAT_TOTAL, ratio[0] > BigInt(box.size) * ratio[1])) {
    const lower = Array.from({ length }, (_, place) => candidate(place));
    const widest = lower.map((each) => representable(each + least(room(each), TOTAL - each)));
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

/** A running sum of whole numbers below 2^62 in two halves; `passes` compares it with a limit, exactly: the sign of a rounded sum is right. */
class Running {
  constructor(limit) {
    this.high = Number(limit >> 31n);
    this.low = Number(limit & 0x7fffffffn);
  }

  /** Take value - lower off, of floats that are whole numbers; whether more was taken off than there was. */
  passes(value, lower) {
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

/** The affine law in units of 2^-62, clipped to [L, U] and rounded down: whole, as a float. NaN gives L. */
const inside = (value, low, high) => (value > low ? Math.floor(Math.min(value, high)) : low);

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

  /** What held outcomes and the others get, at least L, as floats. */
  wanted({ masses }) {
    const { box, low, high } = this;
    const [slope, lift] = box.slope === undefined ? solveUniform(masses, box.size - masses.length, box) : [box.slope, box.lift];
    const steep = slope * FLOAT_TOTAL;
    const floor = lift * box.lower * FLOAT_TOTAL;
    const held = masses.map((mass) => inside((steep === Infinity ? FLOAT_TOTAL : mass * steep) + floor, low, high));
    return { held, base: inside(floor, low, high) };
  }

  /** The outcome on which an integer of [0, 2^62) falls. */
  outcome(law, integer) {
    if (integer < this.shared) return Number(integer / this.lower);
    const { held, base } = this.wanted(law);
    const first = this.landing(law, integer - this.shared, (place) => held[place], base, this.low);
    if (first.found >= 0) return first.found;
    return this.landing(law, first.rest, () => this.high, this.high, (place) => held[place], base).found;
  }

  /** Where `rest` falls when outcome x is high_x - low_x units long, in order: {found} or what is left. */
  landing({ outcomes }, rest, highs, base, lows, lowBase = lows) {
    const lowAt = typeof lows === "number" ? () => lows : lows;
    const gap = BigInt(base) - BigInt(lowBase);
    const running = new Running(rest);
    let next = 0;
    for (let place = 0; place <= outcomes.length; place++) {
      const here = place < outcomes.length ? outcomes[place] : this.box.size;
      if (gap > 0n && here > next) {
        const left = running.left, steps = left / gap;
        if (steps < BigInt(here - next)) return { found: next + Number(steps) };
        Object.assign(running, new Running(left - gap * BigInt(here - next)));
      }
      if (place < outcomes.length && running.passes(highs(place), lowAt(place))) return { found: here };
      next = here + 1;
    }
    return { found: -1, rest: running.left };
  }

  /** The integers with sum 2^62 that are drawn from. */
  weights(law) {
    const { held, base } = this.wanted(law);
    const all = new Array(this.box.size).fill(BigInt(base));
    law.outcomes.forEach((outcome, place) => (all[outcome] = BigInt(held[place])));
    return filled(all, () => this.lower, () => this.upper, TOTAL - this.shared);
  }
}

/** L plus what outcomes want above it, as long as there is any, plus what is then missing, to whoever has room. */
function filled(wanted, lowerAt, upperAt, room, portion) {
  const weights = wanted.map((each, place) => {
    const given = least(each - lowerAt(place), room);
    room -= given;
    return lowerAt(place) + given;
  });
  if (portion) room -= portion(weights, room);
  return weights.map((each, place) => {
    const given = least(upperAt(place) - each, room);
    room -= given;
    return each + given;
  });
}

class ReferencedLattice {
  constructor(box, shared, lower, upper) {
    const [lows, highs] = [lower, upper].map((bound) => Float64Array.from(bound, Number));
    Object.assign(this, { box, shared, lower, upper, lows, highs });
    this.edges = running(lower);
    this.sizes = sizes(box, lower, upper, shared);
  }

  lowerAt(place) {
    return this.lower[place];
  }

  upperAt(place) {
    return this.upper[place];
  }

  /** {slope, lift}: where all that is held fits at its ceiling no slope serves, which integers decide. */
  solved({ outcomes, masses }) {
    const { box } = this;
    if (box.slope !== undefined) return [box.slope, box.lift];
    const unheld = new Running(this.shared), room = new Running(TOTAL - this.shared);
    for (const outcome of outcomes) {
      unheld.passes(this.lows[outcome], 0);
      room.passes(this.highs[outcome], this.lows[outcome]);
    }
    if (room.left >= 0n) return [Infinity, 0];
    const at = (bound) => (place) => bound[outcomes[place]];
    return solveHeld(masses, Number(unheld.left) / FLOAT_TOTAL, at(box.lower), at(box.upper));
  }

  /** A function of the mass of an outcome and its number: at least L, as a float; and whether unheld outcomes get portions. */
  wanted(law) {
    const [slope, given] = this.solved(law);
    const steep = slope * FLOAT_TOTAL;
    const portioning = steep === Infinity || given === 0;
    const lift = portioning ? 0 : given;
    const want = (mass, place) => {
      const own = mass > NEGLIGIBLE ? (steep === Infinity ? FLOAT_TOTAL : mass * steep) : 0;
      return inside(own + lift * this.box.lower[place] * FLOAT_TOTAL, this.lows[place], this.highs[place]);
    };
    return { want, portioning };
  }

  outcome(law, integer) {
    if (integer < this.shared) return search(this.edges, integer);
    const { want, portioning } = this.wanted(law);
    const mass = dense(law, this.box.size);
    const run = new Running(integer - this.shared);
    for (let place = 0; place < mass.length; place++) {
      if (run.passes(want(mass[place], place), this.lows[place])) return place;
    }
    let left = run.left;
    const available = TOTAL - this.shared;
    const spent = integer - this.shared - left;
    const { whole, limit } = portioning ? this.portions(mass, available - spent) : { whole: 0n, limit: 0n };
    if (left < limit) {
      let within = (left * whole) / limit;
      for (let place = 0; place < mass.length; place++) {
        if (mass[place] <= NEGLIGIBLE && (within -= this.sizes[place]) < 0n) return place;
      }
    }
    left -= limit;
    let after = whole, given = 0n;
    for (let place = 0; place < mass.length; place++) {
      let room = this.upper[place] - BigInt(want(mass[place], place));
      if (limit > 0n && mass[place] <= NEGLIGIBLE) {
        after -= this.sizes[place];
        const end = limit - (after * limit) / whole;
        room -= end - given;
        given = end;
      }
      left -= room;
      if (left < 0n) return place;
    }
    return refuse("no outcome was found; nothing was released"); // unreachable: the upper bounds sum to 2^62 at least
  }

  /** The sizes of the unheld outcomes together, and how much of what is missing is portioned out by them. */
  portions(mass, missing) {
    let whole = 0n;
    for (let place = 0; place < mass.length; place++) if (mass[place] <= NEGLIGIBLE) whole += this.sizes[place];
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
        after -= this.sizes[place];
        const end = limit - (after * limit) / whole;
        weights[place] += end - given;
        given = end;
      }
      return given;
    };
    const all = Array.from(mass, (each, place) => BigInt(want(each, place)));
    const at = (bound) => (place) => bound[place];
    return filled(all, at(this.lower), at(this.upper), TOTAL - this.shared, portioning ? portion : undefined);
  }
}

/** S: the floors in units that sum to at most 2^62, each as small as its room asks for. */
function sizes(box, lower, upper, shared) {
  const largest = box.lower.reduce((one, other) => Math.max(one, other));
  const scale = BITS - 1 - exponentOf(largest);
  const halves = [Math.min(scale, 1000), Math.max(scale - 1000, 0)].map(power); // a power of two past every float is taken in two steps
  const whole = Array.from(box.lower, (floor) => BigInt(Math.trunc(floor * halves[0] * halves[1])));
  const fine = floorProduct(TOTAL, whole.reduce((one, other) => one + other, 0n), TOTAL);
  const rest = TOTAL - shared;
  if (rest === 0n) return whole.map(fine);
  const fitting = floorProduct(TOTAL, rest, TOTAL);
  return whole.map((each, place) => least(fine(each), fitting(most(upper[place] - lower[place] - 1n, 0n))));
}

function running(values) {
  let sum = 0n;
  return values.map((value) => (sum += value));
}

/** The first place whose running sum is more than the value. */
function search(edges, value) {
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
