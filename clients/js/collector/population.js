/** The population as it is known so far: a row for each label, the largest first; numbers and cells as a histogram, in their order. */
import { element } from "../page/element.js";
import { numbered, phrase } from "../page/catalogue.js";
import { labelled, percent as nearly } from "../page/words.js";

export const FEW = 15; // rows that are shown unasked
export const MANY = 2000; // and at most

/** As many digits for each, so that columns of them can be compared. */
const DIGITS = { minimumSignificantDigits: 3, maximumSignificantDigits: 3 };
export function percent(share) {
  if (share === 0 || (share > 0.99 && share < 1)) return nearly(share); // which is not rounded to 100
  return `${numbered(100 * share, DIGITS).replace("-", "−")}\u00a0%`;
}
const round = (share) => `${numbered(100 * share, { maximumSignificantDigits: 6 })}\u00a0%`;

/** A share is from 0 to 1, which an unbiased estimate of it need not be: it is drawn as the nearest, and stands beside it as it is. */
const within = (share) => Math.min(Math.max(share, 0), 1);
const unbiased = ({ estimate }) => (within(estimate) === estimate ? "" : phrase("unbiased", { share: percent(estimate) }));

/** Where a share is drawn: 0 to the end of the axis. */
const placed = (share, top) => `${(100 * Math.min(within(share), top)) / top}%`;

/** The end of an axis that holds all intervals, and a step that divides it into a few parts, in round numbers. */
export function axis(shares, parts = 5) {
  const most = Math.min(1, shares.reduce((top, { law }) => Math.max(top, law.high, law.estimate), 1e-6));
  const rough = most / parts;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((round) => round * power >= rough);
  return { step, top: Math.min(1, step * Math.ceil(most / step - 1e-9)) };
}

const ticks = ({ top, step }) => Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, place) => place * step);
const between = ({ low, high }) => phrase("between", { low: percent(low), high: percent(high) });

/** Numbers to all their digits, for whoever checks them. */
function note(part, { samples, law }) {
  Object.assign(part.dataset, { samples, estimate: law.estimate, low: law.low, high: law.high });
}

export class Rows {
  constructor(body, scale) {
    Object.assign(this, { body, scale, rows: new Map() });
  }

  /** `shown`: the places of outcomes, in the order they are shown. `ends`: of the scale, where others have the same. */
  show(shares, shown, ends = axis(shares)) {
    this.scale.replaceChildren(
      ...ticks(ends).map((share) => {
        const mark = element("span", {}, round(share));
        mark.style.insetInlineStart = placed(share, ends.top);
        return mark;
      }),
    );
    this.body.style.setProperty("--step", placed(ends.step, ends.top));
    const rows = new Map(shown.map((place) => [place, this.rows.get(place) ?? row(shares[place].outcome)]));
    const lines = [...rows.values()].map(({ line }) => line);
    if (lines.length !== this.body.children.length || lines.some((line, place) => line !== this.body.children[place])) this.body.replaceChildren(...lines);
    this.rows = rows;
    for (const [place, { line, bar, whisker, share, range, own }] of rows) {
      const { law } = shares[place];
      note(line, shares[place]);
      bar.style.inlineSize = placed(law.estimate, ends.top);
      whisker.style.insetInlineStart = placed(law.low, ends.top);
      whisker.style.inlineSize = placed(within(law.high) - within(law.low), ends.top);
      share.textContent = percent(within(law.estimate));
      own.textContent = unbiased(law);
      range.textContent = between(law);
    }
  }
}

function row(outcome) {
  const [bar, whisker] = ["estimate", "whisker"].map((kind) => element("span", { class: kind }));
  const share = element("span", { class: "share" }), range = element("span", { class: "range" }), own = element("span", { class: "unbiased" });
  const line = element(
    "li", { class: "bar" },
    element("bdi", { class: "name" }, labelled(outcome)),
    element("span", { class: "track", "aria-hidden": "true" }, bar, whisker),
    element("span", { class: "told" }, share, range, own),
  );
  return { line, bar, whisker, share, range, own };
}

const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [320, 58, 10, 12, 34];
const NARROWEST = 5; // pixels of a bar that has a whisker of its own; narrower ones have a band in common

/** The same as a picture that is `width` pixels wide. Returns whether bars are too narrow to be told apart, and it shows a band. */
export function histogram(body, shares, width) {
  const ends = axis(shares, 4);
  const each = (width - LEFT - RIGHT) / shares.length;
  const x = (place) => (LEFT + each * place).toFixed(2);
  const y = (share) => (HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * Math.min(Math.max(share, 0), ends.top)) / ends.top).toFixed(2);
  const grid = ticks(ends).flatMap((share) => [
    element("line", { x1: LEFT, x2: width - RIGHT, y1: y(share), y2: y(share), class: share ? "grid" : "axes" }),
    element("text", { x: LEFT - 8, y: Number(y(share)) + 5, "text-anchor": "end" }, round(share)),
  ]);
  const banded = each < NARROWEST;
  const drawn = banded ? band(shares, x, y) : bars(shares, x, y, each);
  body.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  body.setAttribute("height", HEIGHT);
  body.replaceChildren(...grid, ...drawn, ...names(shares, x, each));
  return banded;
}

function bars(shares, x, y, each) {
  const gap = Math.min(each * 0.12, 6), cap = Math.min(each * 0.22, 7);
  return shares.map((share, place) => {
    const { law, outcome } = share;
    const [left, middle] = [Number(x(place)) + gap, Number(x(place)) + each / 2];
    const found = element(
      "g", { class: "cell" },
      element("title", {}, `${labelled(outcome)}: ${[percent(within(law.estimate)), between(law), unbiased(law)].filter(Boolean).join(", ")}`),
      element("rect", { class: "estimate", x: left, width: Math.max(each - 2 * gap, 1), y: y(law.estimate), height: Math.max(y(0) - y(law.estimate), 0) }),
      element("path", { class: "top", d: `M${left} ${y(law.estimate)}h${Math.max(each - 2 * gap, 1)}` }),
      element("path", { class: "whisker", d: `M${middle - cap} ${y(law.high)}h${2 * cap}M${middle} ${y(law.high)}V${y(law.low)}M${middle - cap} ${y(law.low)}h${2 * cap}` }),
    );
    note(found, share);
    return found;
  });
}

/** Steps from bar to bar: a filled band from the lower to the upper ends, and a line along the estimates. */
function band(shares, x, y) {
  const along = (of, places) => places.map((place, index) => `${index ? "L" : ""}${x(place)} ${of(place)}L${x(place + 1)} ${of(place)}`);
  const places = shares.map((_, place) => place);
  const back = places.toReversed().map((place) => `L${x(place + 1)} ${y(shares[place].law.low)}L${x(place)} ${y(shares[place].law.low)}`);
  return [
    element("path", { class: "band", d: `M${along((place) => y(shares[place].law.high), places).join("")}${back.join("")}Z` }),
    element("path", { class: "steps", d: `M${along((place) => y(shares[place].law.estimate), places).join("")}` }),
  ];
}

/** What stands under the axis: the ends of cells where outcomes are cells, else the outcomes; as many as have room. */
function names(shares, x, each) {
  const cells = shares.map(({ outcome }) => /^(\S+) to (\S+)$/.exec(outcome));
  const edges = cells.every(Boolean) ? [...cells.map((cell) => cell[1]), cells.at(-1)[2]].map(trimmed) : null;
  const told = edges ?? shares.map(({ outcome }) => labelled(outcome));
  const widest = 9 * told.reduce((most, { length }) => Math.max(most, length), 0) + 14;
  const every = roundUp(Math.max(1, widest / each));
  return told
    .map((text, place) => [text, place])
    .filter(([, place]) => place % every === 0)
    .map(([text, place]) => element("text", { x: Number(x(place)) + (edges ? 0 : each / 2), y: HEIGHT - BOTTOM + 22, "text-anchor": "middle" }, text));
}

const trimmed = (number) => (Number.isFinite(Number(number)) ? String(Number(number)) : number);

/** The next of 1, 2, 5, 10, 20, ... */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((round) => round * power >= value - 1e-9);
}

/** All numbers, a row for each outcome. */
export function rowsOfTable(shares) {
  return shares.slice(0, MANY).map(({ outcome, samples, law }) =>
    element(
      "tr", {},
      element("th", { scope: "row" }, element("bdi", {}, labelled(outcome))),
      element("td", {}, numbered(samples)),
      element("td", {}, percent(law.estimate)),
      element("td", {}, between(law)),
      element("td", {}, between({ low: law.all_low, high: law.all_high })),
    ),
  );
}

/** How far the widest interval reaches to each side of its middle. */
export const widest = (shares) => shares.reduce((most, { law }) => Math.max(most, (law.high - law.low) / 2), 0);

/** The places of the largest shares, the largest first. */
export function largest(shares, most) {
  const places = shares.map((_, place) => place).sort((one, other) => shares[other].law.estimate - shares[one].law.estimate || one - other);
  return places.slice(0, most);
}
