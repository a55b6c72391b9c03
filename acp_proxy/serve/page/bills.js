// Bills of providers beside the ledger, as they were fetched or `acp-proxy reconcile --keep` left them: how much of each
// was metered, and why the rest differs.

import { bar, byId, make, refill, table } from "./dom.js";
import { amountText, cleaned, counted, nano, percentText, timeText, tokensText } from "./figures.js";

/** @import { Bill, Billed, BillCause, BillSource } from "./shapes.js" */

const WELL = 90; // percent of the tokens, as the alert has it
const FEW = 6; // causes that are shown before all are asked for
const KINDS = new Map([
  ["before_ledger", "before the ledger"],
  ["day_unseen", "days unseen"],
  ["model_unseen", "model unseen"],
  ["tokens_unseen", "calls unseen"],
  ["ledger_more", "more in the ledger"],
  ["midnight", "over midnight"],
  ["told_apart", "kinds of tokens"],
  ["price", "another price"],
  ["rounding", "rounding"],
  ["cache_write", "cache writes"],
  ["booked", "booked otherwise"],
  ["not_tokens", "beside tokens"],
  ["currency", "currency"],
  ["not_billed", "not billed"],
  ["unnamed", "no fixed model"],
  ["estimated", "estimated"],
  ["at_least", "at least"],
  ["unpriced", "without a price"],
  ["ledger_empty", "empty ledger"],
]);

/**
 * @param {{bills: Bill[], sources: BillSource[]}} answer
 * @param {string} timeZone
 */
export function showBills({ bills, sources }, timeZone) {
  const kept = new Set(bills.map(({ provider }) => provider));
  const awaited = sources.filter(({ provider }) => !kept.has(provider));
  byId("bills").hidden = bills.length + awaited.length === 0;
  const open = [...byId("bill-list").querySelectorAll("details[open]")].map(({ id }) => id);
  const source = new Map(sources.map((each) => [each.provider, each]));
  refill(byId("bill-list"), ...bills.map((bill) => item(bill, source.get(bill.provider), timeZone, open)), ...awaited.map((each) => none(each, timeZone)));
}

/**
 * A provider that has not given a bill yet.
 * @param {BillSource} source
 * @param {string} timeZone
 */
function none(source, timeZone) {
  return make(
    "li",
    { class: "bill" },
    make("p", { class: "line" }, make("span", { class: "title" }, make("bdi", {}, cleaned(source.provider))), make("b", { class: "orange" }, "no bill yet")),
    fetching(source, timeZone),
  );
}

/**
 * How it goes with who asks the provider each day.
 * @param {BillSource | undefined} source
 * @param {string} timeZone
 */
function fetching(source, timeZone) {
  if (source === undefined) return null;
  const { fetched_at, tried_at, again_at, trouble, asked } = source;
  const when = (/** @type {string} */ text) => timeText(new Date(text), timeZone);
  if (trouble === null && asked) return make("p", { class: "quiet" }, `Fetched ${when(fetched_at ?? tried_at)}, and again from ${when(again_at)}`);
  const next = asked ? `Tried ${when(tried_at)}, again from ${when(again_at)}.` : `Not asked since ${when(tried_at)}: nobody seems to.`;
  return make("p", { class: "amiss" }, trouble === null ? "Not fetched. " : make("bdi", {}, `Not fetched: ${trouble}. `), next);
}

/**
 * @param {Bill} bill
 * @param {BillSource | undefined} source
 * @param {string} timeZone
 * @param {string[]} open ids of what is unfolded
 */
function item(bill, source, timeZone, open) {
  const { provider, tokens, cost, currency } = bill;
  const share = tokens.billed > 0 ? tokens.seen / tokens.billed : units(cost.billed) > 0 ? units(cost.seen) / units(cost.billed) : 1;
  const level = share * 100 >= WELL ? "normal" : "orange";
  return make(
    "li",
    { class: "bill" },
    make(
      "p",
      { class: "line" },
      make("span", { class: "title" }, make("bdi", {}, cleaned(provider)), make("span", { class: "quiet" }, `${bill.since} to ${bill.until}`)),
      make("b", { class: level }, tokens.billed > 0 ? `${percentText(tokens.seen, tokens.billed)} of the tokens` : "no tokens on the bill"),
    ),
    bar([{ share, look: level }], "marked"),
    make("p", { class: "line quiet" }, make("span", {}, moneyText(bill)), make("span", {}, `compared ${timeText(new Date(bill.kept_at), timeZone)}`)),
    fetching(source, timeZone),
    days(bill),
    causes(bill, open.includes(`causes-${provider}`)),
    bill.days.length ? figures(bill, open.includes(`days-${provider}`)) : null,
  );
}

/** @param {Bill} bill */
function moneyText({ cost, currency }) {
  if (nano(cost.billed) <= 0n) return "no amounts on the bill";
  const [billed, seen] = [cost.billed, cost.seen].map((amount) => amountText(currency, amount, 2));
  return `${seen} in the ledger of ${billed} billed · ${percentText(nano(cost.seen), nano(cost.billed))}`;
}

/**
 * A column for each day, as high as what was billed of the fullest day, and filled as far as the ledger had it. The
 * figures stand below it, in a table.
 * @param {Bill} bill
 */
function days({ days }) {
  const amount = (/** @type {Billed} */ { tokens, cost }) => (tokens.billed > 0 ? tokens : { billed: units(cost.billed), seen: units(cost.seen) });
  const most = Math.max(...days.map((day) => amount(day).billed), 0);
  if (days.length < 2 || most <= 0) return null;
  const columns = days.map((day) => {
    const { billed, seen } = amount(day);
    const [whole, filled] = [make("span", { class: "day", title: dayText(day) }), make("span", { class: "filled normal" })];
    whole.style.setProperty("height", `${((Math.max(billed, 0) / most) * 100).toFixed(2)}%`);
    filled.style.setProperty("height", `${(billed > 0 ? Math.min(seen / billed, 1) * 100 : 0).toFixed(2)}%`);
    whole.append(filled);
    return make("span", { class: "slot" }, whole);
  });
  return make("div", { class: "days", "aria-hidden": "true" }, ...columns);
}

/** @param {Billed & {day: string}} day */
const dayText = ({ day, tokens }) => `${day}: ${percentText(tokens.seen, tokens.billed)} of ${tokensText(tokens.billed)} tokens`;

/**
 * @param {Bill} bill
 * @param {boolean} open
 */
function causes({ provider, causes }, open) {
  if (causes.length === 0) return make("p", { class: "quiet" }, "No differences.");
  const items = causes.map((cause) => make("li", {}, make("span", { class: "kind" }, KINDS.get(cause.kind) ?? cleaned(cause.kind)), make("bdi", {}, cause.says)));
  if (causes.length <= FEW) return make("ul", { class: "causes" }, ...items);
  return make(
    "div",
    {},
    make("ul", { class: "causes" }, ...items.slice(0, FEW)),
    make(
      "details",
      { id: `causes-${provider}`, open },
      make("summary", {}, `${counted(causes.length - FEW, "more difference")}`),
      make("ul", { class: "causes" }, ...items.slice(FEW)),
    ),
  );
}

/**
 * @param {Bill} bill
 * @param {boolean} open
 */
function figures({ provider, days, currency }, open) {
  const columns = [
    { title: "Day (UTC)" },
    ...["Tokens billed", "In ledger", "Seen", "Billed", "In ledger", "Seen"].map((title) => ({ title, look: "figure" })),
  ];
  const number = (/** @type {string} */ text) => make("td", { class: "figure" }, text);
  const rows = days.map(({ day, tokens, cost }) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, day),
      ...[tokensText(tokens.billed), tokensText(tokens.seen), percentText(tokens.seen, tokens.billed)].map(number),
      ...[cost.billed, cost.seen].map((amount) => number(amountText(currency, amount, 2))),
      number(percentText(nano(cost.seen), nano(cost.billed))),
    ),
  );
  return make("details", { id: `days-${provider}`, open }, make("summary", {}, "Figures by day"), table(`Days of the bill of ${cleaned(provider)}`, columns, rows));
}

/** @param {string} text */
const units = (text) => Number(text);
