"""The tools that change a graph: mutations, loads, branches and schemas."""

from __future__ import annotations

from typing import Final

import orjson

from omnigraph.mcp.agent_tool import Arguments, ToolAnswer, describe_text
from omnigraph.mcp.graph_tools import BRANCH, KEY, PARAMS, ToolSpec
from omnigraph.mcp.tool_scope import (
    APPLY_SCHEMA,
    CHANGE,
    CREATE_BRANCH,
    DELETE_BRANCH,
    MERGE,
    ToolScope,
)
from omnigraph.operations import graph_writes
from omnigraph.operations.graph_writes import BRANCH_BYTES, LoadTerms
from omnigraph.versioning.record import MAIN_BRANCH
from omnigraph.wire.wire_requests import (
    BranchCreateRequest,
    BranchMergeRequest,
    ChangeRequest,
    SchemaApplyRequest,
)

_MESSAGE: Final = describe_text("What the commit says.")
_NAME: Final = describe_text("The name of the branch.")


def _mutate(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    given = {name: value for name, value in arguments.items() if name != "ifGraphCommit"}
    asked = ChangeRequest.model_validate(given)
    with scope.admit(len(orjson.dumps(given))):
        return graph_writes.run_mutation(
            scope.graph, asked, scope.bounds, if_commit=arguments.get("ifGraphCommit")
        )


def _load(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    terms = LoadTerms(
        data=arguments["data"],
        mode=arguments["mode"],
        branch=arguments["branch"],
        base=arguments.get("from"),
        message=arguments.get("message"),
        key=arguments.get("key"),
    )
    with scope.admit(len(terms.data)):
        return graph_writes.run_load(scope.graph, scope.unguarded or scope.graph, terms)


def _create_branch(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    with scope.admit(BRANCH_BYTES):
        asked = BranchCreateRequest.model_validate(arguments)
        return graph_writes.create_branch(scope.graph, asked)


def _delete_branch(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    with scope.admit(BRANCH_BYTES):
        return graph_writes.delete_branch(scope.graph, arguments["name"])


def _merge_branch(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    with scope.admit(BRANCH_BYTES):
        asked = BranchMergeRequest.model_validate(arguments)
        return graph_writes.merge_branch(scope.graph, asked)


def _apply_schema(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    asked = SchemaApplyRequest.model_validate(arguments)
    with scope.admit(len(asked.schema_source)):
        return graph_writes.apply_schema(scope.graph, asked)


WRITE_TOOLS: Final = (
    ToolSpec(
        "mutate",
        "Insert, update or delete in one commit, with a query of the mutation language of"
        " omnigraph://best-practices/queries.",
        _mutate,
        CHANGE,
        {
            "query": describe_text("The text of the mutation."),
            "name": describe_text("Which declaration of the text, if it has several."),
            "params": PARAMS,
            "branch": BRANCH,
            "ifGraphCommit": describe_text("Only if this is the newest commit of the branch."),
            "key": KEY,
            "message": _MESSAGE,
        },
        ("query",),
        is_read=False,
        is_destructive=True,
        is_adhoc=True,
        alias="change",
    ),
    ToolSpec(
        "load",
        "Write entities in one commit, one JSON object a line:"
        ' {"type": T, "data": {…}} or {"edge": T, "from": id, "to": id, "data": {…}}.',
        _load,
        CHANGE,
        {
            "branch": {**BRANCH, "default": MAIN_BRANCH},
            "from": describe_text("What the branch starts from, if it does not exist."),
            "mode": {
                "enum": ["append", "merge", "patch", "overwrite"],
                "description": "append refuses known ids, merge replaces their entities,"
                " overwrite keeps only what is loaded of each type that occurs.",
            },
            "data": describe_text("The lines."),
            "key": KEY,
            "message": _MESSAGE,
        },
        ("branch", "mode", "data"),
        is_read=False,
        is_destructive=True,
        alias="ingest",
    ),
    ToolSpec(
        "branches_create",
        "Start a branch, on which changes are seen by its readers alone.",
        _create_branch,
        CREATE_BRANCH,
        {"name": _NAME, "from": describe_text("Where it starts: a branch, a tag or a commit.")},
        ("name",),
        is_read=False,
    ),
    ToolSpec(
        "branches_delete",
        "End a branch; what is not merged is lost.",
        _delete_branch,
        DELETE_BRANCH,
        {"name": _NAME},
        ("name",),
        is_read=False,
        is_destructive=True,
    ),
    ToolSpec(
        "branches_merge",
        "Bring what a branch changed into another one, in one commit; conflicts are listed and"
        " change nothing.",
        _merge_branch,
        MERGE,
        {
            "source": describe_text("The branch that is merged."),
            "target": describe_text("The branch that it is merged into; main without it."),
            "message": _MESSAGE,
            "key": KEY,
        },
        ("source",),
        is_read=False,
    ),
    ToolSpec(
        "schema_apply",
        "Bring a whole schema into force; a dry run lists the steps.",
        _apply_schema,
        APPLY_SCHEMA,
        {
            "schema_source": describe_text("The text of the whole schema."),
            "branch": BRANCH,
            "convert": {"type": "boolean"},
            "dry_run": {"type": "boolean"},
            "message": _MESSAGE,
        },
        ("schema_source",),
        is_read=False,
        is_destructive=True,
    ),
)
