"""Every route with its handler: those of the contract, and those of the server itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omnigraph.server import (
    blob_routes,
    change_routes,
    deployment_routes,
    pipeline_routes,
    proposal_routes,
    query_routes,
    service_routes,
    stored_query_routes,
    write_routes,
)
from omnigraph.server.agent_routes import GRAPH_SPEC, SERVER_SPEC, AgentRoutes
from omnigraph.server.lanes import Lane
from omnigraph.server.route_bindings import Binding
from omnigraph.server.server_metrics import ServerMetrics
from omnigraph.server.web_routes import WEB_ROUTES
from omnigraph.wire.wire_routes import ROUTES, RouteSpec


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the contract, or of the server, and how it is served."""

    spec: RouteSpec
    binding: Binding

    @property
    def method(self) -> str:
        """Its method."""
        return self.spec.method

    @property
    def path(self) -> str:
        """Its path, with names in braces."""
        return self.spec.path

    @property
    def segments(self) -> tuple[str, ...]:
        """The parts of its path."""
        return self.spec.segments


_MUTATE: Final = Binding(write_routes.mutate, Lane.WRITE, write_routes.change_act_of)
_LOAD: Final = Binding(write_routes.load, Lane.WRITE, write_routes.change_act_of, is_load=True)
_BINDINGS: Final = {
    "health": Binding(service_routes.get_health, Lane.LOOP),
    "listGraphs": Binding(service_routes.list_graphs, Lane.LOOP),
    "getSession": Binding(service_routes.get_session),
    "planCluster": Binding(
        deployment_routes.plan,
        Lane.WRITE,
        deployment_routes.act_of,
        require_rights=deployment_routes.require_rights,
    ),
    "deployCluster": Binding(
        deployment_routes.deploy,
        Lane.WRITE,
        deployment_routes.act_of,
        require_rights=deployment_routes.require_rights,
    ),
    "listDeployments": Binding(deployment_routes.list_deployments),
    "getDeployment": Binding(deployment_routes.get_deployment),
    "cluster_getSnapshot": Binding(query_routes.get_snapshot),
    "cluster_query": Binding(prepare_read=query_routes.prepare_query),
    "cluster_explain": Binding(prepare_read=query_routes.prepare_explanation),
    "cluster_export": Binding(change_routes.export, Lane.STREAM),
    "cluster_getSchema": Binding(query_routes.get_schema),
    "cluster_listTypes": Binding(query_routes.list_types),
    "cluster_checkQuery": Binding(query_routes.check_query, is_bounded=True),
    "cluster_listIndexes": Binding(query_routes.list_indexes),
    "cluster_getEntity": Binding(query_routes.get_entity),
    "cluster_getBlob": Binding(blob_routes.get_blob),
    "cluster_headBlob": Binding(blob_routes.describe_blob),
    "cluster_list_queries": Binding(stored_query_routes.list_queries, Lane.LOOP),
    "cluster_listDashboards": Binding(stored_query_routes.list_dashboards),
    "cluster_invoke_query": Binding(resolve=stored_query_routes.bind_call),
    "cluster_invoke_query_if_graph_commit": Binding(
        resolve=stored_query_routes.bind_conditional_call
    ),
    "cluster_mutate": _MUTATE,
    "cluster_mutate_if_graph_commit": Binding(
        write_routes.mutate_if_commit, Lane.WRITE, write_routes.change_act_of
    ),
    "cluster_applySchema": Binding(
        write_routes.apply_schema, Lane.WRITE, write_routes.schema_act_of
    ),
    "cluster_load": _LOAD,
    "cluster_loadNdjson": Binding(
        write_routes.load_lines,
        Lane.WRITE,
        write_routes.change_lines_act_of,
        require_rights=write_routes.require_line_rights,
        is_load=True,
    ),
    "cluster_listBranches": Binding(query_routes.list_branches),
    "cluster_createBranch": Binding(
        write_routes.create_branch, Lane.WRITE, write_routes.create_branch_act_of
    ),
    "cluster_deleteBranch": Binding(
        write_routes.delete_branch, Lane.WRITE, write_routes.delete_branch_act_of
    ),
    "cluster_mergeBranches": Binding(
        write_routes.merge_branches, Lane.WRITE, write_routes.merge_act_of
    ),
    "cluster_revertCommit": Binding(
        write_routes.revert_commit, Lane.WRITE, write_routes.change_act_of
    ),
    "cluster_cherryPickCommit": Binding(
        write_routes.pick_commit, Lane.WRITE, write_routes.change_act_of
    ),
    # A plan costs what a merge does.
    "cluster_planMerge": Binding(write_routes.plan_merge, Lane.WRITE, write_routes.merge_act_of),
    "cluster_planRevert": Binding(write_routes.plan_revert, Lane.WRITE, write_routes.change_act_of),
    "cluster_planCherryPick": Binding(
        write_routes.plan_pick, Lane.WRITE, write_routes.change_act_of
    ),
    "cluster_listTags": Binding(query_routes.list_tags),
    "cluster_createTag": Binding(
        write_routes.create_tag, Lane.WRITE, write_routes.create_tag_act_of
    ),
    "cluster_deleteTag": Binding(
        write_routes.delete_tag, Lane.WRITE, write_routes.delete_tag_act_of
    ),
    "cluster_listCommits": Binding(query_routes.list_commits),
    "cluster_getCommit": Binding(query_routes.get_commit),
    "cluster_listPipelineRuns": Binding(pipeline_routes.list_runs),
    "cluster_getPipelineRun": Binding(pipeline_routes.get_run),
    "cluster_listRejectedRecords": Binding(pipeline_routes.list_rejects),
    "cluster_getCommitChanges": Binding(change_routes.get_commit_changes),
    "cluster_diffStates": Binding(change_routes.diff_states, Lane.STREAM, is_bounded=True),
    "cluster_getHistory": Binding(change_routes.get_history, Lane.STREAM, is_bounded=True),
    "cluster_getBlame": Binding(change_routes.get_blame, is_bounded=True),
    "cluster_pollChanges": Binding(change_routes.poll_changes),
    "cluster_captureChangeBaseline": Binding(change_routes.capture_baseline, Lane.STREAM),
    "cluster_listProposals": Binding(proposal_routes.list_proposals),
    "cluster_openProposal": Binding(
        proposal_routes.open_proposal, Lane.WRITE, proposal_routes.act_of
    ),
    "cluster_getProposal": Binding(proposal_routes.get_proposal),
    "cluster_editProposal": Binding(
        proposal_routes.edit_proposal, Lane.WRITE, proposal_routes.act_of
    ),
    "cluster_commentProposal": Binding(
        proposal_routes.add_comment, Lane.WRITE, proposal_routes.act_of
    ),
    "cluster_reviewProposal": Binding(
        proposal_routes.add_review, Lane.WRITE, proposal_routes.act_of
    ),
    "cluster_checkProposal": Binding(proposal_routes.add_check, Lane.WRITE, proposal_routes.act_of),
    "cluster_syncProposal": Binding(
        proposal_routes.sync_proposal, Lane.WRITE, proposal_routes.act_of
    ),
    "cluster_mergeProposal": Binding(
        proposal_routes.merge_proposal, Lane.WRITE, proposal_routes.act_of
    ),
    "cluster_planProposal": Binding(proposal_routes.plan_merge, Lane.WRITE, proposal_routes.act_of),
    "cluster_closeProposal": Binding(
        proposal_routes.close_proposal, Lane.WRITE, proposal_routes.act_of
    ),
    "cluster_diffProposal": Binding(proposal_routes.diff_proposal, Lane.STREAM, is_bounded=True),
    # Old names, for clients that still use them.
    "cluster_read": Binding(prepare_read=query_routes.prepare_old_query),
    "cluster_change": _MUTATE,
    "cluster_ingest": _LOAD,
}


def build_routes(
    metrics: ServerMetrics, agents: AgentRoutes, *, has_web: bool = True
) -> tuple[Route, ...]:
    """The routes of a server."""
    routes = [Route(spec, _BINDINGS[spec.operation]) for spec in ROUTES]
    web = [Route(spec, binding) for spec, binding in WEB_ROUTES] if has_web else []
    return (*routes, *_build_own_routes(metrics, agents), *web)


def _build_own_routes(metrics: ServerMetrics, agents: AgentRoutes) -> tuple[Route, ...]:
    """Routes that the contract does not list."""
    ready = RouteSpec(
        "ready", "GET", "/readyz", "health", "Whether the server answers.", is_open=True
    )
    openapi = RouteSpec("openapi", "GET", "/openapi.json", "health", "The contract.", is_open=True)
    measured = RouteSpec("metrics", "GET", "/metrics", "health", "Counts and times.")
    return (
        Route(ready, Binding(service_routes.get_ready, Lane.LOOP)),
        Route(openapi, Binding(service_routes.get_openapi)),
        Route(measured, Binding(metrics.render)),
        Route(GRAPH_SPEC, Binding(ask=agents.ask_graph)),
        Route(SERVER_SPEC, Binding(ask=agents.ask_server)),
    )
