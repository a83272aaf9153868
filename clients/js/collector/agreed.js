/** The agreement that samples are collected under, as far as this page understands it. */
import { Agreement } from "../src/agreement.js";
import { isDigest } from "../src/domain.js";
import { asked, isolated, labelled, revealed } from "../page/words.js";
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
export function words({ id, agreement, fields, problem }, { enrolment: enrolled, agreements = [] }) {
  const signed = ["Is it signed?", signing(agreements.find((each) => each.agreement === id)?.signed)];
  if (agreement) return [...asked(agreement, beside(enrolled ? "the token that you were given" : "a name that your browser made for this collection alone")), signed];
  const { epsilon, rounds = 1, purpose, privacy } = fields;
  const pure = privacy === undefined && typeof epsilon === "number" && Number.isInteger(rounds);
  return [
    ["What for", purpose ? labelled(purpose) : "The agreement does not say what the samples are for."],
    ...(pure ? revealed(epsilon, rounds) : []),
    ["What this page cannot say", `It does not know agreements of this kind: ${problem}.`],
    signed,
  ];
}

/** Whether the collection is signed, and by whom, as far as a page can know: it comes from the service that it would have to check. */
export function signing(signed) {
  const { key, addresses } = signed ?? {};
  if (typeof key !== "string" || !/^[0-9a-f]{64}$/.test(key) || !Array.isArray(addresses)) {
    return "No. Nothing ties this agreement to whoever runs this service: another one could be put in its place, and you would not notice. Compare its id with one that you were given some other way.";
  }
  const shown = key.slice(0, 16).match(/.{4}/g).join(" ");
  const where = addresses.filter((each) => typeof each === "string").map(isolated).join(", ");
  return `The service says so: by the key ${shown} …, for ${where || "no address"}. This page cannot check that, because it comes from the same service. Compare the digits with those that you were given some other way, or take part with Python's client, which checks the signature.`;
}

/** Whether outcomes lie in an order that a picture should keep: numbers and cells do, labels do not. */
export const ordered = ({ fields }) => !fields.family?.labels;
