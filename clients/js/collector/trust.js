/** How far the numbers can be trusted, in words: what samples cannot show, what liars can change, and who can know who took part. */
import { formatNumber, phrase } from "../page/catalogue.js";
import { percentAtMost, sentence } from "../page/words.js";

/** What bars and intervals mean under this agreement. `picked`: whether only the largest of many shares are shown. */
export function readingText({ identifiable, confidence }, picked) {
  const often = `${formatNumber(100 * confidence)}\u00a0%`;
  return phrase(identifiable ? "reading-unbiased" : "reading-intervals", { often }) + (picked ? ` ${phrase("reading-picked")}` : "");
}

/** The facts as [heading, sentence] pairs. Notes of the estimate itself are in English. */
export function trustFacts({ samples, liars, notes = [], mechanism, times_the_least_variance: times }, enrolled) {
  return [
    ...notes.map((note) => [phrase("note"), sentence(note), "en"]),
    ...(times ? [[phrase("how-far"), varianceText(times, mechanism === "reports")]] : []),
    ...(liars && samples ? [[phrase("what-liars"), liarsText(liars)]] : []),
    [phrase("who-can-send"), phrase(enrolled ? "send-enrolled" : "send-open")],
    [phrase("what-kept"), phrase({ reports: "kept-reports", survey: "kept-survey" }[mechanism] ?? "kept-samples")],
  ];
}

/** `times`: the variance of a share here, divided by the smallest variance of any private report on as many outcomes at this epsilon. */
function varianceText(times, reported) {
  const shown = times < 1.1 ? formatNumber(times, { minimumFractionDigits: 3, maximumFractionDigits: 3 }) : formatNumber(times, { maximumSignificantDigits: 3 });
  const needs = times < 1.0005 ? phrase("as-many-people") : phrase("times-the-people", { times: shown });
  return reported || times < 1.1 ? needs : `${needs} ${phrase("price-of-samples")}`;
}

/** `one`: by how much one liar moves a bar at most. `one_at_ends`: by how much they move the ends that an interval would have without noise. */
function liarsText({ one, one_at_ends: ends, as_far_as_intervals: many }) {
  const most = { one: percentAtMost(one), ends: percentAtMost(ends), ten: percentAtMost(Math.min(1, 10 * one)), many };
  return phrase(ends > one ? "lies-at-ends" : "lies", most);
}
