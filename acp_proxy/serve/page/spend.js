// What was spent in a range: the total, cards of today, week and month, how sure the figures are, a table by a key.

import { bar, byId, make, refill, table } from "./dom.js";
import { cleaned, costTexts, counted, decimalsOf, nano, percentText, tokensText } from "./figures.js";
import { drawSpend, keyText, looksOf, spendTable } from "./spend-plot.js";

/** @import { Card, Cost, Row, Spend, Sums } from "./shapes.js" */

const RANGES = { today: "today", week: "this week", month: "this month", year: "this year", all: "in all" };
const SOURCES = [
  { name: "exact", look: "exact", says: "the agent reported all of it" },
  { name: "partial", look: "partial", says: "at least this: the agent reported only a part" },
  { name: "estimated", look: "estimated", says: "a guess, from characters or a context" },
  { name: "none", look: "unknown", says: "nothing is known of what was used" },
];

const FEW = 12; // rows of the table that are shown before all are asked for

/** @type {import("./plot.js").Plot[]} */
let drawn = [];

/**
 * @param {Spend} spend
 * @param {string} by
 * @param {boolean} every whether all rows of the table are shown
 */
export function showSpend(spend, by, every) {
  showTotal(spend);
  refill(byId("cards"), ...Object.entries(spend.cards).map(([name, card]) => cardOf(name, card)));
  refill(byId("sources"), ...sourcesOf(spend.sources));
  const nothing = spend.rows.length === 0;
  byId("spend-nothing").hidden = !nothing;
  byId("spend-figures").hidden = nothing;
  showPlots(nothing ? null : spend, by);
  refill(byId("spend-over-time"), spendTable(spend, by));
  const few = every || spend.rows.length <= FEW + 1;
  refill(byId("spend-table"), tableBy(spend, by, few ? spend.rows : spend.rows.slice(0, FEW)));
  byId("spend-more").hidden = few;
  byId("spend-more").textContent = `Show all ${spend.rows.length.toLocaleString("en-US")}`;
}

/**
 * @param {Spend | null} spend
 * @param {string} by
 */
function showPlots(spend, by) {
  const pointers = drawn.map(({ pointer }) => pointer());
  drawn.forEach(({ takeAway }) => takeAway());
  const plots = byId("spend-plots");
  plots.replaceChildren();
  drawn = spend ? drawSpend(plots, spend, by, pointers) : [];
}

/**
 * What an amount leaves out, as marks with words.
 * @param {Sums} sums
 */
export function flags(sums) {
  const found = [
    { count: sums.unpriced_turns, look: "unknown", says: "without a price" },
    { count: sums.partial_turns, look: "partial", says: "partial" },
    { count: sums.estimated_turns, look: "estimated", says: "estimated" },
    { count: sums.turns_without_usage, look: "unknown", says: "unknown" },
  ];
  return found.filter(({ count }) => count > 0).map(({ count, look, says }) =>
    make("span", { class: "flag" }, make("span", { class: `swatch ${look}` }), `${count.toLocaleString("en-US")} ${says}`),
  );
}

/**
 * Amounts as they stand in a cell, one currency below the other; the exact ones are in its title.
 * @param {Cost} cost
 * @param {{decimals?: number, atLeast?: boolean}} how
 */
export function costCell(cost, how) {
  const exact = Object.entries(cost).map(([currency, amount]) => `${amount} ${cleaned(currency)}`).join(" + ");
  const lines = costTexts(cost, how).map((text) => make("span", { class: "amount" }, text));
  return make("td", { class: "figure cost", title: exact || null }, ...lines);
}

/** @param {Spend} spend */
function showTotal({ total, range, cache_hit_ratio }) {
  const name = RANGES[/** @type {keyof typeof RANGES} */ (range)];
  byId("total-of").textContent = `Spent ${name}`;
  const amounts = costTexts(total.cost, { atLeast: total.at_least });
  refill(byId("total"), ...amounts.map((text) => make("span", { class: "amount" }, text)));
  const hits = cache_hit_ratio === null ? "no prompts yet" : `${percentText(Number(cache_hit_ratio))} of prompts from cache`;
  byId("total-facts").textContent = [counted(total.turns, "turn"), `${tokensText(total.tokens.total)} tokens`, hits].join(" · ");
}

/**
 * @param {string} name
 * @param {Card} card
 */
function cardOf(name, card) {
  const amounts = costTexts(card.cost, { atLeast: card.at_least });
  return make(
    "li",
    { class: "card" },
    make("h2", {}, { today: "Today", week: "This week", month: "This month" }[name] ?? name),
    make("p", { class: "amounts" }, ...amounts.map((text) => make("span", { class: "amount" }, text))),
    make("p", { class: "quiet" }, `${counted(card.turns, "turn")} · ${tokensText(card.tokens_total)} tokens`),
    card.at_least ? make("p", { class: "quiet" }, "at least: not all of it is known") : null,
  );
}

/** @param {Spend["sources"]} sources */
function sourcesOf(sources) {
  const counts = SOURCES.map((source) => ({ ...source, count: sources[/** @type {keyof typeof sources} */ (source.name)] }));
  const all = counts.reduce((sum, { count }) => sum + count, 0);
  if (!all) return [];
  const items = counts.map(({ count, look, says }) =>
    make("li", { title: says }, make("span", { class: `swatch ${look}` }), `${count.toLocaleString("en-US")} ${look}`),
  );
  const parts = counts.map(({ count, look }) => ({ share: count / all, look }));
  return [bar(parts, "sources"), make("ul", { class: "key", "aria-label": "How sure the figures are" }, ...items)];
}

/**
 * @param {Spend} spend
 * @param {string} by
 * @param {Row[]} shown
 */
function tableBy(spend, by, shown) {
  const decimals = decimalsOf(spend.rows.map(({ cost }) => cost));
  const looks = looksOf(spend);
  const rows = shown.map((row) => rowOf(row, spend.total, { look: looks(row), decimals }));
  const columns = [
    { title: by, look: "name" },
    { title: "cost", look: "figure" },
    { title: "share", look: "share" },
    { title: "turns", look: "figure roomy" },
    { title: "prompt", look: "figure roomy" },
    { title: "cached", look: "figure roomy" },
    { title: "completion", look: "figure roomy" },
  ];
  return table(`Spend by ${by}`, columns, rows);
}

/**
 * @param {Row} row
 * @param {Sums} total
 * @param {{look: string, decimals: number}} how
 */
function rowOf(row, total, { look, decimals }) {
  const { prompt, cached, completion } = partsOf(row);
  const few = `${counted(row.turns, "turn")} · ${prompt} in · ${cached} cached · ${completion} out`;
  return make(
    "tr",
    {},
    make(
      "th",
      { scope: "row", class: "name led" },
      make("span", { class: `dot ${look}`, "aria-hidden": "true" }),
      make("bdi", {}, keyText(row)),
      make("span", { class: "flags" }, ...flags(row)),
      make("small", { class: "tight" }, few),
    ),
    costCell(row.cost, { decimals, atLeast: row.at_least }),
    shareCell(row, total, look),
    make("td", { class: "figure roomy" }, row.turns.toLocaleString("en-US")),
    make("td", { class: "figure roomy" }, prompt),
    make("td", { class: "figure roomy" }, cached),
    make("td", { class: "figure roomy" }, completion),
  );
}

/**
 * Tokens as reports name them: a prompt is all that was sent, a completion all that was written.
 * @param {{tokens: import("./shapes.js").Tokens}} sums
 */
export function partsOf({ tokens }) {
  const prompt = tokens.input + tokens.cached_read + tokens.cached_write;
  return {
    prompt: tokensText(prompt),
    cached: prompt ? percentText(tokens.cached_read / prompt) : "–",
    completion: tokensText(tokens.output + tokens.thought),
  };
}

/**
 * A line for each currency, beside its amount: currencies are never added. An unknown cost has no known share.
 * @param {Row} row
 * @param {Sums} total
 * @param {string} look
 */
function shareCell(row, total, look) {
  const shares = Object.keys(row.cost).sort().map((currency) => {
    const all = Number(nano(total.cost[currency] ?? "0"));
    return all > 0 ? Number(nano(row.cost[currency])) / all : 0;
  });
  const lines = shares.map((share) => lineOf(bar([{ share, look }]), percentText(share)));
  return make("td", { class: "share" }, ...(lines.length ? lines : [lineOf(bar([]), "–")]));
}

/**
 * @param {HTMLElement} bar
 * @param {string} text
 */
const lineOf = (bar, text) => make("span", { class: "line" }, bar, make("span", { class: "percent" }, text));
