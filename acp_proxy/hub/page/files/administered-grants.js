// What was granted on top of budgets, and a form to grant more.

import { answer, change, trying } from "./change.js";
import { byId, make, refill } from "./dom.js";
import { amountText, cleaned, tokensText } from "./figures.js";
import { fields } from "./forms.js";
import { API, at, list, row } from "./listed.js";

const form = /** @type {HTMLFormElement} */ (byId("grant"));
const budget = /** @type {HTMLSelectElement} */ (form.elements.namedItem("budget"));
const value = /** @type {HTMLInputElement} */ (form.elements.namedItem("value"));
/** For whom each budget is: a user, a team …, or null for all together. */
let per = new Map();

/** @param {any} policy whose budgets may be granted more of */
export function offerGrants(policy) {
  const some = policy.document.budgets.filter((/** @type {any} */ each) =>
    !each.limit?.plan && (policy.changes.includes(each.name) || each.per === "team"));
  per = new Map(some.map((/** @type {any} */ each) => [each.name, each.per ?? null]));
  const chosen = budget.value;
  refill(budget, ...some.map((/** @type {any} */ each) => make("option", { value: each.name }, cleaned(each.name))));
  if (per.has(chosen)) budget.value = chosen;
  byId("grant").hidden = !some.length;
  askForWhom();
}

export async function showGrants() {
  show(await answer(`${API}/grants`));
}

budget.addEventListener("change", askForWhom);

/** Whose it is, only of a budget that each has for themselves. */
function askForWhom() {
  const whose = per.get(budget.value);
  value.disabled = !whose;
  value.required = Boolean(whose);
  value.placeholder = whose ? `a ${whose}, or * for all` : "all together";
}

/** @param {() => Promise<void>} changed called after each grant */
export function onGrant(changed) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const { of } = fields(form);
    const wanted = { budget: of("budget"), amount: of("amount"), duration: of("duration"), why: of("why"), value: of("value") };
    trying(async () => {
      const found = await change(`${API}/grants`, wanted);
      form.reset();
      askForWhom();
      show(found);
      await changed();
    });
  });
}

/** @param {any} found */
function show({ grants }) {
  const rows = grants.map((/** @type {any} */ each) => row(each.budget, [
    each.for ?? "all",
    ["tokens", "turns"].includes(each.unit) ? `${tokensText(Number(each.amount))} ${each.unit}` : amountText(each.unit, each.amount, 2),
    at(each.at), each.counts ? at(each.until) : "over", each.who, each.why,
  ]));
  list("grants", "Grants, the latest first", ["budget", "for", "amount", "granted", "until", "by", "reason"], rows, "Nothing was granted yet.");
}
