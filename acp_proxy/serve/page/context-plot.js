// How full a session's context was from turn to turn, and where it was compacted.

import { make } from "./dom.js";
import { contextLevel, costTexts, counted, timeText, tokensText } from "./figures.js";
import { colour, plot } from "./plot.js";

/** @import { Point, Turn } from "./shapes.js" */

/**
 * @param {HTMLElement} container
 * @param {{points: (Turn | Point)[], each: number}} shown `each`: how many rows a point stands for
 * @param {string} timeZone
 * @param {{left: number, top: number}} [pointer]
 */
export function drawContext(container, { points, each }, timeZone, pointer) {
  const size = Math.max(0, ...points.map(({ context_size }) => context_size ?? 0));
  const most = Math.max(...points.map(({ context_used }) => context_used ?? 0));
  const after = each > 1 ? `${counted(points.length, "point")} of ${each} rows each` : `each of ${counted(points.length, "row")}`;
  return plot(container, {
    label: `Context after ${after}. The figures are in the table below.`,
    height: 200,
    count: points.length,
    lines: [points.map(({ context_used }) => context_used)],
    series: [{ stroke: () => colour("quiet"), width: 1.5, spanGaps: true, points: { show: false } }],
    top: Math.max(most, size),
    name: (index) => String(index * each + 1),
    figure: tokensText,
    note: (index) => noteOn(points[index], index * each, timeZone),
    behind: (chart) => drawMarks(chart, size, points),
    pointer,
  });
}

/** @param {{context_used: number | null, context_size: number | null}} context */
export function contextText({ context_used: used, context_size: size }) {
  if (used === null) return "context unknown";
  const of = size ? ` of ${tokensText(size)} (${Math.floor((used * 100) / size)}%)` : "";
  return `context ${tokensText(used)}${of}`;
}

/**
 * The thresholds, a dashed line where the context was compacted, and a dot for each point in the colour of its level.
 * @param {any} chart
 * @param {number} size
 * @param {(Turn | Point)[]} points
 */
function drawMarks(chart, size, points) {
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.lineWidth = ratio;
  for (const [threshold, level] of size ? [[0.75, "yellow"], [0.9, "orange"], [0.95, "red"]] : []) {
    const y = chart.valToPos(Number(threshold) * size, "y", true);
    stroke(ctx, colour(String(level)), [], [bbox.left, y, bbox.left + bbox.width, y]);
  }
  const apart = points.filter(({ compacted }) => compacted).length * 6 * ratio < bbox.width; // else they would hide all else
  points.forEach((point, index) => {
    const x = chart.valToPos(index, "x", true);
    if (point.compacted && apart) stroke(ctx, colour("text"), [4 * ratio, 4 * ratio], [x, bbox.top, x, bbox.top + bbox.height]);
    if (point.context_used === null) return;
    ctx.fillStyle = colour(point.context_size ? contextLevel(point.context_used, point.context_size) : "normal");
    ctx.beginPath();
    ctx.arc(x, chart.valToPos(point.context_used, "y", true), (points.length > 200 ? 2 : 4) * ratio, 0, 2 * Math.PI);
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
 * @param {Turn | Point} point
 * @param {number} row
 * @param {string} timeZone
 */
function noteOn(point, row, timeZone) {
  const kind = "kind" in point && point.kind !== "turn" ? ` · ${point.kind}` : "";
  return [
    make("strong", {}, `${row + 1} · ${timeText(new Date(point.started_at), timeZone)}${kind}`),
    make("div", {}, contextText(point)),
    ...("cost" in point ? [make("div", {}, `cost ${costTexts(point.cost, { atLeast: point.at_least }).join(" + ")}`)] : []),
  ];
}
