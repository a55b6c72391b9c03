// Administration: people, machines, tokens, keys, the log of changes. Everything is shown as text.

import { showPolicy } from "./administered-budgets.js";
import { offerGrants, onGrant, showGrants } from "./administered-grants.js";
import { answer, change, trying } from "./change.js";
import { byId, make, refill } from "./dom.js";
import { cleaned } from "./figures.js";
import { person } from "./hub.js";
import { API, at, difference, end, list, row } from "./listed.js";

/** The filter of the log, and where its older lines begin. */
const log = { filter: new URLSearchParams(), lines: /** @type {any[]} */ ([]) };

const { role } = await person;
const administers = role === "administrator";
if (!administers) {
  const [head] = document.getElementsByTagName("h1");
  head.textContent = "Budgets and grants";
  document.title = `${head.textContent} · acp-proxy`;
}
for (const part of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-roles]"))) {
  part.hidden = !(part.dataset.roles ?? "").split(" ").includes(role);
}
await trying(async () => {
  const ofAdministrators = administers ? [showPeople(), showTokens(), showKeys()] : [];
  await Promise.all([showPolicy(followed), showGrants(), ...ofAdministrators]);
});
onGrant(async () => followed(null));

byId("new-token").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const of = (/** @type {string} */ name) => String(new FormData(form).get(name) ?? "").trim();
  const wanted = {
    name: of("name"), user: of("user"), role: of("role"), team: of("team"),
    leads: of("leads").split(",").map((team) => team.trim()).filter(Boolean),
    scopes: new FormData(form).getAll("scope"),
    days: of("days") ? Number(of("days")) : null,
  };
  trying(async () => {
    const { secret, token } = await change(`${API}/tokens`, wanted);
    form.reset();
    refill(
      byId("made"),
      make("p", {}, `${cleaned(token.name)}, for ${cleaned(token.user)}. It is not shown again:`),
      make("code", { class: "secret" }, secret),
    );
    await Promise.all([showTokens(), showLog(null)]);
  });
});
for (const [id, forget] of /** @type {const} */ ([["rotate", false], ["forget", true]])) {
  byId(id).addEventListener("click", () => {
    if (forget && !confirm("Every machine has to renew its token. Forget all earlier keys?")) return;
    trying(async () => {
      await change(`${API}/keys`, { forget });
      await Promise.all([showKeys(), showLog(null)]);
    });
  });
}
byId("audit-filter").addEventListener("submit", (event) => {
  event.preventDefault();
  const given = [...new FormData(/** @type {HTMLFormElement} */ (event.target))].filter(([, value]) => String(value).trim());
  log.filter = new URLSearchParams(given.map(([name, value]) => [name, String(value).trim()]));
  trying(() => showLog(null));
});
byId("audit-more").addEventListener("click", () => {
  trying(() => showLog(log.lines.at(-1)?.number ?? null));
});

/**
 * What else shows that budgets, prices or grants were changed.
 * @param {any} policy null where it is as it was
 */
async function followed(policy) {
  if (policy) offerGrants(policy);
  if (administers) await showLog(null);
}

async function showPeople() {
  const { people, machines } = await answer(`${API}/people`);
  const rows = people.map((/** @type {any} */ each) => row(each.user, [
    each.role, each.team, each.leads.join(", "), each.name, each.active ? at(each.seen_at) : "left",
  ]));
  list("people", "All people", ["user", "role", "team", "leads", "name", "last sign-in"], rows, "Nobody has signed in by a provider yet.");
  const signedIn = machines.map((/** @type {any} */ each) => row(each.machine_name ?? "of no name", [
    each.user, at(each.created_at), at(each.refreshed_at),
  ], end("Sign out", each.machine_name ?? each.id, async () => {
    await change(`${API}/machines/ended`, { id: each.id });
    await Promise.all([showPeople(), showLog(null)]);
  })));
  list("machines", "All machines", ["machine", "user", "signed in", "last renewed", "change"], signedIn, "No machine is signed in.");
}

async function showTokens() {
  const { tokens, scopes } = await answer(`${API}/tokens`);
  const rows = tokens.map((/** @type {any} */ each) => row(each.name, [
    each.user, each.role, each.team, each.scopes.join(", ") || "all", until(each), each.created_by,
  ], each.holds ? end("Revoke", each.name, async () => {
    await change(`${API}/tokens/revoked`, { id: each.id });
    await Promise.all([showTokens(), showLog(null)]);
  }) : make("td", {})));
  list("tokens", "All tokens", ["name", "user", "role", "team", "good for", "until", "made by", "change"], rows, "No token was made yet.");
  const box = byId("scopes");
  if (box.querySelector("input")) return;
  box.append(...scopes.map((/** @type {string} */ scope) =>
    make("label", {}, make("input", { type: "checkbox", name: "scope", value: scope }), ` ${scope}`)));
}

async function showKeys() {
  const { keys } = await answer(`${API}/keys`);
  const rows = keys.map((/** @type {any} */ each, /** @type {number} */ place) => row(each.id, [
    at(each.made_at), place === 0 ? `signs until ${at(each.signs_until)}` : "verifies",
  ]));
  list("keys", "All keys", ["key", "made", "is for"], rows, "The first sign-in makes one.");
}

/** @param {number | null} before the number of a line, whose older ones are added */
async function showLog(before) {
  const asked = new URLSearchParams(log.filter);
  if (before !== null) asked.set("before", String(before));
  const { lines, next } = await answer(`${API}/audit?${asked}`);
  log.lines = before === null ? lines : [...log.lines, ...lines];
  const rows = log.lines.map((each) => row(at(each.at), [
    each.actor, each.action, each.subject, difference(each.before, each.after),
  ]));
  list("audit", "Log of changes, the latest first", ["when", "who", "did", "to", "what changed"], rows, "No line is like that.");
  byId("audit-more").hidden = next === null;
  byId("audit-file").setAttribute("href", `${API}/audit.jsonl?${log.filter}`);
}

/** @param {{holds: boolean, revoked_at: number | null, expires_at: number | null}} token */
function until({ holds, revoked_at: revoked, expires_at: expires }) {
  if (revoked !== null) return "revoked";
  if (!holds) return "expired";
  return expires === null ? "revoked by hand" : at(expires);
}
