/** The error for bad input. It has a message of one sentence, and is thrown before anything is drawn, charged or written. */
export class DiscreetError extends Error {
  constructor(message) {
    super(withVisibleControls(message));
    this.name = "DiscreetError";
  }
}

/** The text with controls, direction marks and line separators written as \u{...}, so that no part of a message can hide another. */
const withVisibleControls = (text) =>
  text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);

export function refuse(message) {
  throw new DiscreetError(message);
}

/** A value as messages quote it, in at most 60 characters. */
export function quoted(value) {
  if (typeof value === "number") return String(value); // JSON cannot write NaN and infinities
  let text;
  try {
    text = JSON.stringify(value, (_, each) => (typeof each === "bigint" ? `${each}` : each)) ?? String(value);
  } catch {
    text = typeof value;
  }
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
