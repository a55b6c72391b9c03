// What all plots share: size, colours of the page, a note at the pointer. Drawn by uPlot; the figures are in tables.

import { make } from "./dom.js";

/** @type {any} */
const uPlot = /** @type {any} */ (globalThis).uPlot;

export const bars = uPlot.paths.bars({ size: [0.78, 44] });

/**
 * A colour of the page as it is now, light or dark.
 * @param {string} name of a custom property, without the dashes
 */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/**
 * A plot that is drawn. `pointer` is where the pointer is on it, for the one that takes its place.
 * @typedef {{takeAway: () => void, pointer: () => {left: number, top: number}}} Plot
 */

/**
 * Draws into a container, and again when its width or the colours change.
 * @param {HTMLElement} container
 * @param {object} drawing
 * @param {string} drawing.label what a screen reader says of it
 * @param {number} drawing.height px
 * @param {number} drawing.count of points; they stand at 0, 1, 2 …
 * @param {(number | null)[][]} drawing.lines values at the points, those in front last
 * @param {object[]} drawing.series looks of the lines, as uPlot takes them
 * @param {number} drawing.top the highest value that there is room for
 * @param {(index: number) => string} drawing.name of a point, below it
 * @param {(value: number) => string} drawing.figure of a value, beside it
 * @param {(index: number) => Node[]} drawing.note on a point
 * @param {(chart: any) => void} [drawing.behind] draws before the lines are drawn
 * @param {{left: number, top: number}} [drawing.pointer] of the plot that was here before
 * @returns {Plot}
 */
export function plot(container, drawing) {
  const note = make("div", { class: "note", hidden: true });
  const frame = make("div", { class: "plot", role: "img", "aria-label": drawing.label }, note);
  container.append(frame);
  const chart = new uPlot(
    {
      width: frame.clientWidth,
      height: drawing.height,
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { time: false, range: () => [-0.5, drawing.count - 0.5] },
        y: { range: () => [0, drawing.top > 0 ? drawing.top * 1.08 : 1] },
      },
      axes: axes(drawing),
      series: [{}, ...drawing.series],
      hooks: {
        drawClear: drawing.behind ? [drawing.behind] : [],
        setCursor: [(/** @type {any} */ at) => place(note, at, drawing)],
      },
    },
    [Array.from({ length: drawing.count }, (_, index) => index), ...drawing.lines],
    frame,
  );
  if (drawing.pointer && drawing.pointer.left >= 0) chart.setCursor(drawing.pointer);
  const unfollow = follow(chart, frame, drawing.height);
  return {
    takeAway: () => {
      unfollow();
      chart.destroy();
      frame.remove();
    },
    pointer: () => ({ left: chart.cursor.left, top: chart.cursor.top }),
  };
}

/** @param {any} drawing */
function axes(drawing) {
  const { fontFamily } = getComputedStyle(document.body);
  const shared = { stroke: () => colour("quiet"), font: `12px ${fontFamily}`, ticks: { show: false } };
  const grid = { stroke: () => colour("line"), width: 1 };
  const splits = (/** @type {any} */ chart) => {
    const every = Math.max(1, Math.ceil(drawing.count / Math.max(1, Math.floor(chart.width / 84))));
    return Array.from({ length: Math.ceil(drawing.count / every) }, (_, place) => place * every);
  };
  const names = (/** @type {any} */ _, /** @type {number[]} */ places) => places.map(drawing.name);
  const figures = (/** @type {any} */ _, /** @type {number[]} */ values) => values.map(drawing.figure);
  const room = (/** @type {any} */ chart, /** @type {string[] | null} */ texts) => roomFor(chart, texts ?? [], shared.font);
  return [
    { ...shared, grid: { show: false }, splits, values: names, size: 30, gap: 8 },
    { ...shared, grid, values: figures, size: room, gap: 8, space: 44 },
  ];
}

/**
 * How wide the figures beside a plot are, with the gap, in px: an amount of thousands needs more than one of cents.
 * @param {any} chart
 * @param {string[]} texts
 * @param {string} font
 */
function roomFor({ ctx }, texts, font) {
  ctx.save();
  ctx.font = font;
  const widest = Math.max(0, ...texts.map((text) => ctx.measureText(text).width));
  ctx.restore();
  return Math.max(64, Math.ceil(widest) + 10);
}

/**
 * @param {HTMLElement} note
 * @param {any} chart
 * @param {any} drawing
 */
function place(note, chart, drawing) {
  const index = chart.cursor.idx;
  note.hidden = index === null || index === undefined || chart.cursor.left < 0;
  if (note.hidden) return;
  note.replaceChildren(...drawing.note(index));
  const left = chart.over.offsetLeft + chart.valToPos(index, "x");
  const room = chart.width - note.offsetWidth;
  const beside = left + 16 > room ? left - 16 - note.offsetWidth : left + 16;
  note.style.setProperty("translate", `${Math.max(0, Math.min(beside, room))}px 8px`);
}

/**
 * Draws again when the width or the colours change, until what is returned is called. Paper is white, also where the
 * screen is dark: what was drawn for that has to be drawn for paper before it is printed.
 * @param {any} chart
 * @param {HTMLElement} frame
 * @param {number} height
 */
function follow(chart, frame, height) {
  const sizes = new ResizeObserver(() => frame.clientWidth && chart.setSize({ width: frame.clientWidth, height }));
  sizes.observe(frame);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const redraw = () => chart.redraw(false, true);
  dark.addEventListener("change", redraw);
  const toPaper = () => repaint(true);
  const toScreen = () => repaint(false);
  const repaint = (/** @type {boolean} */ paper) => {
    document.documentElement.classList.toggle("paper", paper);
    redraw();
  };
  addEventListener("beforeprint", toPaper);
  addEventListener("afterprint", toScreen);
  return () => {
    removeEventListener("beforeprint", toPaper);
    removeEventListener("afterprint", toScreen);
    sizes.disconnect();
    dark.removeEventListener("change", redraw);
  };
}
