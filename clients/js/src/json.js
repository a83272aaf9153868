/**
 * JSON as agreements use it: a strict parser, and the canonical form whose hash is the id of an agreement.
 *
 * `JSON.parse` keeps the last of two fields with the same name, so two readers could disagree on what was agreed. Here such a document is
 * refused. `canonical` follows RFC 8785: numbers and texts are written as `JSON.stringify` writes them, as the standard requires.
 */
import { refuse } from "./errors.js";

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPED = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const SPACE = /[ \t\n\r]*/y;
const LARGEST_DEPTH = 20;

export function parsed(text) {
  let place = 0;
  const refuseHere = () => refuse(`the agreement is not JSON: something is wrong at character ${place}`);
  const takeMatch = (pattern) => {
    pattern.lastIndex = place;
    const [found] = pattern.exec(text) ?? refuseHere();
    place += found.length;
    return found;
  };
  /** The next character after space; undefined at the end. */
  const peekAfterSpace = () => (takeMatch(SPACE), text[place]);
  /** Step over this character, if it comes next; whether it did. */
  const takeIfNext = (character) => peekAfterSpace() === character && (place += 1);

  /** A text in quotes, read piece by piece: one pattern for the whole would overflow the stack on a long text. */
  function string() {
    if (!takeIfNext('"')) refuseHere();
    const start = place - 1;
    for (takeMatch(PLAIN); text[place] !== '"'; takeMatch(PLAIN)) takeMatch(ESCAPED);
    place += 1;
    return JSON.parse(text.slice(start, place));
  }

  function value(depth) {
    if (depth > LARGEST_DEPTH) refuseHere();
    const first = peekAfterSpace();
    if (first === "{") return object(depth);
    if (first === "[") return list(depth);
    if (first === '"') return string();
    for (const [word, meaning] of [["true", true], ["false", false], ["null", null]]) {
      if (text.startsWith(word, place)) {
        place += word.length;
        return meaning;
      }
    }
    const number = Number(takeMatch(NUMBER));
    return Number.isFinite(number) ? number : refuse("the agreement holds a number that no 64-bit float does");
  }

  function list(depth) {
    const found = [];
    takeIfNext("[");
    if (takeIfNext("]")) return found;
    do found.push(value(depth + 1));
    while (takeIfNext(","));
    return takeIfNext("]") ? found : refuseHere();
  }

  function object(depth) {
    const found = Object.create(null);
    takeIfNext("{");
    if (takeIfNext("}")) return found;
    do {
      const name = string();
      if (name in found) refuse(`the agreement gives ${JSON.stringify(name)} twice`);
      if (!takeIfNext(":")) refuseHere();
      found[name] = value(depth + 1);
    } while (takeIfNext(","));
    return takeIfNext("}") ? found : refuseHere();
  }

  const found = value(0);
  if (peekAfterSpace() !== undefined) refuseHere();
  return found;
}

/** The canonical text of a JSON value. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (value !== null && typeof value === "object") {
    const fields = Object.keys(value).sort().map((name) => `${canonical(name)}:${canonical(value[name])}`);
    return `{${fields.join()}}`;
  }
  if (typeof value === "string" && /\p{Cs}/u.test(value)) {
    refuse("an agreement holds texts that can be written in UTF-8 only");
  }
  return JSON.stringify(value);
}
