"""What is said where a report has no line: also which name the ledger does not know, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from acp_proxy.figures import clean
from acp_proxy.ledger import LedgerReader, Query
from acp_proxy.report import name_of


def nothing(ledger: LedgerReader, organisation: str, filters: Sequence[tuple[str, str]], *, of_a_time: bool) -> str:
    """`filters` as they were typed. Raises LedgerError."""
    others = sorted({str(sums.key[0]) for sums in ledger.summed(Query(), ("organisation",))})
    if others and organisation not in others:
        theirs = " and ".join(f'"{clean(name)}"' for name in others)
        return f'Nothing in the ledger is of organisation "{clean(organisation)}": it has rows of {theirs}.\n'
    if not filters and not of_a_time:
        return "Nothing in the ledger yet. Put `acp-proxy run --` before an agent's command, and work with it.\n"
    unknown = _not_known(ledger, Query(where=(("organisation", organisation),)), filters)
    return "".join(f"{line}\n" for line in ("Nothing in the ledger matches.", *unknown))


def _not_known(ledger: LedgerReader, ours: Query, filters: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in filters:
        if name == "title":
            continue
        known = sorted({name_of(name, sums.key[0]) for sums in ledger.summed(ours, (name,))})
        if value not in known:
            yield f'It has no {name} "{clean(value)}"{_meant(value, known)}'


def _meant(value: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # only who mistypes waits for it

    short = [name for name in known if name.rpartition("/")[2] == value]  # as tables show names from npm
    close = short or get_close_matches(value, known, 1)
    return f"; did you mean {' or '.join(clean(name) for name in close)}?" if close else "."
