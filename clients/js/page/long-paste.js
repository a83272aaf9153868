/** A text that is pasted into a field. No browser lays out a million rows: past so many characters it is read at once, and the field left empty. */
const LONG = 1e5;

export function readLong(field, read) {
  field.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (text.length <= LONG) return;
    event.preventDefault();
    read(text);
  });
}
