"""What the conventions call the makers of models. Pure."""

from __future__ import annotations

from acp_proxy.catalog import Catalog

# By the catalog's names; others are their own, as the conventions allow.
_NAMES = {"google": "gcp.gemini", "xai": "x_ai", "mistral": "mistral_ai", "moonshotai": "moonshot_ai"}


def provider(catalog: Catalog, model: str | None) -> str | None:
    lab = catalog.lab(model) if model else None
    return None if lab is None else _NAMES.get(lab, lab)
