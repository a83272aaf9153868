/** How many samples came on each day. */
import { numbered } from "../page/catalogue.js";
import { element } from "../page/element.js";

const LAST = 60; // days that are drawn

/** A column for each day, the last ones where they are many; the numbers stand beside them for whoever cannot see columns. */
export function days(body, found) {
  const drawn = found.slice(-LAST);
  const most = Math.max(1, ...drawn.map(([, count]) => count));
  body.replaceChildren(
    ...drawn.map(([day, count], place) => {
      const column = element("span", { class: "column", "aria-hidden": "true" });
      column.style.blockSize = `${(100 * count) / most}%`;
      const ends = place === 0 || place === drawn.length - 1;
      return element(
        "li", { title: `${day}: ${numbered(count)}` },
        element("span", { class: "many" }, numbered(count)),
        element("span", { class: "room", "aria-hidden": "true" }, column),
        element("span", { class: ends ? "day" : "day between" }, day),
      );
    }),
  );
  body.classList.toggle("crowded", drawn.length > 12);
}
