/** Numbers and agreements in words that anybody can read. */
const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** Three digits of what something is at most, or at least: never rounded to the side on which it would be more than true. */
const bounding = (roundingMode) => {
  const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, roundingMode });
  const long = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, roundingMode, notation: "scientific" });
  return (value) => (value === Infinity ? "∞" : value >= 1e6 ? long.format(value).replace("E", " × 10^") : plain.format(value));
};
export const atMost = bounding("ceil");
const atLeast = bounding("floor");
export const percentAtMost = (share) => `${atMost(100 * share)}\u00a0%`;

/** A sentence of somebody else's, from its beginning to its end. */
export const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/u.test(text) ? "" : "."}`;

/** A label as people see it: what would hide or turn around other texts is spelled out, and a long one is cut. */
export function labelled(label) {
  const characters = Array.from(String(label));
  const cut = characters.length > LONGEST ? [...characters.slice(0, LONGEST - 1), "…"] : characters;
  return cut.join("").replace(/[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, spelled) || "(empty)";
}
const LONGEST = 120;
const spelled = (character) => `\\u{${character.codePointAt(0).toString(16)}}`;

/** The same inside a sentence: one that is written from right to left turns nothing around but itself. */
export const isolated = (label) => `\u2068${labelled(label)}\u2069`;

export const short = (value) => (value === Infinity ? "∞" : value >= 1e6 ? value.toExponential(2).replace("e+", " × 10^") : digits.format(value));
export const percent = (share) => `${digits.format(100 * share)}\u00a0%`;

/** Odds of one to one, moved by a factor. */
export const certainty = (factor) => (factor === Infinity ? 1 : factor / (1 + factor));

/** What a person is asked to agree to: [heading, sentence] pairs. `beside`: what leaves the device with a sample. */
export function asked(agreement, beside = "the id of this agreement") {
  const { epsilon, rounds, mechanism, purpose, size, domain, box } = agreement;
  const floor = typeof box.lower === "number" ? box.lower : box.lower.reduce((one, other) => Math.min(one, other));
  const names = Array.from({ length: Math.min(size, 12) }, (_, place) => isolated(domain.name(place))).join(", ");
  const how = {
    optimal: "The sample looks as much like your own records as privacy allows.",
    linear: "Sometimes your sample is one of your own records, otherwise it is drawn without looking at you; nobody can tell which.",
    mollifier: "Your sample is drawn from a blend of your own records and a public guess.",
  }[mechanism];
  return [
    ["What for", purpose || "The agreement does not say what the samples are for. You may want to ask."],
    ["What leaves your device", `${rounds === 1 ? "One sample" : `${rounds.toLocaleString("en")} samples, one each round`}, and ${beside}. Nothing else does: not the list of your records, and not how often something occurs in it.`],
    ["What it can be", `One of ${size.toLocaleString("en")} outcomes: ${names}${size > 12 ? ", …" : "."} Whatever you hold, each of them can come up, with a chance of at least ${atLeast(100 * floor)}\u00a0%: so you can always say that it was chance.`],
    ["How it is drawn", how],
    ...revealed(epsilon, rounds),
  ];
}

/** What samples reveal at most where all that is promised is epsilon a round, whoever draws them and however. */
export function revealed(epsilon, rounds) {
  const [factor, all] = [Math.exp(epsilon), Math.exp(epsilon * rounds)];
  return [
    ["What can be learnt about you at most", `Whoever sees a sample, and knows everything else, can change their odds about you by a factor of at most ${atMost(factor)}. Somebody who thought it even, 1 to 1, that you are one kind of person and not another can end up at ${atMost(factor)} to 1: from 50 % sure to ${percentAtMost(certainty(factor))} sure, and no further.`],
    ...(rounds === 1 ? [] : [["If you take part in every round", `The factors multiply: all ${rounds.toLocaleString("en")} samples together can change odds by at most ${atMost(all)}, from 50 % sure to ${percentAtMost(certainty(all))} sure.`]]),
    ["How strong that is", strength(epsilon * rounds)],
  ];
}

function strength(epsilon) {
  if (epsilon <= 1) return "Strong: close to what a coin toss hides.";
  if (epsilon <= 4) return "Usual: a single answer stays deniable, a suspicion can grow.";
  if (epsilon <= 10) return "Weak: a sample says a good deal about you.";
  return "Next to nothing is hidden. A percentage may have been typed by mistake.";
}
