/**
 * Who this browser is in a collection: a name made of 32 random bytes that never leave it, as `discreet.client._protocol` makes it. Without them nobody
 * can tell that two names, in two collections, are one person's.
 */
import { sha256 } from "../src/sha256.js";

const BLOCK = 64;
const bytesOf = (text) => new TextEncoder().encode(text);
const joined = (one, other) => Uint8Array.from([...one, ...other]);
const unhexed = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
export const hexed = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** HMAC-SHA-256 by its definition: `crypto.subtle` is not there on every page. */
function hmac(secret, said) {
  const padded = new Uint8Array(BLOCK);
  padded.set(secret.length > BLOCK ? unhexed(sha256(secret)) : secret);
  const inner = sha256(joined(padded.map((byte) => byte ^ 0x36), said));
  return sha256(joined(padded.map((byte) => byte ^ 0x5c), unhexed(inner)));
}

/** How a client is named in a collection: 64 hexadecimal digits. `secret`: as hexadecimal digits. */
export const nameIn = (collection, secret, client = "") => hmac(unhexed(secret), bytesOf(`discreet client\0${collection}\0${client}`));

/** The key of the sample that a client sends under an agreement in a round: the same however often it is sent. */
export const keyOf = (name, agreement, round) => sha256(bytesOf(`discreet key\0${name}\0${agreement}\0${round}`));
