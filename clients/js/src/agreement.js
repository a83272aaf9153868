/**
 * An agreement between client and curator, read from its document, and the draws under it.
 *
 * Everything that this client does not understand is refused: an unknown field, version or notion of privacy, or a family that it cannot
 * draw for.
 */
import { boxOf } from "./box.js";
import { Rows } from "./columns.js";
import { count, day, domainOf } from "./domain.js";
import { quoted, refuse } from "./errors.js";
import { familyFields, familyOf, known } from "./family.js";
import { canonical, parsed } from "./json.js";
import { BITS, dense, latticeOf, TOTAL } from "./lattice.js";
import { bandShare, checkedLaw, lawOf, numbersOf } from "./law.js";
import { solveHeld, solveUniform } from "./projection.js";
import { Reports } from "./reports.js";
import { sha256 } from "./sha256.js";
import { Survey } from "./survey.js";

const VERSION = 2;
const REPORTS = "reports";
const SURVEY = "survey";
const MECHANISMS = ["optimal", "linear", "mollifier", REPORTS, SURVEY];
const FIELDS = ["discreet", "family", "mechanism", "epsilon", "bits", "rounds", "purpose", "other", "blocks", "schedule", SURVEY];
const PERIODS = ["day", "week", "month"];
const MOST_ROUNDS = 1e18;

/** A uniform 62-bit integer from the system's generator. */
export function randomInteger() {
  if (typeof globalThis.crypto?.getRandomValues !== "function") {
    refuse("there is no crypto.getRandomValues here, so nothing can be drawn in private; open the page in another browser");
  }
  return globalThis.crypto.getRandomValues(new BigUint64Array(1))[0] >> 2n;
}

export class Agreement {
  /**
   * The agreement in a document (a text, or its bytes in UTF-8). `id`: the expected id; a document with another id is refused.
   * `labels`, `weights`: the data of which the document holds digests.
   */
  static read(document, { id, labels, weights } = {}) {
    const found = new Agreement(parsed(textOf(document)), labels, weights);
    if (id !== undefined && id !== found.id) {
      refuse(`the document is agreement ${found.id}, not ${quoted(id)}: it was changed, or is another one`);
    }
    return found;
  }

  constructor(fields, labels, weights) {
    if (fields !== null && typeof fields === "object" && "discreet" in fields && fields.discreet !== VERSION) {
      refuse(
        fields.discreet === 1
          ? "the agreement is of version 1, whose id only Python can compute; make a new one with `discreet agree`"
          : `discreet = ${quoted(fields.discreet)} is not version ${VERSION}; update this page`,
      );
    }
    if (fields !== null && typeof fields === "object" && "privacy" in fields) {
      refuse("the agreement promises another notion of privacy than pure epsilon, which this client does not know");
    }
    if (fields !== null && typeof fields === "object" && "joint" in fields) {
      refuse(
        "the agreement is on several samples of each client drawn at once, which Python alone draws: use agreement.joint_sampler() there, or agree on one sample",
      );
    }
    if (fields !== null && typeof fields === "object" && ("own" in fields || fields.mechanism === "own")) {
      refuse(
        "the agreement is on a mechanism that a Python package brings, which this client cannot draw: take part with discreet.client in Python, or agree on optimal, linear, mollifier or reports",
      );
    }
    known("the agreement", fields, FIELDS, ["discreet", "family", "mechanism", "epsilon", "bits"]);
    const { mechanism, epsilon, rounds = 1, purpose = "" } = fields;
    if (fields.bits !== BITS) refuse(`bits = ${quoted(fields.bits)} is not ${BITS}, the integers this client draws with`);
    if (!MECHANISMS.includes(mechanism)) refuse(`mechanism = ${quoted(mechanism)} is not one of ${MECHANISMS.join(", ")}`);
    if (typeof epsilon !== "number" || !(epsilon > 0)) refuse(`epsilon = ${quoted(epsilon)} is not in (0, inf)`);
    if (typeof purpose !== "string") refuse(`purpose = ${quoted(purpose)} is not a text`);
    const family = familyFields(fields.family);
    if (new Set([family.kind === "rows", mechanism === SURVEY, SURVEY in fields]).size > 1) {
      refuse("a survey is agreed on by family.kind = 'rows', mechanism = 'survey' and the field survey together");
    }
    this.domain = family.kind === "rows" ? new Rows(family.columns) : domainOf(family, labels);
    this.family = family.kind === "rows" ? { terms: { kind: "rows", ...this.domain.terms } } : familyOf(family, this.domain, weights);
    if (mechanism === "linear" && this.family.everybody) {
      refuse("the family serves everybody, the linear mechanism members of a band alone");
    }
    Object.assign(this, { mechanism, epsilon, rounds: count("rounds", rounds, MOST_ROUNDS), purpose });
    this.document = { discreet: VERSION, family: this.family.terms, mechanism, epsilon, bits: BITS };
    if (rounds !== 1) this.document.rounds = rounds;
    if (purpose) this.document.purpose = purpose;
    if (fields.other !== undefined) this.document.other = this.other = checkOther(fields.other, this.domain);
    if (fields.schedule !== undefined) this.document.schedule = this.schedule = checkSchedule(fields.schedule);
    if (mechanism === SURVEY) {
      this.survey = new Survey(fields.survey, this.domain, epsilon);
      this.document.survey = this.survey.terms;
    }
    if (mechanism === REPORTS) {
      if (this.family.terms.kind !== "simplex") refuse("the family is a band, and reports are for every distribution on outcomes: a simplex");
      this.reports = new Reports(this.domain.size, epsilon, fields.blocks);
      this.document.blocks = this.reports.terms;
    } else if (fields.blocks !== undefined) {
      refuse(`blocks has no meaning for the mechanism ${mechanism}`);
    }
    this.canonical = canonical(this.document);
    this.id = sha256(new TextEncoder().encode(this.canonical));
    if (mechanism === REPORTS || mechanism === SURVEY) return;
    this.box = boxOf(this.family, this.domain.size, mechanism, epsilon);
    // computed here, so that no draw waits for it, and an agreement without a lattice is refused when it is read
    this.lattice = latticeOf(this.box, epsilon);
  }

  /** How many outcomes there are. */
  get size() {
    return this.domain.size;
  }

  /**
   * The distribution of a person's records (values) or counts. Values outside the domain follow a public rule. They count as the outcome
   * `other` of the agreement if there is one. On an interval they count as its nearest end. Otherwise they are left out. If no value is
   * left, the distribution is the reference.
   */
  law(given) {
    return lawOf(this, given);
  }

  /** The arrays of a law, after a check that this agreement serves it. */
  checked(law) {
    const found = checkedLaw(this.domain, law);
    if (this.mechanism === "linear" && bandShare(found, this.family, this.size) < 1) {
      refuse("these records are outside the band that the linear mechanism serves; make the law by this agreement's law");
    }
    return found;
  }

  /** The distribution that a sample is drawn from, one share for each outcome. */
  output(given) {
    const { box } = this.#samplerOf("outcomes");
    const law = this.checked(given);
    const p = dense(law, this.size);
    const at = (bound) => (typeof bound === "number" ? () => bound : (place) => bound[place]);
    const [low, high] = [at(box.lower), at(box.upper)];
    const uniform = typeof box.lower === "number";
    const [slope, lift] =
      box.slope !== undefined ? [box.slope, box.lift]
      : uniform ? solveUniform(law.masses, this.size - law.masses.length, box)
      : solveHeld(p, 0, low, high);
    return p.map((mass, place) => {
      const own = slope === Infinity && mass === 0 ? 0 : mass * slope;
      return Math.min(Math.max(own + lift * low(place), low(place)), high(place));
    });
  }

  /** The integer weights, with sum 2^62, that a sample is drawn with: its exact distribution. */
  weights(law) {
    return this.#samplerOf("outcomes").lattice.weights(this.checked(law));
  }

  /** The outcome number on which a 62-bit integer falls: the same in every implementation. */
  outcome(law, integer) {
    if (typeof integer !== "bigint" || integer < 0n || integer >= TOTAL) {
      refuse(`integer = ${quoted(integer)} is not a bigint from 0 to 2^62 - 1`);
    }
    return this.#samplerOf("outcomes").lattice.outcome(this.checked(law), integer);
  }

  /**
   * The report, on outcomes or on a survey, that 62-bit words determine, as a bigint: the same in every implementation. Each call of `word`
   * returns the next word, by default from the system's generator.
   */
  report(law, word = randomInteger) {
    return this.#samplerOf(REPORTS).draw(this.checked(law), numbersOf(law), word);
  }

  /**
   * The numbers of the outcomes that a report names. One of them may be the person's own. In a survey they are outcomes of what the part of
   * the report sees. `report`: a bigint, or its digits.
   */
  outcomesOf(report) {
    return this.#samplerOf(REPORTS).outcomesOf(report);
  }

  /** One private sample, or the digits of a report. Each call spends epsilon again. Use a `Budget`, which draws once for each question. */
  release(law) {
    const sample = this.reports ?? this.survey ? String(this.report(law)) : this.domain.named(this.outcome(law, randomInteger()));
    return { sample, agreement: this.id };
  }

  /** The object that draws "reports" or "outcomes". An agreement that releases the other kind is refused. */
  #samplerOf(wanted) {
    const reports = this.reports ?? this.survey;
    if ((wanted === REPORTS) === (reports !== undefined)) return reports ?? this;
    return refuse(reports ? "this agreement is on reports, which are no outcomes: use report and outcomesOf" : "this agreement is on samples, not on reports: use outcome and output");
  }
}

/** Check the schedule of the rounds: each lasts a day, a week or a month, and the first begins on the day `start`. */
function checkSchedule(fields) {
  const { start, every } = known("schedule", fields, ["start", "every"]);
  if (!PERIODS.includes(every)) refuse(`schedule.every = ${quoted(every)} is not one of ${PERIODS.join(", ")}`);
  if (day("schedule.start", start).slice(8) !== "01" && every === "month") refuse(`schedule.start = ${start} is not the first of a month`);
  return { start, every };
}

/** Check `other`, the number of the outcome that values outside the domain count as. */
function checkOther(other, { size, interval, columns }) {
  if (columns) refuse("other has no meaning for a survey; leave it out");
  if (interval) refuse("other has no meaning on an interval, where a value outside becomes the nearest end; leave it out");
  if (!Number.isInteger(other) || other < 0 || other >= size) refuse(`other = ${quoted(other)} is not one of the outcomes 0 to ${size - 1}`);
  return other;
}

function textOf(document) {
  if (typeof document === "string") return document;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(document);
  } catch {
    return refuse("the document is not a text in UTF-8, so not an agreement");
  }
}
