"""Answers about what a cluster declares beside its graphs: dashboards."""

from __future__ import annotations

from pydantic import ConfigDict

from omnigraph.wire.wire_enums import ChartKind
from omnigraph.wire.wire_model import Answer, JsonObject


class DashboardPanelOutput(Answer):
    """A stored query with its parameters, and how its rows are drawn."""

    model_config = ConfigDict(strict=False)

    title: str
    query: str
    chart: ChartKind
    params: JsonObject
    columns: list[str]
    x: str | None
    y: list[str]


class DashboardOutput(Answer):
    """A dashboard, with the panels that the caller may see."""

    name: str
    title: str
    description: str | None
    panels: list[DashboardPanelOutput]


class DashboardListOutput(Answer):
    """Dashboards by name."""

    dashboards: list[DashboardOutput]
