/** Private samples in a web page: one draw under an agreement, exactly as the Python library draws. */

/** A label of an outcome, as agreements can state them. */
export type Label = string | number | boolean;

/** Bad input, told in one sentence before anything is drawn, charged or written. */
export class DiscreetError extends Error {}

/** What one person holds: the outcomes that were seen, in order, and their shares. Made by `Agreement.law`. */
export interface Law {
  /** Under an agreement on a survey, the places in `rows`. */
  readonly outcomes: Float64Array;
  readonly masses: Float64Array;
  /** Under an agreement on a survey: the numbers of the different rows, in order. */
  readonly rows?: readonly bigint[];
  /** How many records were outside the domain. It is for the person alone: tell nobody else. */
  readonly outside?: number;
}

/** What leaves the device. */
export interface Release {
  /** A sample; under an agreement on reports or on a survey, the digits of a report as a text, since floats do not hold all of them. */
  readonly sample: Label;
  readonly agreement: string;
}

/** The public outcomes: labels, the whole numbers from 0 on, or the cells of an interval. */
export interface Domain {
  readonly size: number;
  /** The labels in order, where outcomes are labels. */
  readonly labels?: readonly Label[];
  /** The bounds, where outcomes are cells. */
  readonly low?: number;
  readonly high?: number;
  /** The outcome number of every record; one outside the domain is refused. */
  numbers(records: Iterable<unknown>): number[];
  /** What an outcome number stands for: a label, the number, the middle of a cell. */
  named(number: number): Label;
  /** What people call an outcome. */
  name(number: number): string;
}

export interface ReadOptions {
  /** The id that is expected: any other document is refused. */
  id?: string;
  /** The labels, where the document holds their digest alone. */
  labels?: readonly Label[];
  /** The file of weights that lies beside an agreement on many outcomes. */
  weights?: ArrayBuffer | ArrayBufferView;
}

/** A column of a survey. A row is an object that has a value of its domain for each of them, by name. */
export interface SurveyColumn {
  readonly name: string;
  /** Labels, whole numbers or cells. A day has the label 2026-11-17; a Date at midnight UTC is the same. */
  readonly domain: Domain & { /** The first and the last day, of a column of days. */ readonly first?: string; readonly last?: string };
  /** What a number counts; empty where the agreement says nothing. */
  readonly unit: string;
}

/** Something that a person may be asked, by a public coin, with the whole budget. */
export interface SurveyPart {
  /** The place of the question that it helps to answer; -1 for a table that tells several. */
  readonly question: number;
  /** The probability that it is asked, and as a number of words out of 2^62. */
  readonly share: number;
  readonly words: bigint;
  /** The probability that its report is drawn without looking at the person, and as a number of words. */
  readonly blind: number;
  readonly uniformWeight: bigint;
  /** What it sees of a row: columns together, or one column in cells or points. */
  readonly sees: Readonly<{ columns: readonly string[] } | { column: string; cells: number } | { column: string; points: number }>;
}

/** The columns, questions and parts of an agreement on a survey. */
export interface Survey {
  readonly columns: readonly SurveyColumn[];
  /** As the agreement states them: {shares: ...}, {histogram: ...}, {mean: ...}, {quantiles: ...}, {linear: ...}. */
  readonly questions: readonly Readonly<Record<string, unknown>>[];
  readonly parts: readonly SurveyPart[];
  /** The digits of a report that has the most of them. */
  readonly longest: string;
  /** The number of every row, an object with a value for each column; one with a value outside is refused. */
  numbers(rows: Iterable<unknown>): bigint[];
  /** The place of the part that a report is about. */
  partOf(report: bigint | string): number;
}

/** What was seen (values), or how often: a list for each outcome, or an object or Map by label or outcome number. */
export type Seen =
  | { records: Iterable<unknown>; counts?: undefined }
  | { counts: ArrayLike<number> | Record<string, number> | Map<unknown, number>; records?: undefined };

/**
 * Refuse what is wrong with records or counts by themselves. Call it before you ask for an agreement: whatever passes has a law under every
 * agreement, so nobody learns from a refusal.
 */
export function checkSeen(seen: Seen): void;

/** What client and curator agreed on. */
export class Agreement {
  private constructor();
  /** Read a document: a text, or its bytes in UTF-8. What is not understood is refused. */
  static read(document: string | ArrayBuffer | ArrayBufferView, options?: ReadOptions): Agreement;
  /** SHA-256 of the canonical form, 64 hexadecimal digits. */
  readonly id: string;
  readonly canonical: string;
  readonly document: Readonly<Record<string, unknown>>;
  readonly epsilon: number;
  readonly mechanism: "optimal" | "linear" | "mollifier" | "reports" | "survey";
  readonly rounds: number;
  readonly purpose: string;
  /** The number of the outcome that values outside the domain count as, where the agreement names one. */
  readonly other?: number;
  /** When the rounds are, where the agreement says so. */
  readonly schedule?: { readonly start: string; readonly every: "day" | "week" | "month" };
  /** The outcomes. Of a survey its rows, whose numbers are bigints: use `survey`. */
  readonly domain: Domain;
  /** How many outcomes, or different rows, there are; beyond 2^53 the nearest float. */
  readonly size: number;
  /** What is asked, in an agreement on a survey. */
  readonly survey?: Survey;
  /**
   * A person's distribution, from records or counts. Values outside the domain follow a public rule and raise no error: they count as
   * `other`, on an interval as the nearest end, else they are left out. Where nothing is left it is the reference, and so it is for a list
   * of counts of another length than the domain. Only what `checkSeen` refuses is refused.
   * A record of a survey is an object with a value for each column, and counts are a Map of such objects. A number outside its bounds becomes
   * the nearest end; a row with another value outside, or without one, is left out. A report of no rows is uniform.
   */
  law(seen: Seen): Law;
  /** The distribution that a sample is drawn from; this and the next two refuse an agreement on reports. */
  output(law: Law): Float64Array;
  /** The integers with sum 2^62 that a sample is drawn with. */
  weights(law: Law): bigint[];
  /** The outcome number on which an integer of [0, 2^62) falls. */
  outcome(law: Law, integer: bigint): number;
  /** The report that words of 62 bits give, of an agreement on reports or on a survey. `word` is asked for one after the other; by default the system's generator. */
  report(law: Law, word?: () => bigint): bigint;
  /** The numbers of the outcomes that a report names, of a survey outcomes of what its part sees. One may be the person's own. */
  outcomesOf(report: bigint | string): number[];
  /** One private sample or report. Each call spends epsilon anew: use a `Budget`. */
  release(law: Law): Release;
}

export interface BudgetOptions {
  /** The epsilon that may be spent in all. */
  limit: number;
  /** Whose budget it is, where several people share a browser; each has an own one. */
  name?: string;
  /** By default the browser's own `localStorage`. */
  storage?: Pick<Storage, "getItem" | "setItem" | "removeItem">;
  /** By default the browser's own `navigator.locks`. */
  locks?: { request<T>(name: string, callback: () => T | Promise<T>): Promise<T> };
}

/** A limit on what some questions, [agreement's id, round] each, may cost together with the one that is asked. */
export interface BudgetPart {
  limit: number;
  questions: [agreement: string, round: number][];
}

/** What a person has spent, kept in the browser: charged before a sample leaves, and the same question has the same answer. */
export class Budget {
  constructor(options: BudgetOptions);
  /** The limit of the budget that is stored; undefined if there is none yet. */
  static limitOf(options?: Pick<BudgetOptions, "name" | "storage">): number | undefined;
  /** One private sample of a round that was agreed on; the one drawn before, if there is one. */
  release(agreement: Agreement, law: Law, options?: { round?: number; part?: BudgetPart }): Promise<Release>;
  /** Refuse what `release` would refuse for want of budget, before anything is drawn or charged. */
  check(agreement: Agreement, options?: { round?: number; part?: BudgetPart }): void;
  /** The sample of a round that was drawn before. */
  answered(agreement: Agreement, options?: { round?: number }): Release | undefined;
  /** What has been spent. */
  readonly spent: number;
  /** What these questions, [agreement's id, round] each, have cost. */
  spentOn(questions: BudgetPart["questions"]): number;
  /** Allow more from now on, as the person asks by a click or key: `event` is that event. */
  raise(limit: number, event: Event): Promise<void>;
  /** Forget everything, as the person asks by a click or key: `event` is that event. */
  clear(event: Event): void;
}

/** A uniform 62-bit integer from `crypto.getRandomValues`. */
export function randomInteger(): bigint;
