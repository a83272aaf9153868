/** How far the numbers can be trusted, in words: what samples cannot say, what liars can do, and who can know who took part. */
import { percentAtMost, sentence } from "../page/words.js";

/** What bars and intervals mean under this agreement. `picked`: those that are shown are the largest of many. */
export function reading({ identifiable, confidence }, picked) {
  const often = `${100 * confidence}\u00a0%`;
  const luck = picked ? " Of many shares the largest are large by chance too: the table has intervals that hold for all of them at once." : "";
  const meaning = identifiable
    ? `A bar is the average person's share, with the noise of privacy taken off again. The estimate is not biased, and so may fall below 0 or above 100\u00a0% by chance: it is then drawn at that end, and its own number stands beside it. An interval holds the true share ${often} of the time; it narrows as samples come in.`
    : `A bar is the share among the samples. The average person's own share cannot be told exactly from them, however many: an interval holds every share that could have given them, ${often} of the time. It narrows as samples come in, but not to nothing.`;
  return meaning + luck;
}

/** [heading, sentence] pairs. */
export function trusted({ samples, liars, notes = [], mechanism, times_the_least_variance: times }, enrolled) {
  return [
    ...notes.map((note) => ["Note", sentence(note)]),
    ...(times ? [["How far from the best", distance(times, mechanism === "reports")]] : []),
    ...(liars && samples ? [["What liars can do", lies(liars)]] : []),
    ["Who can send", enrolled ? ENROLLED : OPEN],
    ["What is kept", `${mechanism === "reports" ? "How often reports named each outcome, added up so that no single report can be told" : "How often each outcome came"}, ${KEPT}`],
  ];
}

/** `times`: the variance of a share here over the smallest that any private report of so many outcomes has at this epsilon. */
function distance(times, reported) {
  const told = times < 1.0005 ? "as many people as" : `${times < 1.1 ? times.toFixed(3) : new Intl.NumberFormat("en", { maximumSignificantDigits: 3 }).format(times)} times the people that`;
  const needs = `To know a share as well takes ${told} the best private reports need, for as many outcomes and the same epsilon.`;
  return reported || times < 1.1 ? needs : `${needs} The price buys samples that look like people's own records, which reports do not.`;
}

/** `one`: by how much one moves a bar at most; `one_at_ends`: the ends of what would be left of an interval without noise. */
const lies = ({ one, one_at_ends: ends, as_far_as_intervals: many }) =>
  `Whoever sends something else than an honest sample moves a bar by at most ${percentAtMost(one)}${ends > one ? `, and what chance leaves of its interval by at most ${percentAtMost(ends)}` : ""}; ` +
  `ten of them by at most ${percentAtMost(Math.min(1, 10 * one))}. It takes ${many.toLocaleString("en")} to move a bar by half the longest interval. Intervals hold the noise of chance and of privacy, and no lies.`;

const OPEN =
  "Anybody. A device makes its own name, which says nothing about its person and is another one in every collection. The price: somebody who makes up many names can send many samples, and what liars can do grows with their number.";
const ENROLLED =
  "Whoever was given a token. Strangers cannot send, and nobody twice. The price is a part of the anonymity: whoever handed out the tokens, together with whoever keeps this service, can learn who took part and on which day. What is stored does not say who said what. How much a sample says about whoever sent it stands under \"What a sample reveals at most\".";
const KEPT =
  "how many samples came on each day, and apart from that, as digests, which names have spoken, so that each is counted once. This service writes down no addresses and no times of day. Records never leave the devices that hold them. Should somebody listen in all the same, each sample reveals no more than stands here.";
