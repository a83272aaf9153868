/** The agreement that samples are collected under, as far as this page understands it. */
import { Agreement } from "../src/agreement.js";
import { isDigest } from "../src/domain.js";
import { asked, labelled, revealed } from "../page/words.js";
import { bytes, text } from "./service.js";

const beside = (name) => `the id of this agreement, ${name}, and a key by which a second sending is recognised`;

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
export function words({ agreement, fields, problem }, enrolled) {
  if (agreement) return asked(agreement, beside(enrolled ? "the token that you were given" : "a name that your browser made for this collection alone"));
  const { epsilon, rounds = 1, purpose, privacy } = fields;
  const pure = privacy === undefined && typeof epsilon === "number" && Number.isInteger(rounds);
  return [
    ["What for", labelled(purpose || "The agreement does not say what the samples are for.")],
    ...(pure ? revealed(epsilon, rounds) : []),
    ["What this page cannot say", `It does not know agreements of this kind: ${problem}.`],
  ];
}

/** Whether outcomes lie in an order that a picture should keep: numbers and cells do, labels do not. */
export const ordered = ({ fields }) => !fields.family?.labels;
