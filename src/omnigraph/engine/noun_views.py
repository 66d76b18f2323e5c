"""A graph, and a state of one, as pieces of HTML for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from omnigraph.errors import OmnigraphError
from omnigraph.html_views import (
    render_document,
    render_notice,
)

if TYPE_CHECKING:
    from omnigraph.engine.branch_reads import BranchReads
    from omnigraph.engine.graph import Graph
    from omnigraph.engine.snapshot import Snapshot

# A graph shows so many of its branches; how many there are is always said.
BRANCHES_MAX: Final = 20


def render_graph(graph: Graph) -> str:
    """The address of a graph, its branches, and the types of its main branch."""
    try:
        names = graph.branches()
        shown = ", ".join(names[:BRANCHES_MAX])
        if len(names) > BRANCHES_MAX:
            shown += f" and {len(names) - BRANCHES_MAX:,} more"
        values = {"uri": graph.uri, "branches": shown, **_describe_state(graph.branch().snapshot())}
        return render_document("Graph", values)
    except OmnigraphError as failure:
        # A closed graph is still a value of a cell.
        return render_notice(repr(graph), str(failure))


def render_state(state: BranchReads | Snapshot) -> str:
    """The commit of a branch or a snapshot, and its types with their entities."""
    from omnigraph.engine.snapshot import Snapshot  # noqa: PLC0415 — it imports this module

    try:
        if isinstance(state, Snapshot):
            return render_document("Snapshot", {"uri": state.uri, **_describe_state(state)})
        values = _describe_state(state.snapshot())
        return render_document("Branch", {"uri": state.uri, **values})
    except OmnigraphError as failure:
        return render_notice(repr(state), str(failure))


def _describe_state(at: Snapshot) -> dict[str, Any]:  # Any: values of a document
    commit = at.commit
    types = [
        {"kind": table.kind, "type": table.type_name, "entities": table.rows}
        for table in sorted(at.tables(), key=lambda each: (each.kind != "node", each.type_name))
    ]
    return {
        "branch": at.branch,
        "version": at.version,
        "commit": commit.id,
        "created at": commit.created_at.isoformat(timespec="seconds"),
        "actor": commit.actor,
        "message": commit.message,
        "types": types,
    }
