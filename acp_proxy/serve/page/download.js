// What is shown, as a file: CSV with the columns of `acp-proxy report --csv`, or the server's answer as JSON.

/** @import { Row, Session, Sums, Turn } from "./shapes.js" */

const DETAILS = {
  key: [],
  session: ["session", "agent", "title", "project", "started_at", "ended_at", "context_used", "context_size", "user", "team"],
  turn: [
    "session", "agent", "agent_version", "client", "user", "team", "project", "model", "kind", "started_at", "ended_at",
    "stop_reason", "message_id", "usage_source", "cost_source", "context_used", "context_size",
  ],
};
const TOKENS = ["input", "cached_read", "cached_write", "output", "thought", "total"];
const UNSURE = ["unpriced_turns", "partial_turns", "estimated_turns", "turns_without_usage"];
// A spreadsheet would run it; the last four are those signs in East Asian width. Names from npm are no formulas.
const FORMULA = /^(?!@[\w.-]+\/[\w.-]+$)[=+\-@\uff1d\uff0b\uff0d\uff20]/u;

/**
 * @param {(Row | Session | Turn)[]} rows
 * @param {keyof typeof DETAILS} kind what a row stands for
 */
export function csvOf(rows, kind) {
  const others = [...new Set(rows.flatMap(({ cost }) => Object.keys(cost)))].filter((one) => one !== "USD").sort();
  const header = ["key", "turns", ...TOKENS, "cost_USD", ...UNSURE, ...DETAILS[kind], ...others.map((one) => `cost_${one}`)];
  const listed = [...new Set(rows.flatMap(({ not_billed }) => Object.keys(not_billed ?? {})))].sort();
  header.push(...listed.map((one) => `not_billed_${one}`));
  const lines = rows.map((/** @type {any} */ row) => [
    row.key,
    "turns" in row ? row.turns : Number(row.kind === "turn"),
    ...TOKENS.map((name) => row.tokens[name]),
    row.cost.USD,
    ...[...UNSURE, ...DETAILS[kind]].map((name) => row[name]),
    ...others.map((currency) => row.cost[currency]),
    ...listed.map((currency) => row.not_billed?.[currency]),
  ]);
  return [header, ...lines].map((line) => `${line.map(cell).join(",")}\n`).join("");
}

/**
 * Hands a file to the browser.
 * @param {string} name
 * @param {string} text
 */
export function download(name, text) {
  const type = name.endsWith(".csv") ? "text/csv" : "application/json";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** @param {string | number | null | undefined} value */
function cell(value) {
  const plain = typeof value === "string" ? value.replace(/[\p{C}\p{Z}]+/gu, " ").trim() : String(value ?? "");
  const text = typeof value === "string" && FORMULA.test(plain) && !/^-?[\d.]+$/.test(plain) ? `'${plain}` : plain;
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
