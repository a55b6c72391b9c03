"""A dashboard from rows of panels: places, numbers, variables, links. What a panel shows is not decided here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import prometheus as queries

from grafana.build.metrics import families, labels
from grafana.build.names import OF_ITS_OWN_TIME, TAG, UIDS
from grafana.build.panels import DATASOURCE, AnyPanel
from grafana.build.promql import VARIABLES

COLUMNS = 24

# From the widest to the narrowest: each offers what the ones before leave.
_QUERIES = {
    "team": "label_values(acp_proxy_tokens_total, team)",
    "agent": 'label_values(acp_proxy_tokens_total{team=~"$team"}, agent)',
    "model": 'label_values(acp_proxy_tokens_total{team=~"$team", agent=~"$agent"}, model)',
    "user": 'label_values(acp_proxy_cost_total{team=~"$team"}, user)',  # none without metrics.user_label: All is left
}


@dataclass(frozen=True, slots=True)
class Row:
    """Panels side by side, `height` units of 30 pixels each; their widths add up to 24 columns."""

    height: int
    panels: Sequence[tuple[int, AnyPanel]]
    title: str | None = None  # a heading above


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    about: str
    since: str  # the time range that it opens with, until now
    rows: Sequence[Row]
    variables: Sequence[builders.QueryVariable | builders.CustomVariable] = ()  # beside those that all have
    refresh: str = "1m"
    money: bool = True  # else the choice of a currency is hidden, and only handed on by links


def dashboard(page: Page) -> model.Dashboard:
    """Raises ValueError for a row that is not 24 columns wide."""
    made = (
        builders.Dashboard(f"acp-proxy: {page.title}")
        .uid(UIDS[page.title])
        .description(page.about)
        .tags([TAG])
        .editable()
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .time(page.since, "now")
        .timezone("")  # that of the reader's preferences, or of the organisation's; else the browser's
        .refresh(page.refresh)
        .with_variable(builders.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    for variable in (*map(_variable, VARIABLES), _currency(page), *page.variables):
        made = made.with_variable(variable)
    for title in UIDS:
        if title != page.title:
            made = made.link(_link(title))
    return _placed(made, page).build()


def labels_variable(name: str, label: str, query: str) -> builders.QueryVariable:
    """Values of a label to choose from: several, or all, also those that come later."""
    return (
        builders.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query({"query": query, "refId": f"{name}-values"})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(model.VariableOption(selected=True, text=["All"], value=["$__all"]))
    )


def _variable(name: str) -> builders.QueryVariable:
    return labels_variable(name, name.capitalize(), _QUERIES[name])


def _currency(page: Page) -> builders.QueryVariable:
    """One currency, dollars where there are any: Grafana chooses the first where its choice is not among the values."""
    return (
        builders.QueryVariable("currency")
        .label("Currency")
        .datasource(DATASOURCE)
        .query({"query": "label_values(acp_proxy_cost_total, currency)", "refId": "currency-values"})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
        .multi(False)
        .include_all(False)
        .hide(model.VariableHide.DONT_HIDE if page.money else model.VariableHide.HIDE_VARIABLE)
        .current(model.VariableOption(selected=True, text="USD", value="USD"))
    )


def _link(title: str) -> builders.DashboardLink:
    link = _LinkAtTheTop(title).type(model.DashboardLinkType.LINK).icon("dashboard").url(f"/d/{UIDS[title]}")
    return link.include_vars(True).keep_time(title != OF_ITS_OWN_TIME)


class _LinkAtTheTop(builders.DashboardLink):
    def build(self) -> model.DashboardLink:
        link = super().build()
        link.placement = None  # type: ignore[assignment]  # the SDK puts every link into the menu of the controls
        return link


def _placed(made: builders.Dashboard, page: Page) -> builders.Dashboard:
    y = number = 0
    for row in page.rows:
        if row.title is not None:
            number += 1
            made = made.with_row(builders.Row(row.title).id(number).grid_pos(model.GridPos(h=1, w=COLUMNS, x=0, y=y)))
            y += 1
        if (columns := sum(width for width, _ in row.panels)) != COLUMNS:
            raise ValueError(f"{page.title}: a row is {columns} columns wide")
        x = 0
        for width, panel in row.panels:
            number += 1
            placed = panel.id(number).grid_pos(model.GridPos(h=row.height, w=width, x=x, y=y))
            made = made.with_panel(cast("Builder[model.Panel]", _told(placed)))
            x += width
        y += row.height
    return made


def _told(panel: AnyPanel) -> AnyPanel:
    """A panel says itself which variables do not narrow it, for its metrics do not have the label."""
    built = panel.build()
    asked = [target.expr for target in built.targets or () if isinstance(target, queries.Dataquery)]
    known = [labels(family) for expression in asked for family in families(expression) if labels(family)]
    loose = [name for name in VARIABLES if any(name not in each for each in known)]
    if not loose:
        return panel
    return panel.description(f"{built.description} Not narrowed by {_listed(loose)}.")


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
