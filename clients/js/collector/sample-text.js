/** Samples and reports in words: the names of their outcomes, and what a report is about. */
import { formatNumber, phrase } from "../page/catalogue.js";
import { isolatedLabel, partName, percentAtLeast, visibleLabel } from "../page/words.js";
import { optionText, ownField } from "./question.js";

const MOST_NAMED = 200; // outcomes of a report that are listed at most

/** A function that gives the title of a survey's column in these questions, or else its name. */
export const columnTitlesIn = (questions) => (name) => visibleLabel(ownField(questions?.columns, name)?.title ?? name);

/** The name of the sampled outcome, or the names of all outcomes in a report. */
export function sampleText(agreement, sample, questions) {
  const { domain, reports, survey } = agreement;
  if (survey) return nameList(agreement.outcomesOf(sample), (place) => partOutcomeText(survey.parts[survey.partOf(sample)].view, place, questions));
  if (!reports) return optionText(questions, String(domain.name(domain.number(sample))));
  return nameList(agreement.outcomesOf(sample), (place) => optionText(questions, String(domain.name(place))));
}

/** The names of places as one text. Only the first `MOST_NAMED` are listed. */
function nameList(places, name) {
  const shown = places.slice(0, MOST_NAMED).map((place) => isolatedLabel(name(place))).join(", ");
  return places.length > MOST_NAMED ? `${shown} ${phrase("and-more", { n: places.length - MOST_NAMED })}` : shown;
}

/** An outcome of one part of a survey: a combination of several columns, a cell of an interval, or a point of it. */
function partOutcomeText({ columns, column, cells, points }, place, questions) {
  if (columns) {
    const names = [];
    for (const { name, domain } of columns.toReversed()) {
      names.unshift(optionText(ownField(questions?.columns, name), String(domain.name(place % domain.size))));
      place = Math.floor(place / domain.size);
    }
    return names.join(" × ");
  }
  const { low, high } = column.domain;
  const at = (part) => formatNumber(low + (high - low) * part, { maximumSignificantDigits: 5 });
  return cells ? phrase("range", { low: at(place / cells), high: at((place + 1) / cells) }) : at(place / (points - 1));
}

/** An explanation of a report or of a randomised answer; empty for a plain sample. */
export function reportText(agreement, sample, questions) {
  const { survey } = agreement;
  if (survey) {
    const part = survey.parts[survey.partOf(sample)];
    return `${phrase("coin-chose", { part: isolatedLabel(partName(part, columnTitlesIn(questions))) })} ${phrase("report-told", { n: agreement.outcomesOf(sample).length, share: percentAtLeast(part.blind) })}`;
  }
  if (!agreement.reports) return questions ? phrase("answer-told") : "";
  return phrase("report-told", { n: agreement.outcomesOf(sample).length, share: percentAtLeast(agreement.reports.chances.blind) });
}
