// The total of a range, cards of today, week and month, and how sure the figures are.

import { bar, byId, make, refill } from "./dom.js";
import { costTexts, counted, listedSentence, listedText, percentText, tokensText } from "./figures.js";

/** @import { Card, Spend, Sums } from "./shapes.js" */

const RANGES = { today: "today", week: "this week", month: "this month", "last-month": "last month", year: "this year", all: "in all" };
const SOURCES = [
  { name: "exact", look: "exact", says: "the agent reported all of it" },
  { name: "partial", look: "partial", says: "at least this: the agent reported only a part" },
  { name: "estimated", look: "estimated", says: "a guess: from characters, from a context, or what a killed turn held" },
  { name: "unpriced", look: "unknown", word: "without a price", says: "there are tokens, but no price for them" },
  { name: "none", look: "unknown", word: "without usage", says: "nothing is known of what was used" },
];

/**
 * @param {Spend} spend
 * @param {Sums} all of all time
 */
export function showTotals(spend, all) {
  showTotal(spend);
  const { today, week, month } = spend.cards;
  const ever = { ...all, tokens_total: all.tokens.total };
  const cards = { Today: today, "This week": week, "This month": month, "In all": ever };
  refill(byId("cards"), ...Object.entries(cards).map(([name, card]) => cardOf(name, card)));
  refill(byId("sources"), ...sourcesOf(spend.sources));
}

/** @param {Spend} spend */
function showTotal({ total, range }) {
  const name = RANGES[/** @type {keyof typeof RANGES} */ (range)] ?? "in these days";
  byId("total-of").textContent = `Spent ${name}`;
  const amounts = costTexts(total.cost, { atLeast: total.at_least });
  refill(byId("total"), ...amounts.map((text) => make("span", { class: "amount" }, text)));
  byId("total-listed").textContent = listedSentence(total);
  const { input, cached_read, cached_write } = total.tokens;
  const prompt = input + cached_read + cached_write;
  const hits = prompt ? `${percentText(cached_read, prompt)} of prompts from cache` : "no prompts yet";
  byId("total-facts").textContent = [counted(total.turns, "turn"), `${tokensText(total.tokens.total)} tokens`, hits].join(" · ");
}

/**
 * @param {string} name
 * @param {Card} card
 */
function cardOf(name, card) {
  const amounts = costTexts(card.cost, { atLeast: card.at_least });
  const listed = listedText(card.cost, card.not_billed);
  return make(
    "li",
    { class: "card" },
    make("h2", {}, name),
    make("p", { class: "amounts" }, ...amounts.map((text) => make("span", { class: "amount" }, text))),
    make("p", { class: "quiet" }, `${counted(card.turns, "turn")} · ${tokensText(card.tokens_total)} tokens`),
    listed ? make("p", { class: "quiet" }, `${listed}, not billed`) : null,
    card.at_least ? make("p", { class: "quiet" }, "at least: not all of it is known") : null,
  );
}

/** @param {Spend["sources"]} sources */
function sourcesOf(sources) {
  const counts = SOURCES.map((source) => ({ ...source, count: sources[/** @type {keyof typeof sources} */ (source.name)] }));
  const all = counts.reduce((sum, { count }) => sum + count, 0);
  if (!all) return [];
  const items = counts.map(({ count, look, word = look, says }) =>
    make("li", { title: says }, make("span", { class: `swatch ${look}` }), `${count.toLocaleString("en-US")} ${word}`),
  );
  const parts = counts.map(({ count, look }) => ({ share: count / all, look }));
  return [bar(parts, "sources"), make("ul", { class: "key", "aria-label": "How sure the figures are" }, ...items)];
}
