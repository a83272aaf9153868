/** Which agreement and round a page speaks of: what its address says, ?agreement=ID&round=R, and else the newest and the open one. */
import { phrase } from "../page/catalogue.js";
import { element } from "../page/element.js";
import { labelled } from "../page/words.js";

/** {agreement, round, lang}: as the address has them; undefined where it says nothing that makes sense. */
export function chosen(search = location.search) {
  const fields = new URLSearchParams(search);
  const [agreement, round] = [fields.get("agreement") ?? "", fields.get("round") ?? ""];
  return {
    agreement: /^[0-9a-f]{12,64}$/.test(agreement) ? agreement : undefined,
    round: /^[1-9][0-9]{0,15}$/.test(round) ? Number(round) : undefined,
    lang: fields.get("lang") ?? undefined,
  };
}

/** A purpose as a heading: ids that it names are shortened. They stand in full where the agreement is told. */
export const headingOf = (purpose) => labelled(purpose.replace(/\b([0-9a-f]{12})[0-9a-f]{52}\b/g, "$1…"));

/** What a tab is called: the survey first, since tabs are narrow. */
export const titled = (purpose, page) => (purpose ? `${headingOf(purpose)} – ${page}` : `${page.charAt(0).toUpperCase()}${page.slice(1)} – discreet`);

/** The address of a page for a choice. */
export function addressed(page, choice) {
  const fields = new URLSearchParams(Object.entries(choice).filter(([, value]) => value !== undefined));
  return fields.size ? `${page}?${fields}` : page;
}

const optionOf = ({ agreement, purpose }, more = "") =>
  element("option", { value: agreement, dir: "auto" }, `${purpose ? headingOf(purpose).slice(0, 60) : phrase("without-purpose")}${more} (${agreement.slice(0, 12)})`);

/** Fill the lists to choose from; they are hidden where there is nothing to choose. `now`: {agreement, round} that is shown. */
export function offer({ agreements, beside = [] }, now, { form, agreement, agreementField, round, roundField }) {
  const known = JSON.stringify([agreements, beside]);
  if (agreement.dataset.known !== known) {
    const others = beside.length ? [element("optgroup", { label: phrase("other-collections") }, ...beside.map((each) => optionOf(each)))] : [];
    agreement.replaceChildren(...agreements.map((each) => optionOf(each, each.follows ? phrase("follows") : "")), ...others);
    agreement.dataset.known = known; // a list that is open must not be filled anew
  }
  agreement.value = now.agreement;
  const most = agreements.find((each) => each.agreement === now.agreement)?.rounds ?? 1;
  round.max = most;
  if (document.activeElement !== round) round.value = now.round;
  roundField.hidden = most === 1;
  agreementField.hidden = agreements.length + beside.length === 1;
  form.hidden = roundField.hidden && agreementField.hidden;
}
