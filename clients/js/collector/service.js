/**
 * Requests to the service, whose messages are in English. Addresses are relative to the page, so that a proxy may put both under any path. A page
 * of another site states the address of the service before each path: it may have several services.
 */
import { phrase } from "../page/catalogue.js";

const TIMEOUT = 20_000; // milliseconds that an answer may take
const isTemporary = (status) => status === 408 || status === 429 || status >= 500; // it may come from a proxy, and says nothing about the request
const LONGEST_WAIT = 60; // seconds

/** There was no answer, or a temporary failure, so another attempt may succeed. `wait`: seconds to wait, if the service asked for it. */
export class Unreachable extends Error {
  constructor(message, wait) {
    super(message);
    this.wait = wait;
  }
}

/** The service answered and refused the request. */
export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function fetchAnswer(path, query, options) {
  const fields = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== null));
  const address = fields.size ? `${path}?${fields}` : path;
  let answer;
  try {
    answer = await fetch(address, { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT), ...options });
    if (answer.ok || answer.status === 304) return answer;
  } catch {
    throw new Unreachable(phrase("unreachable"));
  }
  const sentence = await problemText(answer);
  if (!isTemporary(answer.status)) throw new Refused(sentence, answer.status);
  const wait = Number(answer.headers.get("retry-after"));
  throw new Unreachable(sentence, wait > 0 ? Math.min(wait, LONGEST_WAIT) : undefined);
}

/** The message of a failed answer, or a sentence with its status if it has none. */
async function problemText(answer) {
  try {
    const { error } = await answer.json();
    if (typeof error === "string" && error) return error;
  } catch {
    // the status is said below: a proxy may answer in another format
  }
  return phrase("answered-status", { status: String(answer.status) });
}

/** The content of an answer. An answer that breaks off counts as none. */
async function readBody(answer, how) {
  try {
    return await answer[how]();
  } catch {
    throw new Unreachable(phrase("broke-off"));
  }
}

export const getText = async (path, query = {}) => readBody(await fetchAnswer(path, query), "text");
export const getBytes = async (path, query = {}) => readBody(await fetchAnswer(path, query), "arrayBuffer");

/** {value, etag}, or null if the value is unchanged since `etag`. `ticket`: given to people who have taken part. */
export async function getJson(path, query = {}, etag = null, ticket = undefined) {
  const answer = await fetchAnswer(path, query, { headers: { ...(etag ? { "If-None-Match": etag } : {}), ...(ticket ? { Authorization: `Bearer ${ticket}` } : {}) } });
  return answer.status === 304 ? null : { value: await readBody(answer, "json"), etag: answer.headers.get("etag") };
}

/** Send a request. Returns what became of it: {counted, again, refused}. `service`: its address, with a slash at the end, if it is not the page's. */
export async function postSample(body, service = "") {
  const answer = await fetchAnswer(`${service}samples`, {}, { method: "POST", redirect: "error", headers: { "Content-Type": "application/json" }, body });
  return readBody(answer, "json");
}
