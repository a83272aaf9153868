/**
 * project(P) = clip(P/r, lower, upper) with r normalising, solved for the slope a = 1/r exactly, by Newton's steps between breakpoints.
 *
 * The same steps, constants and order of every sum as `discreet.projection` in Python, so that the slope is the same to the last bit: in
 * blocks of 1024 number i goes to lane i mod 8, and the lanes are added by halves.
 */
const NEWTON_STEPS = 200;
const PATIENT = 40;
const SETTLED = 1e-15;
const SUM_TOLERANCE = 1e-9;
export const NEGLIGIBLE = 1e-280;
const ROUNDING = 1e-14;
const BEYOND = 2 / NEGLIGIBLE;
const PAST = 2 ** -50;
const FARTHEST = 1e100;
const BLOCK = 1024;
const NARROW = 4096;

const together = (lanes) =>
  lanes[0] + lanes[4] + (lanes[2] + lanes[6]) + (lanes[1] + lanes[5] + (lanes[3] + lanes[7]));

/** The masses that times the slope exceed `lower`: how many, and their sum. */
function summedAbove(mass, slope, lower) {
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
    total += together(lanes);
  }
  return [number, total];
}

/** The slope where nothing can be clipped from above: Newton then only goes down. */
function solveConvex(mass, unheld, lower) {
  let slope = 1;
  for (let turn = 0; turn < NEWTON_STEPS; turn++) {
    const [number, total] = summedAbove(mass, slope, lower);
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

/** The bounds of the clipped outcomes, summed, and the mass of the others. */
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
    clipped += together(lanes);
    middle += together(middles);
  }
  return [clipped, middle];
}

/** The nearest breakpoints on either side of a slope: 0 or infinity where there is none. */
function neighbours(mass, slope, low, high) {
  let under = 0, over = Infinity;
  for (let place = 0; place < mass.length; place++) {
    if (!(mass[place] > NEGLIGIBLE)) continue;
    if (slope * mass[place] < low(place)) over = Math.min(over, low(place) / mass[place]);
    else if (slope * mass[place] > high(place)) under = Math.max(under, high(place) / mass[place]);
  }
  return [under, over];
}

/** The multiple of the lower bound that outcomes without mass get when those with mass are all clipped from above. */
function liftOffSupport(mass, unheld, low, high) {
  let held = 0;
  for (let place = 0; place < mass.length; place++) {
    if (mass[place] > NEGLIGIBLE) held += high(place);
    else unheld += low(place);
  }
  return unheld > 0 ? (1 - held) / unheld : 0;
}

/** [slope, lift] from the masses listed and the sum `unheld` of the lower bounds of the other outcomes. Bounds are functions of a place. */
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
      const [under, over] = neighbours(mass, slope, low, high);
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

/** [slope, lift] over a uniform reference, from the held masses in order and how many outcomes are not held. */
export function solveUniform(mass, unheld, { lower, ceiling }) {
  if (ceiling === Infinity) return [solveConvex(mass, unheld, lower), 0];
  return solveHeld(mass, unheld * lower, () => lower, () => ceiling);
}
