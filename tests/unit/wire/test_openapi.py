"""The OpenAPI document: it is committed, it is valid, and it says what the contract says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from omnigraph.error_codes import ErrorCode
from omnigraph.wire.openapi import SECURITY, build_openapi
from omnigraph.wire.protocol_names import REFERENCE_VERSION
from omnigraph.wire.wire_routes import ROUTES

COMMITTED = Path(__file__).parents[3] / "docs" / "reference" / "openapi.json"
DOCUMENT = build_openapi(ROUTES, version=REFERENCE_VERSION)
METHODS = ("get", "post", "delete", "head")
FLAT = {
    "/healthz": "health",
    "/graphs": "listGraphs",
    "/session": "getSession",
    "/cluster/plan": "planCluster",
    "/cluster/deployments": "deployCluster",
    "/cluster/deployments/{deployment_id}": "getDeployment",
}
OPERATIONS = {
    "cluster_getSnapshot": "snapshots",
    "cluster_getBlob": "blobs",
    "cluster_headBlob": "blobs",
    "cluster_query": "queries",
    "cluster_export": "queries",
    "cluster_list_queries": "queries",
    "cluster_invoke_query": "queries",
    "cluster_invoke_query_if_graph_commit": "queries",
    "cluster_getSchema": "schema",
    "cluster_applySchema": "mutations",
    "cluster_load": "mutations",
    "cluster_loadNdjson": "mutations",
    "cluster_mutate": "mutations",
    "cluster_mutate_if_graph_commit": "mutations",
    "cluster_listBranches": "branches",
    "cluster_createBranch": "branches",
    "cluster_deleteBranch": "branches",
    "cluster_mergeBranches": "branches",
    "cluster_listCommits": "commits",
    "cluster_getCommit": "commits",
    "cluster_getCommitChanges": "changes",
    "cluster_pollChanges": "changes",
    "cluster_captureChangeBaseline": "changes",
    "cluster_read": "queries",
    "cluster_change": "mutations",
    "cluster_ingest": "mutations",
}
# Always present, and of these which may be null; others may be absent. As the contract lists them.
PRESENT = {
    "HealthOutput": "status version internal_schema_version",
    "GraphListResponse": "graphs",
    "SnapshotOutput": "graph_branch graph_manifest_version internal_schema_version datasets",
    "SnapshotDatasetOutput": "entity_kind type_name dataset_path published_dataset_version"
    " native_dataset_branch? entity_count",
    "ReadOutput": "query_name target row_count rows",
    "ReadTargetOutput": "branch? snapshot?",
    "ChangeOutput": "branch query_name affected_nodes affected_edges actor_id? commit?",
    "CommitOutput": "graph_commit_id graph_branch? graph_manifest_version parent_commit_id?"
    " merged_parent_commit_id? actor_id? created_at",
    "CommitListOutput": "commits",
    "StoredQueryOutput": "name tool_name mutation params",
    "QueryParamOutput": "name kind nullable",
    "SchemaOutput": "schema_source",
    "SchemaApplyOutput": "uri supported applied step_count graph_manifest_version steps",
    "IngestOutput": "uri branch base_branch? branch_created mode nodes edges total_entities"
    " actor_id? commit?",
    "GraphBatchLoadOutput": "branch base_branch? branch_created mode nodes edges total_entities"
    " actor_id? commit?",
    "BranchListOutput": "branches",
    "BranchCreateOutput": "uri from name actor_id?",
    "BranchDeleteOutput": "uri name actor_id?",
    "CommitChangesOutput": "cause changes",
    "ChangeCauseOutput": "graph_commit_id authored_branch authored_at",
    "EntityChangeOutput": "kind type id op",
    "EntityImageOutput": "properties",
    "ChangeFeedOutput": "blocks",
    "ErrorOutput": "error",
    "ReadSetConflictOutput": "member expected? actual?",
    "KeyConflictOutput": "entity_kind type_name",
    "PreconditionFailureOutput": "expected",
    "ChangeFeedGapOutput": "first_unreadable_commit_id",
    "ChangeDiffRefusalOutput": "reason graph_commit_id",
    # Requests: a member that may be null may be left out, too.
    "QueryRequest": "query",
    "ChangeRequest": "query",
    "IngestRequest": "data",
    "BranchCreateRequest": "name",
    "BranchMergeRequest": "source",
    "SchemaApplyRequest": "schema_source",
}
CLOSED = {
    "ErrorCode": {str(code) for code in ErrorCode},
    # The contract has three, and `patch` is one of ours; an answer has the mode of its request.
    "LoadMode": {"overwrite", "append", "merge", "patch"},
    "BranchMergeOutcome": {"already_up_to_date", "fast_forward", "merged"},
    "EntityKindOutput": {"node", "edge"},
    "ChangeOpOutput": {"insert", "update", "delete"},
}
Json = dict[str, Any]  # Any: a JSON document


def operations() -> list[tuple[str, str, Json]]:
    return [
        (path, method, found)
        for path, methods in DOCUMENT["paths"].items()
        for method, found in methods.items()
    ]


def test_the_committed_document_is_that_of_the_routes() -> None:
    assert json.loads(COMMITTED.read_text()) == DOCUMENT, "run `make docs`"


def test_flat_routes_are_few_and_all_others_are_about_one_graph() -> None:
    assert re.fullmatch(r"3\.1\.\d", DOCUMENT["openapi"])
    assert DOCUMENT["info"]["title"] == "Omnigraph API"
    flat = {path: found["operationId"] for path, _, found in operations() if path in FLAT}
    assert flat == FLAT
    for path, method, found in operations():
        assert method in METHODS
        if path not in FLAT:
            assert path.startswith("/graphs/{graph_id}/")
            assert found["operationId"].startswith("cluster_")
            named = [each["name"] for each in found["parameters"] if each["in"] == "path"]
            assert named == re.findall(r"{(\w+)}", path)


def test_every_operation_of_the_contract_is_there_once_with_its_tag() -> None:
    tags = [(found["operationId"], found["tags"]) for _, _, found in operations()]
    assert len(dict(tags)) == len(tags)
    assert {name: tag for name, [tag] in tags if name in OPERATIONS} == OPERATIONS
    old = {found["operationId"] for _, _, found in operations() if found.get("deprecated")}
    assert old == {"cluster_read", "cluster_change", "cluster_ingest"}


def test_all_routes_but_one_need_a_token_unless_a_server_has_none() -> None:
    for path, _, found in operations():
        assert found.get("security") == (None if path == "/healthz" else [{SECURITY: []}])
    opened = json.dumps(build_openapi(ROUTES, version=REFERENCE_VERSION, has_auth=False))
    assert "security" not in opened


@pytest.mark.parametrize("name", PRESENT)
def test_members_are_present_absent_or_null_as_the_contract_says(name: str) -> None:
    schema = DOCUMENT["components"]["schemas"][name]
    wanted = PRESENT[name].split()
    assert set(schema.get("required", ())) == {each.rstrip("?") for each in wanted}
    if name.endswith("Request"):
        return
    for member, found in schema["properties"].items():
        is_null = "null" in found.get("type", ()) or {"type": "null"} in found.get("oneOf", ())
        assert is_null == (f"{member}?" in wanted), member


@pytest.mark.parametrize("name", CLOSED)
def test_closed_lists_have_the_words_of_the_contract(name: str) -> None:
    assert set(DOCUMENT["components"]["schemas"][name]["enum"]) == CLOSED[name]


def test_every_schema_is_one_and_every_reference_has_a_schema() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    used = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(DOCUMENT)))
    assert used == set(schemas)
    assert not [name for name in schemas if "Input" in name or "__" in name]


def test_the_body_of_a_stored_query_is_optional_and_that_of_a_conditional_route_has_a_header() -> (
    None
):
    invoke = DOCUMENT["paths"]["/graphs/{graph_id}/queries/{name}"]["post"]
    assert invoke["requestBody"]["required"] is False
    for path, _, found in operations():
        headers = [each["name"] for each in found.get("parameters", ()) if each["in"] == "header"]
        is_conditional = path.endswith("/if-graph-commit")
        assert ("Omnigraph-If-Graph-Commit" in headers) == is_conditional
