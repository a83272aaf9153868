/** Numbers and agreements in words that anybody can read. Words about privacy follow from numbers: `GRADES` is the one place for them. */
const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const SMALL = 1e-6; // below it, and above its reciprocal, a number is written with a power of ten
const SUREST = 1e-8; // a share nearer to 1 is said to be nearer

/** Three digits: of what something is at most or at least never rounded to the side on which it would be more than true. */
const bounding = (roundingMode) => {
  const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, roundingMode });
  const long = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, roundingMode, notation: "scientific" });
  return (value) => {
    if (value === Infinity) return "∞";
    return value >= 1 / SMALL || (value > 0 && value < SMALL) ? long.format(value).replace("E", " × 10^").replace("-", "−") : plain.format(value);
  };
};
export const atMost = bounding("ceil");
export const atLeast = bounding("floor");

/** A share in percent. One that is not 1 is never said to be 100 %: near 1 it has as many nines as it takes. */
const percentage = (shown, roundingMode) => (share) => {
  const rest = 1 - share;
  if (!(rest > 0 && rest < 0.01)) return `${shown(100 * share)}\u00a0%`;
  if (rest < SUREST) return "more than 99.999999\u00a0%";
  const places = 1 - Math.floor(Math.log10(100 * rest));
  return `${new Intl.NumberFormat("en", { minimumFractionDigits: places, maximumFractionDigits: places, roundingMode }).format(100 - 100 * rest)}\u00a0%`;
};
export const percentAtMost = percentage(atMost, "ceil");
export const percentAtLeast = percentage(atLeast, "floor");
export const percent = percentage((value) => digits.format(value), "halfExpand");

/** A sentence of somebody else's, from its beginning to its end. */
export const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/u.test(text) ? "" : "."}`;

/** A label as people see it, whole: what would hide other texts, turn them around or cannot be seen is spelled out. */
export const labelled = (label) =>
  String(label).replace(/[\p{Cc}\p{Zl}\p{Zp}\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/gu, spelled) || "(empty)";
const spelled = (character) => `\\u{${character.codePointAt(0).toString(16)}}`;

/** The same inside a sentence: one that is written from right to left turns nothing around but itself. */
export const isolated = (label) => `\u2068${labelled(label)}\u2069`;
export const quotedLabel = (label) => `“${isolated(label)}”`;

export const short = (value) => (value === Infinity ? "∞" : value >= 1e6 ? value.toExponential(2).replace("e+", " × 10^") : digits.format(value));

/** How sure somebody can become who thought it even: odds of one to one, moved by a factor. Never quite 1. */
export const certainty = (factor) => Math.min(factor === Infinity ? 1 : factor / (1 + factor), 1 - Number.EPSILON / 2);

/** The doubt that is left to them at least. */
const doubtLeft = (epsilon) => 1 / (1 + Math.exp(epsilon));

/** What is true from so much doubt on. The first that fits is said; of the same agreement always the same. */
const GRADES = [
  [1 / 4, "Strong", (doubt) => `Somebody who was undecided stays far from sure: a doubt of at least ${doubt} remains. You can plausibly say that your sample came by chance.`],
  [1 / 10, "Moderate", (doubt) => `Somebody who was undecided can come to think one thing likely; a doubt of at least ${doubt} remains. You can say that your sample came by chance, but that is the less likely story.`],
  [1 / 100, "Weak", (doubt) => `Somebody who was undecided can become nearly sure: the doubt that remains may be as little as ${doubt}. Few would believe that your sample came by chance.`],
  [1 / 1000, "Very weak", (doubt) => `Somebody who was undecided can become all but certain: the doubt that remains may be as little as ${doubt}. Do not expect anybody to believe that your sample came by chance.`],
  [0, "Hardly any privacy", (doubt) => `A sample can give away what you hold: the doubt that remains may be as little as ${doubt}. Take part only with what you would publish.`],
];
const MISTYPED = 10; // a larger epsilon may be a percentage

/** How private samples are that cost so much together: {grade, said}. */
export function strength(epsilon) {
  const doubt = doubtLeft(epsilon);
  const [, grade, told] = GRADES.find(([least]) => doubt >= least);
  const typed = epsilon > MISTYPED ? " A percentage may have been typed for epsilon by mistake." : "";
  return { grade, said: `${grade}. ${told(doubt ? `${atLeast(100 * doubt)}\u00a0%` : "next to nothing")}${typed}` };
}

/** What every client's distribution has in common, as a share of the draw: so often it does not look at what is held. */
export function blindShare({ box, size, reports }) {
  if (reports) return reports.chances.blind;
  const { lower } = box;
  return Math.min(1, typeof lower === "number" ? size * lower : lower.reduce((sum, each) => sum + each, 0));
}

/** How often a draw is chance alone, and what that means for whoever is seen with one. */
function blindness(agreement) {
  const blind = blindShare(agreement);
  const one = agreement.reports ? "report" : "sample";
  const often = `With a chance of ${blind === 1 || agreement.reports ? "" : "at least "}${percentAtLeast(blind)} a ${one} is drawn without looking at what you hold.`;
  if (agreement.size === 1) return often;
  if (blind >= 1 / 2) return `${often} So most ${one}s say nothing about their people. One that names what somebody suspected of you still moves their odds, as far as stands above.`;
  if (blind >= 1 / 10) return `${often} Otherwise it follows what you hold.`;
  return `${often} So nearly every ${one} follows what its person holds.`;
}

/** What values outside the domain count as. */
export function ruleOutside({ domain, other }) {
  if (domain.interval) return "A number outside the interval counts as its nearest end. What is no number is left out. If nothing is left, your sample is drawn without looking at you.";
  if (other !== undefined) return `It counts as ${quotedLabel(domain.name(other))}.`;
  return "It is left out. If nothing is left, your sample is drawn without looking at you.";
}

/** What a person is asked to agree to: [heading, sentence] pairs. `beside`: what leaves the device with a sample. */
export function asked(agreement, beside = "the id of this agreement") {
  const { epsilon, rounds, mechanism, purpose, size, domain, reports } = agreement;
  const names = Array.from({ length: Math.min(size, 12) }, (_, place) => isolated(domain.name(place))).join(", ") + (size > 12 ? ", …" : ".");
  const one = reports ? "report" : "sample";
  const how = reports ? howReported(reports) : {
    optimal: "The sample looks as much like your own records as this epsilon allows.",
    linear: "Either your sample is one of your own records, or it is drawn without looking at you.",
    mollifier: "Your sample is drawn from a blend of your own records and a public guess.",
  }[mechanism];
  return [
    ["What for", purpose ? labelled(purpose) : "The agreement does not say what the samples are for. You may want to ask."],
    ...revealed(epsilon, rounds),
    ["What leaves your device", `${rounds === 1 ? `One ${one}` : `${rounds.toLocaleString("en")} ${one}s, one each round`}, and ${beside}. Nothing else does: not the list of your records, and not how often something occurs in it.`],
    ["What it can be", reports ? whatReported(agreement, names) : `One of ${size.toLocaleString("en")} outcomes: ${names} Whatever you hold, each of them can come up, with a chance of at least ${percentAtLeast(leastChance(agreement))}.`],
    ["What is not on the list", ruleOutside(agreement)],
    ["How it is drawn", how],
    ["How often it is chance alone", blindness(agreement)],
  ];
}

const leastChance = ({ box: { lower } }) => (typeof lower === "number" ? lower : lower.reduce((one, other) => Math.min(one, other)));

/** How many outcomes a report names, in words. */
export const namedAtOnce = ({ reports }) => (reports.named === 1 ? "one outcome" : `about ${reports.named.toLocaleString("en")} outcomes at once`);

function whatReported({ size, reports }, names) {
  const said = reports.named === 1 ? "It may be yours, or any other." : "One of them is yours, perhaps: the report does not say which, or whether any is.";
  return `A report names ${namedAtOnce({ reports })}, of ${size.toLocaleString("en")}: ${names} ${said} Whatever you hold, each report can come up.`;
}

function howReported({ chances: { inside, outside } }) {
  return `One of your records is taken by chance. Your report names it with a chance of ${percent(inside)}, and any other outcome with a chance of ${percent(outside)}. It is no sample of your records, and is good for counting many people only.`;
}

/** What samples reveal at most where all that is promised is epsilon a round, whoever draws them and however. */
export function revealed(epsilon, rounds) {
  const [factor, all] = [Math.exp(epsilon), Math.exp(epsilon * rounds)];
  return [
    ["How private that is", strength(epsilon * rounds).said],
    ["What can be learnt about you at most", `Whoever sees a sample, and knows everything else, can change their odds about you by a factor of at most ${atMost(factor)}. Somebody who thought it even, 1 to 1, that you are one kind of person and not another can end up at ${atMost(factor)} to 1: from 50 % sure to ${percentAtMost(certainty(factor))} sure.`],
    ...(rounds === 1 ? [] : [["If you take part in every round", `The factors multiply: all ${rounds.toLocaleString("en")} samples together can change odds by at most ${atMost(all)}, from 50 % sure to ${percentAtMost(certainty(all))} sure.`]]),
  ];
}

/** What is said of samples, said of reports where these are what people send. */
export const inWordsOf = (reported, text) => (reported ? text.replace(/\b([Ss])ample(s?)\b/g, (_, first, many) => `${first === "S" ? "R" : "r"}eport${many}`) : text);

/** The same for all of a page that is marked so, and for pairs of a heading and a sentence but what others wrote, and what a report is not. */
export function rewordPage(reported) {
  for (const part of document.querySelectorAll("[data-worded]")) {
    part.dataset.worded ||= part.textContent;
    part.textContent = inWordsOf(reported, part.dataset.worded);
  }
}
const KEPT_AS_IT_IS = new Set(["What for", "How it is drawn", "What it can be"]);
export const rewordPairs = (reported, pairs) => pairs.map(([heading, said]) => [heading, KEPT_AS_IT_IS.has(heading) ? said : inWordsOf(reported, said)]);
