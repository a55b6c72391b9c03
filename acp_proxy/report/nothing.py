"""The message of an empty report, with names that the ledger does not know, and suggestions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from acp_proxy.ledger import LedgerReader, Query
from acp_proxy.ledger.places import is_shared
from acp_proxy.report import name_of
from acp_proxy.text.figures import clean
from acp_proxy.text.times import Zone

_FEW = 5  # names that are listed where none is like the one that was typed
_UNTITLED = {
    False: "no title of any session: no agent has told one, or `ledger.titles = false` keeps them out.",
    True: "no title of any session: a ledger on PostgreSQL gets titles only with `share_titles = true`.",
}


def nothing(ledger: LedgerReader, organisation: str, filters: Sequence[tuple[str, str]], timed_in: Zone | None) -> str:
    """`filters` as they were typed; where a time was typed too, its zone. Raises LedgerError."""
    by_organisation = {str(sums.key[0]): sums for sums in ledger.summed(Query(), ("organisation",))}
    if not by_organisation:
        how = (
            "`acp-proxy setup --list` shows the editors of this machine, and `acp-proxy setup zed` meters Zed's agents."
        )
        look = "`acp-proxy import` takes what agents have written about earlier calls; `acp-proxy demo` needs no agent."
        return f"Nothing in the ledger yet: {clean(ledger.url)}\n{how}\n{look}\n"
    if organisation not in by_organisation:
        theirs = " and ".join(f'"{clean(name)}"' for name in sorted(by_organisation))
        return f'Nothing in the ledger is of organisation "{clean(organisation)}": it has rows of {theirs}.\n'
    lines = ["Nothing in the ledger matches.", *(f"It has {text}" for text in not_known(ledger, organisation, filters))]
    if timed_in:
        ours = by_organisation[organisation]
        first, last = timed_in.local(ours.started_at), timed_in.local(ours.ended_at)
        lines.append(f"It has rows from {first:%Y-%m-%d} to {last:%Y-%m-%d}.")
    return "".join(f"{line}\n" for line in lines)


def not_known(ledger: LedgerReader, organisation: str, names: Iterable[tuple[str, str]]) -> Iterator[str]:
    """`no user "alcie"; did you mean alice?` of each name that no row has. Raises LedgerError."""
    ours = Query(where=(("organisation", organisation),))
    for dimension, name in names:
        if dimension == "title":
            yield from _no_title(ledger, organisation, name)
            continue
        known = sorted({name_of(dimension, sums.key[0]) for sums in ledger.summed(ours, (dimension,))})
        if name not in known:
            yield f'no {dimension} "{clean(name)}"{_meant(name, known)}'


def _no_title(ledger: LedgerReader, organisation: str, part: str) -> Iterator[str]:
    """A part of a title, of which every one has an empty one."""
    for asked, said in (
        ("", _UNTITLED[is_shared(ledger.url)]),
        (part, f'no session with "{clean(part)}" in its title.'),
    ):
        titled = Query(where=(("organisation", organisation), ("title", asked)))
        if next(iter(ledger.session_sums(titled)), None) is None:
            yield said
            return


def _meant(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # only who mistypes waits for it

    short = [each for each in known if each.rpartition("/")[2] == name]  # as tables show names from npm
    close = short or get_close_matches(name, known, 1)
    if close:
        return f"; did you mean {' or '.join(map(clean, close))}?"
    if 0 < len(known) <= _FEW:
        return f"; there {'is' if len(known) == 1 else 'are'} {', '.join(map(clean, known))}."
    return "."
