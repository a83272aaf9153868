/** Answers side by side: to the questions of a survey, of several groups, and of two rounds. A panel is a heading with its numbers. */
import { formatNumber, phrase } from "../page/catalogue.js";
import { element, termElements } from "../page/element.js";
import { visibleLabel } from "../page/words.js";
import { optionText, ownField } from "./question.js";
import { columnTitlesIn } from "./sample-text.js";
import { axisEnds, FEW, largestPlaces, percent, Rows } from "./population.js";

const GROUP_ROWS = 6; // outcomes that are shown of each group
const formatValue = (number) => formatNumber(number, { maximumSignificantDigits: 4 }).replace("-", "−");
const confidenceText = (confidence) => `${formatNumber(100 * confidence)}\u00a0%`;
const hasShares = ({ kind }) => kind === "shares" || kind === "histogram";
const KINDS = ["shares", "histogram", "mean", "quantiles"];

/** The title of a question in the language of the page. `called`: a function from a column to its title. */
function titleOf({ kind, columns, question, unit }, called = visibleLabel) {
  const asked = KINDS.includes(kind) ? phrase(`question-${kind}`, { columns: columns.map(called).join(" × ") }) : question;
  return unit ? phrase("in-unit", { question: asked, unit }) : asked;
}

/** The numbers of an answer as rows for `Rows`. `together`: with the intervals that hold for all numbers at once. */
const shareRows = (answers, samples, together) =>
  answers.map(({ name, estimate, low, high, all_low, all_high }) => ({ outcome: name, samples, law: { estimate, low: together ? all_low : low, high: together ? all_high : high } }));

/** The panels in a part of the page. They are built again only if the headings change, so that nothing moves while somebody reads. */
export class Panels {
  constructor(body) {
    Object.assign(this, { body, known: "", made: [] });
  }

  /** `panels`: [{title, note, rows, shown, ends, values}], with either rows of shares, or values as [heading, sentence] pairs. */
  show(panels) {
    const heads = JSON.stringify(panels.map(({ title, rows, level = 3 }) => [title, Boolean(rows), level]));
    if (this.known !== heads) {
      this.known = heads;
      this.made = panels.map(createPanel);
      this.body.replaceChildren(...this.made.map(({ part }) => part));
    }
    for (const [place, { note, rows, shown, ends, values }] of panels.entries()) {
      const made = this.made[place];
      if (made.note.textContent !== note) made.note.textContent = note;
      made.note.hidden = !note;
      if (rows) made.rows.show(rows, shown, ends);
      else {
        const pairs = JSON.stringify(values ?? []);
        if (made.list.dataset.said !== pairs) made.list.replaceChildren(...termElements(values ?? []));
        made.list.dataset.said = pairs;
      }
    }
  }
}

function createPanel({ title, rows, level = 3 }) {
  const note = element("p", { class: "quiet" });
  const heading = element(`h${level}`, { dir: "auto" }, title);
  if (!rows) {
    const list = element("dl", { class: "words" });
    return { part: element("div", { class: level === 3 ? "panel-head" : "panel" }, heading, note, list), note, list };
  }
  const [scale, list] = [element("div"), element("ul", { class: "shares" })];
  return { part: element("div", { class: "panel" }, heading, note, element("div", { class: "scale", "aria-hidden": "true" }, scale), list), note, rows: new Rows(list, scale) };
}

/** The places of the rows that are shown, at most `most`: the largest shares, or the first in order if they have one. */
const shownPlaces = (question, rows, most) => (question.kind === "shares" ? largestPlaces(rows, most) : rows.map((_, place) => place).slice(0, most));

const statisticPairs = (answers, confidence, together) =>
  answers.map(({ name, estimate, low, high, all_low, all_high }) => [
    visibleLabel(name),
    estimate === null ? phrase("not-known") : phrase("statistic", { estimate: formatValue(estimate), low: formatValue(together ? all_low : low), high: formatValue(together ? all_high : high), sure: confidenceText(confidence) }),
  ]);

/** The answers to all questions of a survey. `words`: the questions that people read, if there are any. */
export function answerPanels({ questions, confidence }, words) {
  const called = columnTitlesIn(words);
  return questions.map((given) => {
    const options = given.kind === "shares" && given.columns.length === 1 ? ownField(words?.columns, given.columns[0]) : undefined;
    const question = options ? { ...given, answers: given.answers.map((answer) => ({ ...answer, name: optionText(options, String(answer.name)) })) } : given;
    const { answers, clients } = question;
    const known = answers.every(({ estimate }) => estimate !== null);
    const note = !known ? phrase("not-known") : clients ? phrase("asked-it", { n: clients }) : phrase("told-by-tables");
    if (!known) return { title: titleOf(question, called), note, values: [] };
    if (!hasShares(question)) return { title: titleOf(question, called), note, values: statisticPairs(answers, confidence, false) };
    const rows = shareRows(answers, clients, answers.length > FEW);
    const more = answers.length > FEW ? ` ${phrase("largest-shown", { few: FEW, n: answers.length })}` : "";
    return { title: titleOf(question, called), note: note + more, rows, shown: shownPlaces(question, rows, FEW) };
  });
}

/** The groups of a collection side by side: from samples and reports, or from a survey. */
export function groupPanels(found) {
  if (Array.isArray(found.groups)) {
    const lists = found.groups.map(({ shares }) => shares.map(({ outcome, samples, reports, law }) => ({ outcome, samples: samples ?? reports, law: { ...law, low: law.all_low, high: law.all_high } })));
    return alignPanels(lists.map((rows, place) => ({ rows, title: visibleLabel(found.groups[place].group), note: phrase("group-samples", { n: found.groups[place].clients }) })), largestPlaces);
  }
  const names = Object.keys(found.groups);
  const [first] = Object.values(found.groups);
  return (first?.questions ?? []).flatMap((question, place) => {
    const each = names.map((name) => found.groups[name].questions[place]);
    const heading = { title: titleOf(question), note: "", values: [] };
    const panels = names.map((name, number) => ({ title: visibleLabel(name), note: phrase("asked-it", { n: each[number].clients }), level: 4 }));
    if (!each.every(({ answers }) => answers.every(({ estimate }) => estimate !== null))) return [heading, ...panels.map((panel) => ({ ...panel, values: [] }))];
    if (!hasShares(question)) return [heading, ...panels.map((panel, number) => ({ ...panel, values: statisticPairs(each[number].answers, found.confidence, true) }))];
    const rows = panels.map((panel, number) => ({ ...panel, rows: shareRows(each[number].answers, each[number].clients, true) }));
    return [heading, ...alignPanels(rows, (all, most) => shownPlaces(question, all, most))];
  });
}

/** The estimate from all stages of a collection together. */
export function stagePanels({ shares, clients }) {
  const rows = shares.map(({ outcome, law }) => ({ outcome, samples: clients, law: { ...law, low: law.all_low, high: law.all_high } }));
  const more = rows.length > FEW ? phrase("largest-shown", { few: FEW, n: rows.length }) : "";
  return [{ title: phrase("stages-together", { n: clients }), note: more, rows, shown: largestPlaces(rows, FEW) }];
}

/** Shares within groups that are themselves private: the outcomes of a survey's column. */
export const withinPanels = ({ questions }) =>
  questions.flatMap(({ question, groups }) => [
    { title: question, note: "", values: [] },
    ...alignPanels(
      Object.entries(groups).map(([name, answers]) => ({ title: visibleLabel(name), note: "", level: 4, rows: shareRows(answers.filter(({ estimate }) => estimate !== null), 0, true) })),
      largestPlaces,
    ),
  ]);

/** Panels with the same outcomes on one scale. `choose` takes the outcomes by their averages over the panels. */
function alignPanels(panels, choose) {
  const [first] = panels;
  const same = panels.filter(({ rows }) => rows.length === first.rows.length);
  const mean = first.rows.map(({ outcome }, place) => ({ outcome, law: { estimate: same.reduce((sum, { rows }) => sum + rows[place].law.estimate, 0) } }));
  const shown = choose(mean, GROUP_ROWS);
  const ends = axisEnds(panels.flatMap(({ rows }) => rows), 3); // panels are narrow
  return panels.map((panel) => ({ ...panel, shown: shown.filter((place) => place < panel.rows.length), ends }));
}

/** The rows of the table of changes: shares before other numbers, each with the largest changes first. */
export function changeRows(found) {
  const changes = found.changes.flatMap((each, place) => {
    if (!each.answers) return [{ name: each.outcome, law: each.change, shares: true }];
    const question = found.after.questions[place];
    return each.answers.map((answer) => ({ question: titleOf(question), name: answer.name, law: answer, shares: hasShares(question) }));
  });
  const known = changes.filter(({ law }) => law.estimate !== null);
  return known
    .map((change, place) => [change, place])
    .sort(([one, a], [other, b]) => Number(other.shares) - Number(one.shares) || Math.abs(other.law.estimate) - Math.abs(one.law.estimate) || a - b)
    .slice(0, 2 * FEW)
    .map(([{ question, name, law, shares }]) => {
      const write = shares ? percent : formatValue;
      const verdict = law.all_low > 0 ? phrase("rose") : law.all_high < 0 ? phrase("fell") : "";
      const row = element(
        "tr", {},
        element("th", { scope: "row" }, element("bdi", {}, question ? `${question}: ${visibleLabel(name)}` : visibleLabel(name))),
        element("td", {}, write(law.estimate)),
        element("td", {}, phrase("between", { low: write(law.all_low), high: write(law.all_high) })),
        element("td", {}, verdict),
      );
      Object.assign(row.dataset, { change: law.estimate, low: law.all_low, high: law.all_high });
      return row;
    });
}
