// Windows of plans: how much of each is used, until when, when it will be full, and how it came to that.

import { bar, byId, joined, make, refill } from "./dom.js";
import { cleaned, shortening, timeText } from "./figures.js";
import { levelOf } from "./levels.js";

/** @import { Plan, Plans } from "./shapes.js" */

const FEW = 12; // windows that are shown before all are asked for
const SILENT = [null, "allowed", "allowed_warning"]; // what is used says as much
const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [300, 28];

/**
 * @param {Plans} answer
 * @param {boolean} several whether there are several users, so that it is told whose a plan is
 * @param {string} timeZone
 * @param {boolean} every whether all are shown, or of many only the fullest
 */
export function showPlans({ plans, omitted }, several, timeZone, every) {
  const all = every || plans.length <= FEW;
  byId("plans").hidden = plans.length === 0;
  refill(byId("plan-list"), ...itemsOf(all ? plans : plans.slice(0, FEW), several, timeZone));
  byId("plan-more").hidden = all;
  byId("plan-more").textContent = `Show all ${plans.length.toLocaleString("en-US")}`;
  byId("plan-omitted").textContent = omitted ? `${omitted.toLocaleString("en-US")} that are used less are not listed.` : "";
}

/**
 * Those of one session's agent and user.
 * @param {Plans} answer
 * @param {string} timeZone
 */
export function showPlansOfSession({ plans }, timeZone) {
  byId("session-plans").hidden = plans.length === 0;
  refill(byId("session-plan-list"), ...itemsOf(plans, false, timeZone));
}

/**
 * @param {Plan[]} plans
 * @param {boolean} several
 * @param {string} timeZone
 */
function itemsOf(plans, several, timeZone) {
  const short = shortening(plans.map(({ agent }) => agent));
  return plans.map((plan) => item(plan, several || new Set(plans.map(({ user }) => user)).size > 1, short, timeZone));
}

/**
 * @param {Plan} plan
 * @param {boolean} several
 * @param {(agent: string) => string} short
 * @param {string} timeZone
 */
function item(plan, several, short, timeZone) {
  const { used } = plan;
  const percent = used === null ? null : Math.floor(used * 100 + 1e-9); // of millionths: 0.57 is 57 %
  const level = percent === null ? "normal" : levelOf(percent);
  const at = (/** @type {string} */ time) => timeText(new Date(time), timeZone);
  return make(
    "li",
    { class: "budget" },
    make(
      "p",
      { class: "line" },
      make(
        "span",
        { class: "title" },
        make("bdi", {}, cleaned(plan.name)),
        make("span", { class: "quiet" }, ...joined([several ? cleaned(plan.user) : "", short(plan.agent)])),
      ),
      make("b", { class: `left ${level}` }, percent === null ? "not known" : `${percent}% used`),
    ),
    bar([{ share: used ?? 0, look: level }], "marked"),
    history(plan, level),
    make(
      "p",
      { class: "line quiet" },
      make("span", {}, endText(plan, at)),
      make("span", {}, `seen ${at(plan.seen_at)}`),
    ),
    ...factsOf(plan).map((text) => make("p", { class: "quiet" }, text)),
  );
}

/**
 * Until when, and when it is full at its pace so far.
 * @param {Plan} plan
 * @param {(time: string) => string} at
 */
function endText({ used, resets_at, projected_full_at }, at) {
  if (resets_at && used === null && Date.parse(resets_at) <= Date.now()) return `was reset ${at(resets_at)}`;
  const until = resets_at ? `until ${at(resets_at)}` : "";
  const full = projected_full_at && (used ?? 0) < 1 ? `full ${at(projected_full_at)} at this pace` : "";
  return [until, full].filter(Boolean).join(" · ");
}

/** @param {Plan} plan */
function factsOf({ status, overage }) {
  const word = SILENT.includes(status) ? [] : [`The agent says: ${cleaned(status ?? "")}`];
  return [...word, ...(overage === "in_use" ? ["What is used now is paid beside the plan."] : [])];
}

/**
 * How much was used from the window's begin to its reset, as a line of steps. It says nothing that no text says.
 * @param {Plan} plan
 * @param {string} level
 */
function history({ since, resets_at, history, seen_at }, level) {
  const [begin, end] = [Date.parse(since), Date.parse(resets_at ?? seen_at)];
  if (history.length < 2 || end <= begin) return null;
  const x = (/** @type {string} */ at) => Math.max(0, Math.min(1, (Date.parse(at) - begin) / (end - begin))) * WIDTH;
  const y = (/** @type {number} */ used) => HEIGHT - 1 - Math.min(used, 1) * (HEIGHT - 2);
  const steps = history.map(({ at, used }) => `H${x(at).toFixed(1)}V${y(used).toFixed(1)}`).join("");
  const plot = document.createElementNS(SVG, "svg");
  const attributes = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "steps", "aria-hidden": "true" };
  for (const [name, value] of Object.entries(attributes)) plot.setAttribute(name, value);
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("class", level);
  line.setAttribute("d", `M${x(history[0].at).toFixed(1)} ${y(history[0].used).toFixed(1)}${steps}H${x(seen_at).toFixed(1)}`);
  plot.append(line);
  return plot;
}
