/** How many samples came on each day. */
import { formatNumber } from "../page/catalogue.js";
import { element } from "../page/element.js";

const MOST_DAYS = 60; // days that are shown at most

/** Show a column for each of the last days. The counts are also there as text, for people who cannot see the columns. */
export function showDays(body, dayCounts) {
  const shown = dayCounts.slice(-MOST_DAYS);
  const most = Math.max(1, ...shown.map(([, count]) => count));
  body.replaceChildren(
    ...shown.map(([day, count], place) => {
      const column = element("span", { class: "column", "aria-hidden": "true" });
      column.style.blockSize = `${(100 * count) / most}%`;
      const ends = place === 0 || place === shown.length - 1;
      return element(
        "li", { title: `${day}: ${formatNumber(count)}` },
        element("span", { class: "many" }, formatNumber(count)),
        element("span", { class: "room", "aria-hidden": "true" }, column),
        element("span", { class: ends ? "day" : "day between" }, day),
      );
    }),
  );
  body.classList.toggle("crowded", shown.length > 12);
}
