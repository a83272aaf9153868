/** Which agreement and round a page shows. Its address may name them, ?agreement=ID&round=R. Otherwise they are the newest and the open one. */
import { phrase } from "../page/catalogue.js";
import { element } from "../page/element.js";
import { visibleLabel } from "../page/words.js";

/** {agreement, round, lang} of the address. Each is undefined if it is missing, and an agreement or round also if it is malformed. */
export function choiceInAddress(search = location.search) {
  const fields = new URLSearchParams(search);
  const [agreement, round] = [fields.get("agreement") ?? "", fields.get("round") ?? ""];
  return {
    agreement: /^[0-9a-f]{12,64}$/.test(agreement) ? agreement : undefined,
    round: /^[1-9][0-9]{0,15}$/.test(round) ? Number(round) : undefined,
    lang: fields.get("lang") ?? undefined,
  };
}

/** A purpose as a heading, with shortened ids. The facts of the agreement contain them in full. */
export const headingOf = (purpose) => visibleLabel(purpose.replace(/\b([0-9a-f]{12})[0-9a-f]{52}\b/g, "$1…"));

/** The title of a tab. The purpose comes first, since tabs are narrow. */
export const tabTitle = (purpose, page) => (purpose ? `${headingOf(purpose)} – ${page}` : `${page.charAt(0).toUpperCase()}${page.slice(1)} – discreet`);

/** The address of a page that shows a choice. */
export function addressOf(page, choice) {
  const fields = new URLSearchParams(Object.entries(choice).filter(([, value]) => value !== undefined));
  return fields.size ? `${page}?${fields}` : page;
}

const optionOf = ({ agreement, purpose }, more = "") =>
  element("option", { value: agreement, dir: "auto" }, `${purpose ? headingOf(purpose).slice(0, 60) : phrase("without-purpose")}${more} (${agreement.slice(0, 12)})`);

/** Fill the lists of agreements and rounds. A list with only one item is hidden. `now`: the {agreement, round} that is shown. */
export function showChoices({ agreements, beside = [] }, now, { form, agreement, agreementField, round, roundField }) {
  const known = JSON.stringify([agreements, beside]);
  if (agreement.dataset.known !== known) {
    const others = beside.length ? [element("optgroup", { label: phrase("other-collections") }, ...beside.map((each) => optionOf(each)))] : [];
    agreement.replaceChildren(...agreements.map((each) => optionOf(each, each.follows ? phrase("follows") : "")), ...others);
    agreement.dataset.known = known; // so that a list is filled again only if it changes: it may be open
  }
  agreement.value = now.agreement;
  const most = agreements.find((each) => each.agreement === now.agreement)?.rounds ?? 1;
  round.max = most;
  if (document.activeElement !== round) round.value = now.round;
  roundField.hidden = most === 1;
  agreementField.hidden = agreements.length + beside.length === 1;
  form.hidden = roundField.hidden && agreementField.hidden;
}
