/** Compare the client with Python's vectors (`tests/javascript/vectors.py`, `survey_vectors.py`), in any JavaScript engine; differences are told in words. */
export function check(text, { Agreement }) {
  const found = { agreements: 0, vectors: 0, reports: 0, surveys: 0, refused: 0, problems: [] };
  const problem = (what) => found.problems.length < 20 && found.problems.push(what);
  for (const line of text.split("\n").filter(Boolean).map((each) => JSON.parse(each))) {
    if (line.refused !== undefined) {
      found.refused += 1;
      try {
        problem(`read, though Python refuses it: ${line.refused.slice(0, 300)} as ${Agreement.read(line.refused).id}`);
      } catch (error) {
        if (error.name !== "DiscreetError") problem(`${error.name}: ${error.message} on ${line.refused.slice(0, 300)}`);
      }
      continue;
    }
    found.agreements += 1;
    try {
      checkAgreement(line, Agreement, found, problem);
    } catch (error) {
      problem(`${error.name}: ${error.message} on ${line.agreement.slice(0, 300)}\n${error.stack}`);
    }
  }
  return found;
}

function checkAgreement(line, Agreement, found, problem) {
  const weights = line.beside && Uint8Array.from(atob(line.beside), (character) => character.charCodeAt(0));
  const agreement = Agreement.read(line.agreement, { id: line.id, weights });
  const where = `${agreement.id.slice(0, 12)} (${agreement.mechanism}, ${agreement.size} outcomes, epsilon ${agreement.epsilon})`;
  if (agreement.canonical !== line.canonical) problem(`${where}: ${agreement.canonical}, not ${line.canonical}`);
  checkReports(agreement, line, where, found, problem);
  if (line.law) checkSurvey(agreement, line, where, found, problem);
  for (const { counts, integers, outcomes, samples, ...expected } of line.cases) {
    const law = agreement.law({ counts: new Map(counts.map(([outcome, count]) => [nameOf(agreement, outcome), count])) });
    const [inside, outside] = [false, true].map((of) => counts.filter(([outcome]) => (outcome === agreement.other) === of));
    const moved = agreement.law({ counts: new Map([...inside.map(([outcome, count]) => [nameOf(agreement, outcome), count]), ...outside.map(([, count]) => [{}, count])]) });
    if (`${moved.outcomes} ${moved.masses}` !== `${law.outcomes} ${law.masses}` || law.outside || moved.outside !== (outside[0]?.[1] ?? 0)) {
      problem(`${where}: values outside do not count as outcome ${agreement.other}`);
    }
    integers.forEach((integer, place) => {
      found.vectors += 1;
      const outcome = agreement.outcome(law, BigInt(integer));
      if (outcome !== outcomes[place]) problem(`${where}: integer ${integer} gives ${outcome}, not ${outcomes[place]}`);
      const sample = agreement.domain.named(outcome);
      if (sample !== samples[place]) problem(`${where}: sample ${sample}, not ${samples[place]}`);
    });
    if (!expected.weights && !expected.checksum) continue;
    const all = agreement.weights(law);
    const same = expected.weights ? expected.weights.join() === all.join() : `${checksum(all)}` === expected.checksum;
    if (!same) problem(`${where}: other weights, such as ${all.slice(0, 3)}, not ${(expected.weights ?? ["?"]).slice(0, 3)}`);
  }
}

function checkReports(agreement, line, where, found, problem) {
  for (const { counts, words, report, held } of line.reports ?? []) {
    found.reports += 1;
    const law = agreement.law({ counts: new Map(counts.map(([outcome, count]) => [nameOf(agreement, outcome), count])) });
    let next = 0;
    const drawn = agreement.report(law, () => BigInt(words[next++]));
    if (`${drawn}` !== report) problem(`${where}: words ${words.slice(0, 3)} give ${drawn}, not ${report}`);
    if (held && agreement.outcomesOf(report).join() !== held.join()) problem(`${where}: report ${report} does not hold ${held.slice(0, 5)}`);
  }
}

function checkSurvey(agreement, { law: { words, uniform, largest }, surveys }, where, found, problem) {
  const { survey, domain } = agreement;
  const same = (what, own, expected) => `${own}` !== `${expected}` && problem(`${where}: ${what} ${own}, not ${expected}`);
  same("shares", survey.parts.map((part) => part.words), words);
  same("weights", survey.parts.map((part) => part.uniformWeight), uniform);
  same("longest report", survey.longest, largest);
  for (const { records, counts, rows, words: given, report, part, named } of surveys) {
    found.surveys += 1;
    same("rows", survey.numbers(records), rows);
    same("numbers of rows", survey.numbers(survey.numbers(records).map((row) => domain.named(row))), rows);
    const law = agreement.law({ counts: new Map(records.map((record, place) => [record, counts[place]])) });
    same("values outside", law.outside, 0);
    let next = 0;
    same(`words ${given.slice(0, 3)} give`, agreement.report(law, () => BigInt(given[next++])), report);
    same("part", survey.partOf(report), part);
    if (named) same("outcomes", agreement.outcomesOf(report), named);
  }
}

/** The polynomial whose coefficients are the weights, at 2^61 - 1, modulo 2^127 - 1. */
function checksum(weights) {
  let sum = 0n;
  for (const weight of weights) sum = (sum * POINT + weight) % PRIME;
  return sum;
}

const POINT = (1n << 61n) - 1n;
const PRIME = (1n << 127n) - 1n;

/** The key of an outcome in counts: its label, or its number. */
const nameOf = (agreement, outcome) => agreement.domain.labels?.[outcome] ?? outcome;
