// How full a session's context was from turn to turn, and where it was compacted.

import { make } from "./dom.js";
import { contextLevel, costTexts, counted, timeText, tokensText } from "./figures.js";
import { colour, plot } from "./plot.js";

/** @import { Turn } from "./shapes.js" */

/**
 * @param {HTMLElement} container
 * @param {Turn[]} turns
 * @param {boolean[]} compacted
 * @param {string} timeZone
 * @param {{left: number, top: number}} [pointer]
 */
export function drawContext(container, turns, compacted, timeZone, pointer) {
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
 * Where the context was compacted: a row that says so, and one after which it is less than half of what it was.
 * @param {Turn[]} turns
 * @returns {boolean[]}
 */
export function compactions(turns) {
  let before = 0;
  return turns.map(({ compaction, context_used: used }) => {
    const halved = used !== null && used * 2 < before;
    before = used ?? before;
    return compaction || halved;
  });
}

/** @param {{context_used: number | null, context_size: number | null}} context */
export function contextText({ context_used: used, context_size: size }) {
  if (used === null) return "context unknown";
  const of = size ? ` of ${tokensText(size)} (${Math.floor((used * 100) / size)}%)` : "";
  return `context ${tokensText(used)}${of}`;
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
