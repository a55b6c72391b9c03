"""Prices of a hub beside those of this machine: which of them hold, and how who types changes the hub's.

Writes to no stream. Without a hub the prices are those of the configuration's files, which nothing here changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from acp_proxy.catalog import Catalog
from acp_proxy.config import Config, Price
from acp_proxy.config.applied import catalog_of, price_sources, prices_under
from acp_proxy.config.schema import quoted
from acp_proxy.core.models import canonical
from acp_proxy.ledger import LedgerError, LedgerForbiddenError, Tell
from acp_proxy.ledger.hub.policy import Changes, Table
from acp_proxy.ledger.hub_address import is_hub
from acp_proxy.system.directories import state_directory
from acp_proxy.system.errors import UsageError
from acp_proxy.text.figures import clean

if TYPE_CHECKING:  # what most ledgers need none of
    from acp_proxy.policy import Policy
    from acp_proxy.policy.editing import Read
    from acp_proxy.text.times import Zone


class Asked(Struct, frozen=True):
    """The arguments. `values` are those of a `[prices."MODEL"]` by key, without those that were not given."""

    action: str  # set, remove
    model: str
    values: Mapping[str, Any] = {}
    dry_run: bool = False
    version: int | None = None  # only if it is that of the policy yet


def catalog_here(config: Config, environ: Mapping[str, str], tell: Tell = lambda _: None) -> Catalog:
    """The catalog under the prices that hold on this machine: those of its files and, with a hub, the hub's.

    A hub that does not answer is told to `tell`, and what it said last holds.
    """
    if not is_hub(config.ledger.url):
        return catalog_of(config)
    prices = _of_hub(config, environ, tell)
    catalog = catalog_of(config)
    catalog.reprice(prices_under(config, prices), price_sources(config, prices))
    return catalog


def edit(asked: Asked, config: Config, own: Path, zone: Zone) -> str:
    """Changes the hub's price of a model and describes that; `own` is the file that has the user's own prices.

    Raises UsageError and LedgerError, and then nothing was done.
    """
    if not is_hub(config.ledger.url):
        raise UsageError(_by_hand(asked, own))
    from acp_proxy.policy.editing import changed, opened

    def change(read: Read) -> Changes:
        return _wanted(asked, read.document.prices)

    try:
        with opened(config.ledger.url) as hub:
            done = changed(hub, change, zone, version=asked.version, dry=asked.dry_run)
    except LedgerForbiddenError as error:
        raise UsageError(f"{error}; your own prices are those of {own}") from error
    if asked.dry_run:
        return done or "Nothing would change.\n"
    if not done:
        return "It is so already.\n"
    return f"{done}It holds for everybody's turns from now on, but where a machine's administrator has set a price.\n"


def _of_hub(config: Config, environ: Mapping[str, str], tell: Tell) -> Mapping[str, Price]:
    from acp_proxy.policy import understood
    from acp_proxy.policy.editing import opened, read
    from acp_proxy.policy.following import Followed

    url = config.ledger.url
    try:
        with opened(url) as hub:
            return understood(read(hub).document).prices
    except LedgerError as error:
        kept: list[Policy] = []
        Followed(url, state_directory(environ) / "hubs", "lease", kept.append).read()
        said = "prices are those that the hub told last" if kept else "prices are those without the hub's"
        tell(f"{error}; {said}")
        return kept[-1].prices if kept else {}


def _wanted(asked: Asked, there: Mapping[str, Table]) -> Changes:
    """What of the hub's prices is to change; one that is there under another spelling of the model's name is that one.

    Raises UsageError.
    """
    wanted = canonical(asked.model.strip())
    name = next((each for each in there if canonical(each.strip()) == wanted), None)
    if asked.action == "set":
        known = there[name] if name is not None else {}
        return Changes(prices={name or asked.model.strip(): {**known, **asked.values}})
    if name is None:
        close = get_close_matches(wanted, there, 1)
        hint = f"did you mean {clean(close[0])}?" if close else f"it has {', '.join(map(clean, there)) or 'none'}"
        raise UsageError(f"the hub has no price of {clean(asked.model)}: {hint}")
    return Changes(prices={name: None})


def _by_hand(asked: Asked, own: Path) -> str:
    """Where the price is to be changed: a file has no history, and comments that only its owner can keep true."""
    table = f"[prices.{quoted(asked.model.strip())}]"
    if asked.action == "remove":
        return f"no hub keeps this ledger: prices are those of {own}; remove {table} there"
    keys = ", ".join(f"{key} = {_toml(value)}" for key, value in asked.values.items())
    return f"no hub keeps this ledger: prices are those of {own}; add {table} there, with {keys}"


def _toml(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else str(value)
