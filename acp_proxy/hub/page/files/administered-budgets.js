// Budgets and prices that hold for everybody: what they are, forms to set them, and what was changed when by whom.

import { answer, change, trying } from "./change.js";
import { byId, make } from "./dom.js";
import { amountText, cleaned } from "./figures.js";
import { fields, fill, scopeOf } from "./forms.js";
import { person } from "./hub.js";
import { API, at, difference, end, list, row } from "./listed.js";

const COUNTED = ["tokens", "turns"];
const RATES = ["input", "output", "cached_read", "cached_write", "cached_write_1h"];

/** Of which version of the policy what is shown is; whoever changes another one is told. */
let version = 0;
/** Budgets by their names, as they are. */
let known = new Map();
/** What else shows a change. */
let shown = async (/** @type {any} */ _) => {};
/** The teams whose budgets a lead sets; empty is for who sets all. */
const { role, teams_led: ledByThem } = await person;
const teams = role === "lead" ? ledByThem : [];

/** @param {(policy: any) => Promise<void>} changed called at first and after each change */
export async function showPolicy(changed) {
  shown = changed;
  const policy = await answer(`${API}/policy`);
  show(policy);
  await shown(policy);
}

const [budgetForm, planForm, priceForm] = ["budget", "plan-budget", "price"].map((id) => /** @type {HTMLFormElement} */ (byId(id)));

if (teams.length) {
  for (const form of [budgetForm, planForm]) {
    const team = /** @type {HTMLElement} */ (form.elements.namedItem("team"));
    team.replaceWith(make("select", { name: "team" }, ...teams.map((/** @type {string} */ each) => make("option", { value: each }, cleaned(each)))));
  }
}

budgetForm.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = fields(budgetForm), unit = form.of("unit");
  revise(budgetForm, named(form), {
    window: form.of("window"),
    limit: COUNTED.includes(unit) ? { [unit]: Number(form.of("amount")) } : { amount: form.of("amount"), currency: unit },
    per: form.of("per") || null,
    scope: scopeOf(form, known.get(named(form))?.scope),
    mode: form.of("mode"),
  });
});

planForm.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = fields(planForm);
  revise(planForm, named(form), {
    limit: { plan: form.of("plan"), percent: Number(form.of("percent")) },
    scope: scopeOf(form, known.get(named(form))?.scope),
    on_overage: form.of("on_overage"),
    mode: form.of("mode"),
  });
});

priceForm.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = fields(priceForm);
  const rates = Object.fromEntries(RATES.map((rate) => [rate, form.of(rate)]).filter(([, value]) => value));
  trying(() => changed({ prices: { [form.of("model")]: rates } }, () => priceForm.reset()));
});

/**
 * A lead's budgets are named after the team.
 * @param {ReturnType<typeof fields>} form
 */
function named(form) {
  const name = form.of("name"), before = `${form.of("team")}/`;
  return teams.length && !name.startsWith(before) ? before + name : name;
}

/**
 * @param {HTMLFormElement} form
 * @param {string} name
 * @param {object} budget
 */
function revise(form, name, budget) {
  trying(() => changed({ budgets: { [name]: budget } }, () => form.reset()));
}

/**
 * @param {{budgets?: object, prices?: object}} revision
 * @param {() => void} [done] called at once when it is done: what is typed after that stays
 */
async function changed(revision, done = () => {}) {
  const policy = await change(`${API}/policy`, { version, ...revision });
  done();
  show(policy);
  await shown(policy);
}

/** @param {any} policy */
function show(policy) {
  version = policy.version;
  known = new Map(policy.document.budgets.map((/** @type {any} */ each) => [each.name, each]));
  const theirs = new Set(policy.changes);
  const budgets = policy.document.budgets.map((/** @type {any} */ each) => {
    const scope = Object.entries(each.scope ?? {}).map(([name, value]) => `${name} ${[value].flat().join(", ")}`);
    const of = each.limit?.plan ? "each user's plan" : each.per ? `each ${each.per}` : "all together";
    const last = theirs.has(each.name)
      ? changing(each.name, () => fillBudget(each), () => changed({ budgets: { [each.name]: null } })) : make("td", {});
    return row(each.name, [limitText(each.limit), each.window, of, scope.join("; "), each.mode ?? "enforce"], last);
  });
  list("budgets", "All budgets", ["budget", "limit", "window", "for", "only of", "mode", "change"], budgets, "No budget holds yet.");
  const prices = Object.entries(policy.document.prices).map(([model, rates]) => {
    const last = role === "administrator"
      ? changing(model, () => fill(priceForm, { model, ...Object.fromEntries(RATES.map((rate) => [rate, rates[rate] ?? ""])) }, "input"),
        () => changed({ prices: { [model]: null } })) : make("td", {});
    return row(model, RATES.map((rate) => rates[rate] ?? "–"), last);
  });
  const titles = ["model", "input", "output", "cached read", "cached write", "1 h write", "change"];
  list("prices", "All prices", titles, prices, "No model has a price of your own: those of the catalog are used.");
  const changes = policy.history.flatMap((/** @type {any} */ each) => each.changes.map((/** @type {any} */ one) =>
    row(at(each.at), [each.who, `${one.after ? "set" : "removed"} ${one.kind} ${one.name}`, difference(one.before, one.after)])));
  list("budget-history", "History of budgets and prices", ["when", "who", "did", "what changed"], changes, "Nothing was changed yet.");
}

/**
 * A cell with what changes or removes something.
 * @param {string} name
 * @param {() => void} edits
 * @param {() => Promise<void>} removes
 */
function changing(name, edits, removes) {
  const edit = make("button", { type: "button", "aria-label": `Change: ${cleaned(name)}` }, "Change");
  edit.addEventListener("click", edits);
  const cell = end("Remove", name, removes);
  cell.prepend(edit, " ");
  return cell;
}

/** @param {any} budget */
function fillBudget(budget) {
  const { limit } = budget;
  const both = {
    name: budget.name,
    team: [budget.scope?.team ?? []].flat().join(", "),
    only: [budget.scope?.user ?? []].flat().join(", "),
    mode: budget.mode ?? "enforce",
  };
  if (limit?.plan) {
    fill(planForm, { ...both, plan: limit.plan, percent: limit.percent, on_overage: budget.on_overage ?? "allow" }, "percent");
    return;
  }
  const unit = COUNTED.find((each) => each in Object(limit));
  const amount = unit ? limit[unit] : limit?.amount;
  fill(budgetForm, { ...both, amount, unit: unit ?? limit?.currency, window: budget.window, per: budget.per ?? "" }, "amount");
}

/** @param {any} limit */
function limitText(limit) {
  if (limit?.plan) return `${limit.percent} % of ${limit.plan}`;
  const unit = COUNTED.find((each) => each in Object(limit));
  if (unit) return `${Number(limit[unit]).toLocaleString("en-US")} ${unit}`;
  return limit?.amount === undefined ? JSON.stringify(limit) : amountText(String(limit.currency), String(limit.amount), 2);
}
