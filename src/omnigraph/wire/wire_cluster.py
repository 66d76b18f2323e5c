"""Bodies about a cluster: its dashboards, and what is planned and applied over HTTP."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from omnigraph.wire.wire_enums import ChartKind
from omnigraph.wire.wire_model import Answer, ClosedRequest, JsonObject, UInt64


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


class ClusterPlanRequest(ClosedRequest):
    """A configuration: the texts of `cluster.yaml` and of the files it names, by relative path."""

    files: dict[str, str]


class DeploymentRequest(ClusterPlanRequest):
    """A configuration to apply."""

    plan_id: str | None = Field(None, description="Only if the plan of now has this id.")


class ClusterPlanOutput(Answer):
    """A plan; without an id if the configuration has errors, which `diagnostics` lists."""

    ok: bool
    plan_id: str | None
    base_state_revision: UInt64 | None
    changes: list[JsonObject]
    approvals_required: list[JsonObject]
    diagnostics: list[JsonObject]


class DeploymentOutput(Answer):
    """What an apply did; without an id if it wrote no revision."""

    ok: bool
    deployment_id: str | None
    state_revision: UInt64 | None
    state_written: bool
    converged: bool
    changes: list[JsonObject]
    diagnostics: list[JsonObject]


class DeploymentRecordOutput(Answer):
    """A revision, as the deployment that made it."""

    deployment_id: str
    state_revision: UInt64
    verb: str
    actor_id: str | None
    started_at: str
    recorded_at: str
    changes: list[JsonObject]


class DeploymentListOutput(Answer):
    """Deployments, newest first."""

    deployments: list[DeploymentRecordOutput]
