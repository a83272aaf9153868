/** The estimated population: a row for each label, the largest share first, or a histogram of numbers and cells in their order. */
import { element } from "../page/element.js";
import { formatNumber, phrase } from "../page/catalogue.js";
import { percent as nearly, visibleLabel } from "../page/words.js";

export const FEW = 15; // rows that are shown at first
export const MANY = 2000; // rows that are shown at most

/** Every share has the same number of digits, so that columns of shares can be compared. */
const DIGITS = { minimumSignificantDigits: 3, maximumSignificantDigits: 3 };
export function percent(share) {
  if (share === 0 || (share > 0.99 && share < 1)) return nearly(share); // it is never rounded to 100 %
  return `${formatNumber(100 * share, DIGITS).replace("-", "−")}\u00a0%`;
}
const roundPercent = (share) => `${formatNumber(100 * share, { maximumSignificantDigits: 6 })}\u00a0%`;

/** A share lies between 0 and 1, but an unbiased estimate may lie outside. It is drawn at the nearest end, with its own value beside it. */
const clipShare = (share) => Math.min(Math.max(share, 0), 1);
const unbiasedNote = ({ estimate }) => (clipShare(estimate) === estimate ? "" : phrase("unbiased", { share: percent(estimate) }));

/** The position or length of a share, in percent of the axis. */
const barPosition = (share, top) => `${(100 * Math.min(clipShare(share), top)) / top}%`;

/** {top, step} of an axis in round numbers: an end that contains all intervals, and a step that divides it into a few parts. */
export function axisEnds(shares, parts = 5) {
  const most = Math.min(1, shares.reduce((top, { law }) => Math.max(top, law.high, law.estimate), 1e-6));
  const rough = most / parts;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((round) => round * power >= rough);
  return { step, top: Math.min(1, step * Math.ceil(most / step - 1e-9)) };
}

const axisTicks = ({ top, step }) => Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, place) => place * step);
const intervalText = ({ low, high }) => phrase("between", { low: percent(low), high: percent(high) });

/** Put the numbers of an outcome with all their digits into its dataset, for checks. */
function setNumbers(part, { samples, law }) {
  Object.assign(part.dataset, { samples, estimate: law.estimate, low: law.low, high: law.high });
}

export class Rows {
  constructor(body, scale) {
    Object.assign(this, { body, scale, rows: new Map() });
  }

  /** `shown`: the places of outcomes, in the order they are shown. `ends`: {top, step} of the scale, if other lists share it. */
  show(shares, shown, ends = axisEnds(shares)) {
    this.scale.replaceChildren(
      ...axisTicks(ends).map((share) => {
        const mark = element("span", {}, roundPercent(share));
        mark.style.insetInlineStart = barPosition(share, ends.top);
        return mark;
      }),
    );
    this.body.style.setProperty("--step", barPosition(ends.step, ends.top));
    const rows = new Map(shown.map((place) => [place, this.rows.get(place) ?? shareRow(shares[place].outcome)]));
    const lines = [...rows.values()].map(({ line }) => line);
    if (lines.length !== this.body.children.length || lines.some((line, place) => line !== this.body.children[place])) this.body.replaceChildren(...lines);
    this.rows = rows;
    for (const [place, { line, bar, whisker, share, range, own }] of rows) {
      const { law } = shares[place];
      setNumbers(line, shares[place]);
      bar.style.inlineSize = barPosition(law.estimate, ends.top);
      whisker.style.insetInlineStart = barPosition(law.low, ends.top);
      whisker.style.inlineSize = barPosition(clipShare(law.high) - clipShare(law.low), ends.top);
      share.textContent = percent(clipShare(law.estimate));
      own.textContent = unbiasedNote(law);
      range.textContent = intervalText(law);
    }
  }
}

function shareRow(outcome) {
  const [bar, whisker] = ["estimate", "whisker"].map((kind) => element("span", { class: kind }));
  const share = element("span", { class: "share" }), range = element("span", { class: "range" }), own = element("span", { class: "unbiased" });
  const line = element(
    "li", { class: "bar" },
    element("bdi", { class: "name" }, visibleLabel(outcome)),
    element("span", { class: "track", "aria-hidden": "true" }, bar, whisker),
    element("span", { class: "told" }, share, range, own),
  );
  return { line, bar, whisker, share, range, own };
}

const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [320, 58, 10, 12, 34];
const NARROWEST = 5; // pixels of a bar with a whisker of its own; narrower bars share a band

/** Show the shares as a histogram that is `width` pixels wide. Returns whether it shows a band, because bars are too narrow. */
export function showHistogram(body, shares, width) {
  const ends = axisEnds(shares, 4);
  const each = (width - LEFT - RIGHT) / shares.length;
  const x = (place) => (LEFT + each * place).toFixed(2);
  const y = (share) => (HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * Math.min(Math.max(share, 0), ends.top)) / ends.top).toFixed(2);
  const grid = axisTicks(ends).flatMap((share) => [
    element("line", { x1: LEFT, x2: width - RIGHT, y1: y(share), y2: y(share), class: share ? "grid" : "axes" }),
    element("text", { x: LEFT - 8, y: Number(y(share)) + 5, "text-anchor": "end" }, roundPercent(share)),
  ]);
  const banded = each < NARROWEST;
  const drawn = banded ? bandShapes(shares, x, y) : barShapes(shares, x, y, each);
  body.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  body.setAttribute("height", HEIGHT);
  body.replaceChildren(...grid, ...drawn, ...axisNames(shares, x, each));
  return banded;
}

function barShapes(shares, x, y, each) {
  const gap = Math.min(each * 0.12, 6), cap = Math.min(each * 0.22, 7);
  return shares.map((share, place) => {
    const { law, outcome } = share;
    const [left, middle] = [Number(x(place)) + gap, Number(x(place)) + each / 2];
    const found = element(
      "g", { class: "cell" },
      element("title", {}, `${visibleLabel(outcome)}: ${[percent(clipShare(law.estimate)), intervalText(law), unbiasedNote(law)].filter(Boolean).join(", ")}`),
      element("rect", { class: "estimate", x: left, width: Math.max(each - 2 * gap, 1), y: y(law.estimate), height: Math.max(y(0) - y(law.estimate), 0) }),
      element("path", { class: "top", d: `M${left} ${y(law.estimate)}h${Math.max(each - 2 * gap, 1)}` }),
      element("path", { class: "whisker", d: `M${middle - cap} ${y(law.high)}h${2 * cap}M${middle} ${y(law.high)}V${y(law.low)}M${middle - cap} ${y(law.low)}h${2 * cap}` }),
    );
    setNumbers(found, share);
    return found;
  });
}

/** Steps from bar to bar: a filled band between the lower and the upper ends, and a line along the estimates. */
function bandShapes(shares, x, y) {
  const along = (of, places) => places.map((place, index) => `${index ? "L" : ""}${x(place)} ${of(place)}L${x(place + 1)} ${of(place)}`);
  const places = shares.map((_, place) => place);
  const back = places.toReversed().map((place) => `L${x(place + 1)} ${y(shares[place].law.low)}L${x(place)} ${y(shares[place].law.low)}`);
  return [
    element("path", { class: "band", d: `M${along((place) => y(shares[place].law.high), places).join("")}${back.join("")}Z` }),
    element("path", { class: "steps", d: `M${along((place) => y(shares[place].law.estimate), places).join("")}` }),
  ];
}

/** The texts under the axis, as many as have room: the ends of cells if all outcomes are cells, otherwise the outcomes. */
function axisNames(shares, x, each) {
  const cells = shares.map(({ outcome }) => /^(\S+) to (\S+)$/.exec(outcome));
  const edges = cells.every(Boolean) ? [...cells.map((cell) => cell[1]), cells.at(-1)[2]].map(plainNumber) : null;
  const told = edges ?? shares.map(({ outcome }) => visibleLabel(outcome));
  const widest = 9 * told.reduce((most, { length }) => Math.max(most, length), 0) + 14;
  const every = roundUp(Math.max(1, widest / each));
  return told
    .map((text, place) => [text, place])
    .filter(([, place]) => place % every === 0)
    .map(([text, place]) => element("text", { x: Number(x(place)) + (edges ? 0 : each / 2), y: HEIGHT - BOTTOM + 22, "text-anchor": "middle" }, text));
}

const plainNumber = (number) => (Number.isFinite(Number(number)) ? String(Number(number)) : number);

/** The smallest of 1, 2, 5, 10, 20, ... that is at least `value`. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((round) => round * power >= value - 1e-9);
}

/** A table row with all numbers for each outcome, up to `MANY` of them. */
export function tableRows(shares) {
  return shares.slice(0, MANY).map(({ outcome, samples, law }) =>
    element(
      "tr", {},
      element("th", { scope: "row" }, element("bdi", {}, visibleLabel(outcome))),
      element("td", {}, formatNumber(samples)),
      element("td", {}, percent(law.estimate)),
      element("td", {}, intervalText(law)),
      element("td", {}, intervalText({ low: law.all_low, high: law.all_high })),
    ),
  );
}

/** Half the width of the widest interval. */
export const widestMargin = (shares) => shares.reduce((most, { law }) => Math.max(most, (law.high - law.low) / 2), 0);

/** The places of the largest shares, the largest first. */
export function largestPlaces(shares, most) {
  const places = shares.map((_, place) => place).sort((one, other) => shares[other].law.estimate - shares[one].law.estimate || one - other);
  return places.slice(0, most);
}
