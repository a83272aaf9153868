/** The agreement that samples are collected under, as far as this page understands it. */
import { Agreement } from "../src/agreement.js";
import { isDigest } from "../src/domain.js";
import { phrase } from "../page/catalogue.js";
import { asked, isolated, labelled, revealed } from "../page/words.js";
import { bytes, text } from "./service.js";

/** {id, fields, agreement, problem}: an agreement that can be drawn for, or why this page cannot. */
export async function agreed(id) {
  const document = await text("agreement", { agreement: id });
  const fields = fieldsOf(document);
  const { family = {} } = fields;
  const weights = isDigest(family.weights) && !family.reference ? await weightsOf(id) : undefined;
  try {
    return { id, fields, agreement: Agreement.read(document, { id, weights }), problem: "" };
  } catch (error) {
    return { id, fields, agreement: null, problem: error.message };
  }
}

/** A document as an object, whatever it says. */
function fieldsOf(document) {
  try {
    return Object(JSON.parse(document));
  } catch {
    return {};
  }
}

async function weightsOf(id) {
  try {
    return await bytes("weights", { agreement: id });
  } catch (error) {
    if (error.status) return undefined; // there are none: reading the agreement says what is missing
    throw error;
  }
}

/** What a sample can reveal at most, in words: of any agreement that promises epsilon, understood or not. */
export function words({ id, agreement, fields, problem }, { enrolment: enrolled, agreements = [] }) {
  const signed = [phrase("is-signed"), signing(agreements.find((each) => each.agreement === id)?.signed)];
  if (agreement) return [...asked(agreement, phrase(enrolled ? "beside-token" : "beside-name")), signed];
  const { epsilon, rounds = 1, purpose, privacy } = fields;
  const pure = privacy === undefined && typeof epsilon === "number" && Number.isInteger(rounds);
  return [
    [phrase("what-for"), purpose ? labelled(purpose) : phrase("no-purpose-known")],
    ...(pure ? revealed(epsilon, rounds) : []),
    [phrase("what-unknown"), phrase("unknown-kind", { problem })],
    signed,
  ];
}

/** Whether the collection is signed, and by whom, as far as a page can know: it comes from the service that it would have to check. */
export function signing(signed) {
  const { key, addresses } = signed ?? {};
  if (typeof key !== "string" || !/^[0-9a-f]{64}$/.test(key) || !Array.isArray(addresses)) {
    return phrase("not-signed");
  }
  const shown = key.slice(0, 16).match(/.{4}/g).join(" ");
  const where = addresses.filter((each) => typeof each === "string").map(isolated).join(", ");
  return phrase("signed-by", { key: shown, where: where || phrase("no-address") });
}

/** Whether outcomes lie in an order that a picture should keep: numbers and cells do, labels do not. */
export const ordered = ({ fields }) => !fields.family?.labels;
