/**
 * The sentences of a page, in the language that it is read in: `phrase(key, values)`. A sentence stands in a catalogue
 * (src/discreet/collect/pages/LANGUAGE.json) under its key, with {names} for what changes. Where it depends on a number it has a form for each plural
 * of the language, by {n}. {sample}, {samples}, {Sample} and {Samples} are what people send: samples, reports, or randomised answers.
 */
let [texts, nouns, language, kind] = [{}, {}, "en", "sample"];
let plurals = new Intl.PluralRules(language);
const formats = new Map();

/** Speak by a catalogue: {language, nouns, and sections of sentences}. */
export function useCatalogue({ language: named, nouns: called, ...sections }) {
  [language, nouns, texts, plurals] = [named, called, Object.assign({}, ...Object.values(sections)), new Intl.PluralRules(named)];
}

/** Say from now on what people send: "sample", "report" or "answer". */
export const speakOf = (what) => (kind = what);

/** The same for what an agreement asks for, where the page does not say otherwise. */
export const nounFor = (reports) => (kind === "sample" && reports ? "report" : kind);

export const pageLanguage = () => language;

/** A number as the page's language writes it, with all its digits where nothing else is asked. */
export function numbered(value, options = { maximumSignificantDigits: 15 }) {
  const key = language + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(language, options));
  return formats.get(key).format(value);
}

/** The sentence of a key. `noun`: what people send, where it is another than the page speaks of. */
export function phrase(key, values = {}, noun = kind) {
  const found = texts[key];
  if (found === undefined) throw new Error(key);
  const text = typeof found === "string" ? found : (found[plurals.select(values.n)] ?? found.other);
  return text.replace(/\{(\w+)\}/g, (_, name) => nouns[noun][name] ?? (typeof values[name] === "number" ? numbered(values[name]) : values[name]));
}

/** Say what the page says by itself anew: of reports or answers where these are what people send. */
export function rewordPage() {
  for (const part of document.querySelectorAll("[data-t]")) part.textContent = phrase(part.dataset.t);
  for (const part of document.querySelectorAll("[data-t-label]")) part.setAttribute("aria-label", phrase(part.dataset.tLabel));
}
