// What the page asks of the server that it came from. Reads only.

/** The server did not answer; the same question may be answered later. */
export class ServerGone extends Error {}

/** The server answered that it cannot; the message is one line for people. */
export class Refused extends Error {}

const PATIENCE = 15_000; // ms; a ledger that is busy answers within a few seconds or not at all

/**
 * @param {string} name of the endpoint
 * @param {Record<string, string | number | null>} [parameters] without those that are null
 * @returns {Promise<any>}
 * @throws {ServerGone | Refused}
 */
export async function read(name, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== "");
  const query = new URLSearchParams(given.map(([key, value]) => [key, String(value)]));
  const address = new URL(`api/${name}${given.length ? `?${query}` : ""}`, document.baseURI);
  address.username = address.password = ""; // a token in the page's own address: fetch refuses it there, and knows it already
  const response = await answer(address);
  const said = await response.json().catch(() => null);
  if (response.ok && said) return said;
  if (response.status === 401) throw new Refused("A token is needed, or a new one: load this page again.");
  throw new Refused(typeof said?.error === "string" ? said.error : `the server answered ${response.status}`);
}

/** @param {URL} address */
async function answer(address) {
  try {
    return await fetch(address, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
  } catch {
    throw new ServerGone(address.pathname);
  }
}
