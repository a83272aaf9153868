/** Private samples in a web page: one draw under an agreement, exactly as the Python library draws. */

/** The label of an outcome, of a type that agreements can state. */
export type Label = string | number | boolean;

/** The error for bad input. It has a message of one sentence, and is thrown before anything is drawn, charged or written. */
export class DiscreetError extends Error {}

/** One person's distribution: the outcomes that were seen, in order, and their shares. Made by `Agreement.law`. */
export interface Law {
  /** The numbers of the outcomes; under an agreement on a survey, places in `rows`. */
  readonly outcomes: Float64Array;
  readonly masses: Float64Array;
  /** Under an agreement on a survey: the numbers of the different rows, in order. */
  readonly rows?: readonly bigint[];
  /** How many records were outside the domain. It is private: show it to the person only, and do not send it. */
  readonly outside?: number;
}

/** What leaves the device. */
export interface Release {
  /** A sample. Under an agreement on reports or on a survey: the digits of a report as a text, since a float cannot hold all of them. */
  readonly sample: Label;
  readonly agreement: string;
}

/** The public outcomes: labels, the whole numbers from 0 on, or the cells of an interval. */
export interface Domain {
  readonly size: number;
  /** The labels in order, if outcomes are labels. */
  readonly labels?: readonly Label[];
  /** The bounds of the interval, if outcomes are cells. */
  readonly low?: number;
  readonly high?: number;
  /** The outcome number of every record. A record outside the domain is refused. */
  numbers(records: Iterable<unknown>): number[];
  /** The sample for an outcome number: a label, the number itself, or the middle of a cell. */
  named(number: number): Label;
  /** The name of an outcome, for people to read. */
  name(number: number): string;
}

export interface ReadOptions {
  /** The expected id. A document with another id is refused. */
  id?: string;
  /** The labels, if the document holds only their digest. */
  labels?: readonly Label[];
  /** The file of weights that lies beside an agreement on many outcomes. */
  weights?: ArrayBuffer | ArrayBufferView;
}

/** A column of a survey. A row is an object that has a value of its domain for each of them, by name. */
export interface SurveyColumn {
  readonly name: string;
  /** Labels, whole numbers or cells. A day has the label 2026-11-17; a Date at midnight UTC is the same. */
  readonly domain: Domain & { /** The first and the last day, of a column of days. */ readonly first?: string; readonly last?: string };
  /** The unit of a number; empty if the agreement states none. */
  readonly unit: string;
}

/** A part of a survey. A public coin chooses the one part that a person is asked, with the whole budget. */
export interface SurveyPart {
  /** The place of the question that it helps to answer; -1 for a table that serves several questions. */
  readonly question: number;
  /** The probability that it is asked; `words` is the same as a number of words out of 2^62. */
  readonly share: number;
  readonly words: bigint;
  /** The probability that its report is drawn without looking at the person; `uniformWeight` is the same as a number of words. */
  readonly blind: number;
  readonly uniformWeight: bigint;
  /** What it sees of a row: the joint outcome of columns, or one column in cells or points. */
  readonly sees: Readonly<{ columns: readonly string[] } | { column: string; cells: number } | { column: string; points: number }>;
}

/** The columns, questions and parts of an agreement on a survey. */
export interface Survey {
  readonly columns: readonly SurveyColumn[];
  /** As the agreement states them: {shares: ...}, {histogram: ...}, {mean: ...}, {quantiles: ...}, {linear: ...}. */
  readonly questions: readonly Readonly<Record<string, unknown>>[];
  readonly parts: readonly SurveyPart[];
  /** The digits of the largest number that reports range to: no report has more. */
  readonly longest: string;
  /** The number of every row. A row is an object with a value for each column; one with a value outside its column's domain is refused. */
  numbers(rows: Iterable<unknown>): bigint[];
  /** The place of the part that a report is about. */
  partOf(report: bigint | string): number;
}

/** Either records (values), or counts: a list with a count for each outcome, or an object or Map by label or outcome number. */
export type Seen =
  | { records: Iterable<unknown>; counts?: undefined }
  | { counts: ArrayLike<number> | Record<string, number> | Map<unknown, number>; records?: undefined };

/**
 * Refuse records or counts that are invalid in themselves. Call it before you ask for an agreement. All that passes has a law under every
 * agreement, so nobody learns anything from a refusal.
 */
export function checkSeen(seen: Seen): void;

/** An agreement between client and curator. */
export class Agreement {
  private constructor();
  /** Read a document: a text, or its bytes in UTF-8. A document that this client does not fully understand is refused. */
  static read(document: string | ArrayBuffer | ArrayBufferView, options?: ReadOptions): Agreement;
  /** SHA-256 of the canonical form, 64 hexadecimal digits. */
  readonly id: string;
  readonly canonical: string;
  readonly document: Readonly<Record<string, unknown>>;
  readonly epsilon: number;
  readonly mechanism: "optimal" | "linear" | "mollifier" | "reports" | "survey";
  readonly rounds: number;
  readonly purpose: string;
  /** The number of the outcome that values outside the domain count as, if the agreement names one. */
  readonly other?: number;
  /** The schedule of the rounds, if the agreement states one. */
  readonly schedule?: { readonly start: string; readonly every: "day" | "week" | "month" };
  /** The outcomes. Those of a survey are rows, and their numbers are bigints: use `survey`. */
  readonly domain: Domain;
  /** The number of outcomes, or of different rows; beyond 2^53 the nearest float. */
  readonly size: number;
  /** The columns, questions and parts, in an agreement on a survey. */
  readonly survey?: Survey;
  /**
   * A person's distribution, from records or counts. Values outside the domain follow a public rule and raise no error. They count as
   * `other` if the agreement names it. On an interval they count as the nearest end. Otherwise they are left out. If nothing is left, or if
   * counts are a list of another length than the domain, the distribution is the reference. Only what `checkSeen` refuses is refused.
   *
   * A record of a survey is an object with a value for each column, and counts are a Map of such objects. A number outside its bounds becomes
   * the nearest end. A row that lacks a value, or has any other value outside its column's domain, is left out. Without rows a report is uniform.
   */
  law(seen: Seen): Law;
  /** The distribution that a sample is drawn from. `output`, `weights` and `outcome` refuse agreements on reports or on a survey. */
  output(law: Law): Float64Array;
  /** The integer weights, with sum 2^62, that a sample is drawn with. */
  weights(law: Law): bigint[];
  /** The outcome number on which an integer of [0, 2^62) falls. */
  outcome(law: Law, integer: bigint): number;
  /**
   * The report that 62-bit words determine, under an agreement on reports or on a survey. Each call of `word` returns the next word, by default
   * from the system's generator.
   */
  report(law: Law, word?: () => bigint): bigint;
  /** The numbers of the outcomes that a report names, in a survey outcomes of what its part sees. One of them may be the person's own. */
  outcomesOf(report: bigint | string): number[];
  /** One private sample or report. Each call spends epsilon again: use a `Budget`. */
  release(law: Law): Release;
}

/** The copy of a budget, or a note that it was forgotten (`text` is null), and how often it was. */
export interface BudgetCopy {
  text: string | null;
  forgotten: number;
}

export interface BudgetOptions {
  /** The total epsilon that may be spent. */
  limit: number;
  /** Whose budget it is, if several people share a browser. Each of them has their own. */
  name?: string;
  /** By default the browser's own `localStorage`, with copies in IndexedDB. If you give a storage, it has the copies of your `mirror`, or none. */
  storage?: Pick<Storage, "getItem" | "setItem" | "removeItem">;
  /** Where the copies are. What `change` commits has to be on the disk when its promise resolves. */
  mirror?: { change(keys: string[], next: (copy: BudgetCopy | undefined, key: string) => BudgetCopy | undefined): Promise<unknown> };
  /** By default the browser's own `navigator.locks`. */
  locks?: { request<T>(name: string, callback: () => T | Promise<T>): Promise<T> };
}

/** A limit on what these questions, [agreement's id, round, address of the collector] each, may cost together with the one that is asked. */
export interface BudgetPart {
  limit: number;
  questions: [agreement: string, round: number, to?: string][];
}

/** The privacy budget of a person, kept in the browser. A sample is charged before it leaves, and the same question gets the same answer. */
export class Budget {
  constructor(options: BudgetOptions);
  /** The limit of the budget that is stored; undefined if there is none yet. */
  static limitOf(options?: Pick<BudgetOptions, "name" | "storage">): number | undefined;
  /**
   * Restore what a browser that was killed has forgotten. Call it when a page starts, before `limitOf`, `answered`, `spent` or `check`; `release`
   * and `raise` do it themselves.
   */
  static recover(options?: Omit<BudgetOptions, "limit">): Promise<void>;
  /**
   * The private sample of a round that was agreed on. If one was drawn before, it is returned again. `to`: the address of the collector that asks.
   * Another collector with the same agreement gets another sample, which is charged.
   */
  release(agreement: Agreement, law: Law, options?: { round?: number; part?: BudgetPart; to?: string }): Promise<Release>;
  /** Refuse what `release` would refuse for lack of budget. Nothing is drawn or charged. */
  check(agreement: Agreement, options?: { round?: number; part?: BudgetPart; to?: string }): void;
  /** The sample of a round, if it was drawn before; else undefined. */
  answered(agreement: Agreement, options?: { round?: number; to?: string }): Release | undefined;
  /** The epsilon that has been spent. */
  readonly spent: number;
  /** The epsilon that these questions, [agreement's id, round, address] each, have cost. */
  spentOn(questions: BudgetPart["questions"]): number;
  /** The limit of at most 12 digits that just covers another epsilon, beside what was spent: in all, or on these questions. */
  limitWith(epsilon: number, questions?: BudgetPart["questions"]): number;
  /** Raise the limit from now on, at the person's request. `event`: of their click or key. */
  raise(limit: number, event: Event): Promise<void>;
  /** Delete the budget and all answers, at the person's request, for good when the promise resolves. `event`: of their click or key. */
  clear(event: Event): Promise<void>;
}

/** A uniform 62-bit integer from `crypto.getRandomValues`. */
export function randomInteger(): bigint;
