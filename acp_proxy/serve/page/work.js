// Where the time of turns went: in tools, in waiting for permission, and in all else, which is mostly the model.

import { bar, make } from "./dom.js";
import { cleaned, elapsedText } from "./figures.js";

/** @import { Turn, Work } from "./shapes.js" */

/**
 * How long a turn took, with a bar of what its time went to, if that is known.
 * @param {Turn} turn
 */
export function tookCell({ started_at: started, ended_at: ended, work }) {
  const took = Date.parse(ended) - Date.parse(started);
  const text = elapsedText(took / 1000);
  if (!work || took <= 0) return make("td", { class: "figure roomy" }, text);
  const parts = [{ share: work.tools / took, look: "tools" }, { share: work.waited / took, look: "held" }];
  return make("td", { class: "figure roomy", title: workText(work) }, text, bar(parts, "work"));
}

/**
 * `tools 0:12: 3 execute 0:09, 5 read 0:02 (1 failed) · waited for permission 0:04`.
 * @param {Work} work
 */
export function workText({ tools, waited, calls }) {
  const kinds = [...calls].sort((one, other) => other.took - one.took).map(({ kind, count, failed, took }) =>
    `${count.toLocaleString("en-US")} ${cleaned(kind)} ${elapsedText(took / 1000)}${failed ? ` (${failed} failed)` : ""}`);
  const found = [];
  if (kinds.length) found.push(`tools ${elapsedText(tools / 1000)}: ${kinds.join(", ")}`);
  if (waited) found.push(`waited for permission ${elapsedText(waited / 1000)}`);
  return found.join(" · ");
}

/**
 * The same of several turns.
 * @param {Turn[]} turns
 */
export function workOfAll(turns) {
  /** @type {Map<string, {kind: string, count: number, failed: number, took: number}>} */
  const kinds = new Map();
  let [tools, waited] = [0, 0];
  for (const { work } of turns) {
    tools += work?.tools ?? 0;
    waited += work?.waited ?? 0;
    for (const { kind, count, failed, took } of work?.calls ?? []) {
      const before = kinds.get(kind) ?? { kind, count: 0, failed: 0, took: 0 };
      kinds.set(kind, { kind, count: before.count + count, failed: before.failed + failed, took: before.took + took });
    }
  }
  return workText({ tools, waited, calls: [...kinds.values()] });
}
