"""Every route of a server as data: what it takes, what it answers, and how it may fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from omnigraph.wire import wire_answers as answers
from omnigraph.wire import wire_changes as changes
from omnigraph.wire import wire_cluster as clusters
from omnigraph.wire import wire_pipelines as pipelines
from omnigraph.wire import wire_proposals as proposals
from omnigraph.wire import wire_requests as requests
from omnigraph.wire import wire_schema as schemas
from omnigraph.wire.protocol_names import ARROW, BYTES, IF_COMMIT_HEADER, JSON, LINES
from omnigraph.wire.wire_failures import ChangeErrorOutput, ErrorOutput
from omnigraph.wire.wire_model import WireModel

_GRAPH: Final = "/graphs/{graph_id}"
_GRAPH_FAILURES: Final = (400, 401, 403, 404, 500)
_WRITE_FAILURES: Final = (*_GRAPH_FAILURES, 409, 413, 424, 429, 503)
_CHANGE_FAILURES: Final = (*_GRAPH_FAILURES, 409, 410, 413, 503)


@dataclass(frozen=True)
class RouteSpec:
    """One route; `operation` names it in OpenAPI, and `query` is the model of its query string."""

    operation: str
    method: str
    path: str
    tag: str
    summary: str
    query: type[WireModel] | None = None
    body: type[WireModel] | None = None
    is_body_required: bool = True
    body_media: str = JSON
    answers: tuple[type[WireModel], ...] = ()
    answer_media: tuple[str, ...] = (JSON,)
    failures: tuple[int, ...] = _GRAPH_FAILURES
    failure: type[WireModel] = ErrorOutput
    # Further statuses, with what they mean; they have no JSON body.
    statuses: dict[int, str] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    is_open: bool = False
    # The route that replaces it, if clients should not use it any more.
    successor: str | None = None

    @cached_property
    def segments(self) -> tuple[str, ...]:
        """The path between its slashes; a name in braces stands for any segment."""
        return tuple(self.path.removeprefix("/").split("/"))

    @property
    def has_graph(self) -> bool:
        """Whether it is about one graph."""
        return self.path.startswith(f"{_GRAPH}/")


def _list_server_routes() -> Iterator[RouteSpec]:
    yield RouteSpec(
        "health", "GET", "/healthz", "health", "Whether the server is alive.",
        answers=(answers.HealthOutput,), failures=(), is_open=True,
    )  # fmt: skip
    yield RouteSpec(
        "listGraphs", "GET", "/graphs", "management", "The graphs that are served.",
        answers=(answers.GraphListResponse,), failures=(401, 403, 500),
    )  # fmt: skip
    yield RouteSpec(
        "getSession", "GET", "/session", "management",
        "Who the caller is, and which graphs it may read.",
        answers=(answers.SessionOutput,), failures=(401, 500),
    )  # fmt: skip


def _list_deployment_routes() -> Iterator[RouteSpec]:
    failures = (400, 401, 403, 404, 413, 415, 429, 500, 503)
    yield RouteSpec(
        "planCluster", "POST", "/cluster/plan", "cluster",
        "What an apply of a configuration would change; nothing is written.",
        body=clusters.ClusterPlanRequest, answers=(clusters.ClusterPlanOutput,), failures=failures,
    )  # fmt: skip
    yield RouteSpec(
        "deployCluster", "POST", "/cluster/deployments", "cluster",
        "Bring a configuration into force, by the policy that is applied.",
        body=clusters.DeploymentRequest, answers=(clusters.DeploymentOutput,), failures=failures,
    )  # fmt: skip
    yield RouteSpec(
        "listDeployments", "GET", "/cluster/deployments", "cluster",
        "What was applied, newest first.",
        answers=(clusters.DeploymentListOutput,), failures=(401, 403, 404, 500, 503),
    )  # fmt: skip
    yield RouteSpec(
        "getDeployment", "GET", "/cluster/deployments/{deployment_id}", "cluster",
        "One deployment.",
        answers=(clusters.DeploymentRecordOutput,), failures=(401, 403, 404, 500, 503),
    )  # fmt: skip


def _list_read_routes() -> Iterator[RouteSpec]:
    yield RouteSpec(
        "cluster_getSnapshot", "GET", "/snapshot", "snapshots", "The types of a graph as of now.",
        query=requests.StateQuery, answers=(answers.SnapshotOutput,),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_query", "POST", "/query", "queries", "Run a query that reads.",
        body=requests.QueryRequest, answers=(answers.ReadOutput,), answer_media=(JSON, ARROW),
        failures=(*_GRAPH_FAILURES, 413, 424),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_explain", "POST", "/explain", "queries", "How a query that reads is answered.",
        body=requests.ExplainRequest, answers=(answers.ExplainOutput,),
        failures=(*_GRAPH_FAILURES, 413, 424),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_export", "POST", "/export", "queries", "Every entity as a JSON line.",
        body=requests.ExportRequest, answer_media=(LINES,),
        failures=(*_GRAPH_FAILURES, 413, 415),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_getSchema", "GET", "/schema", "schema", "The schema in force.",
        query=requests.StateQuery, answers=(answers.SchemaOutput,),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_getEntity", "GET", "/entity", "queries", "The values of one entity.",
        query=requests.ImageQuery, answers=(changes.EntityImageOutput,),
    )  # fmt: skip
    blob = {302: "The blob is elsewhere.", 304: "The caller has the bytes."}
    blob_failures = (*_GRAPH_FAILURES, 412)
    yield RouteSpec(
        "cluster_getBlob", "GET", "/blob", "blobs", "The bytes of a property.",
        query=requests.BlobQuery, answer_media=(BYTES,), failures=(*blob_failures, 416),
        statuses={206: "A range of the bytes.", **blob},
        headers=("Range", "If-Range", "If-Match", "If-None-Match"),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_headBlob", "HEAD", "/blob", "blobs", "The size and the tag of a property's bytes.",
        query=requests.BlobQuery, answer_media=(), failures=blob_failures, statuses=blob,
        headers=("If-Match", "If-None-Match"),
    )  # fmt: skip


def _list_description_routes() -> Iterator[RouteSpec]:
    yield RouteSpec(
        "cluster_listTypes", "GET", "/schema/types", "schema",
        "The types that the caller may read, with their properties and counts.",
        query=requests.StateQuery, answers=(schemas.SchemaTypesOutput,),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_checkQuery", "POST", "/query/check", "queries",
        "What the compiler finds in a text of queries, which is not run.",
        body=requests.QueryCheckRequest, answers=(schemas.QueryCheckOutput,),
        failures=(*_GRAPH_FAILURES, 413),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_listIndexes", "GET", "/indexes", "snapshots",
        "The declared indexes of a branch, and how many rows each of them covers.",
        query=requests.BranchQuery, answers=(answers.IndexListOutput,),
    )  # fmt: skip


def _list_stored_query_routes() -> Iterator[RouteSpec]:
    yield RouteSpec(
        "cluster_list_queries", "GET", "/queries", "queries", "The stored queries.",
        answers=(answers.QueriesCatalogOutput,),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_listDashboards", "GET", "/dashboards", "queries",
        "The dashboards, with the panels whose queries the caller may call.",
        answers=(clusters.DashboardListOutput,),
    )  # fmt: skip
    invoke = RouteSpec(
        "cluster_invoke_query", "POST", "/queries/{name}", "queries", "Run a stored query.",
        body=requests.InvokeStoredQueryRequest, is_body_required=False,
        answers=(answers.ReadOutput, answers.ChangeOutput), failures=_WRITE_FAILURES,
    )  # fmt: skip
    yield invoke
    yield replace(
        invoke,
        operation="cluster_invoke_query_if_graph_commit",
        path="/queries/{name}/if-graph-commit",
        summary="Run a stored mutation if the branch is at a commit.",
        answers=(answers.ChangeOutput,),
        failures=(*_WRITE_FAILURES, 412),
        headers=(IF_COMMIT_HEADER,),
    )


def _list_write_routes() -> Iterator[RouteSpec]:
    mutate = RouteSpec(
        "cluster_mutate", "POST", "/mutate", "mutations", "Run a query that writes.",
        body=requests.ChangeRequest, answers=(answers.ChangeOutput,), failures=_WRITE_FAILURES,
    )  # fmt: skip
    yield mutate
    yield replace(
        mutate,
        operation="cluster_mutate_if_graph_commit",
        path="/mutate/if-graph-commit",
        summary="Run a query that writes if the branch is at a commit.",
        failures=(*_WRITE_FAILURES, 412),
        headers=(IF_COMMIT_HEADER,),
    )
    yield RouteSpec(
        "cluster_applySchema", "POST", "/schema/apply", "mutations", "Change the schema.",
        body=requests.SchemaApplyRequest, answers=(answers.SchemaApplyOutput,),
        failures=_WRITE_FAILURES,
    )  # fmt: skip
    yield RouteSpec(
        "cluster_load", "POST", "/load", "mutations", "Load records of the body.",
        body=requests.IngestRequest, answers=(answers.IngestOutput,),
        failures=(*_WRITE_FAILURES, 412),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_loadNdjson", "POST", "/load/ndjson", "mutations", "Load JSON lines.",
        query=requests.BatchLoadQuery, body_media=LINES, answers=(answers.GraphBatchLoadOutput,),
        failures=(*_WRITE_FAILURES, 412, 415),
    )  # fmt: skip


def _list_branch_routes() -> Iterator[RouteSpec]:
    yield RouteSpec(
        "cluster_listBranches", "GET", "/branches", "branches", "The branches.",
        answers=(answers.BranchListOutput,),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_createBranch", "POST", "/branches", "branches", "Start a branch.",
        body=requests.BranchCreateRequest, answers=(answers.BranchCreateOutput,),
        failures=_WRITE_FAILURES,
    )  # fmt: skip
    yield RouteSpec(
        "cluster_deleteBranch", "DELETE", "/branches/{branch}", "branches", "End a branch.",
        answers=(answers.BranchDeleteOutput,), failures=_WRITE_FAILURES,
    )  # fmt: skip
    yield RouteSpec(
        "cluster_mergeBranches", "POST", "/branches/merge", "branches", "Merge a branch.",
        body=requests.BranchMergeRequest, answers=(answers.BranchMergeOutput,),
        failures=(*_WRITE_FAILURES, 412),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_listCommits", "GET", "/commits", "commits", "The commits of a branch.",
        query=requests.CommitListQuery, answers=(answers.CommitListOutput,),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_getCommit", "GET", "/commits/{commit_id}", "commits", "A commit.",
        answers=(answers.CommitOutput,),
    )  # fmt: skip


def _list_history_routes() -> Iterator[RouteSpec]:
    revert = RouteSpec(
        "cluster_revertCommit", "POST", "/revert", "commits", "Undo what a commit changed.",
        body=requests.CommitPickRequest, answers=(answers.CommitPickOutput,),
        failures=(*_WRITE_FAILURES, 412),
    )  # fmt: skip
    yield revert
    yield replace(
        revert,
        operation="cluster_cherryPickCommit",
        path="/cherry-pick",
        summary="Change on a branch what a commit of another one changed there.",
    )
    plan = RouteSpec(
        "cluster_planRevert", "POST", "/revert/plan", "commits", "What a revert would do.",
        body=requests.CommitPickPlanRequest, answers=(answers.MergePlanOutput,),
        failures=_WRITE_FAILURES,
    )  # fmt: skip
    yield plan
    yield replace(
        plan,
        operation="cluster_planCherryPick",
        path="/cherry-pick/plan",
        summary="What a cherry-pick would do.",
    )
    yield replace(
        plan,
        operation="cluster_planMerge",
        path="/branches/merge/plan",
        tag="branches",
        summary="What a merge would do, with every conflict.",
        body=requests.BranchMergePlanRequest,
    )
    yield RouteSpec(
        "cluster_listTags", "GET", "/tags", "tags", "The tags.", answers=(answers.TagListOutput,),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_createTag", "POST", "/tags", "tags", "Name a commit, which keeps it.",
        body=requests.TagCreateRequest, answers=(answers.TagOutput,), failures=_WRITE_FAILURES,
    )  # fmt: skip
    yield RouteSpec(
        "cluster_deleteTag", "DELETE", "/tags/{tag}", "tags", "Free the name of a tag.",
        answers=(answers.TagDeleteOutput,), failures=_WRITE_FAILURES,
    )  # fmt: skip


def _list_pipeline_routes() -> Iterator[RouteSpec]:
    yield RouteSpec(
        "cluster_listPipelineRuns", "GET", "/pipelines/runs", "pipelines",
        "The newest runs of the pipelines whose ledger is in the graph.",
        query=requests.RunListQuery, answers=(pipelines.PipelineRunListOutput,),
    )  # fmt: skip
    run = RouteSpec(
        "cluster_getPipelineRun", "GET", "/pipelines/{pipeline}/runs/{run_id}", "pipelines",
        "A run of a pipeline, with what became of each target.",
        answers=(pipelines.PipelineRunOutput,),
    )  # fmt: skip
    yield run
    yield replace(
        run,
        operation="cluster_listRejectedRecords",
        path=f"{run.path}/rejects",
        summary="The first records that a run left out of a target, with reasons.",
        query=requests.RejectedRecordsQuery,
        answers=(pipelines.RejectedRecordsOutput,),
    )


def _list_proposal_routes() -> Iterator[RouteSpec]:
    yield RouteSpec(
        "cluster_listProposals", "GET", "/proposals", "proposals", "The proposals.",
        query=proposals.ProposalListQuery, answers=(proposals.ProposalListOutput,),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_openProposal", "POST", "/proposals", "proposals",
        "Propose to merge a branch, or records that are loaded into a new one.",
        body=proposals.ProposalOpenRequest, answers=(proposals.ProposalOutput,),
        failures=_WRITE_FAILURES,
    )  # fmt: skip
    one = RouteSpec(
        "cluster_getProposal", "GET", "/proposals/{number}", "proposals", "A proposal.",
        answers=(proposals.ProposalOutput,),
    )  # fmt: skip
    yield one
    yield from _list_proposal_changes(one)
    yield replace(
        one,
        operation="cluster_planProposal",
        path="/proposals/{number}/plan",
        summary="What its merge would do, with every conflict.",
        answers=(answers.MergePlanOutput,),
        failures=_WRITE_FAILURES,
    )
    yield RouteSpec(
        "cluster_diffProposal", "POST", "/proposals/{number}/diff", "proposals",
        "What it changes: commits and counts, then a line for each entity.",
        body=proposals.ProposalDiffRequest, answer_media=(LINES,),
        failures=(*_CHANGE_FAILURES, 415), failure=ChangeErrorOutput,
    )  # fmt: skip


def _list_proposal_changes(one: RouteSpec) -> Iterator[RouteSpec]:
    """The routes that do something with a proposal, like the one that reads it."""
    verbs: tuple[tuple[str, str, str, type[WireModel]], ...] = (
        ("edit", "edit", "Change its title, body or target.", proposals.ProposalEditRequest),
        ("comment", "comments", "Say something.", proposals.ProposalCommentRequest),
        ("review", "reviews", "Approve, or request changes.", proposals.ProposalReviewRequest),
        ("check", "checks", "Report how a check ended.", proposals.ProposalCheckRequest),
        ("close", "close", "Close it.", proposals.ProposalCloseRequest),
    )
    for verb, segment, summary, body in verbs:
        yield replace(
            one,
            operation=f"cluster_{verb}Proposal",
            method="POST",
            path=f"/proposals/{{number}}/{segment}",
            summary=summary,
            body=body,
            failures=(*_WRITE_FAILURES, 412),
        )
    merges: tuple[tuple[str, str, type[WireModel]], ...] = (
        ("sync", "Merge the target into its branch.", proposals.ProposalSyncRequest),
        ("merge", "Merge it, once.", proposals.ProposalMergeRequest),
    )
    for verb, summary, body in merges:
        yield replace(
            one,
            operation=f"cluster_{verb}Proposal",
            method="POST",
            path=f"/proposals/{{number}}/{verb}",
            summary=summary,
            body=body,
            answers=(answers.BranchMergeOutput,),
            failures=(*_WRITE_FAILURES, 412),
        )


def _list_change_routes() -> Iterator[RouteSpec]:
    yield RouteSpec(
        "cluster_getCommitChanges", "GET", "/commits/{commit_id}/changes", "changes",
        "A page of what a commit changed.",
        query=requests.ChangesQuery, answers=(changes.CommitChangesOutput,),
        failures=_CHANGE_FAILURES, failure=ChangeErrorOutput,
    )  # fmt: skip
    yield RouteSpec(
        "cluster_diffStates", "POST", "/diff", "changes",
        "What changed between two states: commits and counts, then a line for each entity.",
        body=requests.DiffRequest, answer_media=(LINES,),
        failures=(*_CHANGE_FAILURES, 415), failure=ChangeErrorOutput,
    )  # fmt: skip
    yield RouteSpec(
        "cluster_getHistory", "POST", "/history", "changes",
        "What commits made of an entity: a line for each of them, newest first.",
        body=requests.EntityHistoryRequest, answer_media=(LINES,),
        failures=(*_CHANGE_FAILURES, 415),
    )  # fmt: skip
    yield RouteSpec(
        "cluster_getBlame", "POST", "/blame", "changes",
        "The commit that gave each property of an entity its value.",
        body=requests.EntityBlameRequest, answers=(answers.BlameOutput,),
        failures=_CHANGE_FAILURES,
    )  # fmt: skip
    yield RouteSpec(
        "cluster_pollChanges", "GET", "/changes", "changes", "A page of what was committed.",
        query=requests.FeedQuery, answers=(changes.ChangeFeedOutput,),
        failures=_CHANGE_FAILURES, failure=ChangeErrorOutput,
    )  # fmt: skip
    yield RouteSpec(
        "cluster_captureChangeBaseline", "POST", "/changes/baseline", "changes",
        "Every entity, and where a feed goes on after them.",
        body=requests.ChangeBaselineRequest, answer_media=(LINES,),
        failures=(*_CHANGE_FAILURES, 415), failure=ChangeErrorOutput,
    )  # fmt: skip


def _list_old_routes() -> Iterator[RouteSpec]:
    yield RouteSpec(
        "cluster_read", "POST", "/read", "queries", "Run a query that reads.",
        body=requests.ReadRequest, answers=(answers.ReadOutput,),
        failures=(*_GRAPH_FAILURES, 413, 424), successor="query",
    )  # fmt: skip
    yield RouteSpec(
        "cluster_change", "POST", "/change", "mutations", "Run a query that writes.",
        body=requests.ChangeRequest, answers=(answers.ChangeOutput,), failures=_WRITE_FAILURES,
        successor="mutate",
    )  # fmt: skip
    yield RouteSpec(
        "cluster_ingest", "POST", "/ingest", "mutations", "Load records of the body.",
        body=requests.IngestRequest, answers=(answers.IngestOutput,),
        failures=(*_WRITE_FAILURES, 412), successor="load",
    )  # fmt: skip


def _list_routes() -> Iterator[RouteSpec]:
    yield from _list_server_routes()
    yield from _list_deployment_routes()
    parts = (
        _list_read_routes,
        _list_description_routes,
        _list_stored_query_routes,
        _list_write_routes,
        _list_branch_routes,
        _list_history_routes,
        _list_pipeline_routes,
        _list_proposal_routes,
        _list_change_routes,
        _list_old_routes,
    )
    for part in parts:
        for route in part():
            has_body = route.body is not None or route.body_media != JSON
            # A body may be too large, or of another kind, whatever else is wrong with it.
            more = (413, 415) if has_body else ()
            failures = tuple(sorted({*route.failures, *more}))
            yield replace(route, path=f"{_GRAPH}{route.path}", failures=failures)


ROUTES: Final = tuple(_list_routes())
