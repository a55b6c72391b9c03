// What is shown, as the address says it: #/RANGE/KEY?project=shop&sort=cost, or #/session/KEY. So a view can be sent.

export const FILTERS = ["agent", "model", "project", "team", "user"];

const RANGES = ["today", "week", "month", "last-month", "year", "all"];
const DATES = /^(?:\d{4}-\d\d-\d\d\.\.(?:\d{4}-\d\d-\d\d)?|\.\.\d{4}-\d\d-\d\d)$/;
const KEYS = ["agent", "model", "project", "team", "user", "kind", "billing"];
const SORTS = ["last", "started", "turns", "tokens", "cost", "context"];

/**
 * `range` is one of the server's or dates (`2026-11-01..2026-11-15`), `filters` are values by dimension.
 * @typedef {{session: string, range: string, by: string, filters: Record<string, string>, sort: string, find: string}} View
 */

/** @type {View} */
export const START = { session: "", range: "month", by: "agent", filters: {}, sort: "last", find: "" };

/**
 * What an address shows. Beside a session the view that it was opened from stays; what makes no sense is left out.
 * @param {string} hash
 * @param {View} before
 * @returns {View}
 */
export function viewOf(hash, before) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [first, second = ""] = path.split("/");
  if (first === "session") return { ...before, session: second };
  const asked = new URLSearchParams(query);
  const known = FILTERS.filter((name) => asked.get(name)).map((name) => [name, asked.get(name) ?? ""]);
  return {
    session: "",
    range: RANGES.includes(first) || DATES.test(first) ? first : START.range,
    by: KEYS.includes(second) ? second : START.by,
    filters: Object.fromEntries(known),
    sort: SORTS.find((sort) => sort === asked.get("sort")) ?? START.sort,
    find: asked.get("find") ?? "",
  };
}

/** @param {View} view */
export function addressOf({ range, by, filters, sort, find }) {
  const query = new URLSearchParams(filters);
  if (sort !== START.sort) query.set("sort", sort);
  if (find) query.set("find", find);
  return `#/${range}/${by}${query.size ? `?${query}` : ""}`;
}

/**
 * The address of what is shown, of one value alone. A table by what is the same in all rows says nothing: another key
 * takes its place.
 * @param {View} view
 * @param {string} name
 * @param {string} value
 */
export function narrowed(view, name, value) {
  const filters = { ...view.filters, [name]: value };
  const others = ["agent", "model", "project"].filter((key) => !(key in filters));
  return addressOf({ ...view, filters, by: view.by in filters ? (others[0] ?? view.by) : view.by });
}

/**
 * The address without a filter.
 * @param {View} view
 * @param {string} name
 */
export function widened(view, name) {
  return addressOf({ ...view, filters: Object.fromEntries(Object.entries(view.filters).filter(([key]) => key !== name)) });
}
