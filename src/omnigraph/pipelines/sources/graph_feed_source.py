"""The change feed of another graph: what its commits changed after the last run, read by tasks.

A record has `op`, `kind`, `type`, `id`, `commit`, of an edge `from` and `to`, and the properties
after the change in `properties`; those of a deletion are the last ones it had. An entity that
several commits changed is one record, unless the definition asks for every change: what became of
it between the two ends of the position, by the last of them. `type` is the name that a type has at
the end of the position, whatever it was called before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, assert_never

import omnigraph
from omnigraph.changes.type_pairs import compute_type_id
from omnigraph.engine.branch_log import BranchLog
from omnigraph.engine.feed.branch_feed import BEGINNING
from omnigraph.pipelines.config.definition import FeedSource
from omnigraph.pipelines.mapping.mapping_sql import quote_literal, quote_name
from omnigraph.pipelines.mapping.record_ids import number_by_values
from omnigraph.pipelines.mapping.row_guards import CORRUPT
from omnigraph.pipelines.sources.json_frames import PERMISSIVE
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.property_types import (
    FLOATS,
    INTEGERS,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
)
from omnigraph.schema.schema_shape import JsonObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph import Branch, Graph
    from omnigraph.rows.view import View

PER_ENTITY: Final = "entity"
_COLUMNS: Final = "op string, kind string, type string, id string, commit string"
_ENDS: Final = "`from` string, `to` string"
_IMAGE: Final = "image"
# What became of an entity, by the first and by the last thing that happened to it.
_NET_OP: Final = """CASE
  WHEN first = 'insert' THEN CASE WHEN last.op = 'delete' THEN NULL ELSE 'insert' END
  WHEN first = 'delete' AND last.op <> 'delete' THEN 'update'
  ELSE last.op END"""


def compute_position(source: FeedSource, after: Any) -> JsonObject:  # Any: a position, or None
    """From the end of the last position to about as many changes after it as a run takes.

    It is between two commits that it names, so that it is read again exactly.
    """
    with omnigraph.open(source.uri) as graph:
        branch = graph.branch(source.branch)
        start = source.start if after is None else f"after:{_find_last_commit(branch, after)}"
        first, last = BranchLog(branch).find_span(start, rows_max=source.changes_max)
    return {"kind": "graph", "from": first, "to": last}


def normalize_position(source: FeedSource, position: JsonObject) -> JsonObject:
    """A position of a ledger, also of one that was begun when positions were cursors."""
    if not _has_cursors(position):
        return position
    with omnigraph.open(source.uri) as graph:
        branch = graph.branch(source.branch)
        first, last = _find_first_commit(branch, position), _find_last_commit(branch, position)
    return {"kind": "graph", "from": first, "to": last}


def _has_cursors(position: JsonObject) -> bool:
    # `from` and `to` are cursors then, or null at the beginning; `commit` is null if it is empty.
    return "commit" in position


def _find_first_commit(branch: Branch, position: JsonObject) -> str:
    """The commit of the cursor that a position begins at."""
    if position["from"] is None:
        return BranchLog(branch).find_span(BEGINNING, rows_max=1)[0]
    return BranchLog(branch).find_cursor_commit(position["from"])


def _find_last_commit(branch: Branch, position: JsonObject) -> str:
    """The commit that a position ends with."""
    if not _has_cursors(position):
        return str(position["to"])
    return position["commit"] or _find_first_commit(branch, position)


def find_declared_columns(source: FeedSource) -> str | None:
    """The columns of a record, as Spark writes them, if the definition has those of properties."""
    if source.columns is None:
        return None
    return f"{_COLUMNS}, {_ENDS}, properties struct<{source.columns}>, `{CORRUPT}` string"


def read_frame(source: FeedSource, position: JsonObject, spark: SparkSession) -> DataFrame:
    """The changes between the two ends of a position."""
    is_net = source.per == PER_ENTITY
    with omnigraph.open(source.uri) as graph:
        changes = graph.spark.on(spark).changes(
            position["from"],
            position["to"],
            types=list(source.types) or None,
            # Whether an entity that was inserted is still there, only its deletion shows.
            ops=None if is_net else source.ops,
        )
        columns = source.columns
        if columns is None:
            columns = _build_property_columns(source, _iter_catalogs(graph, position))
        name = _build_type_name_sql(graph.snapshot(position["to"]).view)
    image = f"coalesce(after, before) AS {_IMAGE}"
    rows = changes.selectExpr(
        "op", "kind", f"{name} AS type", "type_id", "id", "commit", "version", image
    )
    rows = _collapse_changes(rows, source) if is_net else rows
    return _decode_records(rows, columns, is_declared=source.columns is not None)


def _build_type_name_sql(end: View) -> str:
    """SQL over a change: what its type is called at the end; one that is gone, as it was then."""
    names = {compute_type_id(end.snapshot.pins[str(key)].path): key.name for key in end.types}
    cases = [
        f"WHEN {quote_literal(id_)} THEN {quote_literal(name)}"
        for id_, name in sorted(names.items())
    ]
    return f"CASE type_id {' '.join(cases)} ELSE type END" if cases else "type"


def _collapse_changes(changes: DataFrame, source: FeedSource) -> DataFrame:
    """One row for each entity: what became of it."""
    from pyspark.sql import functions  # noqa: PLC0415 — Spark is here by now

    # The members of a struct are compared in turn, so that the latest is the greatest.
    grouped = changes.groupBy("kind", "type_id", "id").agg(
        functions.expr("min(struct(version, op)).op AS first"),
        functions.expr(f"max(struct(version, op, commit, type, {_IMAGE})) AS last"),
    )
    rows = grouped.selectExpr(
        f"{_NET_OP} AS op", "kind", "last.type", "id", "last.commit", f"last.{_IMAGE}"
    )
    return rows.where(f"op IN ({', '.join(map(quote_literal, source.ops))})")


def _decode_records(rows: DataFrame, columns: str, *, is_declared: bool) -> DataFrame:
    """Changes with their images read as JSON, each with numbers to find it by."""
    parts = ["endpoints struct<`from` string, `to` string>", f"properties struct<{columns}>"]
    # An image that does not have the declared columns is reported, like any record.
    corrupt = [f"`{CORRUPT}` string"] if is_declared else []
    schema = quote_literal(", ".join([*parts, *corrupt]))
    parsed = f"from_json({_IMAGE}, {schema}, map('mode', '{PERMISSIVE}')) AS {_IMAGE}"
    named = ["op", "kind", "type", "id", "commit"]
    items = [f"{_IMAGE}.endpoints.`from`", f"{_IMAGE}.endpoints.`to`", f"{_IMAGE}.properties"]
    items += [f"{_IMAGE}.`{CORRUPT}`"] if is_declared else []
    records = rows.selectExpr(*named, parsed).selectExpr(*named, *items)
    return number_by_values(records, part="xxhash64(kind, type)", row="xxhash64(id, commit)")


def _iter_catalogs(graph: Graph, position: JsonObject) -> Iterator[Catalog]:
    for end in ("to", "from"):
        yield graph.snapshot(position[end]).view.accepted.catalog


def _build_property_columns(source: FeedSource, catalogs: Iterable[Catalog]) -> str:
    """The properties of all types that are wanted; one that is several things is a text."""
    found: dict[str, set[str]] = {}
    for catalog in catalogs:
        types: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
        for type_ in types:
            if source.types and type_.name not in source.types:
                continue
            for name, property_ in type_.properties.items():
                found.setdefault(name, set()).add(_json_type_of(property_.type))
    named = {name: min(kinds) if len(kinds) == 1 else "string" for name, kinds in found.items()}
    return ", ".join(f"{quote_name(name)}: {kind}" for name, kind in named.items())


def _json_type_of(type_: PropertyType) -> str:
    """What Spark calls the values of a property as an export writes them."""
    match type_.value:
        case ScalarType(scalar):
            return _json_scalar_of(scalar)
        case ListType(element):
            return f"array<{_json_scalar_of(element)}>"
        case VectorType():
            return "array<float>"
        case EnumType():
            return "string"
        case _:
            assert_never(type_.value)


def _json_scalar_of(scalar: Scalar) -> str:
    if scalar in FLOATS:
        return "double"
    if scalar is Scalar.U64:
        # The largest of them has twenty digits.
        return "decimal(20, 0)"
    if scalar in INTEGERS:
        return "bigint"
    return "boolean" if scalar is Scalar.BOOL else "string"
