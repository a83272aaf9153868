/**
 * Several people at one browser. Each has a record with a secret and a budget, under a name that tells nothing but their turn. The address names
 * the person of the page after its #, which browsers do not send. If there are several people and the address names none, the page asks.
 *
 * Only the person can delete their record: that takes the event of a real click or key. What they have spent stays spent.
 */
import { Budget, budgetKey } from "../src/budget.js";
import { DurableStorage, Mirror } from "../src/durable.js";
import { refuse } from "../src/errors.js";
import { phrase } from "../page/catalogue.js";
import { element } from "../page/element.js";
import { hexOf } from "./identity.js";
import { Outbox } from "./outbox.js";
import { ownStorage, Participation, participationKey, useCopies } from "./participation.js";

const NAME = /^[1-9][0-9]{0,8}-[0-9a-f]{8}$/; // a turn, and random digits so that two tabs choose different names
const RECORD_KEY = /^discreet (?:collector|budget)(?: (.*))?$/;
const turnOf = (name) => (name === "" ? 1 : Number(name.split("-")[0]));

/** The names of the people who have a record here, in the order of their turns. */
export function peopleHere(storage = ownStorage()) {
  return namesIn(Array.from({ length: storage.length }, (_, place) => storage.key(place)));
}

function namesIn(keys) {
  const found = new Set();
  for (const key of keys) {
    const name = RECORD_KEY.exec(key);
    if (name && (name[1] === undefined || NAME.test(name[1]))) found.add(name[1] ?? "");
  }
  return [...found].sort((one, other) => turnOf(one) - turnOf(other) || (one < other ? -1 : 1));
}

/** Restore what a browser that was killed has forgotten of everybody. A page that starts waits for this before it shows anything of a person. */
export async function recoverPeople() {
  const keys = await useCopies(() => new Mirror().keys());
  for (const name of new Set([...namesIn(keys), ...peopleHere()])) await recoverRecord(name);
}

/** The same for one person. If they had themselves forgotten here, their waiting requests are dropped again too. */
export async function recoverRecord(name) {
  await new Participation({ name }).recover(() => new Outbox().dropRecord(name));
  await Budget.recover({ name });
}

/** A name for the next person. */
export function newPersonName(people) {
  return `${1 + Math.max(0, ...people.map(turnOf))}-${hexOf(globalThis.crypto.getRandomValues(new Uint8Array(4)))}`;
}

/** The person whom the address names; undefined if it names nobody. The address calls the first person 1. */
export function personInAddress(hash = location.hash) {
  const name = new URLSearchParams(hash.slice(1)).get("person");
  return name === "1" ? "" : NAME.test(name) ? name : undefined;
}

/** The ticket that anybody at this browser got for taking part in a collection; undefined if nobody did. */
export function anyTicketOf(collection) {
  try {
    return peopleHere().map((name) => new Participation({ name }).ticketOf(collection)).find(Boolean);
  } catch {
    return undefined; // a browser without storage has no tickets
  }
}

/** Set or delete a field after the # of the address, also in the browser's history. */
export function setInAddress(field, value) {
  const fields = new URLSearchParams(location.hash.slice(1));
  value === undefined ? fields.delete(field) : fields.set(field, value);
  history.replaceState(null, "", `${location.pathname}${location.search}${fields.size ? `#${fields}` : ""}`);
}

/** The token of a link. It is removed from the address, so that the next person at this browser does not find it there. */
export function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? undefined;
  if (token !== undefined) setInAddress("token", undefined);
  return token;
}

/** Load the page again for a person. Nothing of what it showed stays but the token of a link that nobody has used here: that page takes it. */
export function openFor(name, token) {
  setInAddress("person", name === "" ? 1 : name);
  setInAddress("token", token);
  location.reload();
}

/** Delete a person's record and their waiting requests. `event`: the click or key by which they ask for it. */
export async function forgetRecord(name, event) {
  if (!event?.isTrusted) refuse(phrase("only-person-forgets"));
  const keys = [budgetKey(name), participationKey(name)];
  const forget = () => useCopies(() => new DurableStorage(ownStorage(), new Mirror()).forget(keys, () => new Outbox().dropRecord(name)));
  return navigator.locks.request(keys[0], () => navigator.locks.request(keys[1], forget));
}

/** A button for each person. `token`: of the link that was opened. */
export const personButtons = (people, token) =>
  people.map((name) => element("li", {}, element("button", { type: "button", class: "plain", onclick: () => openFor(name, token) }, phrase("person", { turn: turnOf(name) }))));
