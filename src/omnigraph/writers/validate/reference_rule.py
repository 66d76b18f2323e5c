"""References: after a write both ends of every edge exist."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import EdgeType
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.graph_change import PRESENT_MAX
from omnigraph.writers.validate.findings import (
    Finding,
    Findings,
    Positions,
    RuleSubject,
    shorten_value,
    to_positions,
)
from omnigraph.writers.validate.image_after import ImageAfter
from omnigraph.writers.validate.unique_groups import END_KINDS


def ends_of(type_: EdgeType) -> dict[str, TypeKey]:
    """The node type at each end column."""
    return {
        SOURCE_COLUMN: TypeKey(TypeKind.NODE, type_.source),
        TARGET_COLUMN: TypeKey(TypeKind.NODE, type_.target),
    }


def check_written_edges(subject: RuleSubject, image: ImageAfter, findings: Findings) -> None:
    """The ends of written edges are written too, or committed and not ending."""
    assert isinstance(subject.type_, EdgeType)
    missing = _find_missing_ends(subject.change.rows, subject.type_, image)
    findings.add_by_row(
        [
            build_dangling_finding(subject, column, node_key.name, missing[column])
            for column, node_key in ends_of(subject.type_).items()
        ]
    )


def check_kept_edges(
    type_key: TypeKey, type_: EdgeType, image: ImageAfter, findings: Findings
) -> None:
    """No committed edge that the write leaves alone is at a node that ends."""
    if not image.keeps_committed(type_key):
        return
    for column, node_key in ends_of(type_).items():
        if image.has_cascade(node_key) or len(ended := image.get_ended(node_key)) == 0:
            continue
        image.reads.add_lookup(type_key, END_KINDS[column], [ended])
        found = image.committed.find_edges_at(type_key, column, ended)
        left = image.filter_surviving(type_key, found).sort_by(ID_COLUMN)
        findings.add(build_orphan_finding(type_, column, node_key.name, left))


def _find_missing_ends(rows: pa.Table, type_: EdgeType, image: ImageAfter) -> dict[str, Positions]:
    """The rows at each end column whose node does not exist after the write."""
    ends = ends_of(type_)
    if type_.source != type_.target:
        return {
            column: _find_missing(node_key, rows[column], image)
            for column, node_key in ends.items()
        }
    # One search over both columns: the written nodes are hashed once.
    chunks = [chunk for column in ends for chunk in rows[column].chunks]
    both = _find_missing(ends[SOURCE_COLUMN], pa.chunked_array(chunks, pa.utf8()), image)
    split = int(np.searchsorted(both, rows.num_rows))
    return {SOURCE_COLUMN: both[:split], TARGET_COLUMN: both[split:] - rows.num_rows}


def _find_missing(node_key: TypeKey, ids: pa.ChunkedArray, image: ImageAfter) -> Positions:
    is_written = image.are_written(node_key, ids)
    if pc.all(is_written).as_py() is not False:
        return np.empty(0, np.int64)
    others = ids.filter(pc.invert(is_written)).drop_null()
    # Asking twice about one node is cheaper than finding out which nodes are there twice.
    others = others.unique() if len(others) <= PRESENT_MAX else others.combine_chunks()
    is_kept = image.are_kept(node_key, others)
    if pc.all(is_kept).as_py():
        image.reads.add_present(node_key, others)
        return np.empty(0, np.int64)
    missing = others.filter(pc.invert(is_kept)).unique()
    return to_positions(pc.is_in(ids, value_set=missing))


def build_dangling_finding(
    subject: RuleSubject, column: str, node_type: str, rows: Positions
) -> Finding:
    """Written edges whose node at an end does not exist."""
    ids = subject.change.rows[column]

    def build_violation(row: int) -> Violation:
        message = _format_message(column, ids[row], node_type)
        value = shorten_value(ids[row])
        return subject.build_violation(
            "reference", message, row=row, property=f"@{END_KINDS[column]}", value=value
        )

    return Finding(rows, build_violation)


def build_orphan_finding(type_: EdgeType, column: str, node_type: str, edges: pa.Table) -> Finding:
    """Committed edges at nodes that end: the id and the end of each."""

    def build_violation(row: int) -> Violation:
        node_id, edge_id = edges[column][row], edges[ID_COLUMN][row]
        message = (
            f"{_format_message(column, node_id, node_type)}: edge {type_.name} '{edge_id}' needs it"
        )
        return Violation(
            "reference",
            message,
            type_name=type_.name,
            property=f"@{END_KINDS[column]}",
            value=shorten_value(node_id),
            entity_id=edge_id.as_py(),
        )

    return Finding(np.arange(edges.num_rows), build_violation)


def _format_message(column: str, node_id: pa.Scalar, node_type: str) -> str:
    return f"{END_KINDS[column]} '{shorten_value(node_id)}' not found in {node_type}"
