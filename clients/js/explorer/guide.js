/**
 * The guided path: five steps, each with a question that is answered by changing something on the page.
 *
 * A step sets the page (`start`), names what has to stay as it is (`fixed`) and the part of the page to use (`where`). `solved` looks at the
 * numbers of the page; until then `hint` says how far away one is. `solution` is a change that answers the question.
 */
import { percent, short } from "../page/words.js";

const SEVERAL = [25, 25, 20, 20, 10, 0];
const RARE = 0.01;
const WORST = 0.3;
const HALF = 0.5;
const MARGIN = 0.05;
const SLACK = 1e-9; // of sums of floats
const clientsFor = (found, { clients }) => Math.ceil(clients * (found["population-share"] / MARGIN) ** 2);

export const STEPS = [
  {
    title: "Samples name things that nobody held",
    told: "This client never held blue. Its samples sometimes say blue all the same: every outcome keeps at least the lower end of the box. That is what hides the truth.",
    question: "How large must epsilon be until samples say blue at most once in a hundred?",
    where: "epsilon", start: {}, fixed: ["counts", "labels"],
    solved: (found) => found.floor <= RARE,
    hint: (found) => `Now it is ${percent(found.floor)} of the samples. Move epsilon.`,
    answer: (found, { epsilon }) => `At epsilon = ${epsilon.toFixed(2)} samples say blue ${percent(found.floor)} of the time. But now one sample changes the odds about this person by a factor of up to ${short(found.factor)}: little is hidden.`,
    solution: () => ({ epsilon: 4.56, shown: "optimal" }),
  },
  {
    title: "The price of a budget",
    told: "What a client pays is the distance from its own distribution to the one its sample is drawn from. The worst client pays most. No private sampler has a smaller worst case than Q*.",
    question: "What is the smallest epsilon at which no client pays more than 0.3?",
    where: "epsilon", start: { target: WORST }, fixed: ["labels", "measure", "target"],
    solved: (found, { epsilon }) => found["optimal-worst"] <= WORST && epsilon <= found["epsilon-for"] + 0.02,
    hint: (found) => (found["optimal-worst"] <= WORST ? "That is enough, and more than is needed: try a smaller one." : `The worst client pays ${short(found["optimal-worst"])}: it needs a larger one.`),
    answer: (found) => `Epsilon = ${short(found["epsilon-for"])}, and no other private sampler reaches 0.3 with less. The curve below shows the whole trade.`,
    solution: (found) => ({ epsilon: Math.ceil(100 * found["epsilon-for"]) / 100 }),
  },
  {
    title: "Who is the worst client?",
    told: "The worst case is a promise to everybody, also to clients that nobody expects. This client pays less than the worst one.",
    question: "Which distribution pays as much as the worst client does? Drag the bars.",
    where: "bar-0", start: {}, fixed: ["epsilon", "measure", "labels"],
    solved: (found) => found["optimal-own"] >= found["optimal-worst"] - SLACK,
    hint: (found) => `This client pays ${short(found["optimal-own"])} of ${short(found["optimal-worst"])}.`,
    answer: (found) => `A client that holds one outcome only. The box lets that outcome have at most ${percent(found["optimal-kept"])}, so the client pays the rest.`,
    solution: (found, { counts }) => ({ counts: counts.map((_, place) => (place ? 0 : 100)) }),
  },
  {
    title: "The worst case against the average",
    told: "This client holds several outcomes, as most people do. For such clients other samplers can be closer than Q*, at the same epsilon.",
    question: "Halve what this client pays at Q*: choose another sampler and a spread. Who pays for it?",
    where: "show-designed", start: { counts: SEVERAL }, fixed: ["counts", "labels", "epsilon", "measure"],
    solved: (found, { shown }) => found[`${shown}-own`] <= HALF * found["optimal-own"],
    hint: (found, { shown }) => `It pays ${short(found["optimal-own"])} at Q* and ${short(found[`${shown}-own`])} at the sampler you chose. Try the designed one, and move the spread.`,
    answer: (found, { shown }) => `This client pays ${short(found[`${shown}-own`])} instead of ${short(found["optimal-own"])}. A client with one outcome pays for it: ${short(found[`${shown}-worst`])} instead of ${short(found["optimal-worst"])}.`,
    solution: () => ({ shown: "designed", spread: 4 }),
  },
  {
    title: "What all of them tell",
    told: "One sample says little about one person. Many samples together say much about all of them: the curator knows the mechanism and removes its bias.",
    question: "How many clients are needed until the margin of error of every share is at most 5 %, and not many more?",
    where: "clients", start: {}, fixed: ["labels", "epsilon"],
    solved: (found) => found["population-share"] <= MARGIN && found["population-share"] >= 0.95 * MARGIN,
    hint: (found) => (found["population-share"] <= MARGIN ? "That is enough, and more than is needed: try fewer." : `The margin is ${percent(found["population-share"])}: it needs more clients.`),
    answer: (found, { clients }) => `${clients.toLocaleString("en")} clients: the margin is ${percent(found["population-share"])}. Half the margin takes four times as many.`,
    solution: (found, state) => ({ clients: clientsFor(found, state) }),
  },
];

/** The part of the state that a step needs and that has been changed, if any. */
const changedIn = ({ start, fixed }, state, usual) => fixed.find((name) => String(state[name]) !== String({ ...usual, ...start }[name]));

/** Whether the question of a step is answered by the page as it is, and what to say about it. */
export function verdict(step, found, state, usual) {
  if (changedIn(step, state, usual)) return { solved: false, said: "The bars, the budget or the distance are no longer those of this step. Begin the step again." };
  const solved = step.solved(found, state);
  return { solved, said: solved ? step.answer(found, state) : step.hint(found, state) };
}
