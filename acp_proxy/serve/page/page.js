// The page: what is shown is in the address (see address.js), and follows the ledger while it is seen.

import { START, addressOf, viewOf } from "./address.js";
import { Refused, ServerGone, read } from "./api.js";
import { showBills } from "./bills.js";
import { showBudgets } from "./budgets.js";
import { datesChosen, fileName, isFiltered, showChoices, showDates } from "./choices.js";
import { showCoverage } from "./coverage.js";
import { byId } from "./dom.js";
import { csvOf, download } from "./download.js";
import { timeText } from "./figures.js";
import { marksOf, showLive, tick } from "./live.js";
import { showPlans, showPlansOfSession } from "./plans.js";
import { showSession } from "./session.js";
import { showSessions } from "./sessions.js";
import { showRows, showSpend } from "./spend.js";
import { showTotals } from "./totals.js";

const BEAT = 2000; // ms between two looks at what is running
const OLDEST = 60_000; // ms after which all is read again, though nothing was added: days end
const [PAGE, MOST] = [20, 200]; // sessions
const TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** What is shown, as the address says it. */
let view = START;
/** How much of it was asked for. */
const much = { pages: 1, everyKey: false, everyBudget: false, everyPlan: false };
/** What is shown as files: the answer, and its rows as CSV. */
const files = new Map(/** @type {[string, {name: string, answer: object, csv: () => string}][]} */ ([]));
/** Of which state of the ledger, as of when (ms), how often what is shown was chosen anew, and whether of several users. */
const seen = { mark: "", at: 0, choice: 0, several: false };
/** @type {number | undefined} */
let next;
let looking = false;
/** Shows lists of what was read last, whole or as they were asked for. */
let showLists = (/** @type {boolean} */ _) => {};

follow();
addEventListener("hashchange", () => {
  const before = view.session;
  follow();
  if (view.session === before) return;
  byId("session-figures").hidden = true; // those of another session
  moveFocus(before);
});
document.addEventListener("visibilitychange", look);
addEventListener("beforeprint", () => showLists(true)); // on paper nobody can ask for the rest
addEventListener("afterprint", () => showLists(false));
setInterval(tick, 1000);

for (const name of /** @type {const} */ (["range", "by", "sort"])) {
  byId(name).addEventListener("change", ({ target }) => {
    location.hash = addressOf({ ...view, [name]: /** @type {HTMLInputElement} */ (target).value });
  });
}
byId("dates").addEventListener("change", () => {
  const range = datesChosen();
  if (range !== null) location.hash = addressOf({ ...view, range });
});
byId("find").addEventListener("input", ({ target }) => {
  view = { ...view, find: /** @type {HTMLInputElement} */ (target).value.trim() };
  history.replaceState(null, "", addressOf(view)); // not a step back for each letter
  much.pages = 1;
  choose();
});
byId("session-more").addEventListener("click", () => {
  much.pages += 1;
  choose();
});
byId("spend-more").addEventListener("click", () => {
  much.everyKey = true;
  choose();
});
byId("plan-more").addEventListener("click", () => {
  much.everyPlan = true;
  choose();
});
byId("budget-more").addEventListener("click", () => {
  much.everyBudget = true;
  choose();
});
for (const button of document.querySelectorAll("[data-file]")) {
  button.addEventListener("click", () => {
    const file = files.get(button.getAttribute("data-file") ?? "");
    if (!file) return;
    const csv = button.textContent === "CSV";
    download(`${file.name}.${csv ? "csv" : "json"}`, csv ? file.csv() : `${JSON.stringify(file.answer, null, 2)}\n`);
  });
}
byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says what is shown
  byId("main").focus();
});

/** Takes what is to be shown from the address. */
function follow() {
  const before = view;
  view = viewOf(location.hash, before);
  if (view.range !== before.range || view.filters !== before.filters) much.pages = 1;
  showChoices(view);
  byId("overview").hidden = Boolean(view.session);
  byId("session").hidden = !view.session;
  byId("back").setAttribute("href", addressOf(view));
  document.title = view.session ? "Session – acp-proxy" : "acp-proxy";
  byId("terminal").textContent = "acp-proxy report"; // of a session when it is read: an address may say anything
  choose();
}

/** @param {string} before the session that is left, if any */
function moveFocus(before) {
  scrollTo(0, 0);
  if (view.session) byId("back").focus({ preventScroll: true });
  else document.getElementById(`session-${before}`)?.focus();
}

/** Something else is to be shown. */
function choose() {
  seen.mark = "";
  seen.choice += 1;
  look();
}

/** Looks what is running, and at all else when the ledger changed; again after a while, as long as the page is seen. */
async function look() {
  clearTimeout(next);
  if (document.hidden || looking) return;
  looking = true;
  const { choice } = seen;
  try {
    const live = await read("live");
    showLive(live, seen.several, TIME_ZONE);
    const mark = `${live.version}\n${marksOf(live)}`;
    if (mark !== seen.mark || Date.now() - seen.at > OLDEST) {
      await (view.session ? readSession() : readOverview());
      showLive(live, seen.several, TIME_ZONE);
      Object.assign(seen, { mark, at: Date.now() });
    }
    say("", live.standby, live.set_back);
  } catch (error) {
    if (!(error instanceof ServerGone || error instanceof Refused)) throw error;
    say(error instanceof ServerGone ? "acp-proxy serve does not answer. Trying again …" : error.message);
  } finally {
    looking = false;
    const again = choice !== seen.choice; // something else was chosen meanwhile
    if (again) seen.mark = "";
    next = setTimeout(look, again ? 0 : BEAT);
  }
}

async function readOverview() {
  const { range, by, sort, find, filters } = view;
  const { pages, everyKey, everyBudget, everyPlan } = much;
  const asked = view;
  const { agent = null, user = null } = filters;
  const [spend, all, sessions, budgets, bills, coverage, plans] = await Promise.all([
    read("spend", { range, by, tz: TIME_ZONE, ...filters }),
    read("spend", { range: "all", by: "agent", tz: TIME_ZONE, ...filters }),
    read("sessions", { limit: Math.min(PAGE * pages, MOST), range, sort, find, tz: TIME_ZONE, ...filters }),
    read("budgets"),
    read("bills"),
    read("coverage", { range, tz: TIME_ZONE, ...filters }),
    read("plans", { agent, user }),
  ]);
  if (asked !== view) return;
  if (!location.hash && spend.rows.length === 0 && all.rows.length > 0) {
    location.replace("#/all/agent"); // nobody chose a month in which nothing was spent
    return;
  }
  seen.several = spend.also_by.includes("user");
  const empty = !isFiltered(view) && all.rows.length === 0;
  byId("welcome").hidden = !empty;
  byId("lead").hidden = byId("figures").hidden = empty;
  showTotals(spend, all.total);
  showDates(spend, TIME_ZONE);
  showSpend(spend, by);
  showLists = (whole) => {
    showRows(spend, by, whole || everyKey, asked);
    showBudgets(budgets, TIME_ZONE, whole || everyBudget);
    showPlans(plans, seen.several, TIME_ZONE, whole || everyPlan);
  };
  showLists(false);
  showBills(bills, TIME_ZONE);
  showCoverage(coverage);
  showSessions(sessions.sessions, seen.several, TIME_ZONE, asked);
  const full = sessions.sessions.length >= MOST;
  byId("session-more").hidden = full || !sessions.more;
  byId("session-older").hidden = !full || !sessions.more;
  byId("session-more-words").textContent = sort === "last" ? "Show older sessions" : "Show more sessions";
  files.set("spend", { name: fileName(`by-${by}`, asked), answer: spend, csv: () => csvOf(spend.rows, "key") });
  files.set("sessions", { name: fileName("sessions", asked), answer: sessions, csv: () => csvOf(sessions.sessions, "session") });
}

async function readSession() {
  const { session } = view;
  const answer = await read("session", { key: session });
  const plans = await read("plans", { agent: answer.agent, user: answer.user });
  if (session !== view.session) return;
  byId("session-figures").hidden = false;
  byId("terminal").textContent = `acp-proxy session ${answer.key}`;
  showSession(answer, TIME_ZONE, { ...view, session: "" });
  showPlansOfSession(plans, TIME_ZONE);
  files.set("session", { name: `acp-proxy-session-${answer.key}`, answer, csv: () => csvOf(answer.turns, "turn") });
}

/**
 * Trouble as one line, or none; and as of when the figures are.
 * @param {string} trouble
 * @param {?string} [standby] what is read from, if it is not the server that is written to, and how old that is
 * @param {?string} [setBack] what was written again after a failover, and what may be missing
 */
function say(trouble, standby, setBack) {
  const line = byId("trouble");
  if (line.textContent !== trouble) line.textContent = trouble;
  document.body.classList.toggle("stale", Boolean(trouble));
  if (trouble) return;
  const from = standby ? `the ledger (${standby})` : "the ledger";
  byId("as-of").textContent = `Read from ${from} at ${timeText(new Date(), TIME_ZONE, "second")}, ${TIME_ZONE}.`;
  byId("set-back").textContent = setBack ? `The ledger ${setBack}.` : "";
}
