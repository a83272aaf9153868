/** One request, sent until it is answered: the very same each time, so that however often it arrives it is counted once. */
import { posted, Unreachable } from "./service.js";

const FIRST_WAIT = 1; // seconds
const LONGEST_WAIT = 10;
const GROWTH = 1.5;

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
