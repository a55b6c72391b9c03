// Lists of administration: rows with a button, what a change was, times. Everything is shown as text.

import { trying } from "./change.js";
import { byId, make, refill, table } from "./dom.js";
import { cleaned, timeText } from "./figures.js";

export const API = "/api/administration";

const TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/**
 * @param {string} id
 * @param {string} caption
 * @param {string[]} titles
 * @param {HTMLElement[]} rows
 * @param {string} nothing
 */
export function list(id, caption, titles, rows, nothing) {
  const shown = rows.length ? table(caption, titles.map((title) => ({ title })), rows) : make("p", { class: "quiet" }, nothing);
  refill(byId(id), shown);
}

/**
 * @param {string} name
 * @param {(string | null)[]} cells
 * @param {HTMLElement | null} [last]
 */
export function row(name, cells, last = null) {
  const others = cells.map((cell) => make("td", { class: "about" }, make("bdi", {}, cleaned(cell ?? ""))));
  return make("tr", {}, make("th", { scope: "row", class: "name" }, make("bdi", {}, cleaned(name))), ...others, last);
}

/**
 * A cell with a button that ends something, once it is confirmed.
 * @param {string} word
 * @param {string} what
 * @param {() => Promise<void>} does
 */
export function end(word, what, does) {
  const button = make("button", { type: "button", "aria-label": `${word}: ${cleaned(what)}` }, word);
  button.addEventListener("click", () => {
    if (confirm(`${word}: ${cleaned(what)}?`)) trying(does);
  });
  return make("td", { class: "action" }, button);
}

/**
 * What of two values differs, as `role: developer → lead`.
 * @param {Record<string, unknown> | null} before
 * @param {Record<string, unknown> | null} after
 */
export function difference(before, after) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const text = (/** @type {string} */ name, /** @type {unknown} */ value) => {
    if (value === undefined || value === null) return "–";
    if (name.endsWith("_at") && typeof value === "number") return at(value);
    if (Array.isArray(value)) return value.join(", ");
    if (typeof value !== "object") return String(value);
    return Object.entries(value).map(([part, each]) => `${part} ${[each].flat().join(", ")}`).join(" ");
  };
  return names
    .filter((name) => text(name, before?.[name]) !== text(name, after?.[name]))
    .map((name) => `${name}: ${before ? `${text(name, before[name])} → ` : ""}${text(name, after?.[name])}`)
    .join(", ");
}

/** @param {number | null} seconds since 1970 */
export function at(seconds) {
  return seconds === null ? "never" : timeText(new Date(seconds * 1000), TIME_ZONE);
}
