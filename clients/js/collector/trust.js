/** How far the numbers can be trusted, in words: what samples cannot say, what liars can do, and who can know who took part. */
import { numbered, phrase } from "../page/catalogue.js";
import { percentAtMost, sentence } from "../page/words.js";

/** What bars and intervals mean under this agreement. `picked`: those that are shown are the largest of many. */
export function reading({ identifiable, confidence }, picked) {
  const often = `${numbered(100 * confidence)}\u00a0%`;
  return phrase(identifiable ? "reading-unbiased" : "reading-intervals", { often }) + (picked ? ` ${phrase("reading-picked")}` : "");
}

/** [heading, sentence] pairs. What the estimate itself notes is English. */
export function trusted({ samples, liars, notes = [], mechanism, times_the_least_variance: times }, enrolled) {
  return [
    ...notes.map((note) => [phrase("note"), sentence(note), "en"]),
    ...(times ? [[phrase("how-far"), distance(times, mechanism === "reports")]] : []),
    ...(liars && samples ? [[phrase("what-liars"), lies(liars)]] : []),
    [phrase("who-can-send"), phrase(enrolled ? "send-enrolled" : "send-open")],
    [phrase("what-kept"), phrase({ reports: "kept-reports", survey: "kept-survey" }[mechanism] ?? "kept-samples")],
  ];
}

/** `times`: the variance of a share here over the smallest that any private report of so many outcomes has at this epsilon. */
function distance(times, reported) {
  const shown = times < 1.1 ? numbered(times, { minimumFractionDigits: 3, maximumFractionDigits: 3 }) : numbered(times, { maximumSignificantDigits: 3 });
  const needs = times < 1.0005 ? phrase("as-many-people") : phrase("times-the-people", { times: shown });
  return reported || times < 1.1 ? needs : `${needs} ${phrase("price-of-samples")}`;
}

/** `one`: by how much one moves a bar at most; `one_at_ends`: the ends of what would be left of an interval without noise. */
function lies({ one, one_at_ends: ends, as_far_as_intervals: many }) {
  const most = { one: percentAtMost(one), ends: percentAtMost(ends), ten: percentAtMost(Math.min(1, 10 * one)), many };
  return phrase(ends > one ? "lies-at-ends" : "lies", most);
}
