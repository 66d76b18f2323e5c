"""`omnigraph queries`, `dashboards` and `graphs`: what a cluster, or a file, offers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.cluster_access import find_graphs, open_cluster, resolve_cluster
from omnigraph.cli.command_errors import FAILED, fail
from omnigraph.cli.command_registry import ACTOR, CONTROL_FLAGS, add_group, register_command
from omnigraph.cli.commands.query_commands import QueryLimits, TableOptions, print_rows
from omnigraph.cli.global_options import Capability, Flag, Scope
from omnigraph.cli.local_files import read_source
from omnigraph.cli.shared_options import JSON, MAIN_BRANCH, RowFormat, read_json_object
from omnigraph.cli.views import print_json
from omnigraph.cli.views.answer_views import Fields, JsonObject, show
from omnigraph.cli.views.output_streams import format_count
from omnigraph.cli.views.query_views import ResultRows
from omnigraph.error_codes import ErrorCode

if TYPE_CHECKING:
    from omnigraph.clusters.applied_cluster import Cluster
    from omnigraph.clusters.query_registry import StoredQuery

_LIST_FLAGS = frozenset({Flag.SERVER, Flag.CLUSTER, Flag.PROFILE})
_NAME = Annotated[str, typer.Argument(metavar="NAME", help="The name of the query.")]


@dataclass(frozen=True, slots=True)
class QueryFileSource:
    """A `.gq` file and the schema it is for, instead of a cluster."""

    query_path: Annotated[
        Path | None, typer.Option("--query", metavar="PATH", help="A .gq file.")
    ] = None
    schema_path: Annotated[
        Path | None, typer.Option("--schema", metavar="PATH", help="The .pg file it is for.")
    ] = None

    def __post_init__(self) -> None:
        if (self.query_path is None) != (self.schema_path is None):
            raise typer.BadParameter("--query and --schema belong together")


@dataclass(frozen=True, slots=True)
class QueryCatalogue:
    """The stored queries of a graph or of a file."""

    queries: list[StoredQuery]

    def to_json(self) -> JsonObject:
        """The catalogue."""
        return {"queries": [each.to_json() for each in self.queries]}

    def to_lines(self) -> Iterator[str]:
        """A line for each query, and what it is for."""
        for each in self.queries:
            shown = ", ".join(
                f"${field.name}: {field.kind}{'?' if field.is_nullable else ''}"
                for field in each.parameters
            )
            kind = "mutation" if each.is_mutation else "read"
            yield f"{each.name}({shown}): {kind}"
            for text in (each.description, each.instruction):
                yield from _indent(text)


def _indent(text: str | None) -> Iterable[str]:
    return [] if text is None else [f"    {line}" for line in text.splitlines()]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    graphs = add_group(app, "graphs", "List the graphs of a cluster or a server.")
    register_command(graphs, Capability.CONTROL, takes=_LIST_FLAGS, names=("list",))(list_graphs)
    boards = add_group(app, "dashboards", "List the dashboards of a cluster.")
    register_command(boards, Capability.CONTROL, takes=CONTROL_FLAGS, names=("list",))(
        list_dashboards
    )
    below = add_group(app, "queries", "Work with stored queries.")
    register_command(below, Capability.CONTROL, takes=CONTROL_FLAGS, names=("list",))(list_queries)
    register_command(below, Capability.CONTROL, takes=CONTROL_FLAGS, names=("show",))(show_query)
    register_command(below, Capability.CONTROL, takes=CONTROL_FLAGS | ACTOR, names=("run",))(
        run_query
    )
    register_command(below, Capability.CONTROL, takes=CONTROL_FLAGS, names=("lint", "validate"))(
        lint_queries
    )


def list_graphs(scope: Scope, is_json: JSON = False) -> None:
    """List the graphs of a cluster or a server with their addresses."""
    found = find_graphs(scope)
    documents = [{"id": name, "uri": uri} for name, uri in found.items()]
    lines = "\n".join(f"{name}\t{uri}" for name, uri in found.items())
    show(Fields({"graphs": documents}, lines), is_json=is_json)


def list_dashboards(scope: Scope, is_json: JSON = False) -> None:
    """List the dashboards of a graph with their panels, as they are applied."""
    cluster = open_cluster(scope)
    found = cluster.dashboards(_choose_graph(scope, cluster))
    documents = [{"name": name} | each.to_json() for name, each in found.items()]
    lines = []
    for name, each in found.items():
        lines.append(f"{name}: {each.title}")
        lines += [f"    {panel.chart}  {panel.title}: {panel.query}" for panel in each.panels]
    show(Fields({"dashboards": documents}, "\n".join(lines) or "no dashboards"), is_json=is_json)


def list_queries(scope: Scope, source: QueryFileSource, is_json: JSON = False) -> None:
    """List stored queries with their parameters, from a cluster or from a file."""
    show(QueryCatalogue(_load_catalogue(scope, source)), is_json=is_json)


def show_query(scope: Scope, name: _NAME, source: QueryFileSource) -> None:
    """Print one query as JSON Schema: its parameters, its description and its result columns."""
    found = {each.name: each for each in _load_catalogue(scope, source)}
    if name not in found:
        fail(f"there is no query '{name}'", hint=f"there are: {', '.join(found) or 'none'}")
    print_json(found[name].to_json_schema())


def run_query(  # noqa: PLR0913 — one parameter for each option
    scope: Scope,
    name: _NAME,
    output: RowFormat,
    table: TableOptions,
    bounds: QueryLimits,
    params: Annotated[
        str | None, typer.Option("--params", metavar="JSON", help="Parameters, a JSON object.")
    ] = None,
    branch: Annotated[str, typer.Option("--branch", metavar="NAME", help="The branch.")] = (
        MAIN_BRANCH
    ),
) -> None:
    """Run a stored query of a cluster by its name."""
    cluster = open_cluster(scope)
    graph_id, given = _choose_graph(scope, cluster), read_json_object(params, None)
    with cluster.graph(graph_id, actor=scope.actor) as opened:
        invoked = cluster.invoke_query(opened, graph_id, name)
        target = invoked.graph.branch(branch)
        if invoked.is_mutation:
            result = target.mutate(
                invoked.text,
                name=name,
                params=given,
                timeout=bounds.timeout,
                memory=bounds.memory_bytes,
            )
            nodes = format_count(result.affected_nodes, "node")
            counts = f"{nodes} and {format_count(result.affected_edges, 'edge')}"
            show(Fields(result.to_json(), f"{name} changed {counts}"), is_json=output.is_json)
            return
        snapshot = target.snapshot()
        rows = snapshot.query(
            invoked.text,
            name=name,
            params=given,
            timeout=bounds.timeout,
            memory=bounds.memory_bytes,
        )
        columns = [each.name for each in rows.columns]
        shown = {"branch": branch, "snapshot": None}
        answer = ResultRows(name, shown, columns, rows.to_json_rows(), snapshot.commit.id)
    print_rows(answer, output.choose(scope.config.output), table.build_layout(scope.config))


def lint_queries(scope: Scope, source: QueryFileSource, is_json: JSON = False) -> None:
    """Check stored queries against the live schema, or a file against its schema file."""
    from omnigraph.errors import CompileError

    breakages: list[JsonObject] = []
    warnings: list[str] = []
    try:
        for each in _load_catalogue(scope, source):
            warnings += [
                f"{each.name}: ${field.name} is a vector, which agents cannot supply"
                for field in each.parameters
                if field.kind == "vector"
            ]
    except CompileError as error:
        breakages = [
            {"query": each.source.name, "message": str(each)} for each in error.diagnostics
        ]
    document = {"ok": not breakages, "breakages": breakages, "warnings": warnings}
    lines = [*(each["message"] for each in breakages), *warnings] or ["no problem was found"]
    failure = ErrorCode.BAD_REQUEST if breakages else None
    show(Fields(document, "\n".join(lines)), is_json=is_json, failure=failure)
    if breakages:
        raise typer.Exit(FAILED)


def _choose_graph(scope: Scope, cluster: Cluster) -> str:
    known, chosen = [*cluster.graphs()], resolve_cluster(scope).graph
    if chosen is not None:
        return chosen
    if len(known) != 1:
        fail("no graph is chosen", hint=f"give --graph, one of: {', '.join(known) or 'none'}")
    return known[0]


def _load_catalogue(scope: Scope, source: QueryFileSource) -> list[StoredQuery]:
    from omnigraph.clusters.query_registry import compile_file
    from omnigraph.schema import load_catalog

    if source.query_path is None or source.schema_path is None:
        cluster = open_cluster(scope)
        return cluster.queries(_choose_graph(scope, cluster))
    catalog = load_catalog(read_source(source.schema_path), name=str(source.schema_path))
    data = read_source(source.query_path)
    return [*compile_file(data, catalog, file=str(source.query_path))]
