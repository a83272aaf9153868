/** What a sample is drawn from, beside what is held: a row for each outcome that is held, and a few that are not. Of a report, how likely it names each. */
import { phrase } from "../page/catalogue.js";
import { element } from "../page/element.js";
import { labelled, namedAtOnce, percent, percentAtLeast } from "../page/words.js";

const ROWS = 12;

/** The probability that a report names an outcome, and between what it lies for everybody. */
function namedBy({ reports: { chances } }) {
  const { inside, outside } = chances;
  return { box: { lower: outside, upper: inside }, drawn: (p) => outside + (inside - outside) * p };
}

/** The probability that a sample is an outcome, likewise. */
function drawnBy(agreement, law) {
  const output = agreement.output(law);
  return { box: agreement.box, drawn: (_, place) => output[place] };
}

export function drawnFrom(body, rest, agreement, law) {
  const { domain, size, reports } = agreement;
  const { box, drawn } = reports ? namedBy(agreement) : drawnBy(agreement, law);
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
      const q = drawn(p, place);
      mark.style.insetInlineStart = across(q);
      return element(
        "li", { class: "bar" },
        element("bdi", { class: "name" }, labelled(domain.name(place))),
        element("span", { class: "track", "aria-hidden": "true" }, within, bar, mark),
        element("span", { class: "told" }, `${percent(p)} → ${percent(q)}`),
      );
    }),
  );
  const hidden = size - byShare.length;
  rest.textContent =
    (hidden ? `${phrase("outcomes-hidden", { n: hidden })} ` : "") + (reports ? toldOfReport(agreement) : toldOfSample(agreement, shares, drawn));
}

function toldOfSample({ size }, shares, drawn) {
  let strangers = 0;
  for (let place = 0; place < size; place++) strangers += shares.has(place) ? 0 : drawn(0, place);
  return phrase("something-else", { share: percent(strangers) });
}

const toldOfReport = (agreement) =>
  phrase("report-names", { named: namedAtOnce(agreement), share: percentAtLeast(agreement.reports.chances.blind) });
