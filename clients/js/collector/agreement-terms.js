/** The agreement that samples are collected under: loaded from the service, checked, and told in words. */
import { Agreement } from "../src/agreement.js";
import { isDigest } from "../src/domain.js";
import { phrase } from "../page/catalogue.js";
import { agreementFacts, isolatedLabel, privacyFacts, visibleLabel } from "../page/words.js";
import { getBytes, getText } from "./service.js";

/**
 * {id, fields, agreement, problem}. If this page cannot draw under the agreement, `agreement` is null and `problem` says why. `service`: its
 * address, if it is not the page's.
 */
export async function loadAgreement(id, service = "") {
  const document = await getText(`${service}agreement`, { agreement: id });
  const fields = fieldsOf(document);
  const { family = {} } = fields;
  const weights = isDigest(family.weights) && !family.reference ? await weightsOf(id, service) : undefined;
  try {
    return { id, fields, agreement: Agreement.read(document, { id, weights }), problem: "" };
  } catch (error) {
    return { id, fields, agreement: null, problem: error.message };
  }
}

/** A document as an object: an empty one if the document is not JSON. */
function fieldsOf(document) {
  try {
    return Object(JSON.parse(document));
  } catch {
    return {};
  }
}

async function weightsOf(id, service) {
  try {
    return await getBytes(`${service}weights`, { agreement: id });
  } catch (error) {
    if (error.status) return undefined; // there are none: `Agreement.read` says what is missing
    throw error;
  }
}

/** What a sample can reveal at most, as [heading, sentence] pairs. Pure epsilon is enough for it, even if this page cannot draw. */
export function termsInWords({ id, agreement, fields, problem }, { enrolment: enrolled, agreements = [] }) {
  const signed = [phrase("is-signed"), signatureText(agreements.find((each) => each.agreement === id)?.signed)];
  if (agreement) return [...agreementFacts(agreement, phrase(enrolled ? "beside-token" : "beside-name")), signed];
  const { epsilon, rounds = 1, purpose, privacy } = fields;
  const pure = privacy === undefined && typeof epsilon === "number" && Number.isInteger(rounds);
  return [
    [phrase("what-for"), purpose ? visibleLabel(purpose) : phrase("no-purpose-known")],
    ...(pure ? privacyFacts(epsilon, rounds) : []),
    [phrase("what-unknown"), phrase("unknown-kind", { problem })],
    signed,
  ];
}

/** Whether the collection is signed, and by whom. The page cannot check that, since it comes from the service that it would have to check. */
export function signatureText(signed) {
  const { key, addresses } = signed ?? {};
  if (typeof key !== "string" || !/^[0-9a-f]{64}$/.test(key) || !Array.isArray(addresses)) {
    return phrase("not-signed");
  }
  const shown = key.slice(0, 16).match(/.{4}/g).join(" ");
  const where = addresses.filter((each) => typeof each === "string").map(isolatedLabel).join(", ");
  return phrase("signed-by", { key: shown, where: where || phrase("no-address") });
}

/** Whether the outcomes have an order that a chart should keep: numbers and cells do, labels do not. */
export const hasOrderedOutcomes = ({ fields }) => !fields.family?.labels;
