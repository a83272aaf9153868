/** Long texts that are pasted into a field. Browsers cannot lay out a million rows, so a long text is read at once and never enters the field. */
const LONGEST_SHOWN = 1e5; // characters

export function readLongPaste(field, read) {
  field.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (text.length <= LONGEST_SHOWN) return;
    event.preventDefault();
    read(text);
  });
}
