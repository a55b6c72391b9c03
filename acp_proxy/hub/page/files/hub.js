// Who has signed in, in the head of the page, and the way out.

import { byId, make } from "./dom.js";
import { cleaned } from "./figures.js";

/** @typedef {{user: string, role: string, team: string | null, csrf: string}} Person */

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
  const links = role === "administrator" && location.pathname !== "/administration"
    ? [make("a", { href: "/administration" }, "Administration")] : [];
  const about = make("span", { class: "quiet" }, make("bdi", { id: "signed-in" }, cleaned(user)), ` · ${role}`);
  document.querySelector("header.top")?.append(make("p", { class: "person" }, about, ...links, out));
}).catch((error) => {
  byId("trouble").textContent = error.message;
});

/** @param {string} csrf what shows that this page asks, and no other site's */
async function signOut(csrf) {
  await fetch("/signout", { method: "POST", headers: { "X-CSRF": csrf }, redirect: "manual" });
  location.assign("/signin");
}
