// What the hub's own pages ask and change, with what shows that they are the hub's own.

import { Refused, ServerGone } from "./api.js";
import { byId } from "./dom.js";
import { person } from "./hub.js";

/**
 * @param {string} path
 * @param {object} value
 * @returns {Promise<any>}
 * @throws {ServerGone | Refused}
 */
export async function change(path, value) {
  const { csrf } = await person;
  return answer(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF": csrf },
    body: JSON.stringify(value),
  });
}

/**
 * @param {string} path
 * @param {RequestInit} [how]
 * @returns {Promise<any>}
 * @throws {ServerGone | Refused}
 */
export async function answer(path, how = {}) {
  const response = await fetch(path, { cache: "no-store", ...how }).catch(() => null);
  if (response === null) throw new ServerGone(path);
  if (response.status === 401) location.reload(); // which leads to the sign-in
  const said = await response.json().catch(() => null);
  if (response.ok && said) return said;
  throw new Refused(typeof said?.error === "string" ? said.error : `the hub answered ${response.status}`);
}

/**
 * Does something, and shows what keeps it from that as one line.
 * @param {() => Promise<void>} something
 */
export async function trying(something) {
  const line = byId("trouble");
  try {
    await something();
    line.textContent = "";
  } catch (error) {
    if (!(error instanceof ServerGone || error instanceof Refused)) throw error;
    line.textContent = error instanceof ServerGone ? "The hub does not answer." : error.message;
    line.scrollIntoView({ block: "nearest" });
  }
}
