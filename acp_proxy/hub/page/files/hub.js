// Who has signed in, in the head of the page, and the way out.

import { byId, joined, make } from "./dom.js";
import { amountText, cleaned, tokensText } from "./figures.js";

/** @typedef {{user: string, role: string, team: string | null, teams_led: string[], csrf: string}} Person */

/**
 * Who has signed in with this browser; without anybody the page on which to do so.
 * @returns {Promise<Person>}
 */
async function who() {
  const response = await fetch("/oauth/whoami", { cache: "no-store" });
  if (response.status === 401) location.assign("/signin");
  if (!response.ok) throw new Error(`the hub answered ${response.status}`);
  return response.json();
}

/** @type {Promise<Person>} */
export const person = who();

person.then(({ user, role, csrf }) => {
  const out = make("button", { type: "button", id: "sign-out" }, "Sign out");
  out.addEventListener("click", () => signOut(csrf));
  const links = ["administrator", "finance", "lead"].includes(role) && location.pathname !== "/administration"
    ? [make("a", { href: "/administration" }, role === "administrator" ? "Administration" : "Budgets and grants")] : [];
  const about = make("span", { class: "quiet" }, make("bdi", { id: "signed-in" }, cleaned(user)), ` · ${role}`);
  document.querySelector("header.top")?.append(make("p", { class: "person" }, about, ...links, out));
  showRequests();
}).catch((error) => {
  byId("trouble").textContent = error.message;
});

/** What people ask for beyond their budgets, and nobody has decided on yet: where there is any, below the totals. */
async function showRequests() {
  const overview = document.getElementById("lead");
  const response = overview && await fetch("/api/requests", { cache: "no-store" });
  if (!response?.ok) return;
  const { requests } = await response.json();
  if (!requests.length) return;
  const items = requests.map((/** @type {any} */ each) => {
    const amount = ["tokens", "turns"].includes(each.unit) ? `${tokensText(Number(each.amount))} ${each.unit}` : amountText(each.unit, each.amount, 2);
    const what = joined([cleaned(each.user), `${amount} more of ${cleaned(each.budget)}`, cleaned(each.why)]);
    return make("li", {}, ...what, " ", each.decides ? make("a", { href: `/requests/${encodeURIComponent(each.id)}` }, "Decide") : "");
  });
  const head = make("h2", { id: "requests-head" }, "Asked for more");
  overview.after(make("section", { id: "requests", class: "panel", "aria-labelledby": "requests-head" }, head, make("ul", {}, ...items)));
}

/** @param {string} csrf what shows that this page asks, and no other site's */
async function signOut(csrf) {
  await fetch("/signout", { method: "POST", headers: { "X-CSRF": csrf }, redirect: "manual" });
  location.assign("/signin");
}
