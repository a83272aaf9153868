/** Outcomes by what people type: those that contain it, and those that they may have meant. Nothing is asked of anybody. */

/** A text as two people would agree that it is the same: case, width, spaces and what cannot be seen do not matter. */
export const folded = (text) => text.normalize("NFKC").toLowerCase().replace(/\p{Cf}/gu, "").replace(/\s+/gu, " ").trim();

const lists = new WeakMap();
function foldedNames(labels) {
  if (!lists.has(labels)) lists.set(labels, labels.map((label) => folded(String(label))));
  return lists.get(labels);
}

/** The places of labels that contain a text, those that begin with it first; all of them for an empty one. */
export function containing(labels, text) {
  const wanted = folded(text);
  const names = foldedNames(labels);
  const first = [], later = [];
  names.forEach((name, place) => {
    const at = name.indexOf(wanted);
    if (at >= 0) (at === 0 ? first : later).push(place);
  });
  return [...first, ...later];
}

/** The places of the labels that a text may be a slip of, the likeliest first. */
export function suggested(labels, text, most = 3) {
  const wanted = folded(text).slice(0, LONGEST);
  if (!wanted) return [];
  const allowed = Math.min(3, Math.ceil(wanted.length / 4));
  const found = [];
  foldedNames(labels).forEach((name, place) => {
    if (Math.abs(name.length - wanted.length) > allowed) return;
    const apart = distance(wanted, name, allowed);
    if (apart <= allowed) found.push([apart, place]);
  });
  return found.sort(([one, first], [other, second]) => one - other || first - second).slice(0, most).map(([, place]) => place);
}
const LONGEST = 200;

/** How many letters are wrong, missing, added or swapped with their neighbour; more than `most` is not counted further. */
export function distance(one, other, most = Infinity) {
  let before = [], last = Array.from({ length: other.length + 1 }, (_, place) => place);
  for (let i = 1; i <= one.length; i++) {
    const now = [i];
    for (let j = 1; j <= other.length; j++) {
      const same = one[i - 1] === other[j - 1];
      now[j] = Math.min(last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1));
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) now[j] = Math.min(now[j], before[j - 2] + 1);
    }
    if (Math.min(...now) > most) return most + 1;
    [before, last] = [last, now];
  }
  return last[other.length];
}
