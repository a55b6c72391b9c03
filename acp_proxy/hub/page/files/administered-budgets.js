// Budgets that hold for everybody: what they are, a form to set one, and what was changed when by whom.

import { answer, change, trying } from "./change.js";
import { byId, make } from "./dom.js";
import { amountText, cleaned } from "./figures.js";
import { API, at, difference, end, list, row } from "./listed.js";

const COUNTED = ["tokens", "turns"];

/** Of which version of the policy what is shown is; whoever changes another one is told. */
let version = 0;
/** What else shows a change. */
let shown = async () => {};

/** @param {() => Promise<void>} changed called after each change */
export async function showPolicy(changed) {
  shown = changed;
  show(await answer(`${API}/policy`));
}

byId("budget").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const of = (/** @type {string} */ name) => String(new FormData(form).get(name) ?? "").trim();
  const unit = of("unit");
  const names = (/** @type {string} */ field) => of(field).split(",").map((each) => each.trim()).filter(Boolean);
  const scope = Object.fromEntries(Object.entries({ team: names("team"), user: names("only") }).filter(([, some]) => some.length));
  const budget = {
    window: of("window"),
    limit: COUNTED.includes(unit) ? { [unit]: Number(of("amount")) } : { amount: of("amount"), currency: unit },
    per: of("per") || null,
    scope: Object.keys(scope).length ? scope : null,
    mode: of("mode"),
  };
  const name = of("name");
  trying(() => revise(name, budget, () => form.reset()));
});

/**
 * @param {string} name
 * @param {object | null} budget null removes it
 * @param {() => void} [done] called at once when it is done: what is typed after that stays
 */
async function revise(name, budget, done = () => {}) {
  const policy = await change(`${API}/policy`, { version, budgets: { [name]: budget } });
  done();
  show(policy);
  await shown();
}

/** @param {any} policy */
function show(policy) {
  version = policy.version;
  const rows = policy.document.budgets.map((/** @type {any} */ each) => {
    const scope = Object.entries(each.scope ?? {}).map(([name, value]) => `${name} ${[value].flat().join(", ")}`);
    const remove = end("Remove", each.name, () => revise(each.name, null));
    const edit = make("button", { type: "button", "aria-label": `Change: ${cleaned(each.name)}` }, "Change");
    edit.addEventListener("click", () => fill(each));
    remove.prepend(edit, " ");
    return row(each.name, [limitText(each.limit), each.window, each.per ? `each ${each.per}` : "all together", scope.join("; "), each.mode ?? "enforce"], remove);
  });
  list("budgets", "All budgets", ["budget", "limit", "window", "for", "only of", "mode", "change"], rows, "No budget holds yet.");
  const changes = policy.history.flatMap((/** @type {any} */ each) => each.changes.map((/** @type {any} */ one) =>
    row(at(each.at), [each.who, `${one.after ? "set" : "removed"} ${one.kind} ${one.name}`, difference(one.before, one.after)])));
  list("budget-history", "History of budgets and prices", ["when", "who", "did", "what changed"], changes, "Nothing was changed yet.");
}

/**
 * Puts a budget into the form.
 * @param {any} budget
 */
function fill(budget) {
  const form = /** @type {HTMLFormElement} */ (byId("budget"));
  const unit = COUNTED.find((each) => each in Object(budget.limit));
  const values = {
    name: budget.name,
    amount: unit ? budget.limit[unit] : budget.limit?.amount,
    unit: unit ?? budget.limit?.currency,
    window: budget.window,
    per: budget.per ?? "",
    team: [budget.scope?.team ?? []].flat().join(", "),
    only: [budget.scope?.user ?? []].flat().join(", "),
    mode: budget.mode ?? "enforce",
  };
  for (const [name, value] of Object.entries(values)) {
    /** @type {HTMLInputElement} */ (form.elements.namedItem(name)).value = String(value ?? "");
  }
  /** @type {HTMLDetailsElement} */ (byId("budget-form")).open = true;
  /** @type {HTMLInputElement} */ (form.elements.namedItem("amount")).focus();
}

/** @param {any} limit */
function limitText(limit) {
  const unit = COUNTED.find((each) => each in Object(limit));
  if (unit) return `${Number(limit[unit]).toLocaleString("en-US")} ${unit}`;
  return limit?.amount === undefined ? JSON.stringify(limit) : amountText(String(limit.currency), String(limit.amount), 2);
}
