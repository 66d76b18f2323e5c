"""The rows of `return graph`: the distinct nodes and edges of the rows of a pattern."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.batch import Batch, find_bound_rows
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.group_operator import GroupedRows
from omnigraph.execution.operators.object_projection import EntityReader
from omnigraph.execution.operators.row_keys import evaluate_rows
from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.query.typed_reads import GRAPH_COLUMNS, Column
from omnigraph.query.typed_tree import EdgeValue, NodeValue, PathPart, PathValue, SystemName
from omnigraph.rows.comparison import flatten_chunks
from omnigraph.rows.json_encoding import encode_json_objects
from omnigraph.rows.path_columns import select_path_part, split_lists
from omnigraph.rows.result_types import ID_FIELD, SOURCE_FIELD, TARGET_FIELD, is_shown
from omnigraph.schema.type_sets import is_type_set

_NUMBER_BITS: Final = 32
_NUMBER_MASK: Final = np.int64(2**_NUMBER_BITS - 1)
_NODE, _EDGE = "node", "edge"
_SCHEMA: Final = pa.schema([pa.field(name, pa.utf8()) for name in GRAPH_COLUMNS])

# Entities of one type: whether they are nodes or edges, the type, and their numbers.
_Entities = tuple[str, str, DenseIds]


@dataclass(frozen=True, slots=True)
class GraphProjection:
    """The nodes, then the edges, that columns have, each of them once, by type and id."""

    columns: tuple[Column, ...]

    def build_table(self, rows: Batch | GroupedRows, context: ExecutionContext) -> pa.Table:
        """A row for each entity."""
        batch = rows.first_rows if isinstance(rows, GroupedRows) else rows
        found: defaultdict[tuple[str, str], list[DenseIds]] = defaultdict(list)
        for column in self.columns:
            for kind, type_name, numbers in _iter_entities(column, batch, context):
                found[kind, type_name].append(numbers)
        kinds = sorted(found, key=lambda each: (each[0] == _EDGE, each[1]))
        tables = [
            _build_rows(kind, name, np.unique(np.concatenate(found[kind, name])), context)
            for kind, name in kinds
        ]
        return pa.concat_tables([_SCHEMA.empty_table(), *tables])


def _iter_entities(column: Column, batch: Batch, context: ExecutionContext) -> Iterator[_Entities]:
    """The entities of a column, by their types; other rows have none."""
    match column.value:
        case NodeValue(variable, type_) if is_type_set(type_.type_name):
            yield from _iter_nodes_of_several(variable, batch, context)
        case NodeValue(variable, type_):
            numbers = batch.nodes[variable]
            yield _NODE, type_.type_name, numbers[numbers >= 0]
        case EdgeValue(variable):
            bound, is_bound = batch.edges[variable], find_bound_rows(batch, variable)
            for code, name in enumerate(bound.types):
                yield _EDGE, name, bound.dense_ids[is_bound & (bound.type_indices == code)]
        case PathValue(type=kind) as value:
            paths = flatten_chunks(evaluate_rows(value, batch, context))
            yield from _iter_parts(paths, PathPart.NODES, _NODE, kind.node_types)
            yield from _iter_parts(paths, PathPart.EDGES, _EDGE, kind.edge_types)
        case value:
            raise AssertionError(f"{value} is not an entity")


def _iter_nodes_of_several(
    variable: str, batch: Batch, context: ExecutionContext
) -> Iterator[_Entities]:
    rows = context.rows_of(batch)
    types, ids = (
        flatten_chunks(rows.get_system_field(variable, name))
        for name in (SystemName.TYPE, SystemName.ID)
    )
    for name in pc.unique(types.drop_null()).to_pylist():
        own = ids.filter(pc.fill_null(pc.equal(types, name), False))
        yield _NODE, name, context.source.get_nodes(name).find(own.unique())


def _iter_parts(
    paths: pa.Array, part: PathPart, kind: str, types: Sequence[str]
) -> Iterator[_Entities]:
    items, _ = split_lists(flatten_chunks(select_path_part(paths, part)))
    for code, name in enumerate(types):
        own: npt.NDArray[np.int64] = items[(items >> _NUMBER_BITS) == code]
        yield kind, name, (own & _NUMBER_MASK).astype(np.int32)


def _build_rows(
    kind: str, type_name: str, numbers: DenseIds, context: ExecutionContext
) -> pa.Table:
    """The rows of entities of one type, by their ids."""
    context.budget.check_interrupts()
    reader, catalog = EntityReader(context, is_edge=kind == _EDGE), context.view.catalog
    type_ = catalog.edges[type_name] if kind == _EDGE else catalog.nodes[type_name]

    def fetch(name: str) -> pa.Array:
        found = reader.fetch_field(type_name, name, numbers)
        assert found is not None, f"{type_name} has {name}"
        return flatten_chunks(found)

    names = [each.name for each in type_.properties.values() if is_shown(each)]
    count = len(numbers)
    data = pa.repeat(pa.scalar("{}", pa.utf8()), count)
    if names:
        data = encode_json_objects(names, [fetch(name) for name in names])
    nothing = pa.nulls(count, pa.utf8())
    ids = fetch(ID_FIELD)
    ends = (
        [fetch(name) for name in (SOURCE_FIELD, TARGET_FIELD)] if kind == _EDGE else [nothing] * 2
    )
    words = [pa.repeat(pa.scalar(word, pa.utf8()), count) for word in (kind, type_name)]
    columns = [each.cast(pa.utf8()) for each in (*words, ids, *ends, data)]
    table = pa.Table.from_arrays(columns, schema=_SCHEMA)
    context.budget.allocate(table.nbytes)
    return table.take(pc.sort_indices(table, sort_keys=[("id", "ascending")]))
