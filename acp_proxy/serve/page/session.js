// One session: its figures, its context from turn to turn, its turns.

import { narrowed } from "./address.js";
import { contextCell, costCell, flags, nameOf, partsOf, pick } from "./cells.js";
import { contextText, drawContext, scaleOf, scaleText } from "./context-plot.js";
import { byId, joined, make, refill, table } from "./dom.js";
import { cleaned, costTexts, counted, decimalsOf, listedSentence, timeText, tokensText } from "./figures.js";
import { tookCell, workOfAll } from "./work.js";

/** @import { View } from "./address.js" */
/** @import { Plot } from "./plot.js" */
/** @import { About, SessionInFull, Turn } from "./shapes.js" */

const USAGE = { agent: "exact", partial: "partial", estimated: "estimated", none: "without usage" };
const COST = { agent: "agent’s own", computed: "computed", estimated: "estimated", parent: "in its parent’s", unknown: "no price" };

/** @type {Plot | null} */
let drawn = null;

/**
 * @param {SessionInFull} session
 * @param {string} timeZone
 * @param {View} view that a name on it leads back to
 */
export function showSession(session, timeZone, view) {
  const { total, turns, omitted, context } = session;
  byId("session-title").textContent = nameOf(session, timeZone);
  refill(byId("session-about"), ...aboutOf(session, timeZone, view));
  const amounts = costTexts(total.cost, { atLeast: total.at_least });
  refill(byId("session-total"), ...amounts.map((text) => make("span", { class: "amount" }, text)));
  byId("session-listed").textContent = listedSentence(total);
  const facts = [counted(total.turns, "turn"), `${tokensText(total.tokens.total)} tokens`, contextText(session)];
  refill(byId("session-facts"), facts.join(" · "), make("span", { class: "flags" }, ...flags(total)));
  byId("session-work").textContent = workOfAll(turns);
  byId("session-omitted").textContent = omitted ? `${counted(omitted, "earlier row")} not listed.` : "";
  const pointer = drawn?.pointer();
  drawn?.takeAway();
  const shown = context ? { points: context.points, each: context.rows_each } : { points: turns, each: 1 };
  const known = shown.points.some(({ context_used }) => context_used !== null);
  byId("context").hidden = !known;
  byId("context-thinned").textContent = shown.each > 1 ? `Each point is the fullest of ${shown.each} rows.` : "";
  const scale = scaleOf(shown.points);
  byId("context-scale").textContent = scaleText(scale);
  for (const mark of byId("context-marks").querySelectorAll("[data-part]")) {
    /** @type {HTMLElement} */ (mark).hidden = Number(mark.getAttribute("data-part")) * scale.size > scale.top;
  }
  drawn = known ? drawContext(byId("context-plot"), shown, scale, timeZone, pointer) : null;
  refill(byId("turn-table"), turnTable(turns, omitted, timeZone));
}

/**
 * @param {About} session
 * @param {string} timeZone
 * @param {View} view
 * @returns {(Node | string)[]}
 */
function aboutOf(session, timeZone, view) {
  const { agent, project, team, user } = session;
  const who = Object.entries({ agent, project, team, user }).flatMap(([name, value]) =>
    value ? [pick(narrowed(view, name, value), name, value, cleaned(value)), " · "] : []);
  const started = timeText(new Date(session.started_at), timeZone);
  return [...who, `${started} – ${timeText(new Date(session.ended_at), timeZone)}`];
}

/**
 * @param {Turn[]} turns
 * @param {number} omitted
 * @param {string} timeZone
 */
function turnTable(turns, omitted, timeZone) {
  const decimals = decimalsOf(turns.map(({ cost }) => cost));
  const columns = [
    { title: "turn", look: "name" },
    { title: "model", look: "roomy" },
    { title: "took", look: "figure roomy" },
    { title: "prompt", look: "figure roomy" },
    { title: "cached", look: "figure roomy" },
    { title: "completion", look: "figure roomy" },
    { title: "cost", look: "figure" },
    { title: "source", look: "roomy" },
    { title: "context", look: "context" },
  ];
  const rows = turns.map((turn, index) => row(turn, { number: omitted + index + 1, decimals, timeZone }));
  return table("Turns of the session", columns, rows);
}

/** @param {Turn} turn */
function sourceText({ usage_source, cost_source }) {
  // Without usage there is nothing to price, whether or not the model has a price.
  const nothing = usage_source === "none" && cost_source === "unknown";
  return nothing ? USAGE.none : `${USAGE[usage_source]}, ${COST[cost_source]}`;
}

/**
 * As the bar over all rows counts it.
 * @param {Turn} turn
 */
function lookOf({ unpriced_turns, partial_turns, estimated_turns, turns_without_usage }) {
  if (unpriced_turns) return "unknown";
  if (estimated_turns) return "estimated";
  if (turns_without_usage) return "unknown";
  return partial_turns ? "partial" : "exact";
}

/**
 * @param {Turn} turn
 * @param {{number: number, decimals: number, timeZone: string}} how
 */
function row(turn, { number, decimals, timeZone }) {
  const { prompt, cached, completion } = partsOf(turn);
  const started = new Date(turn.started_at);
  const end = turn.stop_reason && turn.stop_reason !== "end_turn" ? cleaned(turn.stop_reason) : "";
  const unsaid = turn.compacted && turn.kind !== "compaction" ? "compacted" : "";
  const unusual = [turn.kind === "turn" ? "" : turn.kind, unsaid, end].filter(Boolean).join(", ");
  const few = joined([cleaned(turn.model ?? "unknown"), `${prompt} in`, `${completion} out`, USAGE[turn.usage_source]]);
  return make(
    "tr",
    { class: turn.compacted ? "compaction" : null },
    make(
      "th",
      { scope: "row", class: "name" },
      `${number} · ${timeText(started, timeZone)}`,
      unusual ? make("span", { class: "state" }, unusual) : null,
      make("small", { class: "tight" }, ...few),
    ),
    make("td", { class: "roomy" }, make("bdi", {}, cleaned(turn.model ?? "unknown"))),
    tookCell(turn),
    make("td", { class: "figure roomy" }, prompt),
    make("td", { class: "figure roomy" }, cached),
    make("td", { class: "figure roomy" }, completion),
    costCell(turn, { decimals, atLeast: turn.at_least }),
    make(
      "td",
      { class: "roomy" },
      make("span", { class: "flag" }, make("span", { class: `swatch ${lookOf(turn)}` }), sourceText(turn)),
    ),
    contextCell(turn),
  );
}
