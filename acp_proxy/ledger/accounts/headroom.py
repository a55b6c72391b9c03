"""Whether accounts have so much left, told by a server itself: who locks an account need not keep it for a journey.

Says yes only where it is certain. What makes it harder to say (grants, holds that expired, sums that are not kept,
strangely spelled currencies) is a no, and then who asks looks at what was found. Only on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from acp_proxy.core.budget import Account
from acp_proxy.core.money import NANO
from acp_proxy.ledger.accounts.parts import COLUMNS
from acp_proxy.ledger.accounts.standings import Question
from acp_proxy.ledger.statements import Statement

_CAST = "(CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS NUMERIC))"
_RATE = "(CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS NUMERIC))"
# Amounts as units and nano-units; of a cost in another currency never less than it counts as.
_ENOUGH = f"""
WITH asked ({COLUMNS}) AS ({{asked}}),
need (place, key, unit, most) AS (VALUES {{needs}}),
rate (place, currency, rate) AS (VALUES {{rates}}),
kept (place, spent) AS (SELECT place, CASE WHEN what = 'kept' THEN text END::jsonb FROM asked WHERE what = 'kept'),
amount (place, currency, nano, tokens, turns) AS (
    SELECT place, currency, CAST(units AS NUMERIC) * {NANO} + nano, tokens, turns FROM asked WHERE what = 'spent'
    UNION ALL
    SELECT place, '', 0, CAST(spent ->> 'tokens' AS NUMERIC), CAST(spent ->> 'turns' AS NUMERIC) FROM kept
    UNION ALL
    SELECT place, cost.key, CAST(cost.value AS NUMERIC), 0, 0
    FROM kept CROSS JOIN LATERAL jsonb_each_text(spent -> 'nano') cost
),
used (place, amount) AS (
    SELECT place, CASE unit WHEN 'tokens' THEN tokens WHEN 'turns' THEN turns ELSE 0 END
    FROM need JOIN amount USING (place)
    UNION ALL
    SELECT a.place, CASE WHEN r.rate = {NANO} THEN a.nano ELSE div(a.nano * r.rate + {NANO - 1}, {NANO}) END
    FROM amount a JOIN rate r ON r.place = a.place AND upper(r.currency) = upper(a.currency)
    UNION ALL
    SELECT place, CAST(units AS NUMERIC) * {NANO} + nano FROM asked WHERE what = 'extra'
    UNION ALL
    SELECT n.place, a.units FROM need n JOIN asked a ON a.what = 'hold' AND a.place = n.key
),
enough (yes) AS (
    SELECT (SELECT count(*) FROM kept) = CAST(? AS BIGINT)
        AND NOT EXISTS (SELECT 1 FROM asked WHERE what IN ('booked', 'expired') OR (what = 'hold' AND nano <> 0))
        AND NOT EXISTS (SELECT 1 FROM amount WHERE currency !~ '^[A-Za-z0-9_-]*$')
        AND NOT EXISTS (
            SELECT 1 FROM need n WHERE n.most < (SELECT coalesce(sum(u.amount), 0) FROM used u WHERE u.place = n.place)
        )
)
"""


def enough(question: Question, needs: Sequence[int]) -> Statement:
    """A beginning of SQL: with `asked`, what the question finds, and `enough`, whether its accounts have that left.

    What the turn that asks holds or has booked already is a no.
    """
    accounts = question.accounts
    asked, values = question.asked
    needed = [_needs(str(place), *each) for place, each in enumerate(zip(accounts, needs, strict=True))]
    rates = [rate for place, account in enumerate(accounts) for rate in _rates(str(place), account)]
    sql = _ENOUGH.format(asked=asked, needs=", ".join([_CAST] * len(needed)), rates=", ".join([_RATE] * len(rates)))
    return sql, [*values, *chain.from_iterable(needed), *chain.from_iterable(rates), question.number_kept]


def refuted(question: Question, needs: Sequence[int]) -> Statement:
    """Fails where it is not certain that they have that left: a subquery then has two rows."""
    sql, values = enough(question, needs)
    return f"{sql} SELECT (SELECT 1 UNION ALL SELECT 1 FROM enough WHERE NOT yes)", values


def _needs(place: str, account: Account, need: int) -> tuple[str, str, str, int]:
    return place, account.key, account.unit, account.limit - need


def _rates(place: str, account: Account) -> list[tuple[str, str, int]]:
    """What one unit of each currency that it counts is worth in its own, in nano-units; of a count nothing."""
    if not account.budget.limit.is_money:
        return [(place, "", 0)]
    return [(place, account.unit, NANO), *[(place, currency, rate) for currency, rate in account.budget.rates]]
