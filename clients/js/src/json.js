/**
 * JSON as agreements use it: read strictly, written in the one form that ids are taken of.
 *
 * `JSON.parse` keeps the last of two fields with one name, so two readers could differ on what was agreed: such a document is refused.
 * `canonical` is RFC 8785; numbers and texts are written as `JSON.stringify` does, which is what the standard asks for.
 */
import { refuse } from "./errors.js";

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPED = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const SPACE = /[ \t\n\r]*/y;
const DEEPEST = 20;

export function parsed(text) {
  let place = 0;
  const wrong = () => refuse(`the agreement is not JSON: something is wrong at character ${place}`);
  const next = (pattern) => {
    pattern.lastIndex = place;
    const [found] = pattern.exec(text) ?? wrong();
    place += found.length;
    return found;
  };
  const skipped = () => (next(SPACE), text[place]);
  const taken = (character) => skipped() === character && (place += 1);

  /** Piece by piece: one pattern for all of it would run out of stack on a long text. */
  function string() {
    if (!taken('"')) wrong();
    const start = place - 1;
    for (next(PLAIN); text[place] !== '"'; next(PLAIN)) next(ESCAPED);
    place += 1;
    return JSON.parse(text.slice(start, place));
  }

  function value(depth) {
    if (depth > DEEPEST) wrong();
    const first = skipped();
    if (first === "{") return object(depth);
    if (first === "[") return list(depth);
    if (first === '"') return string();
    for (const [word, meaning] of [["true", true], ["false", false], ["null", null]]) {
      if (text.startsWith(word, place)) {
        place += word.length;
        return meaning;
      }
    }
    const number = Number(next(NUMBER));
    return Number.isFinite(number) ? number : refuse("the agreement holds a number that no 64-bit float does");
  }

  function list(depth) {
    const found = [];
    taken("[");
    if (taken("]")) return found;
    do found.push(value(depth + 1));
    while (taken(","));
    return taken("]") ? found : wrong();
  }

  function object(depth) {
    const found = Object.create(null);
    taken("{");
    if (taken("}")) return found;
    do {
      const name = string();
      if (name in found) refuse(`the agreement gives ${JSON.stringify(name)} twice`);
      if (!taken(":")) wrong();
      found[name] = value(depth + 1);
    } while (taken(","));
    return taken("}") ? found : wrong();
  }

  const found = value(0);
  if (skipped() !== undefined) wrong();
  return found;
}

/** The one text of a value. */
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
