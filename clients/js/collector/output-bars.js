/**
 * Bars that show the client's distribution beside the probabilities of the draw: that the sample is an outcome, or that a report names it.
 * First come the outcomes with the client's largest shares, then outcomes that the client does not have, up to 12 rows.
 */
import { phrase } from "../page/catalogue.js";
import { element } from "../page/element.js";
import { namedCountText, percent, percentAtLeast, visibleLabel } from "../page/words.js";

const ROWS = 12;

/** The probability that a report names an outcome of which the client has the share p, and its range over all clients. */
function reportProbabilities({ reports: { chances } }) {
  const { inside, outside } = chances;
  return { box: { lower: outside, upper: inside }, probability: (p) => outside + (inside - outside) * p };
}

/** The probability that a sample is an outcome, and its range over all clients. */
function sampleProbabilities(agreement, law) {
  const output = agreement.output(law);
  return { box: agreement.box, probability: (_, place) => output[place] };
}

export function showOutputBars(body, rest, agreement, law) {
  const { domain, size, reports } = agreement;
  const { box, probability } = reports ? reportProbabilities(agreement) : sampleProbabilities(agreement, law);
  const at = (bound, place) => (typeof bound === "number" ? bound : bound[place]);
  const shares = new Map(Array.from(law.outcomes, (place, index) => [place, law.masses[index]]));
  const byShare = [...shares.keys()].sort((one, other) => shares.get(other) - shares.get(one)).slice(0, ROWS);
  for (let place = 0; place < size && byShare.length < Math.min(ROWS, size); place++) if (!shares.has(place)) byShare.push(place);
  const scale = byShare.reduce((most, place) => Math.max(most, shares.get(place) ?? 0, at(box.upper, place)), 0);
  const across = (share) => `${(100 * Math.min(share, scale)) / scale}%`;
  body.replaceChildren(
    ...byShare.map((place) => {
      const p = shares.get(place) ?? 0;
      const [within, bar, mark] = ["box", "held", "law"].map((kind) => element("span", { class: kind }));
      within.style.insetInlineStart = across(at(box.lower, place));
      within.style.inlineSize = across(at(box.upper, place) - at(box.lower, place));
      bar.style.inlineSize = across(p);
      const q = probability(p, place);
      mark.style.insetInlineStart = across(q);
      return element(
        "li", { class: "bar" },
        element("bdi", { class: "name" }, visibleLabel(domain.name(place))),
        element("span", { class: "track", "aria-hidden": "true" }, within, bar, mark),
        element("span", { class: "told" }, `${percent(p)} → ${percent(q)}`),
      );
    }),
  );
  const hidden = size - byShare.length;
  rest.textContent =
    (hidden ? `${phrase("outcomes-hidden", { n: hidden })} ` : "") + (reports ? reportNote(agreement) : sampleNote(agreement, shares, probability));
}

function sampleNote({ size }, shares, probability) {
  let strangers = 0;
  for (let place = 0; place < size; place++) strangers += shares.has(place) ? 0 : probability(0, place);
  return phrase("something-else", { share: percent(strangers) });
}

const reportNote = (agreement) =>
  phrase("report-names", { named: namedCountText(agreement), share: percentAtLeast(agreement.reports.chances.blind) });
