// What the forms of administration have in common.

/**
 * The text of a field, and the names of one with commas.
 * @param {HTMLFormElement} form
 */
export function fields(form) {
  const data = new FormData(form);
  const of = (/** @type {string} */ name) => String(data.get(name) ?? "").trim();
  const names = (/** @type {string} */ name) => of(name).split(",").map((each) => each.trim()).filter(Boolean);
  return { of, names };
}

/**
 * Puts values into the fields of these names, and shows the form.
 * @param {HTMLFormElement} form
 * @param {Record<string, unknown>} values
 * @param {string} first the name of the field that is to be typed into
 */
export function fill(form, values, first) {
  for (const [name, value] of Object.entries(values)) {
    /** @type {HTMLInputElement} */ (form.elements.namedItem(name)).value = String(value ?? "");
  }
  const around = form.closest("details");
  if (around) around.open = true;
  /** @type {HTMLInputElement} */ (form.elements.namedItem(first)).focus();
}

/**
 * Only of whom a budget is, as its scope; null is of everybody. What the form does not have of it stays.
 * @param {{names: (name: string) => string[]}} of
 * @param {Record<string, unknown>} [before]
 */
export function scopeOf({ names }, before = {}) {
  const asked = Object.entries({ team: names("team"), user: names("only") }).filter(([, some]) => some.length);
  const others = Object.entries(before).filter(([name]) => !["team", "user"].includes(name));
  return asked.length || others.length ? Object.fromEntries([...asked, ...others]) : null;
}
