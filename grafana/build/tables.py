"""Tables of the dashboards: a row for each set of labels, columns from labels and from the values of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import common, table
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.table import Options as TableOptions

from grafana.build.names import UIDS
from grafana.build.panels import COUNT, LETTERS, Levels, Looks, Query, dressed, levels
from grafana.build.promql import VARIABLES


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: a label of the queries, or the value of one. `of` names the label, or the query's letter."""

    title: str
    of: str
    unit: str | None = None
    decimals: int | None = None
    width: int | None = None
    levels: Levels = ()
    leads: str | None = None  # to which dashboard a click on the cell leads, narrowed to the cell's value


def listing(
    title: str, about: str, queries: Sequence[str], columns: Sequence[Column], by: str, *, time: str | None = None
) -> table.Panel:
    """A table with a row for each set of labels, the largest of column `by` first."""
    panel = (
        _Table()
        .cell_height(looks.TableCellHeight.SM)
        .sort_by([common.TableSortByFieldState().display_name(by).desc(True)])
        .with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(_columns(columns, len(queries)))
    )
    for column in columns:
        if properties := _properties(column):
            panel = panel.override_by_name(column.title, properties)
    asked = [Query(expression, at_end=True) for expression in queries]
    return dressed(panel, title, about, asked, Looks(unit=COUNT, time=time), PromQueryFormat.TABLE)


class _Table(table.Panel):
    def build(self) -> model.Panel:
        panel = super().build()
        if isinstance(panel.options, TableOptions):
            panel.options.footer = None  # the SDK writes it for older Grafanas; 12 does not know it any more
        return panel


def _columns(columns: Sequence[Column], queries: int) -> model.DataTransformerConfig:
    """A query of which no column has the value is there for its labels."""
    values = {letter: f"Value #{letter}" for letter in LETTERS[:queries]} if queries > 1 else {"A": "Value"}
    shown = {column.of for column in columns}
    unshown = [value for letter, value in values.items() if letter not in shown]

    def source(column: Column) -> str:
        return values.get(column.of, column.of)

    return model.DataTransformerConfig(
        id_val="organize",
        options={
            "excludeByName": dict.fromkeys(("Time", *unshown), True),
            "indexByName": {source(column): place for place, column in enumerate(columns)},
            "renameByName": {source(column): column.title for column in columns},
        },
    )


def _properties(column: Column) -> list[model.DynamicConfigValue]:
    found: list[tuple[str, object]] = []
    if column.unit:
        found.append(("unit", column.unit))
    if column.decimals is not None:
        found.append(("decimals", column.decimals))
    if column.of == "team":  # the key of what has no team; a link takes the raw value along
        found.append(("mappings", [{"type": "value", "options": {"none": {"text": "no team", "index": 0}}}]))
    if column.width:
        found.append(("custom.width", column.width))
    if column.levels:
        found += [("thresholds", levels(column.levels).build()), ("custom.cellOptions", {"type": "color-text"})]
    if column.leads:
        link = {"title": f"Only {column.title.lower()} ${{__value.text}}", "url": _address(column.leads, column.of)}
        found.append(("links", [link]))
    return [model.DynamicConfigValue(id_val=name, value=value) for name, value in found]


def _address(title: str, label: str) -> str:
    """Of a dashboard in the time range that is shown, with what is chosen here, and of `label` the value of a cell."""
    kept = [f"${{{name}:queryparam}}" for name in ("datasource", *VARIABLES, "currency") if name != label]
    return f"/d/{UIDS[title]}?{'&'.join(('${__url_time_range}', *kept, f'var-{label}=${{__value.raw:percentencode}}'))}"
