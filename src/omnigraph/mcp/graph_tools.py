"""The tools that every graph has: what it is, what is in it, and what was done to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final

from omnigraph.engine.feed import parse_limits
from omnigraph.execution.query_budget import Cancellation
from omnigraph.mcp.agent_tool import (
    AgentTool,
    Arguments,
    JsonObject,
    ToolAnswer,
    build_object_schema,
    describe_text,
)
from omnigraph.mcp.row_pages import digest_call, encode_page, parse_cursor
from omnigraph.mcp.schema_summary import SUMMARY_CHARACTERS, summarize_schema
from omnigraph.mcp.tool_scope import READ_BRANCH, READ_GRAPH, ToolScope
from omnigraph.operations import graph_reads, graph_writes, history_reads
from omnigraph.policy.acts import Act
from omnigraph.versioning.record import MAIN_BRANCH
from omnigraph.wire.wire_requests import ChangesQuery, FeedQuery, QueryRequest

# A page of commits or of changes that a model can read.
_ITEMS_DEFAULT: Final = 50
_ITEMS_MAX: Final = 1_000

BRANCH: Final = describe_text("The branch; main without it.")
SNAPSHOT: Final = describe_text("A commit id, tag, version or time, instead of a branch.")
CURSOR: Final = describe_text("The next_cursor of the answer before; repeat all other arguments.")
KEY: Final = describe_text("A call repeated with its key is not done a second time.")
PARAMS: Final = {"type": "object", "description": "Parameters by name, without the $."}
_COMMIT_ID: Final = describe_text("The id of a commit.")
_LIMIT: Final = {"type": "integer", "minimum": 1, "maximum": _ITEMS_MAX}
_PAGE_TOKEN: Final = describe_text("The next_page_token of the page before.")
_FILTERS: Final[dict[str, JsonObject]] = {
    "kind": {"type": "array", "items": {"enum": ["node", "edge"]}},
    "type": {"type": "array", "items": {"type": "string"}, "description": "Names of types."},
    "op": {"type": "array", "items": {"enum": ["insert", "update", "delete"]}},
    "limit": _LIMIT,
    "pageToken": _PAGE_TOKEN,
}


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool of every graph, and the acts of which its caller has to be allowed one."""

    name: str
    description: str
    run: Callable[[ToolScope, Arguments], ToolAnswer]
    acts: tuple[Act, ...] = READ_GRAPH
    properties: Mapping[str, JsonObject] | None = None
    required: tuple[str, ...] = ()
    is_read: bool = True
    is_destructive: bool = False
    is_adhoc: bool = False
    is_review: bool = False
    # Another name under which it may be called, and which is not listed.
    alias: str | None = None

    def bind(self, scope: ToolScope) -> AgentTool:
        """The tool for a caller."""
        return AgentTool(
            self.name,
            self.description,
            build_object_schema(self.properties or {}, self.required),
            partial(_run, self, scope),
            self.is_read,
            self.is_destructive,
            scope.exposure.answer_bytes_max,
        )


def _run(
    spec: ToolSpec, scope: ToolScope, arguments: Arguments, cancel: Cancellation
) -> ToolAnswer:
    return spec.run(replace(scope, bounds=replace(scope.bounds, cancel=cancel)), arguments)


def read_page(
    scope: ToolScope, tool: str, arguments: Arguments, asked: QueryRequest, cursor: str | None
) -> bytes:
    """A page of the rows of a read: the first one, or the one at a cursor."""
    call = digest_call(tool, arguments)
    position = parse_cursor(cursor, call=call)
    state = graph_reads.select_state(scope.graph, branch=asked.branch, snapshot=asked.snapshot)
    if position is not None:
        state = replace(state, snapshot=scope.graph.snapshot(position.commit))
    answer = graph_reads.run_read(state, asked, scope.bounds)
    offset = 0 if position is None else position.offset
    return encode_page(answer, scope.exposure, offset=offset, call=call)


def _get_snapshot(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    state = graph_reads.select_state(scope.graph, branch=arguments.get("branch"), snapshot=None)
    return state.snapshot.to_json()


def _get_schema(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    del arguments
    return graph_reads.read_schema(scope.graph)


def _summarize_schema(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    state = graph_reads.select_state(scope.graph, branch=arguments.get("branch"), snapshot=None)
    return summarize_schema(
        state.snapshot,
        types=arguments.get("types"),
        characters_max=arguments.get("characters", SUMMARY_CHARACTERS),
    )


def _list_branches(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    del arguments
    return graph_writes.list_branches(scope.graph)


def _list_commits(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    limit = arguments.get("limit", _ITEMS_DEFAULT)
    return history_reads.list_commits(scope.graph, arguments.get("branch"), limit)


def _get_commit(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    return history_reads.read_commit(scope.graph, arguments["commitId"])


def _list_commit_changes(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    asked = ChangesQuery.model_validate(_spell_page(arguments, without="commitId"), strict=False)
    return history_reads.read_commit_changes(scope.graph, arguments["commitId"], asked)


def _poll_changes(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    asked = FeedQuery.model_validate(_spell_page(arguments), strict=False)
    return history_reads.poll_changes(scope.graph, asked)


def _spell_page(arguments: Arguments, *, without: str | None = None) -> dict[str, Any]:
    """The arguments of a page as the routes spell them."""
    found = {"limit": _ITEMS_DEFAULT, **arguments}
    if "pageToken" in found:
        found["page_token"] = found.pop("pageToken")
    return {name: value for name, value in found.items() if name != without}


def _compare_branches(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    target = scope.graph.branch(arguments.get("target", MAIN_BRANCH))
    diff = target.diff(
        arguments["source"],
        kinds=arguments.get("kind"),
        types=arguments.get("type"),
        ops=arguments.get("op"),
        timeout=scope.bounds.timeout_s,
        cancel=scope.bounds.cancel,
    )
    limits = parse_limits(arguments.get("limit", _ITEMS_DEFAULT))
    shown = [each.to_json() for each in islice(diff, limits.changes)]
    rest = len(diff) - len(shown)
    return {**diff.header(), "changes": shown, **({"omitted_changes": rest} if rest else {})}


def _query(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    given = dict(arguments)
    cursor = given.pop("cursor", None)
    return read_page(scope, "query", given, QueryRequest.model_validate(given), cursor)


READ_TOOLS: Final = (
    ToolSpec(
        "schema_summary",
        "Start here: the node and edge types, their properties, and how many entities each has,"
        " in as much detail as fits.",
        _summarize_schema,
        READ_BRANCH,
        {
            "branch": BRANCH,
            "types": {"type": "array", "items": {"type": "string"}},
            "characters": {"type": "integer", "minimum": 200, "maximum": 50_000},
        },
    ),
    ToolSpec("schema_get", "The text of the schema in force on main.", _get_schema),
    ToolSpec(
        "snapshot",
        "The types of a branch, and how many entities each has.",
        _get_snapshot,
        READ_BRANCH,
        {"branch": BRANCH},
    ),
    ToolSpec(
        "query",
        "Run a query in the language of omnigraph://best-practices/queries; it cannot write."
        " An answer that is truncated has a next_cursor.",
        _query,
        READ_BRANCH,
        {
            "query": describe_text("The text, such as: query q() { match … return … }"),
            "name": describe_text("Which declaration of the text, if it has several."),
            "params": PARAMS,
            "branch": BRANCH,
            "snapshot": SNAPSHOT,
            "cursor": CURSOR,
        },
        ("query",),
        is_adhoc=True,
        alias="read",
    ),
    ToolSpec("branches_list", "The names of all branches.", _list_branches),
    ToolSpec(
        "branches_diff",
        "What a branch would bring into another one: the review before a merge.",
        _compare_branches,
        READ_BRANCH,
        {
            "source": describe_text("The branch that is reviewed."),
            "target": describe_text("What it would be merged into; main without it."),
            **{name: _FILTERS[name] for name in ("kind", "type", "op", "limit")},
        },
        ("source",),
    ),
    ToolSpec(
        "commits_list",
        "The commits of a branch, newest first.",
        _list_commits,
        READ_BRANCH,
        {"branch": BRANCH, "limit": _LIMIT},
    ),
    ToolSpec(
        "commits_get",
        "One commit.",
        _get_commit,
        READ_GRAPH,
        {"commitId": _COMMIT_ID},
        ("commitId",),
    ),
    ToolSpec(
        "commits_changes",
        "What one commit changed, a page at a time, with the values before and after.",
        _list_commit_changes,
        READ_GRAPH,
        {"commitId": _COMMIT_ID, **_FILTERS},
        ("commitId",),
    ),
    ToolSpec(
        "changes_poll",
        "What was committed to a branch after a position: keep the cursor of the last page.",
        _poll_changes,
        READ_BRANCH,
        {
            "branch": BRANCH,
            "cursor": describe_text("The cursor of an earlier poll."),
            "start": describe_text("now, beginning, or after: and a commit id."),
            **_FILTERS,
        },
    ),
)
