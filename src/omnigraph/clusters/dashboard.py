"""Dashboards: panels, each a stored query with its parameters, and how its rows are drawn.

A dashboard is a file of a cluster. What it names is checked against the stored queries that are
desired with it: the query, its parameters, and the columns of its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import yaml

from omnigraph.clusters.query_registry import StoredQuery
from omnigraph.config.yaml_reader import (
    FieldKind,
    FieldSpec,
    Findings,
    Position,
    Section,
    SectionSchema,
    decode_node,
    parse_document,
    read_section,
    require_version,
)
from omnigraph.errors import ParameterError
from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.query.query_descriptor import Field

JsonObject = dict[str, Any]  # Any: a JSON document
VERSION: Final = 1
# What a page can show and a server answer at once.
PANELS_MAX: Final = 50
_NUMBERS: Final = frozenset({"int", "bigint", "float"})
# Values that lie along an axis, or in one cell.
_SCALARS: Final = _NUMBERS | {"string", "bool", "date", "datetime"}


class Chart(StrEnum):
    """How the rows of a panel are drawn."""

    TABLE = "table"
    NUMBER = "number"
    BAR = "bar"
    LINE = "line"


DASHBOARD: Final = SectionSchema(
    "dashboard",
    "A dashboard of one graph.",
    (
        FieldSpec("version", FieldKind.INTEGER, "The version of the format: 1.", True),
        FieldSpec("graph", FieldKind.TEXT, "The graph that its queries belong to.", True),
        FieldSpec("title", FieldKind.TEXT, "What it is called.", True),
        FieldSpec("description", FieldKind.TEXT, "What it is for."),
        FieldSpec("panels", FieldKind.SECTIONS, "Its panels, in order.", True, ()),
    ),
)
PANEL: Final = SectionSchema(
    "panel",
    "A stored query, and how its rows are drawn.",
    (
        FieldSpec("title", FieldKind.TEXT, "What it is called.", True),
        FieldSpec("query", FieldKind.TEXT, "The stored query, which reads.", True),
        FieldSpec("params", FieldKind.VALUES, "Parameters of the query, by name."),
        FieldSpec("chart", FieldKind.TEXT, "`table`, `number`, `bar` or `line`.", False, "table"),
        FieldSpec("columns", FieldKind.TEXTS, "Of a table: the columns; all without it.", False),
        FieldSpec("x", FieldKind.TEXT, "Of a bar or line chart: the column along the axis."),
        FieldSpec("y", FieldKind.TEXTS, "The columns of numbers; of a number, one.", False),
    ),
)


@dataclass(frozen=True, slots=True)
class Panel:
    """A stored query with its parameters, and the columns that a chart shows of its rows."""

    title: str
    query: str
    chart: Chart
    params: Mapping[str, Any]  # Any: values of JSON
    columns: tuple[str, ...] = ()
    x: str | None = None
    y: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """The document of a panel."""
        return {
            "title": self.title,
            "query": self.query,
            "chart": str(self.chart),
            "params": dict(self.params),
            "columns": list(self.columns),
            "x": self.x,
            "y": list(self.y),
        }


@dataclass(frozen=True, slots=True)
class Dashboard:
    """Panels over the stored queries of one graph."""

    graph: str
    title: str
    description: str | None
    panels: tuple[Panel, ...]

    def to_json(self) -> JsonObject:
        """The document of a dashboard, without its name."""
        return {
            "title": self.title,
            "description": self.description,
            "panels": [each.to_json() for each in self.panels],
        }


@dataclass(frozen=True, slots=True)
class PlacedPanel:
    """A panel with where its fields are written."""

    panel: Panel
    section: Section


@dataclass(frozen=True, slots=True)
class PlacedDashboard:
    """A dashboard with where its fields are written."""

    dashboard: Dashboard
    section: Section
    panels: tuple[PlacedPanel, ...]


def parse_dashboard(text: str, findings: Findings) -> PlacedDashboard:
    """Read the text of a dashboard; what is wrong with its form is reported."""
    section = read_section(parse_document(text, findings), DASHBOARD, findings)
    require_version(section, VERSION, findings)
    nodes: tuple[yaml.Node, ...] = section.values["panels"]
    if section.has_field("panels") and not 0 < len(nodes) <= PANELS_MAX:
        message = f"a dashboard has 1 to {PANELS_MAX} panels, and this one {len(nodes)}"
        findings.add_problem(section.position_of("panels"), message)
    panels = tuple(_parse_panel(node, findings) for node in nodes[:PANELS_MAX])
    dashboard = Dashboard(
        section.get_text("graph"),
        section.get_text("title"),
        section.find_text("description"),
        tuple(each.panel for each in panels),
    )
    return PlacedDashboard(dashboard, section, panels)


def decode_dashboard(text: str, *, file: str) -> Dashboard:
    """A dashboard that was checked when it was applied."""
    findings = Findings(file)
    found = parse_dashboard(text, findings)
    findings.raise_if_any()
    return found.dashboard


def _parse_panel(node: yaml.Node, findings: Findings) -> PlacedPanel:
    section = read_section(node, PANEL, findings)
    chart = section.get_text("chart")
    if chart not in set(Chart):
        known = ", ".join(Chart)
        message = f"'{sanitize_text(chart)}' is not a chart: known are {known}"
        place = section.position_of("chart")
        findings.add_problem(place, message, hint=suggest_similar(chart, Chart))
        chart = Chart.TABLE
    params = section.values["params"]
    panel = Panel(
        section.get_text("title"),
        section.get_text("query"),
        Chart(chart),
        {} if params is None else decode_node(params),
        section.values["columns"] or (),
        section.find_text("x"),
        section.values["y"] or (),
    )
    _check_fields(panel, section, findings)
    return PlacedPanel(panel, section)


def _check_fields(panel: Panel, section: Section, findings: Findings) -> None:
    """Whether a panel has the fields of its chart, and no others."""
    is_axial = panel.chart in (Chart.BAR, Chart.LINE)
    wanted = {
        "x": (panel.x is not None, is_axial),
        "y": (bool(panel.y), panel.chart is not Chart.TABLE),
        "columns": (bool(panel.columns), panel.chart is Chart.TABLE),
    }
    for name, (is_given, is_used) in wanted.items():
        if is_given and not is_used:
            message = f"a chart '{panel.chart}' has no field '{name}'"
            findings.add_problem(section.position_of(name), message)
        if is_used and not is_given and name != "columns":
            message = f"a chart '{panel.chart}' needs the field '{name}'"
            findings.add_problem(section.position, message)
    if panel.chart is Chart.NUMBER and len(panel.y) > 1:
        message = "a chart 'number' shows one column"
        findings.add_problem(section.position_of("y"), message)


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """What a panel is checked against.

    `columns` are those of an answer, by their names there; `bind` converts parameters.
    """

    stored: StoredQuery
    columns: Mapping[str, Field]
    bind: Callable[[object], object]


def check_panel(placed: PlacedPanel, query: PanelQuery, findings: Findings) -> None:
    """Report what a panel names that its query does not have."""
    panel, section = placed.panel, placed.section
    if query.stored.is_mutation:
        message = f"stored query '{panel.query}' writes: a panel only reads"
        findings.add_problem(section.position_of("query"), message, code="dashboard_query_writes")
        return
    for place, message in _iter_parameter_problems(placed, query):
        findings.add_problem(place, message, code="dashboard_invalid_params")
    for field, kinds in (("columns", None), ("x", _SCALARS), ("y", _NUMBERS)):
        given = section.values[field] or ()
        for column in (given,) if isinstance(given, str) else given:
            problem = _find_column_problem(column, query, kinds)
            if problem is not None:
                place = section.position_of(field)
                findings.add_problem(place, problem, code="dashboard_unknown_column")


def _iter_parameter_problems(
    placed: PlacedPanel, query: PanelQuery
) -> Iterator[tuple[Position, str]]:
    place, stored = placed.section.position_of("params"), query.stored
    declared = [each.name for each in stored.parameters]
    for name in placed.panel.params:
        if name not in declared:
            known = ", ".join(f"${each}" for each in declared) or "none"
            yield place, f"query '{stored.name}' has no parameter '{name}': it has {known}"
    try:
        query.bind(placed.panel.params)
    except ParameterError as error:
        yield place, f"query '{stored.name}': {error.message}"


def _find_column_problem(name: str, query: PanelQuery, kinds: frozenset[str] | None) -> str | None:
    """Why a column cannot be drawn: it is not there, or has values of another kind."""
    column = query.columns.get(name)
    if column is None:
        known = ", ".join(query.columns)
        return f"query '{query.stored.name}' has no column '{name}': it has {known}"
    if kinds is not None and column.kind not in kinds:
        wanted = "numbers" if kinds is _NUMBERS else "single values"
        return f"column '{name}' is of kind {column.kind}, and the chart needs {wanted}"
    return None
