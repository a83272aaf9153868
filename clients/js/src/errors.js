/** Bad input, told in one sentence before anything is drawn, charged or written. */
export class DiscreetError extends Error {
  constructor(message) {
    super(visible(message));
    this.name = "DiscreetError";
  }
}

/** Controls, direction marks and line separators are spelled out, so that no text can hide another. */
const visible = (text) =>
  text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);

export function refuse(message) {
  throw new DiscreetError(message);
}

/** A value as messages quote it: short, whatever it is. */
export function quoted(value) {
  if (typeof value === "number") return String(value); // which JSON has no word for, if it is none
  let text;
  try {
    text = JSON.stringify(value, (_, each) => (typeof each === "bigint" ? `${each}` : each)) ?? String(value);
  } catch {
    text = typeof value;
  }
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
