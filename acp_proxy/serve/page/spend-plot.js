// Spend over time, stacked by a key: a plot for each currency, and the same figures as a table.

import { make, table } from "./dom.js";
import { amountText, cleaned, decimalsOf, timeText } from "./figures.js";
import { bars, colour, plot } from "./plot.js";

/** @import { Plot } from "./plot.js" */
/** @import { Series, Spend } from "./shapes.js" */

const LOOKS = 8;

/**
 * Which look a key has everywhere on the page: the first ones of the plot one each, all others the last.
 * @param {Spend} spend
 * @returns {(row: {key: string, others?: number}) => string}
 */
export function looksOf(spend) {
  const series = Object.values(spend.over_time.currencies).flat().filter(({ others }) => !others);
  const drawn = new Set(series.map(({ key }) => key));
  const keys = spend.rows.map(({ key }) => key).filter((key) => drawn.has(key)).slice(0, LOOKS);
  return ({ key, others }) => (!others && keys.includes(key) ? `series-${keys.indexOf(key)}` : "series-other");
}

/**
 * What a row or a series is called. Reports name what has no team or project by one word, which looks like a name here.
 * @param {{key: string, others?: number}} row
 * @param {string} by
 */
export function keyText({ key, others }, by) {
  if (others) return `${others.toLocaleString("en-US")} others`;
  return key === "none" && (by === "team" || by === "project") ? `no ${by}` : cleaned(key);
}

/**
 * @param {HTMLElement} container
 * @param {Spend} spend
 * @param {string} by
 * @param {{left: number, top: number}[]} pointers of the plots in whose places these come
 * @returns {Plot[]}
 */
export function drawSpend(container, spend, by, pointers) {
  const currencies = Object.entries(spend.over_time.currencies);
  return currencies.map(([currency, series], place) => {
    if (currencies.length > 1) container.append(make("h3", {}, cleaned(currency)));
    return drawCurrency(container, spend, by, currency, series, pointers[place]);
  });
}

/**
 * The figures of the plots.
 * @param {Spend} spend
 * @param {string} by
 */
export function spendTable(spend, by) {
  const { starts, currencies } = spend.over_time;
  const columns = Object.entries(currencies).flatMap(([currency, series]) =>
    series.map((one) => ({ currency, ...one })),
  );
  const decimals = decimalsOf(columns.flatMap(({ values }) => values.map((value) => ({ _: value ?? "0" }))));
  const rows = starts.map((_, index) => {
    const cells = columns.map(({ currency, values }) => {
      const value = values[index];
      return make("td", { class: "figure" }, value === null ? "" : amountText(currency, value, decimals));
    });
    return make("tr", {}, make("th", { scope: "row", class: "name" }, nameOf(spend, index)), ...cells);
  });
  const heads = columns.map((column) => ({ title: keyText(column, by), look: "figure" }));
  return table(`Spend for each ${spend.over_time.step} by ${by}`, [{ title: spend.over_time.step }, ...heads], rows);
}

/**
 * @param {HTMLElement} container
 * @param {Spend} spend
 * @param {string} by
 * @param {string} currency
 * @param {Series[]} series
 * @param {{left: number, top: number}} [pointer]
 */
function drawCurrency(container, spend, by, currency, series, pointer) {
  const { starts, step } = spend.over_time;
  const looks = looksOf(spend);
  const heights = stacked(series, starts.length);
  const top = Math.max(0, ...heights.flat().map((height) => height ?? 0));
  const decimals = top < 10 ? 4 : 2;
  // The currency stands above, where it has no sign.
  const figure = (/** @type {number} */ value) => amountText(currency, value.toFixed(9), top < 0.1 ? 4 : 2).split(" ")[0];
  const looksInFront = [...series].reverse().map((one) => ({
    paths: bars,
    points: { show: false },
    fill: () => colour(looks(one)),
    stroke: () => colour("panel"),
    width: 1,
  }));
  return plot(container, {
    label: `Spend in ${cleaned(currency)} for each ${step}, by ${by}. The figures are in the table below.`,
    height: Object.keys(spend.over_time.currencies).length > 1 ? 160 : 220,
    count: starts.length,
    lines: heights.reverse(),
    series: looksInFront,
    top,
    name: (index) => nameOf(spend, index),
    figure,
    note: (index) => noteOn(spend, by, currency, series, looks, decimals, index),
    pointer,
  });
}

/**
 * How high each series reaches, standing on those before it; null where it adds nothing, and nothing is drawn.
 * @param {Series[]} series
 * @param {number} count
 */
function stacked(series, count) {
  const height = new Array(count).fill(0);
  return series.map(({ values }) =>
    values.map((value, index) => {
      const more = Math.max(0, Number(value ?? 0));
      height[index] += more;
      return more ? height[index] : null;
    }),
  );
}

/**
 * @param {Spend} spend
 * @param {string} by
 * @param {string} currency
 * @param {Series[]} series
 * @param {(row: Series) => string} looks
 * @param {number} decimals
 * @param {number} index
 */
function noteOn(spend, by, currency, series, looks, decimals, index) {
  const lines = series.filter(({ values }) => values[index] !== null).map((one) =>
    make(
      "div",
      {},
      make("span", { class: `dot ${looks(one)}` }),
      make("bdi", {}, keyText(one, by)),
      make("b", {}, amountText(currency, one.values[index] ?? "0", decimals)),
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
