// The list of sessions: what each was about, what it cost, how full its context is.

import { contextCell, costCell, nameOf } from "./cells.js";
import { byId, joined, make, refill, table } from "./dom.js";
import { cleaned, counted, decimalsOf, shortening, timeText } from "./figures.js";

/** @import { Session } from "./shapes.js" */

/**
 * @param {Session[]} sessions
 * @param {boolean} several whether there are several users, so that it is told whose a session is
 * @param {string} timeZone
 */
export function showSessions(sessions, several, timeZone) {
  const decimals = decimalsOf(sessions.map(({ cost }) => cost));
  const columns = [
    { title: "session", look: "name" },
    ...(several ? [{ title: "user", look: "roomy" }] : []),
    { title: "project", look: "roomy" },
    { title: "agent", look: "roomy" },
    { title: "started", look: `figure ${several ? "ample" : "roomy"}` },
    { title: "last", look: "figure roomy" },
    { title: "turns", look: "figure roomy" },
    { title: "cost", look: "figure" },
    { title: "context", look: "context" },
  ];
  const short = shortening(sessions.map(({ agent }) => agent));
  const rows = sessions.map((session) => row(session, { several, decimals, timeZone, short }));
  refill(byId("session-list"), table("Sessions, the latest first", columns, rows));
  byId("session-nothing").hidden = sessions.length > 0;
  byId("session-list").hidden = sessions.length === 0;
}

/**
 * @param {Session} session
 * @param {{several: boolean, decimals: number, timeZone: string, short: (agent: string) => string}} how
 */
function row(session, { several, decimals, timeZone, short }) {
  const link = make("a", { href: `#/session/${session.key}`, id: `session-${session.key}` });
  link.append(make("bdi", {}, nameOf(session)));
  const last = timeText(new Date(session.ended_at), timeZone);
  const [user, project, agent] = [several ? cleaned(session.user) : "", cleaned(session.project ?? ""), short(session.agent)];
  const few = joined([user, project, agent, last, counted(session.turns, "turn")]);
  const state = session.running ? "running" : session.active ? "active" : null;
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
    several ? make("td", { class: "roomy about" }, make("bdi", {}, user)) : null,
    make("td", { class: "roomy about" }, make("bdi", {}, project)),
    make("td", { class: "roomy about", title: cleaned(session.agent) }, make("bdi", {}, agent)),
    make("td", { class: `figure ${several ? "ample" : "roomy"}` }, timeText(new Date(session.started_at), timeZone)),
    make("td", { class: "figure roomy" }, last),
    make("td", { class: "figure roomy" }, session.turns.toLocaleString("en-US")),
    costCell(session.cost, { decimals, atLeast: session.at_least }),
    contextCell(session),
  );
  // The link is for the keyboard and for screen readers; with a mouse all of the row leads there.
  element.addEventListener("click", ({ target }) => {
    if (target instanceof Node && link.contains(target)) return;
    if (!getSelection()?.toString()) location.hash = link.getAttribute("href") ?? "";
  });
  return element;
}
