/** Answers side by side: to the questions of a survey, of groups, and of an earlier round and a later one. A panel is a heading and its numbers. */
import { numbered, phrase } from "../page/catalogue.js";
import { element, told } from "../page/element.js";
import { labelled } from "../page/words.js";
import { optionTold, saidOf } from "./question.js";
import { calledIn } from "./sample-text.js";
import { axis, FEW, largest, percent, Rows } from "./population.js";

const GROUP_ROWS = 6; // outcomes of each group that are shown
const value = (number) => numbered(number, { maximumSignificantDigits: 4 }).replace("-", "−");
const often = (confidence) => `${numbered(100 * confidence)}\u00a0%`;
const sharesOf = ({ kind }) => kind === "shares" || kind === "histogram";
const KINDS = ["shares", "histogram", "mean", "quantiles"];

/** What a question asks for, in the language of the page. `called`: what columns are called, where that was written. */
function titleOf({ kind, columns, question, unit }, called = labelled) {
  const asked = KINDS.includes(kind) ? phrase(`question-${kind}`, { columns: columns.map(called).join(" × ") }) : question;
  return unit ? phrase("in-unit", { question: asked, unit }) : asked;
}

/** The numbers of an answer as rows of a picture. `together`: with the intervals that hold for all at once. */
const rowsOf = (answers, samples, together) =>
  answers.map(({ name, estimate, low, high, all_low, all_high }) => ({ outcome: name, samples, law: { estimate, low: together ? all_low : low, high: together ? all_high : high } }));

/** Panels in a part of the page: built anew only where another heading is shown, so that nothing moves while somebody reads. */
export class Panels {
  constructor(body) {
    Object.assign(this, { body, known: "", made: [] });
  }

  /** `panels`: [{title, note, rows, shown, ends, values}], with rows of shares, or values as [heading, sentence] pairs. */
  show(panels) {
    const heads = JSON.stringify(panels.map(({ title, rows, level = 3 }) => [title, Boolean(rows), level]));
    if (this.known !== heads) {
      this.known = heads;
      this.made = panels.map(panel);
      this.body.replaceChildren(...this.made.map(({ part }) => part));
    }
    for (const [place, { note, rows, shown, ends, values }] of panels.entries()) {
      const made = this.made[place];
      if (made.note.textContent !== note) made.note.textContent = note;
      made.note.hidden = !note;
      if (rows) made.rows.show(rows, shown, ends);
      else {
        const pairs = JSON.stringify(values ?? []);
        if (made.list.dataset.said !== pairs) made.list.replaceChildren(...told(values ?? []));
        made.list.dataset.said = pairs;
      }
    }
  }
}

function panel({ title, rows, level = 3 }) {
  const note = element("p", { class: "quiet" });
  const heading = element(`h${level}`, { dir: "auto" }, title);
  if (!rows) {
    const list = element("dl", { class: "words" });
    return { part: element("div", { class: level === 3 ? "panel-head" : "panel" }, heading, note, list), note, list };
  }
  const [scale, list] = [element("div"), element("ul", { class: "shares" })];
  return { part: element("div", { class: "panel" }, heading, note, element("div", { class: "scale", "aria-hidden": "true" }, scale), list), note, rows: new Rows(list, scale) };
}

/** Which rows are shown: the largest shares first, or all in their order where they have one. */
const placesOf = (question, rows, most) => (question.kind === "shares" ? largest(rows, most) : rows.map((_, place) => place).slice(0, most));

const statisticsOf = (answers, confidence, together) =>
  answers.map(({ name, estimate, low, high, all_low, all_high }) => [
    labelled(name),
    estimate === null ? phrase("not-known") : phrase("statistic", { estimate: value(estimate), low: value(together ? all_low : low), high: value(together ? all_high : high), sure: often(confidence) }),
  ]);

/** The answers to all questions of a survey. `words`: what people were asked, if that was written. */
export function answersOf({ questions, confidence }, words) {
  const called = calledIn(words);
  return questions.map((given) => {
    const options = given.kind === "shares" && given.columns.length === 1 ? saidOf(words?.columns, given.columns[0]) : undefined;
    const question = options ? { ...given, answers: given.answers.map((answer) => ({ ...answer, name: optionTold(options, String(answer.name)) })) } : given;
    const { answers, clients } = question;
    const known = answers.every(({ estimate }) => estimate !== null);
    const note = !known ? phrase("not-known") : clients ? phrase("asked-it", { n: clients }) : phrase("told-by-tables");
    if (!known) return { title: titleOf(question, called), note, values: [] };
    if (!sharesOf(question)) return { title: titleOf(question, called), note, values: statisticsOf(answers, confidence, false) };
    const rows = rowsOf(answers, clients, answers.length > FEW);
    const more = answers.length > FEW ? ` ${phrase("largest-shown", { few: FEW, n: answers.length })}` : "";
    return { title: titleOf(question, called), note: note + more, rows, shown: placesOf(question, rows, FEW) };
  });
}

/** The groups of a collection side by side: of samples and reports, or of a survey. */
export function groupsOf(found) {
  if (Array.isArray(found.groups)) {
    const lists = found.groups.map(({ shares }) => shares.map(({ outcome, samples, reports, law }) => ({ outcome, samples: samples ?? reports, law: { ...law, low: law.all_low, high: law.all_high } })));
    return sideBySide(lists.map((rows, place) => ({ rows, title: labelled(found.groups[place].group), note: phrase("group-samples", { n: found.groups[place].clients }) })), largest);
  }
  const names = Object.keys(found.groups);
  const [first] = Object.values(found.groups);
  return (first?.questions ?? []).flatMap((question, place) => {
    const each = names.map((name) => found.groups[name].questions[place]);
    const heading = { title: titleOf(question), note: "", values: [] };
    const panels = names.map((name, number) => ({ title: labelled(name), note: phrase("asked-it", { n: each[number].clients }), level: 4 }));
    if (!each.every(({ answers }) => answers.every(({ estimate }) => estimate !== null))) return [heading, ...panels.map((panel) => ({ ...panel, values: [] }))];
    if (!sharesOf(question)) return [heading, ...panels.map((panel, number) => ({ ...panel, values: statisticsOf(each[number].answers, found.confidence, true) }))];
    const rows = panels.map((panel, number) => ({ ...panel, rows: rowsOf(each[number].answers, each[number].clients, true) }));
    return [heading, ...sideBySide(rows, (all, most) => placesOf(question, all, most))];
  });
}

/** The stages of a collection together. */
export function stagesOf({ shares, clients }) {
  const rows = shares.map(({ outcome, law }) => ({ outcome, samples: clients, law: { ...law, low: law.all_low, high: law.all_high } }));
  const more = rows.length > FEW ? phrase("largest-shown", { few: FEW, n: rows.length }) : "";
  return [{ title: phrase("stages-together", { n: clients }), note: more, rows, shown: largest(rows, FEW) }];
}

/** Shares within the private groups of a survey's column. */
export const withinOf = ({ questions }) =>
  questions.flatMap(({ question, groups }) => [
    { title: question, note: "", values: [] },
    ...sideBySide(
      Object.entries(groups).map(([name, answers]) => ({ title: labelled(name), note: "", level: 4, rows: rowsOf(answers.filter(({ estimate }) => estimate !== null), 0, true) })),
      largest,
    ),
  ]);

/** The same outcomes in every panel, those that are largest on average, on one scale. */
function sideBySide(panels, choose) {
  const [first] = panels;
  const same = panels.filter(({ rows }) => rows.length === first.rows.length);
  const mean = first.rows.map(({ outcome }, place) => ({ outcome, law: { estimate: same.reduce((sum, { rows }) => sum + rows[place].law.estimate, 0) } }));
  const shown = choose(mean, GROUP_ROWS);
  const ends = axis(panels.flatMap(({ rows }) => rows), 3); // panels are narrow
  return panels.map((panel) => ({ ...panel, shown: shown.filter((place) => place < panel.rows.length), ends }));
}

/** The rows of the table of changes, the largest first. */
export function changesOf(found) {
  const changes = found.changes.flatMap((each, place) => {
    if (!each.answers) return [{ name: each.outcome, law: each.change, shares: true }];
    const question = found.after.questions[place];
    return each.answers.map((answer) => ({ question: titleOf(question), name: answer.name, law: answer, shares: sharesOf(question) }));
  });
  const known = changes.filter(({ law }) => law.estimate !== null);
  return known
    .map((change, place) => [change, place])
    .sort(([one, a], [other, b]) => Number(other.shares) - Number(one.shares) || Math.abs(other.law.estimate) - Math.abs(one.law.estimate) || a - b)
    .slice(0, 2 * FEW)
    .map(([{ question, name, law, shares }]) => {
      const write = shares ? percent : value;
      const verdict = law.all_low > 0 ? phrase("rose") : law.all_high < 0 ? phrase("fell") : "";
      const row = element(
        "tr", {},
        element("th", { scope: "row" }, element("bdi", {}, question ? `${question}: ${labelled(name)}` : labelled(name))),
        element("td", {}, write(law.estimate)),
        element("td", {}, phrase("between", { low: write(law.all_low), high: write(law.all_high) })),
        element("td", {}, verdict),
      );
      Object.assign(row.dataset, { change: law.estimate, low: law.all_low, high: law.all_high });
      return row;
    });
}
