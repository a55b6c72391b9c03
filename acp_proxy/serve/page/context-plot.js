// How full a session's context was from turn to turn, and where it was compacted.

import { make } from "./dom.js";
import { contextLevel, costTexts, counted, timeText, tokensText } from "./figures.js";
import { colour, plot } from "./plot.js";

/** @import { Point, Turn } from "./shapes.js" */

const SCALES = [0.05, 0.1, 0.25, 0.5, 1]; // parts of a window at which the plot may end

/**
 * Where the plot ends: with what was used, of a window of which most was free. A window of 0 is not known.
 * @typedef {{size: number, top: number}} Scale
 * @param {(Turn | Point)[]} points
 * @returns {Scale}
 */
export function scaleOf(points) {
  const size = Math.max(0, ...points.map(({ context_size }) => context_size ?? 0));
  const most = Math.max(0, ...points.map(({ context_used }) => context_used ?? 0));
  return { size, top: SCALES.map((part) => part * size).find((end) => most <= end) ?? most };
}

/** @param {Scale} scale */
export function scaleText({ size, top }) {
  if (!size) return "";
  const window = `the window of ${tokensText(size)} tokens`;
  return top < size ? `The plot ends at ${Math.round((top * 100) / size)}% of ${window}.` : `The plot ends at ${window}.`;
}

/**
 * @param {HTMLElement} container
 * @param {{points: (Turn | Point)[], each: number}} shown `each`: how many rows a point stands for
 * @param {Scale} scale
 * @param {string} timeZone
 * @param {{left: number, top: number}} [pointer]
 */
export function drawContext(container, { points, each }, { size, top }, timeZone, pointer) {
  const after = each > 1 ? `${counted(points.length, "point")} of ${each} rows each` : `each of ${counted(points.length, "row")}`;
  return plot(container, {
    label: `Context after ${after}. The figures are in the table below.`,
    height: 200,
    count: points.length,
    lines: [points.map(({ context_used }) => context_used)],
    series: [{ stroke: () => colour("quiet"), width: 1.5, spanGaps: true, points: { show: false } }],
    top,
    name: (index) => String(index * each + 1),
    figure: tokensText,
    note: (index) => noteOn(points[index], index * each, timeZone),
    behind: (chart) => drawMarks(chart, { size, top }, points),
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
 * The thresholds and the window as far as they are on the plot, a dashed line where the context was compacted, and a dot for each point in the colour of its level.
 * @param {any} chart
 * @param {Scale} scale
 * @param {(Turn | Point)[]} points
 */
function drawMarks(chart, { size, top }, points) {
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.lineWidth = ratio;
  for (const [threshold, level] of [[0.75, "yellow"], [0.9, "orange"], [0.95, "red"], [1, "text"]]) {
    if (!size || Number(threshold) * size > top) continue;
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
