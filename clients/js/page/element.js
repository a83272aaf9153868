/** Builds elements of a page. A string child always becomes plain text, so that markup in a label is never parsed. */
const SVG = ["svg", "path", "line", "rect", "text", "g", "circle", "title"];

/** A new HTML or SVG element. `on...` attributes are event listeners. A false or undefined attribute is left out; true sets one without a value. */
export function element(name, attributes = {}, ...children) {
  const svg = SVG.includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

/** [heading, sentence] pairs as <dt> and <dd> elements. A third item is the language of the sentence, if it is not the page's. */
export const termElements = (pairs) => pairs.flatMap(([heading, sentence, lang]) => [element("dt", {}, heading), element("dd", { dir: "auto", lang }, sentence)]);
