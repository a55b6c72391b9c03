// Makes elements. What comes from agents is text and stays text: nothing here or elsewhere on the page parses HTML.

/**
 * An element with attributes and children; `null` leaves an attribute or a child out.
 * @param {string} tag
 * @param {Record<string, string | number | boolean | null>} [attributes]
 * @param {...(Node | string | null)} children
 * @returns {HTMLElement}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/**
 * The element of the page with this id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element;
}

/**
 * New content in place of the old. Who has the focus keeps it, in a wide table or if the new content has an element of
 * the same id, and a wide table stays where it was scrolled to.
 * @param {HTMLElement} container
 * @param {...(Node | string)} content
 */
export function refill(container, ...content) {
  const focused = container.contains(document.activeElement) ? document.activeElement : null;
  const scrolled = container.querySelector(".wide")?.scrollLeft ?? 0;
  container.replaceChildren(...content);
  const wide = /** @type {HTMLElement | null} */ (container.querySelector(".wide"));
  wide?.scrollTo(scrolled, 0);
  const again = focused?.matches(".wide") ? wide : document.getElementById(focused?.id ?? "");
  if (focused) again?.focus({ preventScroll: true });
}

/**
 * Names and facts with a point between them. Each keeps its own direction of writing: a Hebrew name would turn around
 * the date that follows it.
 * @param {(string | null)[]} parts those that are empty are left out
 * @returns {(Node | string)[]}
 */
export function joined(parts) {
  return parts.filter(Boolean).flatMap((part, place) => [...(place ? [" · "] : []), make("bdi", {}, part)]);
}

/**
 * A name that is broken behind a slash, where it does not fit on one line: `@organisation/` and `agent`.
 * @param {string} name
 * @returns {(Node | string)[]}
 */
export function breakable(name) {
  const parts = name.match(/[^/]+\/*|\/+/g) ?? [];
  return parts.flatMap((part, place) => (place ? [make("wbr"), part] : [part]));
}

/**
 * A bar of which parts are filled. It says nothing by itself: the figures stand beside it.
 * @param {{share: number, look: string}[]} parts shares of 1, from left to right
 * @param {string} [look]
 * @returns {HTMLElement}
 */
export function bar(parts, look = "") {
  const filled = parts.filter(({ share }) => share > 0).map((part) => {
    const piece = make("span", { class: `filled ${part.look}` });
    piece.style.setProperty("width", `${(Math.min(part.share, 1) * 100).toFixed(2)}%`);
    return piece;
  });
  return make("span", { class: `bar ${look}`, "aria-hidden": "true" }, ...filled);
}

/**
 * A table with a caption, for screen readers too.
 * @param {string} caption
 * @param {{title: string, look?: string, to?: string, sorted?: boolean}[]} columns `to`: an address that sorts by it
 * @param {HTMLElement[]} rows
 * @returns {HTMLElement}
 */
export function table(caption, columns, rows) {
  const heads = columns.map(({ title, look = "", to, sorted = false }) => {
    const head = to ? make("a", { href: to, title: `Sort by ${title}` }, title) : title;
    return make("th", { scope: "col", class: look, "aria-sort": sorted ? "descending" : null }, head);
  });
  return make(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": caption },
    make(
      "table",
      {},
      make("caption", { class: "unseen" }, caption),
      make("thead", {}, make("tr", {}, ...heads)),
      make("tbody", {}, ...rows),
    ),
  );
}
