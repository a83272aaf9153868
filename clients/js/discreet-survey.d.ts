/** <discreet-survey>: take part in a collection from a page of your own. `import "discreet/survey"` defines the element. */

/** A sample was sent, and the service replied. The event does not contain the person's answer. */
export interface DiscreetSent {
  readonly agreement: string;
  readonly round: number;
  /** Whether it was counted now; false if it had arrived before. */
  readonly counted: boolean;
}

/** Attributes: `collector` (address of the service), `agreement` (its id, 64 digits), `questions` (12 digits or more of their digest), `lang`. */
export class DiscreetSurvey extends HTMLElement {
  addEventListener(type: "discreet-sent", listener: (event: CustomEvent<DiscreetSent>) => void, options?: boolean | AddEventListenerOptions): void;
  addEventListener(type: "discreet-problem", listener: (event: CustomEvent<{ readonly message: string }>) => void, options?: boolean | AddEventListenerOptions): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject, options?: boolean | AddEventListenerOptions): void;
}

declare global {
  interface HTMLElementTagNameMap {
    "discreet-survey": DiscreetSurvey;
  }
}
