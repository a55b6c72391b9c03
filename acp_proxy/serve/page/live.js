// Turns that are running now, with a clock of their own between two answers of the server.

import { contextCell, nameOf } from "./cells.js";
import { byId, make, refill, table } from "./dom.js";
import { cleaned, costTexts, counted, elapsedText, shortened, tokensText } from "./figures.js";

/** @import { Running } from "./shapes.js" */

/**
 * Which turns are running, as a mark that changes when one starts or ends.
 * @param {{running: Running[]}} answer
 */
export const marksOf = ({ running }) => running.map(({ id }) => id).join(" ");

/** @param {{running: Running[]}} answer */
export function showLive({ running }) {
  const section = byId("live");
  section.hidden = running.length === 0;
  const said = running.length ? `${counted(running.length, "turn")} running` : "";
  // Written only when it changes: a screen reader speaks whatever is written here.
  if (byId("live-said").textContent !== said) byId("live-said").textContent = said;
  const columns = [
    { title: "session", look: "name" },
    { title: "elapsed", look: "figure" },
    { title: "tokens", look: "figure roomy" },
    { title: "cost so far", look: "figure" },
    { title: "context", look: "context" },
  ];
  refill(byId("live-table"), table("Running turns; tokens and cost are estimates until they end", columns, running.map(row)));
  tick();
}

/** Moves the clocks on. */
export function tick() {
  for (const clock of document.querySelectorAll("time[data-since]")) {
    clock.textContent = elapsedText((Date.now() - Number(clock.getAttribute("data-since"))) / 1000);
  }
}

/** @param {Running} turn */
function row(turn) {
  const about = [shortened(turn.agent), cleaned(turn.model ?? ""), cleaned(turn.project ?? "")].filter(Boolean);
  const tokens = turn.tokens.total ? `~ ${tokensText(turn.tokens.total)}` : "–";
  const amounts = costTexts(turn.cost).map((text) => make("span", { class: "amount" }, text === "–" ? "–" : `~ ${text}`));
  const clock = make("time", { "data-since": Date.parse(turn.started_at), datetime: turn.started_at });
  return make(
    "tr",
    {},
    make(
      "th",
      { scope: "row", class: "name led" },
      make("span", { class: "pulse", "aria-hidden": "true" }),
      make("bdi", {}, nameOf(turn)),
      make("small", { class: "loose" }, about.join(" · ")),
      make("small", { class: "tight" }, [...about, ...(turn.tokens.total ? [`${tokens} tokens`] : [])].join(" · ")),
    ),
    make("td", { class: "figure" }, clock),
    make("td", { class: "figure roomy" }, tokens),
    make("td", { class: "figure cost" }, ...amounts),
    contextCell(turn),
  );
}
