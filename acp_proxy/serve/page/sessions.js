// The list of sessions: what each was about, what it cost, how full its context is.

import { addressOf, narrowed } from "./address.js";
import { contextCell, costCell, nameOf, pick } from "./cells.js";
import { byId, joined, make, refill, table } from "./dom.js";
import { cleaned, counted, decimalsOf, shortening, timeText } from "./figures.js";

/** @import { View } from "./address.js" */
/** @import { Session } from "./shapes.js" */

const ORDERS = { last: "the latest first", started: "by start", turns: "by turns", tokens: "by tokens", cost: "by cost", context: "by context" };

/**
 * @param {Session[]} sessions
 * @param {boolean} several whether there are several users, so that it is told whose a session is
 * @param {string} timeZone
 * @param {View} view
 */
export function showSessions(sessions, several, timeZone, view) {
  const decimals = decimalsOf(sessions.map(({ cost }) => cost));
  const sorted = (/** @type {string} */ sort) => ({ to: addressOf({ ...view, sort }), sorted: view.sort === sort });
  const columns = [
    { title: "session", look: "name" },
    ...(several ? [{ title: "user", look: "roomy" }] : []),
    { title: "project", look: "roomy" },
    { title: "agent", look: "roomy" },
    { title: "started", look: `figure ${several ? "ample" : "roomy"}`, ...sorted("started") },
    { title: "last", look: "figure roomy", ...sorted("last") },
    { title: "turns", look: "figure roomy", ...sorted("turns") },
    { title: "cost", look: "figure", ...sorted("cost") },
    { title: "context", look: "context", ...sorted("context") },
  ];
  const short = shortening(sessions.map(({ agent }) => agent));
  const rows = sessions.map((session) => row(session, { several, decimals, timeZone, short, view }));
  const order = ORDERS[/** @type {keyof typeof ORDERS} */ (view.sort)];
  refill(byId("session-list"), table(`Sessions, ${order}`, columns, rows));
  byId("session-nothing").hidden = sessions.length > 0;
  byId("session-nothing").textContent = view.find
    ? "No session of this range has this in its title, user or project."
    : "No session in this range.";
  byId("session-list").hidden = sessions.length === 0;
}

/**
 * @param {Session} session
 * @param {{several: boolean, decimals: number, timeZone: string, short: (agent: string) => string, view: View}} how
 */
function row(session, { several, decimals, timeZone, short, view }) {
  const link = make("a", { href: `#/session/${session.key}`, id: `session-${session.key}` });
  link.append(make("bdi", {}, nameOf(session, timeZone)));
  const last = timeText(new Date(session.ended_at), timeZone);
  const [user, project, agent] = [several ? cleaned(session.user) : "", cleaned(session.project ?? ""), short(session.agent)];
  const few = joined([user, project, agent, last, counted(session.turns, "turn")]);
  const state = session.running ? "running" : session.active ? "active" : null;
  const about = (/** @type {string} */ name, /** @type {string} */ value, /** @type {string} */ text) =>
    make("td", { class: "roomy about" }, value ? pick(narrowed(view, name, value), name, value, text) : null);
  const element = make(
    "tr",
    { class: "leads" },
    make(
      "th",
      { scope: "row", class: "name" },
      link,
      state ? make("span", { class: `state ${state}` }, state) : null,
      make("small", { class: "tight" }, ...few),
    ),
    several ? about("user", session.user, user) : null,
    about("project", session.project ?? "", project),
    about("agent", session.agent, agent),
    make("td", { class: `figure ${several ? "ample" : "roomy"}` }, timeText(new Date(session.started_at), timeZone)),
    make("td", { class: "figure roomy" }, last),
    make("td", { class: "figure roomy" }, session.turns.toLocaleString("en-US")),
    costCell(session, { decimals, atLeast: session.at_least }),
    contextCell(session),
  );
  // The link is for the keyboard and for screen readers; with a mouse all of the row leads there.
  element.addEventListener("click", ({ target }) => {
    if (target instanceof Element && target.closest("a")) return;
    if (!getSelection()?.toString()) location.hash = link.getAttribute("href") ?? "";
  });
  return element;
}
