/** Private samples in a web page: one draw under an agreement, exactly as the Python library draws. */
export { Agreement, randomInteger } from "./agreement.js";
export { Budget } from "./budget.js";
export { DiscreetError } from "./errors.js";
export { checkSeen } from "./law.js";
