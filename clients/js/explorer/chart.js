/** The bars of a client, and the curve of the worst case against epsilon. Marks differ in shape as well as in colour. Labels are plain text. */
import { element } from "../page/element.js";
import { percent, shortNumber } from "../page/words.js";
import { MECHANISMS, WORST, worstOf } from "./model.js";

export const NAMES = { optimal: "Optimal (Q*)", linear: "Linear", mollifier: "Mollifier", designed: "Designed for the spread" };

/** One row for each outcome: a slider for the client's bar, the box, the output probability, and how often it came in 1,000 draws. */
export class Bars {
  constructor(body, onchange, ondrag) {
    Object.assign(this, { body, onchange, ondrag, rows: [], labels: "", scale: 1, dragged: false });
  }

  /** Move the end of a bar to the pointer while it is pressed. */
  follow(track, place, slider) {
    const move = (event) => {
      const { left, width } = track.getBoundingClientRect();
      this.ondrag(place, (Math.min(Math.max((event.clientX - left) / width, 0), 1)) * this.scale);
    };
    track.addEventListener("pointerdown", (event) => {
      track.setPointerCapture(event.pointerId);
      slider.focus();
      this.dragged = true;
      move(event);
    });
    track.addEventListener("pointermove", (event) => this.dragged && track.hasPointerCapture(event.pointerId) && move(event));
    for (const end of ["pointerup", "pointercancel"]) {
      track.addEventListener(end, () => {
        this.dragged = false;
        this.ondrag(place, null);
      });
    }
  }

  show({ labels, counts }, sampler, drawn) {
    if (labels.join("\n") !== this.labels || this.rows.length !== labels.length) this.build(labels);
    const top = Math.max(100, ...counts);
    if (!this.dragged) this.scale = Math.max(...sampler.p, ...sampler.output, sampler.box.upper);
    const { scale } = this;
    const across = (share) => `${Math.min((100 * share) / scale, 100)}%`;
    this.rows.forEach((row, place) => {
      const [p, q] = [sampler.p[place], sampler.output[place]];
      if (document.activeElement !== row.slider) row.slider.max = top;
      row.slider.value = counts[place];
      row.slider.setAttribute("aria-valuetext", `${counts[place]}: ${percent(p)} held, ${percent(q)} drawn from`);
      row.held.style.inlineSize = across(p);
      row.box.style.insetInlineStart = across(sampler.box.lower);
      row.box.style.inlineSize = across(sampler.box.upper - sampler.box.lower);
      row.law.style.insetInlineStart = across(q);
      row.draws.style.inlineSize = across(drawn[place] / 1000);
      row.told.textContent = `${percent(p)} → ${percent(q)}`;
      row.count.textContent = `${drawn[place]} of 1,000`;
    });
  }

  build(labels) {
    this.labels = labels.join("\n");
    this.rows = labels.map((label, place) => {
      const [held, box, law, draws] = ["held", "box", "law", "draws"].map((kind) => element("span", { class: kind }));
      const slider = element("input", {
        type: "range", min: 0, max: 100, step: 1, id: `bar-${place}`, "aria-describedby": "bars-help",
        oninput: () => this.onchange(place, Number(slider.value)),
      });
      const name = element("label", { class: "name", for: `bar-${place}`, dir: "auto" }, label || "(empty)");
      const told = element("span", { class: "told" }), count = element("span", { class: "count" });
      const track = element("div", { class: "track" }, box, held, draws, law, slider);
      this.follow(track, place, slider);
      return { held, box, law, draws, slider, told, count, line: element("div", { class: "bar" }, name, track, told, count) };
    });
    this.body.replaceChildren(...this.rows.map(({ line }) => line));
  }
}

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [640, 300, 52, 40, 14, 150];
const LAST = 8; // the largest epsilon of the curve

/** Draw what the worst client pays against epsilon, for each mechanism, with the current epsilon and the target. */
export function drawCurve(body, { labels, epsilon, spread, measure, target, shown }) {
  const size = labels.length;
  const steps = Array.from({ length: 81 }, (_, step) => Math.max(0.01, (LAST * step) / 80));
  const paid = Object.fromEntries(MECHANISMS.map((name) => [name, steps.map((at) => WORST[measure](worstOf(name, size, at, spread)))]));
  const top = measure === "tv" ? 1 : measure === "hellinger" ? 2 : Math.max(...MECHANISMS.map((name) => paid[name][0])) || 1;
  const x = (at) => LEFT + ((WIDTH - LEFT - RIGHT) * Math.min(at, LAST)) / LAST;
  const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * Math.min(value, top)) / top;
  const path = (name) => paid[name].map((value, step) => `${step ? "L" : "M"}${x(steps[step]).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const drawn = MECHANISMS.filter((name) => name !== "linear");
  const ends = drawn.map((name) => y(paid[name].at(-30)));
  const order = drawn.map((_, place) => place).sort((one, other) => ends[one] - ends[other]);
  const heights = [];
  order.forEach((place, rank) => (heights[place] = Math.max(ends[place], rank ? heights[order[rank - 1]] + 22 : TOP + 8)));
  const marks = drawn.flatMap((name, place) => [
    element("path", { d: path(name), class: `line ${name}${name === shown || (shown === "linear" && name === "optimal") ? " shown" : ""}` }),
    element("text", { x: WIDTH - RIGHT + 10, y: heights[place] + 4, class: `end ${name}` }, name === "optimal" ? "Q* and linear" : name),
  ]);
  const ticks = [0, 2, 4, 6, 8].map((at) => element("text", { x: x(at), y: HEIGHT - BOTTOM + 20, "text-anchor": "middle" }, String(at)));
  const heightsTold = [0, 0.5, 1].map((part) => element("text", { x: LEFT - 8, y: y(part * top) + 4, "text-anchor": "end" }, shortNumber(part * top)));
  const here = element("line", { x1: x(epsilon), x2: x(epsilon), y1: TOP, y2: HEIGHT - BOTTOM, class: "here" });
  const aim = target <= top ? [element("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(target), y2: y(target), class: "aim" })] : [];
  const axes = element("path", { d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}`, class: "axes" });
  const under = element("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, "epsilon");
  body.replaceChildren(axes, ...ticks, ...heightsTold, under, ...aim, here, ...marks);
}
