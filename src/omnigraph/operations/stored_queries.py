"""The stored queries of a graph, and calls of them.

A query that may not be called is as unknown as one that is not there: both are the same error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from omnigraph.errors import (
    InvalidArgumentError,
    PolicyDeniedError,
    StoredQueryNotFoundError,
)
from omnigraph.operations.graph_reads import require_read
from omnigraph.policy.acts import Act, Action
from omnigraph.versioning.record import MAIN_BRANCH
from omnigraph.wire.wire_requests import ChangeRequest, QueryRequest

if TYPE_CHECKING:
    from omnigraph.clusters.dashboard import Dashboard
    from omnigraph.clusters.query_registry import StoredQuery
    from omnigraph.engine import Graph
    from omnigraph.wire.wire_requests import InvokeStoredQueryRequest

JsonObject = dict[str, Any]  # Any: a JSON document
# What the entry of the catalogue is of an entry of the registry.
_ENTRY: Final = ("name", "tool_name", "description", "instruction", "mutation", "params")


@dataclass(frozen=True, slots=True)
class StoredText:
    """A stored query with the text that it is run from."""

    entry: StoredQuery
    text: str


@dataclass(frozen=True, slots=True)
class QueryCatalogue:
    """The stored queries of a graph in one revision, by name."""

    queries: Mapping[str, StoredText] = field(default_factory=dict)


def list_catalogue(graph: Graph, catalogue: QueryCatalogue) -> JsonObject:
    """The stored queries that an actor may know of: QueriesCatalogOutput.

    Those of an actor whose rules name queries are the ones that it may invoke.
    """
    require_read(graph, MAIN_BRANCH)
    names = sorted(catalogue.queries)
    if graph.has_query_limits:
        names = [name for name in names if _may_invoke(graph, name)]
    return {"queries": [_describe_entry(catalogue.queries[name]) for name in names]}


def _may_invoke(graph: Graph, name: str) -> bool:
    try:
        graph.invoking(name)
    except PolicyDeniedError:
        return False
    return True


def list_dashboards(
    graph: Graph, catalogue: QueryCatalogue, dashboards: Mapping[str, Dashboard]
) -> JsonObject:
    """The dashboards of a graph, with the panels that an actor may see: DashboardListOutput.

    A panel is left out if the actor may not call its query, and a dashboard without any panel.
    """
    names = {each.query for found in dashboards.values() for each in found.panels}
    allowed = {name for name in names if _may_read(graph, catalogue, name)}
    shown = {
        name: replace(found, panels=tuple(e for e in found.panels if e.query in allowed))
        for name, found in sorted(dashboards.items())
    }
    listed = [{"name": name} | found.to_json() for name, found in shown.items() if found.panels]
    return {"dashboards": listed}


def _may_read(graph: Graph, catalogue: QueryCatalogue, name: str) -> bool:
    """Whether an actor may call a stored query that reads main, and all types that it reads."""
    stored = catalogue.queries.get(name)
    if stored is None or stored.entry.is_mutation:
        return False
    types = {use.type_name for use in stored.entry.descriptor.reads}
    try:
        session = graph.invoking(name).branch().session
    except PolicyDeniedError:
        return False
    # The rows that an actor does not see are left out, and the query is answered.
    return session.is_allowed(Act(Action.READ, MAIN_BRANCH), types)


def _describe_entry(stored: StoredText) -> JsonObject:
    document = stored.entry.to_json()
    return {name: document[name] for name in _ENTRY if name in document}


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A stored query that may be called; `graph` does what the rules of the query carry."""

    graph: Graph
    stored: StoredText

    @property
    def name(self) -> str:
        """The name of the query."""
        return self.stored.entry.name

    @property
    def is_mutation(self) -> bool:
        """Whether it writes."""
        return self.stored.entry.is_mutation


def begin_call(
    graph: Graph, catalogue: QueryCatalogue, name: str, asked: InvokeStoredQueryRequest
) -> StoredCall:
    """A stored query by its name; the policy is asked before it shows whether there is one."""
    try:
        own = graph.invoking(name)
    except PolicyDeniedError:
        raise StoredQueryNotFoundError from None
    stored = catalogue.queries.get(name)
    if stored is None:
        raise StoredQueryNotFoundError
    call = StoredCall(own, stored)
    if asked.expect_mutation is not None and asked.expect_mutation != call.is_mutation:
        kind = "a mutation: call it with mutate" if call.is_mutation else "a read: use query"
        raise InvalidArgumentError("expect_mutation", f"stored query '{name}' is {kind}")
    if call.is_mutation and asked.snapshot is not None:
        raise InvalidArgumentError("snapshot", "a mutation writes to the newest state of a branch")
    return call


def build_read(call: StoredCall, asked: InvokeStoredQueryRequest) -> QueryRequest:
    """The read that a call stands for."""
    return QueryRequest(
        query=call.stored.text,
        name=call.name,
        params=asked.params,
        branch=asked.branch,
        snapshot=asked.snapshot,
        timeout=asked.timeout,
        memory=asked.memory,
    )


def build_mutation(call: StoredCall, asked: InvokeStoredQueryRequest) -> ChangeRequest:
    """The mutation that a call stands for."""
    return ChangeRequest(
        query=call.stored.text,
        name=call.name,
        params=asked.params,
        branch=asked.branch,
        key=asked.key,
        retries=0,
        timeout=asked.timeout,
        memory=asked.memory,
    )
