"""Limits and requests for more as Anthropic's Admin API has them, over the hub's policy: for scripts written for that.

A spend limit is a budget of the policy for each user, in US dollars, by day, week or month of UTC. All that apply to a
user hold together, as all budgets do: none takes another's place.
"""

from __future__ import annotations

from acp_proxy.hub.api.desk import Answer
from acp_proxy.hub.api.spending import increases, limits
from acp_proxy.hub.api.spending.dialect import in_dialect

ANSWERS: list[Answer] = [in_dialect(answer) for answer in (*limits.ANSWERS, *increases.ANSWERS)]
