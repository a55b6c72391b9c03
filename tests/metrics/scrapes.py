"""A ledger, a configuration and an exporter of both; and what a scrape says, read by prometheus_client's parser."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from acp_proxy.catalog import Catalog
from acp_proxy.config import Config, load
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.metrics import Exporter

Sample = tuple[str, frozenset[tuple[str, str]]]  # name and labels


def configuration(directory: Path, text: str = "", url: str = "") -> Config:
    file = directory / "config.toml"
    file.write_text(text)
    options = {"config": str(file), "ledger": url or f"sqlite:///{directory}/ledger.db"}
    return load(options, {"HOME": str(directory), "USER": "alice"}, admin_file=directory / "none.toml")


def exporter(config: Config, clock: float = 0.0, journals: Iterable[Path] = ()) -> Exporter:
    return Exporter(config, Catalog(), clock=lambda: clock, journals=tuple(journals))


class Scraped:
    """Values by name and labels. A sum over series is exact: it is of the decimals in the text."""

    def __init__(self, text: bytes) -> None:
        self.text = text.decode()
        self._exact: dict[Sample, Decimal] = {}
        lines = (line for line in self.text.split("\n") if line and not line.startswith("#"))
        families = text_string_to_metric_families(self.text)
        samples = (sample for family in families for sample in family.samples)
        for line, sample in zip(lines, samples, strict=True):
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in self._exact, f"twice: {line}"
            self._exact[key] = Decimal(line.rpartition(" ")[2])

    def __contains__(self, name: str) -> bool:
        return any(found == name for found, _ in self._exact)

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self._exact}

    def samples(self, name: str) -> dict[frozenset[tuple[str, str]], Decimal]:
        return {labels: value for (found, labels), value in self._exact.items() if found == name}

    def value(self, name: str, **labels: str) -> Decimal | None:
        """Of exactly these labels; None where there is no such series."""
        return self._exact.get((name, frozenset(labels.items())))

    def total(self, name: str, **labels: str) -> Decimal:
        """Over all series with these labels."""
        wanted = set(labels.items())
        return sum((value for has, value in self.samples(name).items() if wanted <= has), Decimal())

    def by(self, name: str, *labels: str) -> dict[tuple[str, ...], Decimal]:
        """Sums by labels, without those that are 0."""
        sums: dict[tuple[str, ...], Decimal] = {}
        for has, value in self.samples(name).items():
            values = dict(has)
            key = tuple(values[label] for label in labels)
            sums[key] = sums.get(key, Decimal()) + value
        return {key: value for key, value in sums.items() if value}

    def values_of(self, label: str) -> set[str]:
        return {value for _, labels in self._exact for name, value in labels if name == label}


def scrape(ledger: BudgetLedger, config: Config, clock: float = 0.0) -> Scraped:
    """By an exporter that was just started."""
    return Scraped(exporter(config, clock).scrape(ledger))
