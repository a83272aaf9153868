/** Numbers and agreements in words that anybody can read. Words about privacy follow from numbers: `GRADES` is the one place for them. */
import { numbered, nounFor, phrase } from "./catalogue.js";

const SMALL = 1e-6; // below it, and above its reciprocal, a number is written with a power of ten
const SUREST = 1e-8; // a share nearer to 1 is said to be nearer
const rounded = (value, roundingMode = "halfExpand") => numbered(value, { maximumSignificantDigits: 3, roundingMode });

/** Three digits: of what something is at most or at least never rounded to the side on which it would be more than true. */
const bounding = (roundingMode) => (value) => {
  if (value === Infinity) return "∞";
  if (value < 1 / SMALL && (value <= 0 || value >= SMALL)) return rounded(value, roundingMode);
  return numbered(value, { maximumSignificantDigits: 3, roundingMode, notation: "scientific" }).replace("E", " × 10^").replace("-", "−");
};
export const atMost = bounding("ceil");
export const atLeast = bounding("floor");

/** A share in percent. One that is not 1 is never said to be 100 %: near 1 it has as many nines as it takes. */
const percentage = (shown, roundingMode) => (share) => {
  const rest = 1 - share;
  if (!(rest > 0 && rest < 0.01)) return `${shown(100 * share)}\u00a0%`;
  if (rest < SUREST) return phrase("nearly-all", { share: `${numbered(99.999999)}\u00a0%` });
  const places = 1 - Math.floor(Math.log10(100 * rest));
  return `${numbered(100 - 100 * rest, { minimumFractionDigits: places, maximumFractionDigits: places, roundingMode })}\u00a0%`;
};
export const percentAtMost = percentage(atMost, "ceil");
export const percentAtLeast = percentage(atLeast, "floor");
export const percent = percentage(rounded, "halfExpand");

/** A sentence of somebody else's, from its beginning to its end. */
export const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/u.test(text) ? "" : "."}`;

/** A label as people see it, whole: what would hide other texts, turn them around or cannot be seen is spelled out. */
export const labelled = (label) =>
  String(label).replace(/[\p{Cc}\p{Zl}\p{Zp}\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/gu, spelled) || phrase("empty");
const spelled = (character) => `\\u{${character.codePointAt(0).toString(16)}}`;

/** The same inside a sentence: one that is written from right to left turns nothing around but itself. */
export const isolated = (label) => `\u2068${labelled(label)}\u2069`;
export const quotedLabel = (label) => phrase("quoted", { label: isolated(label) });

export const short = (value) => (value === Infinity ? "∞" : value >= 1e6 ? value.toExponential(2).replace("e+", " × 10^") : rounded(value));

/** How sure somebody can become who thought it even: odds of one to one, moved by a factor. Never quite 1. */
export const certainty = (factor) => Math.min(factor === Infinity ? 1 : factor / (1 + factor), 1 - Number.EPSILON / 2);

/** The doubt that is left to them at least. */
const doubtLeft = (epsilon) => 1 / (1 + Math.exp(epsilon));

/** What is true from so much doubt on. The first that fits is said; of the same agreement always the same. */
const GRADES = [[1 / 4, "strong"], [1 / 10, "moderate"], [1 / 100, "weak"], [1 / 1000, "very-weak"], [0, "hardly"]];
const MISTYPED = 10; // a larger epsilon may be a percentage

/** How private samples are that cost so much together: {grade, said}. */
export function strength(epsilon) {
  const doubt = doubtLeft(epsilon);
  const [, name] = GRADES.find(([least]) => doubt >= least);
  const grade = phrase(`grade-${name}`);
  const told = phrase(`doubt-${name}`, { doubt: doubt ? `${atLeast(100 * doubt)}\u00a0%` : phrase("next-to-nothing") });
  return { grade, said: `${grade}. ${told}${epsilon > MISTYPED ? ` ${phrase("mistyped")}` : ""}` };
}

/** What every client's distribution has in common, as a share of the draw: so often it does not look at what is held. */
export function blindShare({ box, size, reports }) {
  if (reports) return reports.chances.blind;
  const { lower } = box;
  return Math.min(1, typeof lower === "number" ? size * lower : lower.reduce((sum, each) => sum + each, 0));
}

/** How often a draw is chance alone, and what that means for whoever is seen with one. */
function blindness(agreement) {
  const { reports, size } = agreement;
  const blind = blindShare(agreement);
  const noun = nounFor(reports);
  const often = phrase(blind === 1 || reports ? "blind" : "blind-at-least", { share: percentAtLeast(blind) }, noun);
  if (size === 1) return often;
  return `${often} ${phrase(blind >= 1 / 2 ? "blind-mostly" : blind >= 1 / 10 ? "blind-partly" : "blind-rarely", {}, noun)}`;
}

/** What values outside the domain count as. */
export function ruleOutside({ domain, other }) {
  if (domain.interval) return phrase("outside-interval");
  return other === undefined ? phrase("outside-left-out") : phrase("outside-other", { other: quotedLabel(domain.name(other)) });
}

/** What a person is asked to agree to: [heading, sentence] pairs. `beside`: what leaves the device with a sample. */
export function asked(agreement, beside = phrase("beside-id")) {
  if (agreement.survey) return askedBySurvey(agreement, beside);
  const { epsilon, rounds, mechanism, purpose, size, domain, reports } = agreement;
  const names = Array.from({ length: Math.min(size, 12) }, (_, place) => isolated(domain.name(place))).join(", ") + (size > 12 ? ", …" : ".");
  const noun = nounFor(reports);
  return [
    [phrase("what-for"), purpose ? labelled(purpose) : phrase("no-purpose")],
    ...revealed(epsilon, rounds),
    [phrase("what-leaves"), phrase("leaves", { n: rounds, beside }, noun)],
    [phrase("what-can-be"), reports ? whatReported(agreement, names) : phrase("can-be", { size, names, share: percentAtLeast(leastChance(agreement)) })],
    [phrase("what-outside"), ruleOutside(agreement)],
    [phrase("how-drawn"), reports ? howReported(reports) : phrase(`drawn-${mechanism}`)],
    [phrase("how-often-blind"), blindness(agreement)],
  ];
}

/** The same of a survey: what the coin may choose, and how often. */
function askedBySurvey({ epsilon, rounds, purpose, survey }, beside) {
  const noun = nounFor(true);
  const parts = [...coinOf(survey)].map(([part, share]) => phrase("survey-part", { part, share: percent(share) })).join("; ");
  const blind = Math.min(...survey.parts.map((part) => part.blind));
  return [
    [phrase("what-for"), purpose ? labelled(purpose) : phrase("no-purpose", {}, noun)],
    ...revealed(epsilon, rounds),
    [phrase("what-leaves"), phrase("leaves", { n: rounds, beside }, noun)],
    [phrase("what-can-be"), phrase("survey-can-be", {}, noun)],
    [phrase("what-outside"), phrase("survey-outside", {}, noun)],
    [phrase("how-drawn"), phrase("survey-drawn", { parts }, noun)],
    [phrase("how-often-blind"), phrase("blind-at-least", { share: percentAtLeast(blind) }, noun)],
  ];
}

/** What a part of a survey is about: its columns, by what they are called. */
export const partTold = ({ sees: { columns, column } }, called = labelled) => (columns ?? [column]).map(called).join(" × ");

/** How often the coin of a survey chooses what, as a Map. */
export function coinOf({ parts }, called) {
  const found = new Map();
  for (const part of parts) found.set(partTold(part, called), (found.get(partTold(part, called)) ?? 0) + part.share);
  return found;
}

const leastChance = ({ box: { lower } }) => (typeof lower === "number" ? lower : lower.reduce((one, other) => Math.min(one, other)));

/** How many outcomes a report names, in words. */
export const namedAtOnce = ({ reports }) => phrase("named-at-once", { n: reports.named });

function whatReported({ size, reports }, names) {
  return phrase(reports.named === 1 ? "report-can-be-one" : "report-can-be", { named: namedAtOnce({ reports }), size, names }, nounFor(reports));
}

const howReported = ({ chances: { inside, outside } }) => phrase("drawn-reports", { inside: percent(inside), outside: percent(outside) });

/** What samples reveal at most where all that is promised is epsilon a round, whoever draws them and however. */
export function revealed(epsilon, rounds) {
  const [factor, all] = [Math.exp(epsilon), Math.exp(epsilon * rounds)];
  return [
    [phrase("how-private"), strength(epsilon * rounds).said],
    [phrase("what-learnt"), phrase("learnt", { factor: atMost(factor), sure: percentAtMost(certainty(factor)) })],
    ...(rounds === 1 ? [] : [[phrase("every-round"), phrase("learnt-in-all", { rounds, factor: atMost(all), sure: percentAtMost(certainty(all)) })]]),
  ];
}
