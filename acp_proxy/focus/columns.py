"""Which columns each version of FOCUS has, of those that acp-proxy fills or must have."""

from __future__ import annotations

from typing import Literal, get_args

Version = Literal["1.2", "1.3", "1.4"]
VERSIONS: tuple[Version, ...] = get_args(Version)
FIRST: Version = "1.2"  # what most consumers ask for

_ALL = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingAccountType",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "EffectiveCost",
    "HostProviderName",
    "InvoiceId",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "ServiceProviderName",
    "ServiceSubcategory",
    "SkuId",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "SubAccountType",
    "Tags",
)
_OWN = (
    "x_TokensInput",
    "x_TokensCachedRead",
    "x_TokensCachedWrite",
    "x_TokensOutput",
    "x_TokensThought",
    "x_Turns",
    "x_Kind",
    "x_Billing",
    "x_UsageSource",
    "x_CostSource",
    "x_CostAtLeast",
)
# 1.3 brought the first two and deprecated the others, which 1.4 no longer has.
_NEW_IN_1_3 = ("HostProviderName", "ServiceProviderName")
_GONE_IN_1_4 = ("ProviderName", "PublisherName")


def columns_of(version: Version) -> tuple[str, ...]:
    """In the order in which they are written: those of FOCUS by name, then our own."""
    missing = {"1.2": _NEW_IN_1_3, "1.3": (), "1.4": _GONE_IN_1_4}[version]
    return (*(name for name in _ALL if name not in missing), *_OWN)
