/**
 * Several people at one browser. Each has a record of their own, a secret and a budget, under a name that says nothing but their turn; which one
 * the page speaks for stands after the # of its address, which browsers do not send. Where there are several, and the address names none, the page asks.
 *
 * Only the person forgets a record: that takes the event of a real click or key. Whoever forgets what they have spent has spent it all the same.
 */
import { budgetKey } from "../src/budget.js";
import { refuse } from "../src/errors.js";
import { phrase } from "../page/catalogue.js";
import { element } from "../page/element.js";
import { hexed } from "./identity.js";
import { Outbox } from "./outbox.js";
import { ownStorage, Speaker, speakerKey } from "./participation.js";

const NAME = /^[1-9][0-9]{0,8}-[0-9a-f]{8}$/; // a turn, and digits by which two tabs cannot take the same one
const KEPT = /^discreet (?:collector|budget)(?: (.*))?$/;
const turnOf = (name) => (name === "" ? 1 : Number(name.split("-")[0]));

/** The names of those who have a record here, in their turn. */
export function peopleHere(storage = ownStorage()) {
  const found = new Set();
  for (let place = 0; place < storage.length; place++) {
    const name = KEPT.exec(storage.key(place));
    if (name && (name[1] === undefined || NAME.test(name[1]))) found.add(name[1] ?? "");
  }
  return [...found].sort((one, other) => turnOf(one) - turnOf(other) || (one < other ? -1 : 1));
}

/** The name of a person who comes next. */
export function nextPerson(people) {
  return `${1 + Math.max(0, ...people.map(turnOf))}-${hexed(globalThis.crypto.getRandomValues(new Uint8Array(4)))}`;
}

/** Whom the address names; undefined where it names nobody. The first is called 1. */
export function personOf(hash = location.hash) {
  const name = new URLSearchParams(hash.slice(1)).get("person");
  return name === "1" ? "" : NAME.test(name) ? name : undefined;
}

/** What anybody at this browser was given for taking part in a collection, if somebody was. */
export function ticketHere(collection) {
  try {
    return peopleHere().map((name) => new Speaker({ name }).ticketOf(collection)).find(Boolean);
  } catch {
    return undefined; // a browser that keeps nothing has none
  }
}

/** Change what stands after the # of the address, and what the browser's history has there. */
export function nameInAddress(field, value) {
  const fields = new URLSearchParams(location.hash.slice(1));
  value === undefined ? fields.delete(field) : fields.set(field, value);
  history.replaceState(null, "", `${location.pathname}${location.search}${fields.size ? `#${fields}` : ""}`);
}

/** The token that a link brought, which is taken out of the address: whoever comes next at this browser does not find it there. */
export function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? undefined;
  if (token !== undefined) nameInAddress("token", undefined);
  return token;
}

/** Open the page for a person, anew: nothing of what it showed stays. */
export function openFor(name) {
  nameInAddress("person", name === "" ? 1 : name);
  location.reload();
}

/** Delete the record of a person, as they ask by a click or key, and what waits to be sent: `event` is that event. */
export function forgetRecord(name, event, storage = ownStorage()) {
  if (!event?.isTrusted) refuse(phrase("only-person-forgets"));
  for (const key of [budgetKey(name), speakerKey(name)]) storage.removeItem(key);
  return new Outbox({ storage }).dropRecord(name);
}

/** A button for each person. */
export const personButtons = (people) =>
  people.map((name) => element("li", {}, element("button", { type: "button", class: "plain", onclick: () => openFor(name) }, phrase("person", { turn: turnOf(name) }))));
