/** Samples and reports as people read them: by what outcomes are called, and what a report is about. */
import { numbered, phrase } from "../page/catalogue.js";
import { isolated, labelled, partTold, percentAtLeast } from "../page/words.js";
import { optionTold, saidOf } from "./question.js";

const MOST_NAMED = 200; // outcomes of a report that are listed

/** What a column of a survey is called in these questions. */
export const calledIn = (questions) => (name) => labelled(saidOf(questions?.columns, name)?.title ?? name);

/** A sample as people call it, or the outcomes that a report names. */
export function sampleTold(agreement, sample, questions) {
  const { domain, reports, survey } = agreement;
  if (survey) return listed(agreement.outcomesOf(sample), (place) => answerTold(survey.parts[survey.partOf(sample)].view, place, questions));
  if (!reports) return optionTold(questions, String(domain.name(domain.number(sample))));
  return listed(agreement.outcomesOf(sample), (place) => optionTold(questions, String(domain.name(place))));
}

/** So many names as people read. */
function listed(places, name) {
  const shown = places.slice(0, MOST_NAMED).map((place) => isolated(name(place))).join(", ");
  return places.length > MOST_NAMED ? `${shown} ${phrase("and-more", { n: places.length - MOST_NAMED })}` : shown;
}

/** An answer as a part of a survey sees it: of columns together, a cell, or a point. */
function answerTold({ columns, column, cells, points }, place, questions) {
  if (columns) {
    const names = [];
    for (const { name, domain } of columns.toReversed()) {
      names.unshift(optionTold(saidOf(questions?.columns, name), String(domain.name(place % domain.size))));
      place = Math.floor(place / domain.size);
    }
    return names.join(" × ");
  }
  const { low, high } = column.domain;
  const at = (part) => numbered(low + (high - low) * part, { maximumSignificantDigits: 5 });
  return cells ? phrase("range", { low: at(place / cells), high: at((place + 1) / cells) }) : at(place / (points - 1));
}

/** What a report is, or a randomised answer; nothing where it is a sample. */
export function reportTold(agreement, sample, questions) {
  const { survey } = agreement;
  if (survey) {
    const part = survey.parts[survey.partOf(sample)];
    return `${phrase("coin-chose", { part: isolated(partTold(part, calledIn(questions))) })} ${phrase("report-told", { n: agreement.outcomesOf(sample).length, share: percentAtLeast(part.blind) })}`;
  }
  if (!agreement.reports) return questions ? phrase("answer-told") : "";
  return phrase("report-told", { n: agreement.outcomesOf(sample).length, share: percentAtLeast(agreement.reports.chances.blind) });
}
