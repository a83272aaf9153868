/** Sends a request until it is answered. Each attempt sends the same text, so the sample is counted once, however often it arrives. */
import { postSample, Unreachable } from "./service.js";

const FIRST_WAIT = 1; // seconds
const LONGEST_WAIT = 10;
const GROWTH = 1.5;

const utf8 = new TextEncoder();
const bytesOf = (value) => utf8.encode(JSON.stringify(value)).length;
const LONGEST_NUMBER = 25; // characters of a 64-bit float in JSON, such as -0.0000012345678901234567

/** The largest number of bytes that a sample or report of an agreement takes in JSON. */
export function longestSample({ domain: { labels, interval, size }, reports, survey }) {
  if (reports ?? survey) return bytesOf((reports ?? survey).longest);
  if (labels) return labels.reduce((most, label) => Math.max(most, bytesOf(label)), 0);
  return interval ? LONGEST_NUMBER : bytesOf(size - 1);
}

/** The body that is sent, padded with spaces. The bodies of all samples have the same length, since TLS shows lengths to observers of the network. */
export const bodyOf = (request, agreement) => JSON.stringify(request) + " ".repeat(longestSample(agreement) - bytesOf(request.sample));

/**
 * The service's answer to a body. `onFailure({attempt, problem, wait})` is called after each failure. `stopSignal`: the person's AbortSignal.
 * `service`: its address, if it is not the page's.
 */
export async function sendUntilAnswered(body, onFailure, stopSignal, service) {
  for (let attempt = 1, wait = FIRST_WAIT; ; attempt++, wait = Math.min(GROWTH * wait, LONGEST_WAIT)) {
    try {
      return await postSample(body, service);
    } catch (error) {
      if (!(error instanceof Unreachable) || stopSignal.aborted) throw error;
      const seconds = error.wait ?? wait;
      onFailure({ attempt, problem: error.message, wait: seconds });
      await pause(seconds, stopSignal);
      if (stopSignal.aborted) throw error;
    }
  }
}

const pause = (seconds, stopSignal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    stopSignal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
