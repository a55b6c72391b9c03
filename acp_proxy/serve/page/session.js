// One session: its figures, its context from turn to turn, its turns.

import { byId, make, refill, table } from "./dom.js";
import { cleaned, contextLevel, costTexts, counted, decimalsOf, elapsedText, timeText, tokensText } from "./figures.js";
import { colour, plot } from "./plot.js";
import { contextCell, nameOf } from "./sessions.js";
import { costCell, partsOf } from "./spend.js";

/** @import { About, SessionInFull, Turn } from "./shapes.js" */

const USAGE = { agent: "exact", partial: "partial", estimated: "estimated", none: "unknown" };
const COST = { agent: "agent’s own", computed: "computed", estimated: "estimated", parent: "in its parent’s", unknown: "no price" };

/** @type {import("./plot.js").Plot | null} */
let drawn = null;

/**
 * @param {SessionInFull} session
 * @param {string} timeZone
 */
export function showSession(session, timeZone) {
  const { total, turns, omitted } = session;
  byId("session-title").textContent = nameOf(session);
  byId("session-about").textContent = aboutText(session, timeZone);
  const amounts = costTexts(total.cost, { atLeast: total.at_least });
  refill(byId("session-total"), ...amounts.map((text) => make("span", { class: "amount" }, text)));
  byId("session-facts").textContent = [
    counted(total.turns, "turn"),
    `${tokensText(total.tokens.total)} tokens`,
    contextText(session),
  ].join(" · ");
  byId("session-omitted").textContent = omitted ? `${counted(omitted, "earlier row")} not listed.` : "";
  const pointer = drawn?.pointer();
  drawn?.takeAway();
  const compacted = compactions(turns);
  const known = turns.filter(({ context_used }) => context_used !== null);
  byId("context").hidden = known.length === 0;
  drawn = known.length ? drawContext(byId("context-plot"), turns, compacted, timeZone, pointer) : null;
  refill(byId("turn-table"), turnTable(turns, compacted, omitted, timeZone));
}

/**
 * Where the context was compacted: a row that says so, and one after which it is less than half of what it was.
 * @param {Turn[]} turns
 * @returns {boolean[]}
 */
function compactions(turns) {
  let before = 0;
  return turns.map(({ compaction, context_used: used }) => {
    const halved = used !== null && used * 2 < before;
    before = used ?? before;
    return compaction || halved;
  });
}

/**
 * @param {About} session
 * @param {string} timeZone
 */
function aboutText(session, timeZone) {
  const who = [session.agent, session.project, session.team, session.user].flatMap((name) => (name ? [cleaned(name)] : []));
  const started = timeText(new Date(session.started_at), timeZone);
  return [...who, `${started} – ${timeText(new Date(session.ended_at), timeZone)}`].join(" · ");
}

/** @param {{context_used: number | null, context_size: number | null}} context */
function contextText({ context_used: used, context_size: size }) {
  if (used === null) return "context unknown";
  const of = size ? ` of ${tokensText(size)} (${Math.floor((used * 100) / size)}%)` : "";
  return `context ${tokensText(used)}${of}`;
}

/**
 * @param {HTMLElement} container
 * @param {Turn[]} turns
 * @param {boolean[]} compacted
 * @param {string} timeZone
 * @param {{left: number, top: number}} [pointer]
 */
function drawContext(container, turns, compacted, timeZone, pointer) {
  const size = Math.max(0, ...turns.map(({ context_size }) => context_size ?? 0));
  const most = Math.max(...turns.map(({ context_used }) => context_used ?? 0));
  return plot(container, {
    label: `Context after each of ${counted(turns.length, "row")}. The figures are in the table below.`,
    height: 200,
    count: turns.length,
    lines: [turns.map(({ context_used }) => context_used)],
    series: [{ stroke: () => colour("quiet"), width: 1.5, spanGaps: true, points: { show: false } }],
    top: Math.max(most, size),
    name: (index) => String(index + 1),
    figure: tokensText,
    note: (index) => noteOn(turns[index], index, timeZone),
    behind: (chart) => drawMarks(chart, size, turns, compacted),
    pointer,
  });
}

/**
 * The thresholds, a dashed line where the context was compacted, and a dot for each turn in the colour of its level.
 * @param {any} chart
 * @param {number} size
 * @param {Turn[]} turns
 * @param {boolean[]} compacted
 */
function drawMarks(chart, size, turns, compacted) {
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.lineWidth = ratio;
  for (const [threshold, level] of size ? [[0.75, "yellow"], [0.9, "orange"], [0.95, "red"]] : []) {
    const y = chart.valToPos(Number(threshold) * size, "y", true);
    stroke(ctx, colour(String(level)), [], [bbox.left, y, bbox.left + bbox.width, y]);
  }
  turns.forEach((turn, index) => {
    const x = chart.valToPos(index, "x", true);
    if (compacted[index]) stroke(ctx, colour("text"), [4 * ratio, 4 * ratio], [x, bbox.top, x, bbox.top + bbox.height]);
    if (turn.context_used === null) return;
    ctx.fillStyle = colour(turn.context_size ? contextLevel(turn.context_used, turn.context_size) : "normal");
    ctx.beginPath();
    ctx.arc(x, chart.valToPos(turn.context_used, "y", true), 4 * ratio, 0, 2 * Math.PI);
    ctx.fill();
  });
  ctx.restore();
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {string} style
 * @param {number[]} dash
 * @param {[number, number, number, number]} line
 */
function stroke(ctx, style, dash, [x0, y0, x1, y1]) {
  ctx.strokeStyle = style;
  ctx.setLineDash(dash);
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

/**
 * @param {Turn} turn
 * @param {number} index
 * @param {string} timeZone
 */
function noteOn(turn, index, timeZone) {
  const kind = turn.kind === "turn" ? "" : ` · ${turn.kind}`;
  return [
    make("strong", {}, `${index + 1} · ${timeText(new Date(turn.started_at), timeZone)}${kind}`),
    make("div", {}, contextText(turn)),
    make("div", {}, `cost ${costTexts(turn.cost, { atLeast: turn.at_least }).join(" + ")}`),
  ];
}

/**
 * @param {Turn[]} turns
 * @param {boolean[]} compacted
 * @param {number} omitted
 * @param {string} timeZone
 */
function turnTable(turns, compacted, omitted, timeZone) {
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
  const rows = turns.map((turn, index) =>
    row(turn, { number: omitted + index + 1, compacted: compacted[index], decimals, timeZone }),
  );
  return table("Turns of the session", columns, rows);
}

/**
 * @param {Turn} turn
 * @param {{number: number, compacted: boolean, decimals: number, timeZone: string}} how
 */
function row(turn, { number, compacted, decimals, timeZone }) {
  const { prompt, cached, completion } = partsOf(turn);
  const started = new Date(turn.started_at);
  const took = elapsedText((Date.parse(turn.ended_at) - started.getTime()) / 1000);
  const usage = USAGE[turn.usage_source];
  const end = turn.stop_reason && turn.stop_reason !== "end_turn" ? cleaned(turn.stop_reason) : "";
  const unsaid = compacted && turn.kind !== "compaction" ? "compacted" : "";
  const unusual = [turn.kind === "turn" ? "" : turn.kind, unsaid, end].filter(Boolean).join(", ");
  const few = [cleaned(turn.model ?? "unknown"), `${prompt} in`, `${completion} out`, usage].join(" · ");
  return make(
    "tr",
    { class: compacted ? "compaction" : null },
    make(
      "th",
      { scope: "row", class: "name" },
      `${number} · ${timeText(started, timeZone)}`,
      unusual ? make("span", { class: "state" }, unusual) : null,
      make("small", { class: "tight" }, few),
    ),
    make("td", { class: "roomy" }, make("bdi", {}, cleaned(turn.model ?? "unknown"))),
    make("td", { class: "figure roomy" }, took),
    make("td", { class: "figure roomy" }, prompt),
    make("td", { class: "figure roomy" }, cached),
    make("td", { class: "figure roomy" }, completion),
    costCell(turn.cost, { decimals, atLeast: turn.at_least }),
    make(
      "td",
      { class: "roomy" },
      make("span", { class: "flag" }, make("span", { class: `swatch ${usage}` }), `${usage}, ${COST[turn.cost_source]}`),
    ),
    contextCell(turn),
  );
}
