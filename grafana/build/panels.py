"""The kinds of panels that the dashboards are made of, each with the same looks everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self, TypeVar

from grafana_foundation_sdk.builders import bargauge, common, heatmap, prometheus, stat, timeseries
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

DATASOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")

COST = "cost"  # dollars where the legend ends with USD, else a plain number: its currency stands in the legend
TOKENS = "short"
COUNT = "locale"
RATIO = "percentunit"

LETTERS = "ABCDEFGHI"  # of the queries of a panel

Levels = Sequence[tuple[str, float | None]]  # colours, each from a value on

# Yellow, orange and red begin where the report and the page have them: a context at 95 % is still orange.
CONTEXT_LEVELS: Levels = (("green", None), ("yellow", 0.75), ("orange", 0.9), ("red", 0.950000001))
BUDGET_LEVELS: Levels = (("green", None), ("yellow", 0.75), ("orange", 0.9), ("red", 1.0))
ONE_COLOUR: Levels = (("blue", None),)
PLAIN: Levels = (("text", None),)
NONE_IS_GOOD: Levels = (("green", None), ("orange", 1e-9))


@dataclass(frozen=True, slots=True)
class Query:
    expression: str
    legend: str = ""
    at_end: bool = False  # one value, at the end of the time range, in place of a curve


@dataclass(frozen=True, slots=True)
class Looks:
    """What any kind of panel may set beside its queries."""

    unit: str = COUNT
    decimals: int | None = None
    levels: Levels = ()
    none: str | None = None  # what is shown when there is nothing
    lowest: float | None = None
    highest: float | None = None
    step: str | None = None  # the smallest time between points
    time: str | None = None  # another time range than that of the dashboard
    words: dict[str, tuple[str, str]] = field(default_factory=dict)  # value -> text and colour


# Many agents are called like their npm package, and beside a bar there is room for little more than its scope.
# Metrics and reports have a key for rows without a team, which looks like a team's name.
_NO_TEAM = model.DataTransformerConfig(
    id_val="renameByRegex", options={"regex": "/^none( |$)/", "renamePattern": "no team$1"}
)
_WITHOUT_SCOPE = model.DataTransformerConfig(
    id_val="renameByRegex", options={"regex": r"/^@[^/]+\//", "renamePattern": ""}
)


class AnyPanel(Protocol):
    """What every builder of a panel has, of what is used here."""

    def id(self, id_val: int) -> Self: ...
    def title(self, title: str) -> Self: ...
    def description(self, description: str) -> Self: ...
    def grid_pos(self, grid_pos: model.GridPos) -> Self: ...
    def datasource(self, datasource: looks.DataSourceRef) -> Self: ...
    def with_target(self, target: Builder[Dataquery]) -> Self: ...
    def interval(self, interval: str) -> Self: ...
    def time_from(self, time_from: str) -> Self: ...
    def unit(self, unit: str) -> Self: ...
    def decimals(self, decimals: float) -> Self: ...
    def min(self, min_val: float) -> Self: ...
    def max(self, max_val: float) -> Self: ...
    def no_value(self, no_value: str) -> Self: ...
    def mappings(self, mappings: list[model.ValueMapping]) -> Self: ...
    def thresholds(self, thresholds: Builder[model.ThresholdsConfig]) -> Self: ...
    def override_by_regexp(self, regexp: str, properties: list[model.DynamicConfigValue]) -> Self: ...
    def with_transformation(self, transformation: model.DataTransformerConfig) -> Self: ...
    def build(self) -> model.Panel: ...


P = TypeVar("P", bound=AnyPanel)


def figure(title: str, about: str, query: Query, look: Looks) -> stat.Panel:
    """One number; of money with the name of its currency."""
    named = look.unit == COST
    panel = (
        stat.Panel()
        .color_mode(looks.BigValueColorMode.VALUE)
        .graph_mode(looks.BigValueGraphMode.NONE)
        .justify_mode(looks.BigValueJustifyMode.AUTO)
        .text_mode(looks.BigValueTextMode.VALUE_AND_NAME if named else looks.BigValueTextMode.AUTO)
        .wide_layout(not named)
        .reduce_options(_last())
    )
    return dressed(panel, title, about, [query], look)


def lines(title: str, about: str, queries: Sequence[Query], look: Looks, *, sparse: bool = False) -> timeseries.Panel:
    """Curves; of `sparse` ones there are few points, each is shown, and gaps are bridged."""
    panel = (
        timeseries.Panel()
        .draw_style(looks.GraphDrawStyle.LINE)
        .line_width(2)
        .fill_opacity(0)
        .show_points(looks.VisibilityMode.ALWAYS if sparse else looks.VisibilityMode.NEVER)
        .point_size(4)
        .span_nulls(sparse)
        .axis_soft_min(0)
        .legend(_legend([]))
        .tooltip(_tooltip())
    )
    if sparse:
        panel = panel.max_data_points(40)
    if look.unit == RATIO:
        panel = panel.axis_soft_max(1)  # an axis of nothing but zeros would end at 10,000 %
    if any(value is not None for _, value in look.levels):
        style = common.GraphThresholdsStyleConfig().mode(looks.GraphThresholdsStyleMode.DASHED)
        panel = panel.thresholds_style(style)
    return dressed(panel, title, about, queries, look)


def bars(title: str, about: str, query: Query, look: Looks, *, points: int = 80, wide: bool = True) -> timeseries.Panel:
    """What was gained in each step, stacked; a bar begins where its time begins. The legend adds them up."""
    panel = (
        timeseries.Panel()
        .draw_style(looks.GraphDrawStyle.BARS)
        .bar_alignment(looks.BarAlignment.AFTER)
        .line_width(0)
        .fill_opacity(85)
        .stacking(common.StackingConfig().mode(looks.StackingMode.NORMAL).group("A"))
        .max_data_points(points)
        .axis_soft_min(0)
        .legend(_legend(["sum"], beside=wide))
        .tooltip(_tooltip())
    )
    return dressed(panel, title, about, [query], look)


def ranking(title: str, about: str, query: Query, look: Looks) -> bargauge.Panel:
    """A horizontal bar for each, in the order of the query."""
    panel = (
        bargauge.Panel()
        .display_mode(looks.BarGaugeDisplayMode.BASIC)
        .orientation(looks.VizOrientation.HORIZONTAL)
        .value_mode(looks.BarGaugeValueMode.TEXT)
        .name_placement(looks.BarGaugeNamePlacement.LEFT)
        .sizing(looks.BarGaugeSizing.MANUAL)
        .min_viz_height(16)
        .max_viz_height(32)
        .show_unfilled(True)
        .text(common.VizTextDisplayOptions().title_size(12).value_size(15))
        .reduce_options(_last())
    )
    return dressed(panel, title, about, [query], look)


def heat(title: str, about: str, query: Query, look: Looks) -> heatmap.Panel:
    """How many fell into each bucket of a histogram, over time; `look.unit` is that of the buckets.

    Grafana draws a cell before its time, unlike a bar: the query looks back from there.
    """
    colour = builders_of_heat()
    panel = (
        heatmap.Panel()
        .calculate(False)
        .color(colour)
        .cell_gap(1)
        .max_data_points(60)
        .y_axis(heatmap.YAxisConfig().unit(look.unit).axis_placement(looks.AxisPlacement.LEFT))
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .tooltip(heatmap.HeatmapTooltip().mode(looks.TooltipDisplayMode.SINGLE).y_histogram(True))
    )
    about = f"{about} A cell is there when its time is over."
    return dressed(panel, title, about, [query], Looks(unit=COUNT, step=look.step), PromQueryFormat.HEATMAP)


def builders_of_heat() -> heatmap.HeatmapColorOptions:
    options = heatmap.HeatmapColorOptions()
    return options.mode(HeatmapColorMode.SCHEME).scheme("Oranges").scale(HeatmapColorScale.EXPONENTIAL).exponent(0.5)


def levels(levels: Levels) -> builders.ThresholdsConfig:
    steps = [model.Threshold(value=value, color=colour) for colour, value in levels]
    return builders.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)


def dressed(
    panel: P,
    title: str,
    about: str,
    queries: Sequence[Query],
    look: Looks,
    shape: PromQueryFormat = PromQueryFormat.TIME_SERIES,
) -> P:
    panel = panel.title(title).description(about).datasource(DATASOURCE)
    panel = panel.unit(COUNT if look.unit == COST else look.unit).thresholds(levels(look.levels or PLAIN))
    if look.unit == COST:
        panel = panel.decimals(2).override_by_regexp("/USD$/", [model.DynamicConfigValue("unit", "currencyUSD")])
    if look.decimals is not None:
        panel = panel.decimals(look.decimals)
    if look.none is not None:
        panel = panel.no_value(look.none)
    if look.lowest is not None:
        panel = panel.min(look.lowest)
    if look.highest is not None:
        panel = panel.max(look.highest)
    if look.step:
        panel = panel.interval(look.step)
    if look.time:
        panel = panel.time_from(look.time)
    if look.words:
        panel = panel.mappings([_words(look.words)])
    for letter, query in zip(LETTERS, queries, strict=False):
        panel = panel.with_target(_target(letter, query, shape))
    if any(query.legend.startswith("{{agent}}") for query in queries):
        panel = panel.with_transformation(_WITHOUT_SCOPE)
    if any(query.legend.startswith("{{team}}") for query in queries):
        panel = panel.with_transformation(_NO_TEAM)
    return panel


def _target(letter: str, query: Query, shape: PromQueryFormat) -> prometheus.Dataquery:
    target = prometheus.Dataquery().ref_id(letter).expr(query.expression).format(shape)
    target = target.legend_format(query.legend) if query.legend else target
    return target.instant() if query.at_end else target.range()


def _words(words: dict[str, tuple[str, str]]) -> model.ValueMap:
    results = {value: model.ValueMappingResult(text=text, color=colour) for value, (text, colour) in words.items()}
    return model.ValueMap(options=results)


def _last() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"]).values(False)


def _legend(calculated: list[str], *, beside: bool = False) -> common.VizLegendOptions:
    legend = common.VizLegendOptions().show_legend(True).calcs(calculated)
    if not beside:
        return legend.display_mode(looks.LegendDisplayMode.LIST).placement(looks.LegendPlacement.BOTTOM)
    placed = legend.display_mode(looks.LegendDisplayMode.TABLE).placement(looks.LegendPlacement.RIGHT)
    return placed.sort_by("Total").sort_desc(True)


def _tooltip() -> common.VizTooltipOptions:
    return common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI).sort(looks.SortOrder.DESCENDING)
