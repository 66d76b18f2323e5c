"""What the conditions of a statement depend on, and what a cascade does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from omnigraph.execution.expressions import Params
from omnigraph.execution.scan import pinned_ids
from omnigraph.execution.view import View
from omnigraph.query import typed
from omnigraph.schema.accepted import TypeKey
from omnigraph.versioning.footprint import WHOLE, Reads, mark
from omnigraph.versioning.idset import IdSet

# Beyond this, naming each node costs more than the rare conflict that precision avoids.
MARKED_NODES_MAX: Final = 10_000


def looked_at(
    view: View, type_key: TypeKey, conditions: Sequence[typed.Expr], params: Params
) -> Reads:
    """The entities that could change the answer of conditions, whether or not they exist."""
    ids = pinned_ids(view, type_key, conditions, params)
    return WHOLE if ids is None else Reads(ids=IdSet(ids))


def edges_looked_at(end: str, nodes: pa.Array) -> Reads:
    """Every edge that has one of the nodes at an end, `src` or `dst`, whether or not it exists."""
    if len(nodes) > MARKED_NODES_MAX:
        return WHOLE
    return Reads(marks=IdSet(mark(end, node) for node in nodes.to_pylist()))
