/**
 * project(P) = clip(P/r, lower, upper) with r normalising. Newton's steps between breakpoints find the slope a = 1/r exactly.
 *
 * Steps, constants and the order of every sum are those of `discreet.projection` in Python, so the slope is the same to the last bit. Numbers
 * are summed in blocks of 1024. Within a block number i goes to lane i mod 8, and the lanes are added by halves.
 */
const NEWTON_STEPS = 200;
const PATIENT = 40; // steps after which every other one is a bisection
const SETTLED = 1e-15; // relative change of the slope below which the unclipped set is unchanged
const SUM_TOLERANCE = 1e-9;
export const NEGLIGIBLE = 1e-280; // a smaller mass counts as 0: a bound divided by it, in units of 2^-62, would overflow
const ROUNDING = 1e-14; // bound on the rounding of a summed mass
const BEYOND = 2 / NEGLIGIBLE; // larger than every breakpoint
const PAST = 2 ** -50; // a step this far beyond a breakpoint is beyond it in floating point too
const FARTHEST = 1e100; // how far beyond a breakpoint a step may go
const BLOCK = 1024;
const NARROW = 4096; // up to this length the masses are not filtered

const sumOfLanes = (lanes) =>
  lanes[0] + lanes[4] + (lanes[2] + lanes[6]) + (lanes[1] + lanes[5] + (lanes[3] + lanes[7]));

/** [number, total] of the masses m with slope m > lower. */
function countAndSumAbove(mass, slope, lower) {
  const lanes = new Float64Array(8);
  let number = 0, total = 0;
  for (let start = 0; start < mass.length; start += BLOCK) {
    const stop = Math.min(start + BLOCK, mass.length);
    lanes.fill(0);
    for (let place = start; place < stop; place++) {
      if (slope * mass[place] > lower) {
        number += 1;
        lanes[place & 7] += mass[place];
      }
    }
    total += sumOfLanes(lanes);
  }
  return [number, total];
}

/** The slope if no outcome can be clipped from above. Newton's steps then only lower it. */
function solveConvex(mass, unheld, lower) {
  let slope = 1;
  for (let turn = 0; turn < NEWTON_STEPS; turn++) {
    const [number, total] = countAndSumAbove(mass, slope, lower);
    if (!(total > NEGLIGIBLE)) break;
    const step = (1 - (unheld + mass.length - number) * lower) / total;
    if (!(step > 0 && step < slope * (1 - SETTLED))) {
      return Math.abs(step - slope) <= SUM_TOLERANCE * slope ? step : slope;
    }
    slope = step;
    if (mass.length > NARROW) {
      const kept = mass.filter((each) => slope * each > lower);
      unheld += mass.length - kept.length;
      mass = kept;
    }
  }
  return slope;
}

/** [clipped, middle]: the sum of the bounds at which outcomes are clipped, and the mass of the other outcomes. */
function clippedAndMiddle(mass, slope, low, high) {
  const lanes = new Float64Array(8), middles = new Float64Array(8);
  let clipped = 0, middle = 0;
  for (let start = 0; start < mass.length; start += BLOCK) {
    const stop = Math.min(start + BLOCK, mass.length);
    lanes.fill(0);
    middles.fill(0);
    for (let place = start; place < stop; place++) {
      const value = slope * mass[place];
      if (value < low(place)) lanes[place & 7] += low(place);
      else if (value > high(place)) lanes[place & 7] += high(place);
      else middles[place & 7] += mass[place];
    }
    clipped += sumOfLanes(lanes);
    middle += sumOfLanes(middles);
  }
  return [clipped, middle];
}

/** The nearest breakpoints below and above a slope at which a clipped outcome stops being clipped; 0 and infinity if there is none. */
function nearestBreakpoints(mass, slope, low, high) {
  let under = 0, over = Infinity;
  for (let place = 0; place < mass.length; place++) {
    if (!(mass[place] > NEGLIGIBLE)) continue;
    if (slope * mass[place] < low(place)) over = Math.min(over, low(place) / mass[place]);
    else if (slope * mass[place] > high(place)) under = Math.max(under, high(place) / mass[place]);
  }
  return [under, over];
}

/** The multiple of its lower bound that each outcome without mass gets if all outcomes with mass are clipped from above. */
function liftOffSupport(mass, unheld, low, high) {
  let held = 0;
  for (let place = 0; place < mass.length; place++) {
    if (mass[place] > NEGLIGIBLE) held += high(place);
    else unheld += low(place);
  }
  return unheld > 0 ? (1 - held) / unheld : 0;
}

/** [slope, lift] of the listed masses. `unheld`: the sum of all other outcomes' lower bounds. `low`, `high`: bounds, as functions of the place. */
export function solveHeld(mass, unheld, low, high) {
  let slope = 1, tooSmall = 0, tooLarge = Infinity, stretch = 1 + PAST;
  for (let turn = 0; turn < NEWTON_STEPS; turn++) {
    let [clipped, middle] = clippedAndMiddle(mass, slope, low, high);
    clipped += unheld;
    const sloped = middle > NEGLIGIBLE;
    let step = sloped ? (1 - clipped) / middle : Infinity;
    const excess = clipped + slope * middle - 1;
    if (sloped && (Math.abs(step - slope) <= SETTLED * slope || Math.abs(excess) <= ROUNDING)) {
      return [Math.abs(step - slope) <= SUM_TOLERANCE * slope ? step : slope, 0];
    }
    if (excess > 0) tooLarge = slope;
    else tooSmall = slope;
    const bracketed = tooSmall > 0 && tooLarge < Infinity;
    if (!sloped) {
      const [under, over] = nearestBreakpoints(mass, slope, low, high);
      if (Math.abs(excess) <= ROUNDING) return [under > 0 ? under : slope, 0];
      if (excess < 0 && over === Infinity) return [Infinity, liftOffSupport(mass, unheld, low, high)];
      step = excess > 0 ? under / stretch : Math.min(over * stretch, BEYOND);
      stretch = Math.min(Math.max(2, stretch * stretch), FARTHEST);
    } else if (step <= 0) {
      step = 0.5 * slope;
    }
    const halving = turn >= PATIENT && turn % 2 === 1;
    if (bracketed && (halving || !sloped || !(tooSmall < step && step < tooLarge))) {
      step = Math.sqrt(tooSmall) * Math.sqrt(tooLarge);
    }
    slope = step;
  }
  return [slope, 0];
}

/** [slope, lift] over a uniform reference. `mass`: of the outcomes in the support, in order. `unheld`: the number of other outcomes. */
export function solveUniform(mass, unheld, { lower, ceiling }) {
  if (ceiling === Infinity) return [solveConvex(mass, unheld, lower), 0];
  return solveHeld(mass, unheld * lower, () => lower, () => ceiling);
}
