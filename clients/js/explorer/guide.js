/**
 * The guided path: five steps, each with a question that is answered by changing something on the page.
 *
 * A step sets the page (`start`), names what has to stay as it is (`fixed`) and the part of the page to use (`where`). `solved` tells from
 * the numbers of the page whether the question is answered. Until then `hint` says how far away the answer is. `solution` is a change that
 * answers the question.
 */
import { percent, shortNumber } from "../page/words.js";

const SEVERAL = [25, 25, 20, 20, 10, 0];
const RARE = 0.01;
const WORST = 0.3;
const HALF = 0.5;
const MARGIN = 0.05;
const SLACK = 1e-9; // rounding of sums of floats
const clientsFor = (found, { clients }) => Math.ceil(clients * (found["population-share"] / MARGIN) ** 2);

export const STEPS = [
  {
    title: "Samples name outcomes that the client never had",
    told: "This client has no blue record. Its samples still say blue sometimes, because the probability of every outcome is at least the lower end of the box. This hides the client's data.",
    question: "How large must epsilon be, so that at most one sample in a hundred says blue?",
    where: "epsilon", start: {}, fixed: ["counts", "labels"],
    solved: (found) => found.floor <= RARE,
    hint: (found) => `Now ${percent(found.floor)} of the samples say blue. Move epsilon.`,
    answer: (found, { epsilon }) => `At epsilon = ${epsilon.toFixed(2)} samples say blue ${percent(found.floor)} of the time. But one sample can now change the odds about this person by a factor of ${shortNumber(found.factor)}, so little is hidden.`,
    solution: () => ({ epsilon: 4.56, shown: "optimal" }),
  },
  {
    title: "The price of a budget",
    told: "A client pays the distance from its own distribution to the output distribution. The worst client pays most. No private sampler has a smaller worst case than Q*.",
    question: "What is the smallest epsilon at which no client pays more than 0.3?",
    where: "epsilon", start: { target: WORST }, fixed: ["labels", "measure", "target"],
    solved: (found, { epsilon }) => found["optimal-worst"] <= WORST && epsilon <= found["epsilon-for"] + 0.02,
    hint: (found) => (found["optimal-worst"] <= WORST ? "This is more than is needed. Try a smaller epsilon." : `The worst client pays ${shortNumber(found["optimal-worst"])}. Try a larger epsilon.`),
    answer: (found) => `Epsilon = ${shortNumber(found["epsilon-for"])}, and no other private sampler reaches 0.3 with less. The curve below shows all worst cases and budgets.`,
    solution: (found) => ({ epsilon: Math.ceil(100 * found["epsilon-for"]) / 100 }),
  },
  {
    title: "Who is the worst client?",
    told: "The worst case is a bound for every possible client, however unlikely. This client pays less than the worst one.",
    question: "Which client pays as much as the worst one? Drag the bars.",
    where: "bar-0", start: {}, fixed: ["epsilon", "measure", "labels"],
    solved: (found) => found["optimal-own"] >= found["optimal-worst"] - SLACK,
    hint: (found) => `This client pays ${shortNumber(found["optimal-own"])} of ${shortNumber(found["optimal-worst"])}.`,
    answer: (found) => `It is a client with a single outcome. The box limits the probability of that outcome to ${percent(found["optimal-kept"])}, so the client pays the rest.`,
    solution: (found, { counts }) => ({ counts: counts.map((_, place) => (place ? 0 : 100)) }),
  },
  {
    title: "The worst case and the average",
    told: "This client has several outcomes, as most people do. For such clients other samplers can be closer than Q*, at the same epsilon.",
    question: "Halve what this client pays at Q*. Choose another sampler and a spread. Who pays more in return?",
    where: "show-designed", start: { counts: SEVERAL }, fixed: ["counts", "labels", "epsilon", "measure"],
    solved: (found, { shown }) => found[`${shown}-own`] <= HALF * found["optimal-own"],
    hint: (found, { shown }) => `It pays ${shortNumber(found["optimal-own"])} at Q* and ${shortNumber(found[`${shown}-own`])} at the sampler you chose. Try the designed one, and move the spread.`,
    answer: (found, { shown }) => `This client pays ${shortNumber(found[`${shown}-own`])} instead of ${shortNumber(found["optimal-own"])}. In return, a client with one outcome pays ${shortNumber(found[`${shown}-worst`])} instead of ${shortNumber(found["optimal-worst"])}.`,
    solution: () => ({ shown: "designed", spread: 4 }),
  },
  {
    title: "What all samples together show",
    told: "One sample reveals little about one person. Many samples together show the shares of all people, because the curator knows the mechanism and removes its bias.",
    question: "How many clients are needed for a margin of error of at most 5 % for every share? Find about the smallest number.",
    where: "clients", start: {}, fixed: ["labels", "epsilon"],
    solved: (found) => found["population-share"] <= MARGIN && found["population-share"] >= 0.95 * MARGIN,
    hint: (found) => (found["population-share"] <= MARGIN ? "This is more than is needed. Try fewer clients." : `The margin is ${percent(found["population-share"])}. Try more clients.`),
    answer: (found, { clients }) => `With ${clients.toLocaleString("en")} clients the margin is ${percent(found["population-share"])}. Half the margin takes four times as many.`,
    solution: (found, state) => ({ clients: clientsFor(found, state) }),
  },
];

/** A field of the state that the step fixes and that was changed; undefined if there is none. */
const changedField = ({ start, fixed }, state, usual) => fixed.find((name) => String(state[name]) !== String({ ...usual, ...start }[name]));

/** {solved, said}: whether the page now answers the question of a step, and what to say about it. */
export function verdict(step, found, state, usual) {
  if (changedField(step, state, usual)) return { solved: false, said: "The bars, the budget or the distance were changed. Begin the step again." };
  const solved = step.solved(found, state);
  return { solved, said: solved ? step.answer(found, state) : step.hint(found, state) };
}
