// Budgets: what is spent, held and left, and when they reset.

import { bar, byId, joined, make, refill } from "./dom.js";
import { amountText, cleaned, counted, nano, shortened, timeText, tokensText } from "./figures.js";
import { levelOf } from "./levels.js";

/** @import { Budget, PlanBudget } from "./shapes.js" */

const FEW = 12; // budgets that are shown before all are asked for
const NO_END = new Map([["turn", "each turn"], ["session", "each session"], ["total", "never"]]);
const MODES = { shadow: "shadow: only counts", warn: "warns only", enforce: null };
const PROMPTS = { allow: "prompts go", warn: "prompts go, with a warning", shadow_deny: "prompts go", deny: "prompts are refused" };

/**
 * @param {{budgets: Budget[], plan_budgets: PlanBudget[]}} answer
 * @param {string} timeZone
 * @param {boolean} every whether all are shown, or of many only the fullest
 */
export function showBudgets({ budgets, plan_budgets: onPlans }, timeZone, every) {
  const all = every || budgets.length <= FEW;
  const idle = (/** @type {Budget} */ { mode }) => Number(mode === "shadow"); // the fullest of these stops nobody
  const fullest = (/** @type {Budget} */ one, /** @type {Budget} */ other) =>
    idle(one) - idle(other) || shareOf(other, other.spent) - shareOf(one, one.spent);
  const shown = all ? budgets : [...budgets].sort(fullest).slice(0, FEW);
  byId("budgets").hidden = budgets.length + onPlans.length === 0;
  const items = shown.map((budget) => item(budget, timeZone));
  refill(byId("budget-list"), ...items, ...onPlans.map((budget) => itemOnPlan(budget, timeZone)));
  byId("budget-more").hidden = all;
  byId("budget-more").textContent = `Show all ${budgets.length.toLocaleString("en-US")}`;
}

/**
 * What part of all that is allowed an amount is, of 1: for bars and order, not for figures.
 * @param {Budget} budget
 * @param {string} amount
 */
function shareOf({ limit, granted, shared }, amount) {
  if (shared) return 0;
  const allowed = units(limit) + units(granted);
  return allowed > 0 ? units(amount) / allowed : 1;
}

/**
 * How much of what is allowed is spent, in whole percents, rounded down as `budget list` does. With doubles 8.70 would be
 * 28 % of 30.
 * @param {Budget} budget
 */
function percentOf({ limit, granted, spent }) {
  const allowed = nano(limit) + nano(granted);
  return allowed > 0n ? Number((nano(spent) * 100n) / allowed) : 100;
}

/**
 * @param {Budget} budget
 * @param {string} timeZone
 */
function item(budget, timeZone) {
  if (budget.shared) return itemOfSeveral(budget, timeZone);
  const [used, percent] = [shareOf(budget, budget.spent), percentOf(budget)];
  const level = levelOf(percent);
  const amount = (/** @type {string} */ text) => amountIn(budget, text);
  const facts = [
    `${budget.at_least ? "≥ " : ""}${amount(budget.spent)} spent`,
    units(budget.held) ? `${amount(budget.held)} held` : null,
    `of ${amount(budget.limit)}`,
    units(budget.granted) ? `+ ${amount(budget.granted)} granted` : null,
  ];
  return make(
    "li",
    { class: "budget" },
    make(
      "p",
      { class: "line" },
      make("span", { class: "title" }, make("bdi", {}, cleaned(budget.name)), whose(budget)),
      make("b", { class: `left ${level}` }, leftText(budget, amount)),
    ),
    bar([{ share: used, look: level }, { share: Math.min(shareOf(budget, budget.held), Math.max(0, 1 - used)), look: "held" }], "marked"),
    make(
      "p",
      { class: "line quiet" },
      make("span", {}, `${facts.filter(Boolean).join(" ")} · ${percent}% used`),
      make("span", {}, resetText(budget, timeZone)),
    ),
    uncounted(budget),
    budget.count_plans ? make("p", { class: "quiet" }, "What plans cover is counted at its list price, which is not billed.") : null,
    MODES[budget.mode] ? make("p", { class: "quiet" }, MODES[budget.mode]) : null,
  );
}

/**
 * One that others share, of which is told the limit, what is left, and what the one who looks has spent.
 * @param {Budget} budget
 * @param {string} timeZone
 */
function itemOfSeveral(budget, timeZone) {
  const amount = (/** @type {string} */ text) => amountIn(budget, text);
  const allowed = `${amount(budget.limit)}${units(budget.granted) ? ` + ${amount(budget.granted)} granted` : ""}`;
  return make(
    "li",
    { class: "budget" },
    make(
      "p",
      { class: "line" },
      make("span", { class: "title" }, make("bdi", {}, cleaned(budget.name)), whose(budget)),
      make("b", { class: `left ${nano(budget.left) > 0n ? "normal" : "red"}` }, leftText(budget, amount)),
    ),
    make(
      "p",
      { class: "line quiet" },
      make("span", {}, `of ${allowed} for all who share it · ${budget.at_least ? "≥ " : ""}${amount(budget.spent)} yours`),
      make("span", {}, resetText(budget, timeZone)),
    ),
    uncounted(budget),
    MODES[budget.mode] ? make("p", { class: "quiet" }, MODES[budget.mode]) : null,
  );
}

/**
 * One that says how far a plan's window may be used.
 * @param {PlanBudget} budget
 * @param {string} timeZone
 */
function itemOnPlan({ name, plan, percent, mode, agent, used, decision, why, until }, timeZone) {
  const share = used === null ? 0 : (used * 100) / percent;
  const level = why ? "red" : levelOf(share * 100);
  const prompts = why === "overage" ? `${PROMPTS[decision]}: they would be paid beside the plan` : PROMPTS[decision];
  const known = used === null ? "how much is used is not known: it refuses nobody" : `${Math.floor(used * 100 + 1e-9)}% is used`;
  return make(
    "li",
    { class: "budget" },
    make(
      "p",
      { class: "line" },
      make(
        "span",
        { class: "title" },
        make("bdi", {}, cleaned(name)),
        make("span", { class: "quiet" }, ...joined([cleaned(plan), agent ? shortened(agent) : ""])),
      ),
      make("b", { class: `left ${level}` }, prompts),
    ),
    bar([{ share, look: level }], "marked"),
    make(
      "p",
      { class: "line quiet" },
      make("span", {}, `${percent}% of the plan’s window are allowed, ${known}`),
      make("span", {}, until ? `until ${timeText(new Date(until), timeZone)}` : ""),
    ),
    MODES[mode] ? make("p", { class: "quiet" }, MODES[mode]) : null,
  );
}

/**
 * @param {Budget} budget
 * @param {(text: string) => string} amount
 */
function leftText(budget, amount) {
  return nano(budget.left) < 0n ? `${amount(budget.left.slice(1))} over` : `${amount(budget.left)} left`;
}

/** @param {Budget} budget */
function whose(budget) {
  const scope = Object.entries(budget.scope).map(([name, values]) => `${name} ${[values].flat().map(cleaned).join(", ")}`);
  return make("span", { class: "quiet" }, ...joined([budget.window, ...scope]));
}

/**
 * @param {Budget} budget
 * @param {string} timeZone
 */
function resetText(budget, timeZone) {
  if (budget.resets_at) return `resets ${timeText(new Date(budget.resets_at), timeZone)}`;
  const end = NO_END.get(budget.window.split(":")[0]);
  return end ? `resets ${end}` : "comes free as time passes";
}

/** @param {Budget} budget */
function uncounted(budget) {
  const amounts = Object.entries(budget.not_counted).map(([unit, amount]) =>
    unit === "turns" ? `${counted(units(amount), "turn")} without a price` : amountText(unit, amount, 2));
  return amounts.length ? make("p", { class: "quiet" }, `Not counted: ${amounts.join(" + ")}`) : null;
}

/**
 * @param {Budget} budget
 * @param {string} text
 */
function amountIn({ unit, limit }, text) {
  if (unit === "turns") return counted(units(text), "turn");
  return unit === "tokens" ? `${tokensText(units(text))} tokens` : amountText(unit, text, limit === undefined || units(limit) >= 1 ? 2 : 4);
}

/** @param {string} text */
const units = (text) => Number(text);
