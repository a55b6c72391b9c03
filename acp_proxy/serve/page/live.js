// Turns that are running now, with a clock of their own between two answers of the server.

import { contextCell, nameOf } from "./cells.js";
import { byId, joined, make, refill, table } from "./dom.js";
import { cleaned, costTexts, counted, elapsedText, listedText, shortening, tokensText } from "./figures.js";

/** @import { Running } from "./shapes.js" */

let shown = ""; // what the table was made of: whoever reads it or has selected a part of it is not disturbed for nothing

/**
 * Which turns are running, as a mark that changes when one starts or ends.
 * @param {{running: Running[]}} answer
 */
export const marksOf = ({ running }) => running.map(({ id }) => id).join(" ");

/**
 * @param {{running: Running[]}} answer
 * @param {boolean} several whether there are several users, so that it is told whose a turn is; those who run one are seen here
 * @param {string} timeZone
 */
export function showLive({ running }, several, timeZone) {
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
  const told = several || new Set(running.map(({ user }) => user)).size > 1;
  const short = shortening(running.map(({ agent }) => agent));
  const rows = running.map((turn) => row(turn, told, short, timeZone));
  const made = rows.map(({ innerHTML }) => innerHTML).join();
  if (made !== shown) {
    refill(byId("live-table"), table("Running turns; tokens and cost are estimates until they end", columns, rows));
    shown = made;
  }
  tick();
}

/** Moves the clocks on. */
export function tick() {
  for (const clock of document.querySelectorAll("time[data-since]")) {
    clock.textContent = elapsedText((Date.now() - Number(clock.getAttribute("data-since"))) / 1000);
  }
}

/**
 * @param {Running} turn
 * @param {boolean} several
 * @param {(agent: string) => string} short
 * @param {string} timeZone
 */
function row(turn, several, short, timeZone) {
  const whose = several ? cleaned(turn.user) : "";
  const about = [whose, short(turn.agent), cleaned(turn.model ?? ""), cleaned(turn.project ?? "")];
  const tokens = turn.tokens.total ? `~ ${tokensText(turn.tokens.total)}` : "–";
  const amounts = costTexts(turn.cost).map((text) => make("span", { class: "amount" }, text === "–" ? "–" : `~ ${text}`));
  const listed = listedText(turn.cost, turn.not_billed);
  const clock = make("time", { "data-since": Date.parse(turn.started_at), datetime: turn.started_at });
  return make(
    "tr",
    {},
    make(
      "th",
      { scope: "row", class: "name led" },
      make("span", { class: "pulse", "aria-hidden": "true" }),
      make("bdi", {}, nameOf({ ...turn, started_at: turn.session_started_at }, timeZone)),
      make("small", { class: "loose" }, ...joined(about)),
      make("small", { class: "tight" }, ...joined([...about, turn.tokens.total ? `${tokens} tokens` : ""])),
    ),
    make("td", { class: "figure" }, clock),
    make("td", { class: "figure roomy" }, tokens),
    make("td", { class: "figure cost" }, ...amounts, listed ? make("small", {}, listed) : null),
    contextCell(turn),
  );
}
