/** Parts of a page. What is not a part is a text, whatever it says: no markup in a label is ever read as such. */
const SVG = ["svg", "path", "line", "rect", "text", "g", "circle", "title"];

/** `on...` listens; what is false or undefined is left out, what is true is set without a value. */
export function element(name, attributes = {}, ...children) {
  const svg = SVG.includes(name);
  const found = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) found.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) found.setAttribute(key, value === true ? "" : value);
  }
  found.append(...children);
  return found;
}

/** [heading, sentence] pairs as the parts of a list of terms; a third is the language of the sentence, where that is another than the page's. */
export const told = (pairs) => pairs.flatMap(([heading, sentence, lang]) => [element("dt", {}, heading), element("dd", { dir: "auto", lang }, sentence)]);
