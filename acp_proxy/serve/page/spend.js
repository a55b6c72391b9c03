// Where it went: spend over time, and as a table by a key.

import { FILTERS, narrowed } from "./address.js";
import { costCell, flags, partsOf, pick } from "./cells.js";
import { bar, breakable, byId, make, refill, table } from "./dom.js";
import { cleaned, counted, decimalsOf, listedSentence, nano, percentText } from "./figures.js";
import { drawSpend, keyText, looksOf, spendTable } from "./spend-plot.js";

/** @import { View } from "./address.js" */
/** @import { Plot } from "./plot.js" */
/** @import { Row, Spend, Sums } from "./shapes.js" */

const ALWAYS = ["agent", "model", "project"];
const FEW = 12; // rows of the table that are shown before all are asked for

/** @type {Plot[]} */
let drawn = [];

/**
 * All but the rows of the table.
 * @param {Spend} spend
 * @param {string} by
 */
export function showSpend(spend, by) {
  offer([...ALWAYS, ...spend.also_by, by]);
  const nothing = spend.rows.length === 0;
  byId("spend-nothing").hidden = !nothing;
  byId("spend-figures").hidden = nothing;
  showPlots(nothing ? null : spend, by);
  byId("spend-listed").textContent = listedSentence(spend.total);
  refill(byId("spend-over-time"), spendTable(spend, by));
}

/**
 * @param {Spend} spend
 * @param {string} by
 * @param {boolean} every whether all of them are shown
 * @param {View} view
 */
export function showRows(spend, by, every, view) {
  const few = every || spend.rows.length <= FEW + 1;
  refill(byId("spend-table"), tableBy(spend, by, few ? spend.rows : spend.rows.slice(0, FEW), view));
  byId("spend-more").hidden = few;
  byId("spend-more").textContent = `Show all ${spend.rows.length.toLocaleString("en-US")}`;
}

/** @param {string[]} keys */
function offer(keys) {
  for (const button of document.querySelectorAll("#by input")) {
    const label = /** @type {HTMLElement} */ (button.parentElement);
    label.hidden = !keys.includes(/** @type {HTMLInputElement} */ (button).value);
  }
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
 * @param {Spend} spend
 * @param {string} by
 * @param {Row[]} shown
 * @param {View} view
 */
function tableBy(spend, by, shown, view) {
  const decimals = decimalsOf(spend.rows.map(({ cost }) => cost));
  const looks = looksOf(spend);
  const rows = shown.map((row) => rowOf(row, spend.total, { look: looks(row), decimals, by, view }));
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
 * @param {{look: string, decimals: number, by: string, view: View}} how
 */
function rowOf(row, total, { look, decimals, by, view }) {
  const { prompt, cached, completion } = partsOf(row);
  const name = breakable(keyText(row, by));
  const few = `${counted(row.turns, "turn")} · ${prompt} in · ${cached} cached · ${completion} out`;
  return make(
    "tr",
    {},
    make(
      "th",
      { scope: "row", class: "name led" },
      make("span", { class: `dot ${look}`, "aria-hidden": "true" }),
      row.others || !FILTERS.includes(by) ? make("bdi", {}, ...name) : pick(narrowed(view, by, row.key), by, row.key, ...name),
      make("span", { class: "flags" }, ...flags(row)),
      make("small", { class: "tight" }, make("span", { class: "slim" }, shareText(row, total)), few),
    ),
    costCell(row, { decimals, atLeast: row.at_least }),
    shareCell(row, total, look),
    make("td", { class: "figure roomy" }, row.turns.toLocaleString("en-US")),
    make("td", { class: "figure roomy" }, prompt),
    make("td", { class: "figure roomy" }, cached),
    make("td", { class: "figure roomy" }, completion),
  );
}

/**
 * What the column of shares says, where there is no room for it; with a currency if there are several.
 * @param {Row} row
 * @param {Sums} total
 */
function shareText(row, total) {
  const several = Object.keys(total.cost).length > 1;
  return Object.keys(row.cost).map((currency) => {
    const share = percentText(nano(row.cost[currency]), nano(total.cost[currency] ?? "0"));
    return `${share} of all${several ? ` ${cleaned(currency)}` : ""} · `;
  }).join("");
}

/**
 * A line for each currency, beside its amount: currencies are never added. An unknown cost has no known share.
 * @param {Row} row
 * @param {Sums} total
 * @param {string} look
 */
function shareCell(row, total, look) {
  const lines = Object.keys(row.cost).map((currency) => {
    const [part, all] = [nano(row.cost[currency]), nano(total.cost[currency] ?? "0")];
    const share = all > 0n ? Number(part) / Number(all) : 0;
    return lineOf(bar([{ share, look }]), percentText(part, all));
  });
  return make("td", { class: "share" }, ...(lines.length ? lines : [lineOf(bar([]), "–")]));
}

/**
 * @param {HTMLElement} bar
 * @param {string} text
 */
const lineOf = (bar, text) => make("span", { class: "line" }, bar, make("span", { class: "percent" }, text));
