"""Cardinality: the number of edges of every source that a write touches and leaves in place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.rows.columns import SOURCE_COLUMN
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import Cardinality, EdgeType
from omnigraph.writers.graph_change import NO_IDS, WriteMode
from omnigraph.writers.validate.findings import (
    Finding,
    Findings,
    Positions,
    RuleSubject,
    shorten_value,
)
from omnigraph.writers.validate.image_after import ImageAfter
from omnigraph.writers.validate.reference_rule import ends_of
from omnigraph.writers.validate.unique_groups import END_KINDS


@dataclass(frozen=True, slots=True)
class EdgeCounts:
    """How many edges sources have after a write, and which of them have too few or too many."""

    bounds: Cardinality
    sources: pa.Array
    counts: Positions
    is_bad: npt.NDArray[np.bool_]

    def build_violation(self, subject: RuleSubject, source: int) -> Violation:
        """What is wrong with one of the sources."""
        return _build_violation(
            subject, self.bounds, self.sources[source], int(self.counts[source])
        )


def check_cardinality(subject: RuleSubject, image: ImageAfter, findings: Findings) -> None:
    """The sources of written edges, and the former ones of replaced and deleted edges."""
    found = count_edges(subject, image)
    if found is None:
        return
    places = _sort_by_name(np.flatnonzero(found.is_bad), found.sources)
    findings.add(Finding(places, lambda source: found.build_violation(subject, source)))


def count_edges(subject: RuleSubject, image: ImageAfter) -> EdgeCounts | None:
    """The edges of every source that a write touches; None for a type that is not bounded."""
    assert isinstance(subject.type_, EdgeType)
    bounds = subject.type_.cardinality
    if bounds == Cardinality():
        return None
    written = subject.change.rows[SOURCE_COLUMN]
    former = image.committed.get_ending(subject.type_key)[SOURCE_COLUMN]
    node_key = ends_of(subject.type_)[SOURCE_COLUMN]
    sources, asked = _split_sources(
        node_key, _concatenate_columns(written, former).unique().drop_null(), image
    )
    kept = _find_kept_sources(subject.type_key, asked, image)
    owners = (
        pc.index_in(_concatenate_columns(written, kept), value_set=sources).drop_null().to_numpy()
    )
    counts = np.bincount(owners, minlength=len(sources))
    is_bad = counts < bounds.minimum
    if bounds.maximum is not None:
        is_bad |= counts > bounds.maximum
    return EdgeCounts(bounds, sources, counts, is_bad)


def _split_sources(
    node_key: TypeKey, touched: pa.Array, image: ImageAfter
) -> tuple[pa.Array, pa.Array]:
    """The sources that exist after the write, and those that may have committed edges."""
    is_written = image.are_written(node_key, touched)
    written, others = touched.filter(is_written), touched.filter(pc.invert(is_written))
    kept = others.filter(image.are_kept(node_key, others))
    sources = pa.concat_arrays([written, kept])
    nodes = image.change.get(node_key)
    is_new = nodes is not None and nodes.mode is WriteMode.INSERT
    return sources, kept if is_new else sources


def _find_kept_sources(type_key: TypeKey, sources: pa.Array, image: ImageAfter) -> pa.ChunkedArray:
    """The source of every committed edge of the sources that the write leaves alone."""
    if len(sources) == 0 or not image.keeps_committed(type_key):
        return pa.chunked_array([NO_IDS])
    image.reads.add_lookup(type_key, END_KINDS[SOURCE_COLUMN], [sources])
    found = image.committed.find_edges_at(type_key, SOURCE_COLUMN, sources)
    return image.filter_surviving(type_key, found)[SOURCE_COLUMN]


def _concatenate_columns(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([*first.chunks, *second.chunks], pa.utf8())


def _sort_by_name(places: Positions, names: pa.Array) -> Positions:
    order: Positions = pc.sort_indices(names.take(pa.array(places))).to_numpy()
    return places[order]


def _build_violation(
    subject: RuleSubject, bounds: Cardinality, source: pa.Scalar, count: int
) -> Violation:
    is_few = count < bounds.minimum
    bound = f"min {bounds.minimum}" if is_few else f"max {bounds.maximum}"
    has = f"source '{shorten_value(source)}' has {count} edges ({bound})"
    message = f"@card violation on edge {subject.type_.name}: {has}"
    # Reported of a written edge of the source, if there is one.
    row = pc.index(subject.change.rows[SOURCE_COLUMN], source).as_py()
    return subject.build_violation(
        "cardinality",
        message,
        row=None if row < 0 else row,
        property="@src",
        value=shorten_value(source),
    )
