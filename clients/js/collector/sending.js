/** One request, sent until it is answered: the very same each time, so that however often it arrives it is counted once. */
import { posted, Unreachable } from "./service.js";

const FIRST_WAIT = 1; // seconds
const LONGEST_WAIT = 10;
const GROWTH = 1.5;

const utf8 = new TextEncoder();
const bytesOf = (value) => utf8.encode(JSON.stringify(value)).length;
const LONGEST_NUMBER = 25; // characters of a 64-bit float in JSON, such as -0.0000012345678901234567

/** How many bytes the sample or the report of an agreement takes at most, whichever it is. */
export function longestSample({ domain: { labels, interval, size }, reports, survey }) {
  if (reports ?? survey) return bytesOf((reports ?? survey).longest);
  if (labels) return labels.reduce((most, label) => Math.max(most, bytesOf(label)), 0);
  return interval ? LONGEST_NUMBER : bytesOf(size - 1);
}

/** The body that is sent, with spaces after it: its length is the same for every sample, since TLS shows lengths to whoever is on the way. */
export const bodyOf = (request, agreement) => JSON.stringify(request) + " ".repeat(longestSample(agreement) - bytesOf(request.sample));

/** What became of it. `trying({attempt, problem, wait})` is told of every failure; `stopped` is an AbortSignal of the person's. */
export async function sent(body, trying, stopped) {
  for (let attempt = 1, wait = FIRST_WAIT; ; attempt++, wait = Math.min(GROWTH * wait, LONGEST_WAIT)) {
    try {
      return await posted(body);
    } catch (error) {
      if (!(error instanceof Unreachable) || stopped.aborted) throw error;
      const seconds = error.wait ?? wait;
      trying({ attempt, problem: error.message, wait: seconds });
      await pause(seconds, stopped);
      if (stopped.aborted) throw error;
    }
  }
}

const pause = (seconds, stopped) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    stopped.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
