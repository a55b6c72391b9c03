// Spend over time, stacked by a key: a plot for each currency, and the same figures as a table.

import { make, table } from "./dom.js";
import { amountText, cleaned, decimalsOf, timeText } from "./figures.js";
import { bars, colour, plot } from "./plot.js";

/** @import { Series, Spend } from "./shapes.js" */

/**
 * Which look a key has everywhere on the page: those of the plot one each, all others the last.
 * @param {Spend} spend
 * @returns {(key: string) => string}
 */
export function looksOf(spend) {
  const drawn = new Set(Object.values(spend.over_time.currencies).flat().map(({ key }) => key));
  const keys = spend.rows.map(({ key }) => key).filter((key) => drawn.has(key) && key !== "other").slice(0, 8);
  return (key) => (keys.includes(key) ? `series-${keys.indexOf(key)}` : "series-other");
}

/**
 * @param {HTMLElement} container
 * @param {Spend} spend
 * @param {string} by
 * @returns {(() => void)[]} what takes the plots away
 */
export function drawSpend(container, spend, by) {
  const currencies = Object.entries(spend.over_time.currencies);
  return currencies.flatMap(([currency, series]) => {
    if (currencies.length > 1) container.append(make("h3", {}, cleaned(currency)));
    return drawCurrency(container, spend, by, currency, series);
  });
}

/**
 * The figures of the plots.
 * @param {Spend} spend
 * @param {string} by
 */
export function spendTable(spend, by) {
  const { starts, currencies } = spend.over_time;
  const looks = looksOf(spend);
  const columns = Object.entries(currencies).flatMap(([currency, series]) =>
    series.map(({ key, values }) => ({ currency, key, values })),
  );
  const decimals = decimalsOf(columns.flatMap(({ values }) => values.map((value) => ({ _: value ?? "0" }))));
  const rows = starts.map((_, index) => {
    const cells = columns.map(({ currency, values }) => {
      const value = values[index];
      return make("td", { class: "figure" }, value === null ? "" : amountText(currency, value, decimals));
    });
    return make("tr", {}, make("th", { scope: "row", class: "name" }, nameOf(spend, index)), ...cells);
  });
  const heads = columns.map(({ key }) => ({ title: cleaned(key), look: `figure ${looks(key)}` }));
  return table(`Spend for each ${spend.over_time.step} by ${by}`, [{ title: spend.over_time.step }, ...heads], rows);
}

/**
 * @param {HTMLElement} container
 * @param {Spend} spend
 * @param {string} by
 * @param {string} currency
 * @param {Series[]} series
 */
function drawCurrency(container, spend, by, currency, series) {
  const { starts, step } = spend.over_time;
  const looks = looksOf(spend);
  const heights = stacked(series, starts.length);
  const top = Math.max(0, ...(heights.at(-1) ?? []));
  const decimals = top < 10 ? 4 : 2;
  const figure = (/** @type {number} */ value) => amountText(currency, value.toFixed(9), top < 0.1 ? 4 : 2);
  const looksInFront = [...series].reverse().map(({ key }) => ({
    paths: bars,
    points: { show: false },
    fill: () => colour(looks(key)),
    stroke: () => colour("panel"),
    width: 1,
  }));
  return plot(container, {
    label: `Spend in ${cleaned(currency)} for each ${step}, by ${by}. The figures are in the table below.`,
    height: 220,
    count: starts.length,
    lines: heights.reverse(),
    series: looksInFront,
    top,
    name: (index) => nameOf(spend, index),
    figure,
    note: (index) => noteOn(spend, currency, series, looks, decimals, index),
  });
}

/**
 * How high each series reaches, standing on those before it.
 * @param {Series[]} series
 * @param {number} count
 */
function stacked(series, count) {
  const height = new Array(count).fill(0);
  return series.map(({ values }) =>
    values.map((value, index) => (height[index] += Math.max(0, Number(value ?? 0)))),
  );
}

/**
 * @param {Spend} spend
 * @param {string} currency
 * @param {Series[]} series
 * @param {(key: string) => string} looks
 * @param {number} decimals
 * @param {number} index
 */
function noteOn(spend, currency, series, looks, decimals, index) {
  const found = series.flatMap(({ key, values }) => (values[index] == null ? [] : [{ key, value: values[index] }]));
  const lines = found.map(({ key, value }) =>
    make(
      "div",
      {},
      make("span", { class: `dot ${looks(key)}` }),
      make("bdi", {}, cleaned(key)),
      make("b", {}, amountText(currency, value, decimals)),
    ),
  );
  return [make("strong", {}, nameOf(spend, index)), ...(lines.length ? lines : [make("div", {}, "nothing")])];
}

/**
 * @param {Spend} spend
 * @param {number} index
 */
function nameOf(spend, index) {
  const { starts, step } = spend.over_time;
  const start = new Date(starts[index] * 1000);
  if (step !== "hour") return timeText(start, spend.timezone, step);
  return timeText(start, spend.timezone).slice(-5);
}
