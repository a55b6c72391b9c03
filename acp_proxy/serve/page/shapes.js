// The shapes of the server's answers, for editors and type checkers; nothing is run here. `docs/serve.md` tells the same.

/** @typedef {{input: number, cached_read: number, cached_write: number, output: number, thought: number, total: number}} Tokens */
/** @typedef {Record<string, string>} Cost an amount for each currency, as decimal text; empty when unknown */
/** @typedef {"agent" | "partial" | "estimated" | "none"} UsageSource */

/**
 * What one key of a report adds up to.
 * @typedef {object} Sums
 * @property {number} turns
 * @property {Tokens} tokens
 * @property {Cost} cost
 * @property {Cost} [not_billed] the part of `cost` that is a list price under a plan, if any is
 * @property {number} unpriced_turns
 * @property {number} partial_turns
 * @property {number} estimated_turns
 * @property {number} turns_without_usage
 * @property {boolean} at_least whether the cost misses something
 */
/** @typedef {Sums & {key: string, others?: number}} Row `others`: of how many keys it is the rest */
/** @typedef {{cost: Cost, not_billed?: Cost, turns: number, tokens_total: number, at_least: boolean}} Card */
/** @typedef {{key: string, values: (string | null)[], others?: number}} Series */

/**
 * @typedef {object} Spend
 * @property {string} timezone
 * @property {string} range
 * @property {string[]} also_by keys of which the ledger has more than one value, beside those that are always offered
 * @property {string | null} since
 * @property {string | null} until
 * @property {Sums} total
 * @property {Row[]} rows
 * @property {{exact: number, partial: number, estimated: number, unpriced: number, none: number}} sources
 * @property {string | null} cache_hit_ratio
 * @property {{today: Card, week: Card, month: Card}} cards
 * @property {{step: "hour" | "day" | "month", starts: number[], currencies: Record<string, Series[]>}} over_time
 */

/**
 * @typedef {object} About
 * @property {string} key
 * @property {string} session
 * @property {string} agent
 * @property {string | null} title
 * @property {string | null} project
 * @property {string | null} team
 * @property {string} user
 * @property {string} started_at
 * @property {string} ended_at
 * @property {number | null} context_used
 * @property {number | null} context_size
 */
/** @typedef {About & Sums & {active: boolean, running: boolean}} Session */
/** @typedef {{started_at: string, context_used: number | null, context_size: number | null, compacted: boolean}} Point */
/** @typedef {{rows_each: number, points: Point[]}} Context each point is the fullest of so many rows */

/**
 * The latest turns, how many came before, and where there are such the context of all.
 * @typedef {About & {total: Sums, turns: Turn[], omitted: number, context: Context | null}} SessionInFull
 */

/**
 * @typedef {object} Turn
 * @property {string} key
 * @property {string | null} model
 * @property {"turn" | "autonomous" | "subagent" | "compaction" | "side" | "call"} kind
 * @property {string} started_at
 * @property {string} ended_at
 * @property {string | null} stop_reason
 * @property {Tokens} tokens
 * @property {Cost} cost
 * @property {Cost} [not_billed]
 * @property {"plan" | "tokens"} [billing] if it is known
 * @property {number} unpriced_turns 0 or 1, as the three that follow
 * @property {number} partial_turns
 * @property {number} estimated_turns
 * @property {number} turns_without_usage
 * @property {UsageSource} usage_source
 * @property {"agent" | "computed" | "estimated" | "parent" | "unknown"} cost_source
 * @property {boolean} at_least
 * @property {number | null} context_used
 * @property {number | null} context_size
 * @property {boolean} compacted whether there is less of the context than there was
 * @property {Work | null} work null where nothing is known of it
 */

/**
 * Milliseconds in which at least one tool ran, in which permission was waited for instead, and calls by kind.
 * @typedef {{tools: number, waited: number, calls: {kind: string, count: number, failed: number, took: number}[]}} Work
 */

/**
 * @typedef {object} Budget
 * @property {string} name
 * @property {Record<string, string[]>} scope
 * @property {string} window
 * @property {string | null} resets_at
 * @property {string} unit a currency, "tokens" or "turns"
 * @property {"shadow" | "warn" | "enforce"} mode
 * @property {boolean} [count_plans] whether list prices of what plans cover are in `spent`
 * @property {string} limit
 * @property {string} granted
 * @property {string} spent
 * @property {string} held
 * @property {string} left
 * @property {boolean} at_least whether `spent` misses something: a price, or what an agent did not tell
 * @property {boolean} [shared] by others whose figures are not told: then there is no `held`, and `spent` is one's own
 * @property {Cost} not_counted other currencies, and as `turns` how many have no known price
 */

/** @typedef {{tokens: {billed: number, seen: number}, cost: {billed: string, seen: string}}} Billed */
/**
 * A provider that is asked for its bill each day.
 * @typedef {{provider: string, fetched_at: string | null, tried_at: string, again_at: string, trouble: string | null, asked: boolean}} BillSource
 */
/** @typedef {{kind: string, says: string, tokens: number, cost: string}} BillCause */

/**
 * How much of a provider's bill the ledger had, of days from `since` to `until`, both included.
 * @typedef {Billed & {provider: string, since: string, until: string, kept_at: string, currency: string,
 *   days: (Billed & {day: string})[], causes: BillCause[]}} Bill
 */

/**
 * What of one key went through acp-proxy, and what an import found beside it: null where nothing was imported, and so is
 * `seen` then, a fraction of the tokens.
 * @typedef {{key: string, relayed: {tokens: number, cost: Cost}, imported: {tokens: number, cost: Cost} | null,
 *   seen: number | null}} Covered
 */
/** @typedef {{total: Covered, rows: Covered[], omitted: number, step: "day" | "month", steps: Covered[]}} Coverage */

/**
 * @typedef {object} PlanBudget
 * @property {string} name
 * @property {string} plan
 * @property {number} percent
 * @property {"shadow" | "warn" | "enforce"} mode
 * @property {string | null} agent
 * @property {number | null} used a fraction of the plan's window
 * @property {"allow" | "warn" | "shadow_deny" | "deny"} decision
 * @property {"used" | "overage" | null} why
 * @property {string | null} until
 */

/**
 * A window of a plan; what is not known, or no longer, is null.
 * @typedef {object} Plan
 * @property {string} user
 * @property {string} agent
 * @property {string} window in the agent's word
 * @property {string} name as people call it
 * @property {number | null} used a fraction
 * @property {string | null} status
 * @property {string | null} resets_at
 * @property {string | null} overage
 * @property {string} seen_at
 * @property {string | null} projected_full_at
 * @property {string} since
 * @property {{at: string, used: number}[]} history
 */
/** @typedef {{plans: Plan[], omitted: number}} Plans */

/**
 * A turn that has not ended; its figures are estimates, and zeros where nothing is known yet.
 * @typedef {object} Running
 * @property {string} id
 * @property {string} key of its session
 * @property {string} session
 * @property {string} agent
 * @property {string} user
 * @property {string | null} project
 * @property {string | null} model
 * @property {string | null} title
 * @property {string} started_at
 * @property {string} session_started_at
 * @property {Tokens} tokens
 * @property {Cost} cost
 * @property {Cost} [not_billed]
 * @property {number | null} context_used
 * @property {number | null} context_size
 */

export {};
