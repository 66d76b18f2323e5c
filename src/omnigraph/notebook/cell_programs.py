"""What a cell does: runs its queries on a graph, or checks or applies its schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from omnigraph.cli.shell.shell_input import declare, report_as_typed
from omnigraph.engine import Branch, Graph, MutationResult, Result, Snapshot
from omnigraph.errors import InvalidArgumentError
from omnigraph.html_views import HtmlDocument
from omnigraph.query.ast import Query, ReadBody
from omnigraph.query.query_compiler import parse_file
from omnigraph.schema import load_catalog
from omnigraph.schema.catalog import EdgeType, NodeType

# What a cell runs on: a graph stands for its main branch.
Target: TypeAlias = Graph | Branch | Snapshot
# Any: a value of Python.
Values: TypeAlias = Mapping[str, Any]
Outcome: TypeAlias = Result | MutationResult | list[dict[str, Any]]


def run_queries(
    text: str, target: Target, *, name: str | None, values: Values, given: Values
) -> list[Outcome]:
    """The outcomes of the queries of a text in order, of the one that is named, or of a statement.

    `values` has values for declared parameters, and `given` for those of a bare body.
    """
    with report_as_typed(text, given):
        declared = declare(text, given)
        file = parse_file(declared).file
        if file.statement is not None:
            if not isinstance(target, Graph):
                raise InvalidArgumentError("graph", "a statement runs on a graph, not on a state")
            return [target.execute(text)]
        chosen = [each for each in file.queries if name in (None, each.name.text)]
        if not chosen:
            raise InvalidArgumentError("name", f"there is no query '{name}' in the cell")
        return [_run_query(declared, query, target, values) for query in chosen]


def _run_query(text: str, query: Query, target: Target, values: Values) -> Outcome:
    known = {each.name.text for each in query.parameters}
    params = {name: value for name, value in values.items() if name in known}
    state = target.branch() if isinstance(target, Graph) else target
    if isinstance(query.body, ReadBody):
        return state.query(text, name=query.name.text, params=params)
    if isinstance(state, Snapshot):
        raise InvalidArgumentError("graph", "a mutation runs on a graph or a branch")
    return state.mutate(text, name=query.name.text, params=params)


@dataclass(frozen=True, slots=True)
class CheckedSchema(HtmlDocument):
    """The text of a schema that compiles, and what it declares."""

    text: str
    types: tuple[tuple[str, str, str], ...]

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        """The types with their kinds and properties."""
        columns = ("kind", "type", "properties")
        return {"types": [dict(zip(columns, each, strict=True)) for each in self.types]}


def check_schema(text: str) -> CheckedSchema:
    """Compile a schema."""
    catalog = load_catalog(text)
    found = [_describe_type("node", each) for each in catalog.nodes.values()]
    found += [_describe_type("edge", each) for each in catalog.edges.values()]
    return CheckedSchema(text, tuple(found))


def _describe_type(kind: str, type_: NodeType | EdgeType) -> tuple[str, str, str]:
    ends = f": {type_.source} -> {type_.target}" if isinstance(type_, EdgeType) else ""
    properties = ", ".join(f"{name}: {each.type}" for name, each in type_.properties.items())
    return kind, f"{type_.name}{ends}", properties
