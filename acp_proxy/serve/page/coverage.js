// How much of what agents used went through acp-proxy, and how much `acp-proxy import` found beside it.

import { bar, byId, make, refill, table } from "./dom.js";
import { cleaned, costTexts, decimalsOf, percentText, tokensText } from "./figures.js";

/** @import { Coverage, Covered } from "./shapes.js" */

const WELL = 90; // percent of the tokens, as for a bill

/** @param {Coverage} answer */
export function showCoverage({ rows, total, omitted, step, steps }) {
  byId("coverage").hidden = rows.length === 0;
  const open = byId("coverage-over-time").querySelector("details")?.open ?? false;
  byId("coverage-total").textContent = rows.length > 1 ? totalText(total) : "";
  const decimals = decimalsOf(rows.flatMap(({ relayed, imported }) => [relayed.cost, imported?.cost ?? {}]));
  refill(byId("coverage-list"), ...rows.map((row) => item(row, decimals)));
  byId("coverage-omitted").textContent = omitted ? `${omitted.toLocaleString("en-US")} agents that used less are not listed.` : "";
  const over = steps.length ? [columns(steps), figures(steps, step === "day" ? "Day" : "Month", open)] : [];
  refill(byId("coverage-over-time"), ...over.filter((each) => each !== null));
}

/** @param {Covered} total */
const totalText = ({ relayed, imported }) =>
  `Of agents from which something was imported, ${percentText(relayed.tokens, relayed.tokens + (imported?.tokens ?? 0))} of the tokens went through acp-proxy.`;

/**
 * @param {Covered} row
 * @param {number} decimals of costs
 */
function item({ key, relayed, imported, seen }, decimals) {
  const level = seen === null || seen * 100 >= WELL ? "normal" : "orange";
  const share = imported === null ? "not known" : `${percentText(relayed.tokens, relayed.tokens + imported.tokens)} of the tokens`;
  const text = (/** @type {Covered["relayed"]} */ { tokens, cost }) =>
    `${tokensText(tokens)} tokens${Object.keys(cost).length ? `, ${costTexts(cost, { decimals }).join(" + ")}` : ""}`;
  return make(
    "li",
    { class: "budget" },
    make("p", { class: "line" }, make("bdi", { class: "title" }, cleaned(key)), make("b", { class: level }, share)),
    bar([{ share: seen ?? 0, look: level }], "marked"),
    make(
      "p",
      { class: "line quiet" },
      make("span", {}, `relayed: ${text(relayed)}`),
      make("span", {}, imported ? `around it: ${text(imported)}` : "nothing was imported"),
    ),
  );
}

/**
 * A column for each step, as high as what was used of the step with most, and filled as far as it was relayed; dashed
 * where that is not known. The figures stand below it, in a table.
 * @param {Covered[]} steps
 */
function columns(steps) {
  const used = (/** @type {Covered} */ { relayed, imported }) => relayed.tokens + (imported?.tokens ?? 0);
  const most = Math.max(...steps.map(used));
  if (steps.length < 2 || most <= 0) return null;
  return make("div", { class: "days", "aria-hidden": "true" }, ...steps.map((step) => {
    const whole = make("span", { class: step.seen === null ? "day unknown" : "day", title: stepText(step) });
    const filled = make("span", { class: "filled normal" });
    whole.style.setProperty("height", `${((used(step) / most) * 100).toFixed(2)}%`);
    filled.style.setProperty("height", `${((step.seen ?? 0) * 100).toFixed(2)}%`);
    whole.append(filled);
    return make("span", { class: "slot" }, whole);
  }));
}

/** @param {Covered} step */
const stepText = (step) => `${step.key}: ${cells(step).join(" · ")}`;

/**
 * What went through, what around, and the share.
 * @param {Covered} step
 */
function cells({ relayed, imported }) {
  if (imported === null) return [tokensText(relayed.tokens), "?", "?"];
  return [tokensText(relayed.tokens), tokensText(imported.tokens), percentText(relayed.tokens, relayed.tokens + imported.tokens)];
}

/**
 * @param {Covered[]} steps
 * @param {string} title
 * @param {boolean} open
 */
function figures(steps, title, open) {
  const columns = [{ title }, ...["Tokens relayed", "Around it", "Seen"].map((name) => ({ title: name, look: "figure" }))];
  const rows = steps.map((step) =>
    make("tr", {}, make("th", { scope: "row" }, step.key), ...cells(step).map((text) => make("td", { class: "figure" }, text))),
  );
  return make("details", { open }, make("summary", {}, `Figures by ${title.toLowerCase()}`), table("What was relayed, and what went around it", columns, rows));
}
