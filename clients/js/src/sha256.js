/**
 * SHA-256 of bytes, as 64 hexadecimal digits. It is synchronous and works on every page: `crypto.subtle` returns promises, and is missing on
 * pages that are not served securely.
 */

const primes = [];
for (let number = 2; primes.length < 64; number++) if (primes.every((prime) => number % prime)) primes.push(number);

/** The first 32 bits after the point of the square root (power 2) or cube root (power 3) of a prime, in exact integers. */
function rootFraction(prime, power) {
  const scaled = BigInt(prime) << BigInt(32 * power);
  let low = 0n;
  for (let bit = 40n; bit >= 0n; bit--) if ((low | (1n << bit)) ** BigInt(power) <= scaled) low |= 1n << bit;
  return Number(low & 0xffffffffn) | 0;
}

const ROUND = Int32Array.from(primes, (prime) => rootFraction(prime, 3));
const START = Int32Array.from(primes.slice(0, 8), (prime) => rootFraction(prime, 2));

export function sha256(bytes) {
  const padded = new Uint8Array(((bytes.length + 8) >> 6) * 64 + 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 0x20000000));
  view.setUint32(padded.length - 4, (bytes.length << 3) >>> 0);
  const state = START.slice();
  const words = new Int32Array(64);
  for (let block = 0; block < padded.length; block += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getInt32(block + 4 * i);
    for (let i = 16; i < 64; i++) {
      const a = words[i - 15], b = words[i - 2];
      const s0 = ((a >>> 7) | (a << 25)) ^ ((a >>> 18) | (a << 14)) ^ (a >>> 3);
      const s1 = ((b >>> 17) | (b << 15)) ^ ((b >>> 19) | (b << 13)) ^ (b >>> 10);
      words[i] = (words[i - 16] + s0 + words[i - 7] + s1) | 0;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const one = (h + s1 + ((e & f) ^ (~e & g)) + ROUND[i] + words[i]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const two = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + one) | 0; d = c; c = b; b = a; a = (one + two) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] = (state[i] + word) | 0));
  }
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

export const digestOfText = (text) => `sha256:${sha256(new TextEncoder().encode(text))}`;

/** The digest of the 64-bit floats at(0), ..., at(size - 1), in little-endian order. */
export function digestOfFloats(size, at) {
  const bytes = new DataView(new ArrayBuffer(8 * size));
  for (let place = 0; place < size; place++) bytes.setFloat64(8 * place, at(place), true);
  return `sha256:${sha256(new Uint8Array(bytes.buffer))}`;
}
