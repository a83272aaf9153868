/** Finds outcomes by what people type: labels that contain the text, and labels that they may have meant. The search sends no request. */

/** The form in which texts are compared: case, width, runs of spaces and invisible format characters do not matter. */
export const foldText = (text) => text.normalize("NFKC").toLowerCase().replace(/\p{Cf}/gu, "").replace(/\s+/gu, " ").trim();

const foldedLists = new WeakMap();
function foldedNames(labels) {
  if (!foldedLists.has(labels)) foldedLists.set(labels, labels.map((label) => foldText(String(label))));
  return foldedLists.get(labels);
}

/** The places of the labels that contain a text, first those that begin with it. An empty text gives all places. */
export function placesContaining(labels, text) {
  const wanted = foldText(text);
  const names = foldedNames(labels);
  const first = [], later = [];
  names.forEach((name, place) => {
    const at = name.indexOf(wanted);
    if (at >= 0) (at === 0 ? first : later).push(place);
  });
  return [...first, ...later];
}

/** The places of the labels of which a text may be a misspelling, the closest first. */
export function suggestedPlaces(labels, text, most = 3) {
  const wanted = foldText(text).slice(0, LONGEST);
  if (!wanted) return [];
  const allowed = Math.min(3, Math.ceil(wanted.length / 4));
  const found = [];
  foldedNames(labels).forEach((name, place) => {
    if (Math.abs(name.length - wanted.length) > allowed) return;
    const apart = editDistance(wanted, name, allowed);
    if (apart <= allowed) found.push([apart, place]);
  });
  return found.sort(([one, first], [other, second]) => one - other || first - second).slice(0, most).map(([, place]) => place);
}
const LONGEST = 200;

/** How many letters are wrong, missing, added or swapped with their neighbour. The count stops above `most`. */
export function editDistance(one, other, most = Infinity) {
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
