/**
 * The name of this browser in a collection, computed as in `discreet.client._protocol` from 32 random bytes that never leave the browser.
 * Without these bytes nobody can tell that two names in two collections belong to one person.
 *
 * A page of another site than the collector's adds the collector's address, as devices do: another collector that states the same collection
 * learns no name that is used there. Names of earlier versions have no address (`participation.js`).
 */
import { sha256 } from "../src/sha256.js";

const BLOCK = 64;
const bytesOf = (text) => new TextEncoder().encode(text);
const concatenate = (one, other) => Uint8Array.from([...one, ...other]);
const bytesOfHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
export const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** HMAC-SHA-256 by its definition, since `crypto.subtle` does not exist on every page. */
function hmac(secret, message) {
  const padded = new Uint8Array(BLOCK);
  padded.set(secret.length > BLOCK ? bytesOfHex(sha256(secret)) : secret);
  const inner = sha256(concatenate(padded.map((byte) => byte ^ 0x36), message));
  return sha256(concatenate(padded.map((byte) => byte ^ 0x5c), bytesOfHex(inner)));
}

/** The name of a client in a collection: 64 hexadecimal digits. `secret`: hexadecimal digits. `address`: of a collector on another site. */
export const nameIn = (collection, secret, client = "", address = "") =>
  hmac(bytesOfHex(secret), bytesOf(`discreet client\0${collection}\0${client}${address && `\0${address}`}`));

/** The key of the sample that a client sends under an agreement in a round: the same each time it is sent. */
export const keyOf = (name, agreement, round) => sha256(bytesOf(`discreet key\0${name}\0${agreement}\0${round}`));
