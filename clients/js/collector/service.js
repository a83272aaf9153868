/** What the service says, which is English.  Addresses are relative to the page: a proxy may put both under any path. */
import { phrase } from "../page/catalogue.js";

const PATIENCE = 20_000; // milliseconds that an answer may take
const isLater = (status) => status === 408 || status === 429 || status >= 500; // also of a proxy, which says nothing about the request
const LONGEST_WAIT = 60; // seconds

/** Nobody answered, or asked to be left alone for a while: it is worth trying again. `wait`: seconds that were asked for. */
export class Unreachable extends Error {
  constructor(message, wait) {
    super(message);
    this.wait = wait;
  }
}

/** The service answered, and said no. */
export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

let site = "";

/** Ask another service than that of the page: its address, with a slash at the end. */
export const useService = (address) => (site = address);

async function answered(path, query, options) {
  const fields = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== null));
  const address = site + (fields.size ? `${path}?${fields}` : path);
  let answer;
  try {
    answer = await fetch(address, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE), ...options });
    if (answer.ok || answer.status === 304) return answer;
  } catch {
    throw new Unreachable(phrase("unreachable"));
  }
  const sentence = await sentenceOf(answer);
  if (!isLater(answer.status)) throw new Refused(sentence, answer.status);
  const wait = Number(answer.headers.get("retry-after"));
  throw new Unreachable(sentence, wait > 0 ? Math.min(wait, LONGEST_WAIT) : undefined);
}

/** The sentence of a problem, however it came. */
async function sentenceOf(answer) {
  try {
    const { error } = await answer.json();
    if (typeof error === "string" && error) return error;
  } catch {
    // said below: a proxy may answer in its own words
  }
  return phrase("answered-status", { status: String(answer.status) });
}

/** What an answer holds; one that breaks off is as good as none. */
async function read(answer, how) {
  try {
    return await answer[how]();
  } catch {
    throw new Unreachable(phrase("broke-off"));
  }
}

export const text = async (path, query = {}) => read(await answered(path, query), "text");
export const bytes = async (path, query = {}) => read(await answered(path, query), "arrayBuffer");

/** {value, etag}, or null where what is known under `etag` is what there is. `ticket`: of somebody who has taken part. */
export async function json(path, query = {}, etag = null, ticket = undefined) {
  const answer = await answered(path, query, { headers: { ...(etag ? { "If-None-Match": etag } : {}), ...(ticket ? { Authorization: `Bearer ${ticket}` } : {}) } });
  return answer.status === 304 ? null : { value: await read(answer, "json"), etag: answer.headers.get("etag") };
}

/** What became of a request: {counted, again, refused}. */
export async function posted(body) {
  const answer = await answered("samples", {}, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  return read(answer, "json");
}
