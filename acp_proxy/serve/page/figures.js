// Figures, names and times as people read them, rounded as `acp-proxy report` rounds them. Amounts are decimal text.

/** @import { Cost } from "./shapes.js" */

const NANO = 1_000_000_000n;
const SIGNS = new Map([["USD", "$"], ["EUR", "€"], ["GBP", "£"]]);
const LONGEST_NAME = 120;

/**
 * Nano-units of decimal text, exact.
 * @param {string} text
 * @returns {bigint}
 */
export function nano(text) {
  const [, sign = "", units = "0", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  const size = BigInt(units) * NANO + BigInt(fraction.padEnd(9, "0").slice(0, 9));
  return sign ? -size : size;
}

/**
 * How many decimals amounts that stand together are shown with.
 * @param {Iterable<Cost>} costs
 * @returns {2 | 4}
 */
export function decimalsOf(costs) {
  const large = [...costs].flatMap((cost) => Object.values(cost)).some((text) => magnitude(nano(text)) >= 10n * NANO);
  return large ? 2 : 4;
}

/**
 * `$1.2346`, `3.00 credits`; what would round to nothing is `<$0.0001`.
 * @param {string} currency
 * @param {string} amount
 * @param {number} decimals
 */
export function amountText(currency, amount, decimals) {
  const exact = nano(amount);
  const step = 10n ** BigInt(9 - decimals);
  const rounded = halfEven(magnitude(exact), step);
  const below = exact !== 0n && rounded === 0n;
  const [units, fraction] = divided(below ? 1n : rounded, 10n ** BigInt(decimals));
  const figure = `${units.toLocaleString("en-US")}.${String(fraction).padStart(decimals, "0")}`;
  return withCurrency(`${below ? "<" : ""}${exact < 0n ? "-" : ""}`, figure, currency);
}

/**
 * To the last digit: `$0.045989`, `3.00 credits`.
 * @param {string} currency
 * @param {string} amount
 */
export function exactText(currency, amount) {
  const decimals = Math.max(2, amount.split(".")[1]?.length ?? 0);
  return amountText(currency, amount, decimals);
}

/**
 * @param {string} head
 * @param {string} figure
 * @param {string} currency
 */
function withCurrency(head, figure, currency) {
  const sign = SIGNS.get(currency);
  return sign ? `${head}${sign}${figure}` : `${head}${figure} ${[...cleaned(currency)].slice(0, 12).join("")}`;
}

/**
 * One text for each currency, in the order of the answer; `?` where no part is known, `–` where there is none to know.
 * @param {Cost} cost
 * @param {{decimals?: number, atLeast?: boolean}} [how]
 * @returns {string[]}
 */
export function costTexts(cost, { decimals = decimalsOf([cost]), atLeast = false } = {}) {
  const currencies = Object.keys(cost);
  if (currencies.length === 0) return [atLeast ? "?" : "–"];
  return currencies.map((currency) => `${atLeast ? "≥ " : ""}${amountText(currency, cost[currency], decimals)}`);
}

/**
 * What of a cost nobody is billed, because a plan covered it: `list price`, or `$1.20 list price` where that is a part.
 * @param {Cost} cost
 * @param {Cost} [listed]
 * @param {{decimals?: number}} [how]
 */
export function listedText(cost, listed = {}, how = {}) {
  const currencies = Object.keys(listed);
  if (currencies.length === 0) return "";
  const all = Object.keys(cost).every((currency) => nano(cost[currency]) === nano(listed[currency] ?? "0"));
  return all ? "list price" : `${costTexts(listed, { decimals: how.decimals ?? decimalsOf([cost]) }).join(" + ")} list price`;
}

/**
 * The same as a sentence, for where there is room.
 * @param {{cost: Cost, not_billed?: Cost}} sums
 */
export function listedSentence({ cost, not_billed: listed }) {
  const text = listedText(cost, listed);
  return text === "list price" ? "list price, not billed: used under a plan" : text && `${text}, not billed: used under a plan`;
}

/**
 * At most seven characters: `999,999`, `1.23M`, `45.6B`.
 * @param {number} tokens
 */
export function tokensText(tokens) {
  if (tokens < 1_000_000) return tokens.toLocaleString("en-US");
  const [scaled, unit] = tokens < 999_500_000 ? [tokens / 1e6, "M"] : [tokens / 1e9, "B"];
  const decimals = scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
  const figure = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return `${scaled.toLocaleString("en-US", figure)}${unit}`;
}

/**
 * `1 turn`, `2,000 turns`.
 * @param {number} number
 * @param {string} noun
 */
export function counted(number, noun) {
  return `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;
}

/**
 * Rounded, but never to nothing or to all of it: `<1%`, `57%`, `>99%`; `–` of nothing.
 * @param {bigint | number} part of a number whole tokens
 * @param {bigint | number} whole
 */
export function percentText(part, whole) {
  const [some, all] = [BigInt(part), BigInt(whole)];
  if (all <= 0n) return "–";
  if (some > 0n && some * 100n < all) return "<1%";
  const percent = halfEven(magnitude(some) * 100n, all);
  return percent === 100n && some < all && some > 0n ? ">99%" : `${some < 0n && percent ? "-" : ""}${percent}%`;
}

/**
 * The thresholds of ACP's draft on session usage; the same everywhere.
 * @param {number} used
 * @param {number} size
 * @returns {"normal" | "yellow" | "orange" | "red"}
 */
export function contextLevel(used, size) {
  if (used * 100 > size * 95) return "red";
  return used * 100 >= size * 90 ? "orange" : used * 100 >= size * 75 ? "yellow" : "normal";
}

/**
 * `0:07`, `12:30`, `2:05:00`.
 * @param {number} seconds
 */
export function elapsedText(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const tail = String(rest).padStart(2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${tail}` : `${minutes}:${tail}`;
}

/**
 * `21 Nov 14:05` in a time zone, with the year where it is another one, or where it is to the second.
 * @param {Date} time
 * @param {string} timeZone
 * @param {"minute" | "second" | "day" | "month"} [finest]
 */
export function timeText(time, timeZone, finest = "minute") {
  const year = new Intl.DateTimeFormat("en-US", { year: "numeric", timeZone });
  const parts = new Intl.DateTimeFormat("en-US", {
    day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone,
  }).formatToParts(time);
  const of = (/** @type {string} */ type) => parts.find((part) => part.type === type)?.value ?? "";
  const month = finest === "month" ? of("month") : `${of("day")} ${of("month")}`;
  const known = finest !== "second" && year.format(time) === year.format(new Date());
  const date = known ? month : `${month} ${year.format(time)}`;
  if (finest === "day" || finest === "month") return date;
  return `${date} ${of("hour")}:${of("minute")}${finest === "second" ? `:${of("second")}` : ""}`;
}

/**
 * A name that an agent or a model gave: on one line, without characters that control or turn the direction of
 * writing, and not without end.
 * @param {string} name
 */
export function cleaned(name) {
  const text = name.slice(0, 4 * LONGEST_NAME).replace(/[\p{C}\p{Z}]+/gu, " ").trim();
  const signs = [...text];
  return signs.length > LONGEST_NAME ? `${signs.slice(0, LONGEST_NAME - 1).join("")}…` : text;
}

/**
 * Names of agents that stand together, without the organisation that names from npm begin with, but where that tells
 * two of them apart.
 * @param {string[]} agents
 * @returns {(agent: string) => string}
 */
export function shortening(agents) {
  const ends = [...new Set(agents)].map(endOf);
  return (agent) => (ends.filter((end) => end === endOf(agent)).length > 1 ? "" : cleaned(endOf(agent))) || cleaned(agent);
}

/**
 * The name of an agent without the organisation that names from npm begin with.
 * @param {string} agent
 */
export const shortened = (agent) => cleaned(endOf(agent)) || cleaned(agent);

/** @param {string} agent */
const endOf = (agent) => agent.slice(agent.lastIndexOf("/") + 1);

/** @param {bigint} number */
const magnitude = (number) => (number < 0n ? -number : number);

/**
 * @param {bigint} number
 * @param {bigint} by
 * @returns {[bigint, bigint]}
 */
const divided = (number, by) => [number / by, number % by];

/**
 * How many steps are in a number, rounded half to even.
 * @param {bigint} number not negative
 * @param {bigint} step
 */
function halfEven(number, step) {
  const [steps, rest] = divided(number, step);
  const up = rest * 2n > step || (rest * 2n === step && steps % 2n === 1n);
  return up ? steps + 1n : steps;
}
