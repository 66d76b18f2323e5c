"""What the compiler finds in a text of queries, without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.engine.read_requests import build_budget
from omnigraph.lang.diagnostic_views import describe_diagnostic, describe_position
from omnigraph.operations.graph_reads import ReadBounds, select_state
from omnigraph.query.query_descriptor import describe_parameters
from omnigraph.query.query_lint import QueryResult, lint_file
from omnigraph.query.typed_reads import Read
from omnigraph.query.typed_tree import Mutation, NodeObject

if TYPE_CHECKING:
    from omnigraph.engine import Graph
    from omnigraph.lang.diagnostics import Diagnostic
    from omnigraph.wire.wire_requests import QueryCheckRequest

JsonObject = dict[str, Any]  # Any: a JSON document


def check_text(graph: Graph, asked: QueryCheckRequest, bounds: ReadBounds) -> JsonObject:
    """The findings of a text, and what its queries take and return: QueryCheckOutput."""
    state = select_state(graph, branch=asked.branch, snapshot=asked.snapshot)
    budget = build_budget(bounds.timeout_s, bounds.memory_bytes, bounds.cancel)
    report = lint_file(asked.query, state.snapshot.catalog, poll=budget.check_interrupts)
    # Findings about a whole file, such as what none of its updates sets, are about the file of a
    # project; they would stand beside every single query that updates something.
    about_files = {each.diagnostic for each in report.findings if each.property is not None}
    return {
        "diagnostics": [
            _describe_finding(each) for each in report.diagnostics if each not in about_files
        ],
        "queries": [_describe_query(each) for each in report.results if each.checked is not None],
    }


def _describe_finding(found: Diagnostic) -> JsonObject:
    document = describe_diagnostic(found)
    del document["file"]
    return document | {"end": describe_position(found.source.locate(found.span.end))}


def _describe_query(result: QueryResult) -> JsonObject:
    assert result.checked is not None, "only queries without errors are described"
    assert result.operation is not None, "as above"
    columns = result.checked.columns if isinstance(result.checked, Read) else ()
    nodes = {each.name: each.type.type_name for each in columns if type(each.type) is NodeObject}
    return {
        "name": result.query.name.text,
        "mutation": isinstance(result.checked, Mutation),
        "params": [each.to_json() for each in describe_parameters(result.checked)],
        "result": [each.to_json() for each in result.operation.result],
        **({"nodes": nodes} if nodes else {}),
    }
