"""A configuration's prices, agents and titles in the form that other packages take. Reads no file."""

from __future__ import annotations

from collections.abc import Mapping, Set

from acp_proxy.catalog import Catalog
from acp_proxy.config import Config
from acp_proxy.config.values import BilledBy, Price
from acp_proxy.core.agents import ProfileOverride
from acp_proxy.core.models import alias_names, without_lab
from acp_proxy.core.money import Money
from acp_proxy.core.scope import fits
from acp_proxy.ledger.places import is_shared

_UNSAID = BilledBy()
_AT_HUB = "the hub"


def catalog_of(config: Config) -> Catalog:
    """The packaged catalog under the user's own prices and aliases."""
    return Catalog(config.pricing.prices, config.aliases, config.pricing.cache_write)


def prices_under(config: Config, policy: Mapping[str, Price]) -> dict[str, Price]:
    """The user's prices, in their place those of a hub's policy, and above both those of the administrator's file."""
    own, theirs = _holding(config, policy)
    return own | theirs


def price_sources(config: Config, policy: Mapping[str, Price]) -> dict[str, str]:
    """By name whose each of these prices is, and whose it stands in place of."""
    own, theirs = _holding(config, policy)
    aside = {_names(name)[0] for name in policy if name not in theirs}
    behind = {_names(name)[0] for name in config.pricing.prices if name not in own}
    sources = dict.fromkeys(theirs, _AT_HUB)
    sources |= {name: f"{_AT_HUB}, which goes before your own price" for name in theirs if _any(behind, name)}
    return sources | {name: "the administrator's file, which goes before the hub" for name in own if _any(aside, name)}


def _holding(config: Config, policy: Mapping[str, Price]) -> tuple[dict[str, Price], dict[str, Price]]:
    """Of the prices of files, and of a hub, those that hold."""
    final = {_names(key[1])[0] for key in config.by_file["admin"] if key[0] == "prices"}
    theirs = {name: price for name, price in policy.items() if not _any(final, name)}
    said = {_names(name)[0] for name in theirs}
    own = config.pricing.prices
    return {name: price for name, price in own.items() if _names(name)[0] in final or not _any(said, name)}, theirs


def _any(names: Set[str], model: str) -> bool:
    return not names.isdisjoint(_names(model))


def _names(model: str) -> list[str]:
    """Under which a price of a model is looked for, its own first: other spellings of one model are no other model."""
    return [without_lab(name) for name in alias_names(model)]


def public_catalog_of(config: Config) -> Catalog:
    """The packaged catalog without the user's own prices."""
    return Catalog(None, config.aliases, config.pricing.cache_write)


def profiles_of(config: Config) -> dict[str, ProfileOverride]:
    """The configured overrides of how agents count, by the agent's name."""
    return {name: ProfileOverride(counts.scope, counts.input) for name, counts in config.agents.items()}


def billed_by(config: Config, agent: str) -> BilledBy:
    """What the configuration says of an agent: under its own name, else under the first pattern that it fits."""
    if (own := config.billing.get(agent)) is not None:
        return own
    return next((said for pattern, said in config.billing.items() if fits(pattern, agent)), _UNSAID)


def seat_of(config: Config, agent: str) -> Money | None:
    """What a seat of the agent's plan costs a month."""
    said = billed_by(config, agent)
    return None if said.seat is None else Money(said.seat, said.currency)


def keeps_titles(config: Config, url: str) -> bool:
    """Whether the ledger at `url` gets the titles of sessions."""
    return config.ledger.titles and (config.share_titles or not is_shared(url))
