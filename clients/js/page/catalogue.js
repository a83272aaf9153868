/**
 * The sentences of a page in the reader's language: `phrase(key, values)`.
 *
 * Each sentence stands under its key in a catalogue (src/discreet/collect/pages/LANGUAGE.json). {names} in it are replaced by values. A
 * sentence that depends on a number has one form for each plural category of the language, chosen by {n}. {sample}, {samples}, {Sample} and
 * {Samples} stand for what people send: samples, reports or randomised answers.
 */
let [texts, nouns, language, kind] = [{}, {}, "en", "sample"];
let plurals = new Intl.PluralRules(language);
const formats = new Map();

/** Use a catalogue from now on: {language, nouns, and sections of sentences}. */
export function useCatalogue({ language: code, nouns: nounForms, ...sections }) {
  [language, nouns, texts, plurals] = [code, nounForms, Object.assign({}, ...Object.values(sections)), new Intl.PluralRules(code)];
}

/** Set the noun for what people send, in all sentences from now on: "sample", "report" or "answer". */
export const setNoun = (noun) => (kind = noun);

/** The noun for an agreement: "report" if it asks for reports and the page still has the noun "sample", otherwise the page's noun. */
export const nounFor = (reports) => (kind === "sample" && reports ? "report" : kind);

export const pageLanguage = () => language;

/** A number as the page's language writes it, by default with up to 15 significant digits. */
export function formatNumber(value, options = { maximumSignificantDigits: 15 }) {
  const key = language + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(language, options));
  return formats.get(key).format(value);
}

/** The sentence of a key. `noun`: the noun for what people send, if it differs from the page's. */
export function phrase(key, values = {}, noun = kind) {
  const found = texts[key];
  if (found === undefined) throw new Error(key);
  const text = typeof found === "string" ? found : (found[plurals.select(values.n)] ?? found.other);
  return text.replace(/\{(\w+)\}/g, (_, name) => nouns[noun][name] ?? (typeof values[name] === "number" ? formatNumber(values[name]) : values[name]));
}

/** Write the fixed sentences of the page again, with the noun that is now set. */
export function rewordPage() {
  for (const part of document.querySelectorAll("[data-t]")) part.textContent = phrase(part.dataset.t);
  for (const part of document.querySelectorAll("[data-t-label]")) part.setAttribute("aria-label", phrase(part.dataset.tLabel));
}
