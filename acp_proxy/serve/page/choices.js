// The controls of what is shown: range, dates, key, filters, order. Each leads to another address, which shows it.

import { START, addressOf, widened } from "./address.js";
import { byId, make, refill } from "./dom.js";
import { cleaned } from "./figures.js";

/** @import { View } from "./address.js" */
/** @import { Spend } from "./shapes.js" */

/**
 * Shows what is chosen.
 * @param {View} view
 */
export function showChoices(view) {
  for (const name of /** @type {const} */ (["range", "by"])) {
    for (const button of inputs(`input[name="${name}"]`)) button.checked = button.value === view[name];
  }
  /** @type {HTMLSelectElement} */ (byId("sort")).value = view.sort;
  const find = /** @type {HTMLInputElement} */ (byId("find"));
  if (find.value.trim() !== view.find) find.value = view.find;
  showFilters(view);
}

/** @param {View} view */
function showFilters(view) {
  const chips = Object.entries(view.filters).map(([name, value]) => {
    const words = [make("span", { class: "quiet" }, `${name} `), make("bdi", {}, cleaned(value))];
    const off = make("span", { "aria-hidden": "true" }, " ×");
    const link = { class: "chip", href: widened(view, name), "aria-label": `Remove the filter ${name} ${cleaned(value)}` };
    return make("li", {}, make("a", link, ...words, off));
  });
  const all = make("li", {}, make("a", { href: addressOf({ ...view, filters: {} }) }, "Remove all"));
  refill(byId("filters"), ...chips, ...(chips.length > 1 ? [all] : []));
  byId("filters").hidden = chips.length === 0;
}

/**
 * From which day to which the figures are: also of a range that has a name.
 * @param {Spend} spend
 * @param {string} timeZone
 */
export function showDates({ since, until }, timeZone) {
  const day = new Intl.DateTimeFormat("en-CA", { dateStyle: "short", timeZone }); // 2026-11-01
  const of = (/** @type {string | null} */ time, less = 0) => (time ? day.format(new Date(Date.parse(time) - less)) : "");
  const [from, to] = [/** @type {HTMLInputElement} */ (byId("from")), /** @type {HTMLInputElement} */ (byId("to"))];
  if (document.activeElement !== from) from.value = of(since);
  if (document.activeElement !== to) to.value = of(until, 1);
}

/**
 * The two dates as a range, null while one of them is only half typed.
 * @returns {string | null}
 */
export function datesChosen() {
  const [from, to] = [/** @type {HTMLInputElement} */ (byId("from")), /** @type {HTMLInputElement} */ (byId("to"))];
  if (!from.validity.valid || !to.validity.valid) return null;
  if (!from.value && !to.value) return "all";
  const [first, last] = from.value && to.value && to.value < from.value ? [to.value, from.value] : [from.value, to.value];
  return `${first}..${last}`;
}

/** @param {View} view */
export const isFiltered = ({ filters, find }) => Boolean(find) || Object.keys(filters).length > 0;

/**
 * A name for a file of what is shown.
 * @param {string} what
 * @param {View} view
 */
export function fileName(what, { range, filters }) {
  const words = ["acp-proxy", what, range === START.range ? "" : range.replace("..", "-to-"), ...Object.values(filters)];
  return words.filter(Boolean).join("-").replace(/[^\w.-]+/g, "-").slice(0, 80);
}

/**
 * @param {string} selector
 * @returns {NodeListOf<HTMLInputElement>}
 */
const inputs = (selector) => document.querySelectorAll(selector);
