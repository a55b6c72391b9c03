// What stands in more than one table: costs, contexts, tokens as reports name them, marks of what is not known.

import { bar, make } from "./dom.js";
import { cleaned, contextLevel, costTexts, exactText, listedText, percentText, shortened, timeText, tokensText } from "./figures.js";

/** @import { Cost, Sums, Tokens } from "./shapes.js" */

/**
 * Amounts as they stand in a cell, one currency below the other, and what of them is a list price; the exact ones are in
 * its title.
 * @param {{cost: Cost, not_billed?: Cost}} sums
 * @param {{decimals?: number, atLeast?: boolean}} how
 */
export function costCell({ cost, not_billed: listed = {} }, how) {
  const exact = (/** @type {Cost} */ amounts) =>
    Object.entries(amounts).map(([currency, amount]) => exactText(currency, amount)).join(" + ");
  const title = [exact(cost), exact(listed) && `list price, not billed: ${exact(listed)}`].filter(Boolean).join("; ");
  const lines = costTexts(cost, how).map((text) => make("span", { class: "amount" }, text));
  const called = listedText(cost, listed, how);
  return make("td", { class: "figure cost", title: title || null }, ...lines, called ? make("small", {}, called) : null);
}

/**
 * How full a context is: a bar and a figure; the levels of the bar are also told by its figure.
 * @param {{context_used: number | null, context_size: number | null}} context
 */
export function contextCell({ context_used: used, context_size: size }) {
  if (used === null || !size) return make("td", { class: "context" }, "–");
  const level = contextLevel(used, size);
  const title = `${used.toLocaleString("en-US")} of ${size.toLocaleString("en-US")} tokens`;
  return make(
    "td",
    { class: "context", title },
    bar([{ share: used / size, look: level }], "marked"),
    make("span", { class: `percent ${level}` }, `${Math.floor((used * 100) / size)}%`),
  );
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
    { count: sums.turns_without_usage, look: "unknown", says: "without usage" },
  ];
  return found.filter(({ count }) => count > 0).map(({ count, look, says }) =>
    make("span", { class: "flag" }, make("span", { class: `swatch ${look}` }), `${count.toLocaleString("en-US")} ${says}`),
  );
}

/**
 * Tokens as reports name them: a prompt is all that was sent, a completion all that was written.
 * @param {{tokens: Tokens}} sums
 */
export function partsOf({ tokens }) {
  const prompt = tokens.input + tokens.cached_read + tokens.cached_write;
  return {
    prompt: tokensText(prompt),
    cached: percentText(tokens.cached_read, prompt),
    completion: tokensText(tokens.output + tokens.thought),
  };
}

/**
 * What a session is called: its title, else what people can tell it by.
 * @param {{title: string | null, agent: string, project: string | null, started_at: string}} session
 * @param {string} timeZone
 */
export function nameOf({ title, agent, project, started_at: started }, timeZone) {
  const parts = [shortened(agent), project ?? "", timeText(new Date(started), timeZone)];
  return cleaned(title ?? "") || parts.map(cleaned).filter(Boolean).join(" · ");
}

/**
 * A name that leads to what is shown of it alone.
 * @param {string} address
 * @param {string} dimension
 * @param {string} value
 * @param {...(Node | string)} text
 */
export function pick(address, dimension, value, ...text) {
  return make("a", { class: "pick", href: address, title: `Only ${dimension} ${cleaned(value)}` }, make("bdi", {}, ...text));
}
