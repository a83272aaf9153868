/** What a sample is drawn from, beside what is held: a row for each outcome that is held, and a few that are not. */
import { element } from "../page/element.js";
import { labelled, percent } from "../page/words.js";

const ROWS = 12;

export function drawnFrom(body, rest, agreement, law) {
  const output = agreement.output(law);
  const { box, domain, size } = agreement;
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
      mark.style.insetInlineStart = across(output[place]);
      return element(
        "li", { class: "bar" },
        element("bdi", { class: "name" }, labelled(domain.name(place))),
        element("span", { class: "track", "aria-hidden": "true" }, within, bar, mark),
        element("span", { class: "told" }, `${percent(p)} → ${percent(output[place])}`),
      );
    }),
  );
  const strangers = output.reduce((sum, chance, place) => sum + (shares.has(place) ? 0 : chance), 0);
  const hidden = size - byShare.length;
  rest.textContent =
    (hidden ? `${hidden.toLocaleString("en")} more outcomes are not shown. ` : "") +
    `With a chance of ${percent(strangers)} your sample is something else than what counts for you here.`;
}
