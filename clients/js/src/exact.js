/**
 * Exact arithmetic in integers: e^x to hundreds of bits, floats as fractions, and the float nearest to a fraction.
 *
 * The last bit of `Math.exp` may differ between browsers, and the integer bounds of a box depend on it. Here e^x is computed from its series
 * in BigInt and rounded to the nearest float. The result is the same everywhere, and the same as in Python (`discreet._base.numerics`).
 */
const BITS = 460n; // binary digits of e^x after the point
const ONE = 1n << BITS;
const HALVINGS = 10n; // the series is summed for x/2^10, and its sum squared ten times
const bytes = new DataView(new ArrayBuffer(8));

export const bitLength = (whole) => {
  const digits = whole.toString(16);
  return 4 * digits.length - Math.clz32(parseInt(digits[0], 16)) + 28;
};

/** 2^exponent, exactly, for exponents of at least -1074; infinity for those above 1023. */
export function power(exponent) {
  bytes.setBigUint64(0, exponent < -1022 ? 1n << BigInt(exponent + 1074) : BigInt(exponent + 1023) << 52n);
  return exponent > 1023 ? Infinity : bytes.getFloat64(0);
}

/** The next float above a positive one. */
export function above(value) {
  bytes.setFloat64(0, value);
  bytes.setBigUint64(0, bytes.getBigUint64(0) + 1n);
  return bytes.getFloat64(0);
}

/** The next float below a positive one. */
export function below(value) {
  bytes.setFloat64(0, value);
  bytes.setBigUint64(0, bytes.getBigUint64(0) - 1n);
  return bytes.getFloat64(0);
}

/** e with value = m 2^e, 1/2 <= m < 1, of a positive float that is not subnormal. */
export function exponentOf(value) {
  bytes.setFloat64(0, value);
  return ((bytes.getUint16(0) >> 4) & 0x7ff) - 1022;
}

/** [numerator, denominator] of a float of at least 0. */
export function fractionOf(value) {
  bytes.setFloat64(0, value);
  const exponent = (bytes.getUint16(0) >> 4) & 0x7ff;
  const digits = (bytes.getBigUint64(0) & ((1n << 52n) - 1n)) | (exponent ? 1n << 52n : 0n);
  const shift = BigInt(Math.max(exponent, 1) - 1075);
  return shift >= 0n ? [digits << shift, 1n] : [digits, 1n << -shift];
}

/** The shortest decimal that reads back as a float of at least 0, as [numerator, denominator]: the number as it was written. */
export function decimalOf(value) {
  const [digits, exponent = "0"] = String(value).split("e");
  const [whole, rest = ""] = digits.split(".");
  const places = rest.length - Number(exponent);
  const number = BigInt(whole + rest);
  return places > 0 ? [number, 10n ** BigInt(places)] : [number * 10n ** BigInt(-places), 1n];
}

/** The float nearest to a fraction; ties go to the even one. */
export function nearest(numerator, denominator) {
  if (numerator < 0n) return -nearest(-numerator, denominator);
  if (numerator === 0n) return 0;
  let top = bitLength(numerator) - bitLength(denominator); // 2^(top-1) < value < 2^(top+1)
  if (top >= 0 ? numerator < denominator << BigInt(top) : numerator << BigInt(-top) < denominator) top -= 1;
  const unit = Math.max(top - 52, -1074);
  if (unit > 971) return Infinity;
  if (unit >= 0) denominator <<= BigInt(unit);
  else numerator <<= BigInt(-unit);
  let whole = numerator / denominator;
  const twice = 2n * (numerator % denominator);
  if (twice > denominator || (twice === denominator && whole & 1n)) whole += 1n;
  return Number(whole) * power(unit);
}

/** e^(numerator/denominator) in units of 2^-460, for an exponent of at least 0, with a relative error below 2^-400. */
function exponential(numerator, denominator) {
  const part = (numerator << (BITS - HALVINGS)) / denominator;
  let sum = ONE;
  for (let term = part, place = 1n; term > 0n; term = (term * part) / (++place << BITS)) sum += term;
  for (let i = 0n; i < HALVINGS; i++) sum = (sum * sum) >> BITS;
  return sum;
}

/** The float nearest to e^x. */
export function exp(x) {
  if (x > 710 || x < -746) return x > 0 ? Infinity : 0;
  const found = exponential(...fractionOf(Math.abs(x)));
  return x < 0 ? nearest(ONE, found) : nearest(found, ONE);
}

/** The float nearest to e^x - 1. */
export function expm1(x) {
  if (Math.abs(x) < 1e-18) return x;
  if (x > 710 || x < -746) return x > 0 ? Infinity : -1;
  const found = exponential(...fractionOf(Math.abs(x)));
  return x < 0 ? nearest(ONE - found, found) : nearest(found - ONE, ONE);
}

const DIGITS = 60; // decimal digits of the rational bound on e^epsilon
const LARGEST_EPSILON = 64; // e^64 exceeds the ratio of any two positive 62-bit integers

/**
 * [numerator, denominator] of a rational that is certainly at most e^epsilon: e^epsilon rounded to 60 digits, less one unit of the last digit,
 * or 1 if that is larger. An epsilon above 64 counts as 64.
 */
function expBelow([numerator, denominator]) {
  if (numerator > BigInt(LARGEST_EPSILON) * denominator) [numerator, denominator] = [BigInt(LARGEST_EPSILON), 1n];
  const found = exponential(numerator, denominator);
  const unit = 10n ** BigInt(DIGITS - (found >> BITS).toString().length);
  let digits = (found * unit) >> BITS;
  if ((found * unit - (digits << BITS)) << 1n >= ONE) digits += 1n;
  digits -= 1n;
  return digits > unit ? [digits, unit] : [1n, 1n];
}

/** A rational at most e^epsilon, as [numerator, denominator]: the smaller of the bounds for the float and for the decimal that was written. */
export function atMostExp(epsilon) {
  const [one, other] = [fractionOf(epsilon), decimalOf(epsilon)].map(expBelow);
  return one[0] * other[1] < other[0] * one[1] ? one : other;
}
