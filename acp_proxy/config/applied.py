"""A configuration's prices, agents and titles in the form that other packages take. Reads no file."""

from __future__ import annotations

from collections.abc import Mapping

from acp_proxy.catalog import Catalog
from acp_proxy.config import Config
from acp_proxy.config.values import BilledBy, Price
from acp_proxy.core.agents import ProfileOverride
from acp_proxy.core.models import canonical
from acp_proxy.core.money import Money
from acp_proxy.core.scope import fits
from acp_proxy.ledger.places import is_shared

_UNSAID = BilledBy()


def catalog_of(config: Config) -> Catalog:
    """The packaged catalog under the user's own prices and aliases."""
    return Catalog(config.pricing.prices, config.aliases, config.pricing.cache_write)


def prices_under(config: Config, policy: Mapping[str, Price]) -> dict[str, Price]:
    """The user's prices, in their place those of a hub's policy, and above both those of the administrator's file."""
    own = config.pricing.prices
    final = {canonical(key[1]) for key in config.by_file["admin"] if key[0] == "prices"}
    said = {canonical(name) for name in policy} - final
    kept = {name: price for name, price in own.items() if canonical(name) not in said}
    return kept | {name: price for name, price in policy.items() if canonical(name) in said}


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
