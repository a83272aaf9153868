/** Numbers and agreements in plain words. Words about privacy follow from numbers, and `GRADES` is the only table of them. */
import { formatNumber, nounFor, phrase } from "./catalogue.js";

const SMALL = 1e-6; // below it, and from its reciprocal on, numbers are written with a power of ten
const SMALLEST_DOUBT = 1e-8; // a share that is closer to 1 is only said to be more than 99.999999 %
const threeDigits = (value, roundingMode = "halfExpand") => formatNumber(value, { maximumSignificantDigits: 3, roundingMode });

/** A number with three significant digits. An upper bound is rounded up and a lower bound down, so that the statement stays true. */
const boundFormatter = (roundingMode) => (value) => {
  if (value === Infinity) return "∞";
  if (value < 1 / SMALL && (value <= 0 || value >= SMALL)) return threeDigits(value, roundingMode);
  return formatNumber(value, { maximumSignificantDigits: 3, roundingMode, notation: "scientific" }).replace("E", " × 10^").replace("-", "−");
};
export const atMost = boundFormatter("ceil");
export const atLeast = boundFormatter("floor");

/** A share in percent. Only the share 1 is written as 100 %: a share near 1 has as many nines as necessary. */
const percentFormatter = (format, roundingMode) => (share) => {
  const rest = 1 - share;
  if (!(rest > 0 && rest < 0.01)) return `${format(100 * share)}\u00a0%`;
  if (rest < SMALLEST_DOUBT) return phrase("nearly-all", { share: `${formatNumber(99.999999)}\u00a0%` });
  const places = 1 - Math.floor(Math.log10(100 * rest));
  return `${formatNumber(100 - 100 * rest, { minimumFractionDigits: places, maximumFractionDigits: places, roundingMode })}\u00a0%`;
};
export const percentAtMost = percentFormatter(atMost, "ceil");
export const percentAtLeast = percentFormatter(atLeast, "floor");
export const percent = percentFormatter(threeDigits, "halfExpand");

/** A text from elsewhere as a sentence: with a capital at its start and a full stop at its end. */
export const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/u.test(text) ? "" : "."}`;

/** A whole label as people see it. Characters that are invisible, or would hide or reverse other texts, are written as escapes. */
export const visibleLabel = (label) =>
  String(label).replace(/[\p{Cc}\p{Zl}\p{Zp}\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/gu, escapeCharacter) || phrase("empty");
const escapeCharacter = (character) => `\\u{${character.codePointAt(0).toString(16)}}`;

/** The same inside a sentence, isolated: a label that is written from right to left does not reorder the text around it. */
export const isolatedLabel = (label) => `\u2068${visibleLabel(label)}\u2069`;
export const quotedLabel = (label) => phrase("quoted", { label: isolatedLabel(label) });

export const shortNumber = (value) => (value === Infinity ? "∞" : value >= 1e6 ? value.toExponential(2).replace("e+", " × 10^") : threeDigits(value));

/** The probability after odds of one to one are multiplied by a factor: how sure somebody can become at most. It is always below 1. */
export const certainty = (factor) => Math.min(factor === Infinity ? 1 : factor / (1 + factor), 1 - Number.EPSILON / 2);

/** The doubt that is left to them at least: one minus that probability. */
const doubtLeft = (epsilon) => 1 / (1 + Math.exp(epsilon));

/** [smallest doubt, grade]. The first grade that fits is used, so the same agreement always has the same grade. */
const GRADES = [[1 / 4, "strong"], [1 / 10, "moderate"], [1 / 100, "weak"], [1 / 1000, "very-weak"], [0, "hardly"]];
const MISTYPED = 10; // a larger epsilon may have been meant as a percentage

/** How private samples with this total epsilon are, in words: {grade, said}. */
export function strength(epsilon) {
  const doubt = doubtLeft(epsilon);
  const [, name] = GRADES.find(([least]) => doubt >= least);
  const grade = phrase(`grade-${name}`);
  const doubtText = phrase(`doubt-${name}`, { doubt: doubt ? `${atLeast(100 * doubt)}\u00a0%` : phrase("next-to-nothing") });
  return { grade, said: `${grade}. ${doubtText}${epsilon > MISTYPED ? ` ${phrase("mistyped")}` : ""}` };
}

/** The probability that a draw ignores the client's data. For samples it is the mass that the output distributions of all clients share. */
export function blindShare({ box, size, reports }) {
  if (reports) return reports.chances.blind;
  const { lower } = box;
  return Math.min(1, typeof lower === "number" ? size * lower : lower.reduce((sum, each) => sum + each, 0));
}

/** How often a draw is chance alone, and what that means for a person whose sample is seen. */
function blindShareText(agreement) {
  const { reports, size } = agreement;
  const blind = blindShare(agreement);
  const noun = nounFor(reports);
  const often = phrase(blind === 1 || reports ? "blind" : "blind-at-least", { share: percentAtLeast(blind) }, noun);
  if (size === 1) return often;
  return `${often} ${phrase(blind >= 1 / 2 ? "blind-mostly" : blind >= 1 / 10 ? "blind-partly" : "blind-rarely", {}, noun)}`;
}

/** What values outside the domain count as. */
export function outsideRule({ domain, other }) {
  if (domain.interval) return phrase("outside-interval");
  return other === undefined ? phrase("outside-left-out") : phrase("outside-other", { other: quotedLabel(domain.name(other)) });
}

/** What a person is asked to agree to: [heading, sentence] pairs. `beside`: what leaves the device together with a sample. */
export function agreementFacts(agreement, beside = phrase("beside-id")) {
  if (agreement.survey) return surveyFacts(agreement, beside);
  const { epsilon, rounds, mechanism, purpose, size, domain, reports } = agreement;
  const names = Array.from({ length: Math.min(size, 12) }, (_, place) => isolatedLabel(domain.name(place))).join(", ") + (size > 12 ? ", …" : ".");
  const noun = nounFor(reports);
  return [
    [phrase("what-for"), purpose ? visibleLabel(purpose) : phrase("no-purpose")],
    ...privacyFacts(epsilon, rounds),
    [phrase("what-leaves"), phrase("leaves", { n: rounds, beside }, noun)],
    [phrase("what-can-be"), reports ? reportContents(agreement, names) : phrase("can-be", { size, names, share: percentAtLeast(leastChance(agreement)) })],
    [phrase("what-outside"), outsideRule(agreement)],
    [phrase("how-drawn"), reports ? reportDrawText(reports) : phrase(`drawn-${mechanism}`)],
    [phrase("how-often-blind"), blindShareText(agreement)],
  ];
}

/** The same for a survey, with the parts that its coin may choose and their probabilities. */
function surveyFacts({ epsilon, rounds, purpose, survey }, beside) {
  const noun = nounFor(true);
  const parts = [...coinShares(survey)].map(([part, share]) => phrase("survey-part", { part, share: percent(share) })).join("; ");
  const blind = Math.min(...survey.parts.map((part) => part.blind));
  return [
    [phrase("what-for"), purpose ? visibleLabel(purpose) : phrase("no-purpose", {}, noun)],
    ...privacyFacts(epsilon, rounds),
    [phrase("what-leaves"), phrase("leaves", { n: rounds, beside }, noun)],
    [phrase("what-can-be"), phrase("survey-can-be", {}, noun)],
    [phrase("what-outside"), phrase("survey-outside", {}, noun)],
    [phrase("how-drawn"), phrase("survey-drawn", { parts }, noun)],
    [phrase("how-often-blind"), phrase("blind-at-least", { share: percentAtLeast(blind) }, noun)],
  ];
}

/** What a part of a survey is about: the names of its columns. `called`: a function from a column to its title. */
export const partName = ({ sees: { columns, column } }, called = visibleLabel) => (columns ?? [column]).map(called).join(" × ");

/** The probability that the coin of a survey chooses each part, as a Map by the names of parts. */
export function coinShares({ parts }, called) {
  const found = new Map();
  for (const part of parts) found.set(partName(part, called), (found.get(partName(part, called)) ?? 0) + part.share);
  return found;
}

const leastChance = ({ box: { lower } }) => (typeof lower === "number" ? lower : lower.reduce((one, other) => Math.min(one, other)));

/** How many outcomes a report names, in words. */
export const namedCountText = ({ reports }) => phrase("named-at-once", { n: reports.named });

function reportContents({ size, reports }, names) {
  return phrase(reports.named === 1 ? "report-can-be-one" : "report-can-be", { named: namedCountText({ reports }), size, names }, nounFor(reports));
}

const reportDrawText = ({ chances: { inside, outside } }) => phrase("drawn-reports", { inside: percent(inside), outside: percent(outside) });

/** What samples reveal at most, as [heading, sentence] pairs. It follows from epsilon in each round alone, for every sampler. */
export function privacyFacts(epsilon, rounds) {
  const [factor, all] = [Math.exp(epsilon), Math.exp(epsilon * rounds)];
  return [
    [phrase("how-private"), strength(epsilon * rounds).said],
    [phrase("what-learnt"), phrase("learnt", { factor: atMost(factor), sure: percentAtMost(certainty(factor)) })],
    ...(rounds === 1 ? [] : [[phrase("every-round"), phrase("learnt-in-all", { rounds, factor: atMost(all), sure: percentAtMost(certainty(all)) })]]),
  ];
}
