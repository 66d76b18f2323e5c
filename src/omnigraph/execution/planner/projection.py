"""Result columns of few rows, with as little work as there is.

What every result of a plan shares is worked out once. A single value is a slice of its column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from omnigraph.execution.batch import Batch
from omnigraph.execution.reading import ExecutionContext
from omnigraph.execution.result_types import result_type_of, to_result_values
from omnigraph.execution.source import DenseIds
from omnigraph.execution.topology import DenseNodes, TopologySource
from omnigraph.query.typed import Column, PropertyValue, SystemName, SystemValue
from omnigraph.schema.catalog import Catalog

# More rows are worth the steps that look at memory and time in between.
ROWS_MAX: Final = 1_024


@dataclass(frozen=True, slots=True)
class _ProjectedField:
    variable: str
    type_name: str
    # None is the id.
    name: str | None


@dataclass(frozen=True, slots=True)
class Projection:
    """Columns that are properties and ids of nodes."""

    schema: pa.Schema
    fields: tuple[_ProjectedField, ...]

    def build_table(self, batch: Batch, reading: ExecutionContext) -> pa.Table:
        """The columns of rows."""
        source = reading.source
        assert isinstance(source, TopologySource)
        arrays = [
            _fetch_column(
                source.get_nodes(field.type_name), field.name, batch.nodes[field.variable]
            )
            for field in self.fields
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)


def build_projection(
    columns: Sequence[Column], types: dict[str, str], catalog: Catalog
) -> Projection | None:
    """The columns of a plan, if all of them are properties and ids of node variables."""
    fields = []
    for column in columns:
        match column.value:
            case PropertyValue(variable, name) if variable in types:
                fields.append(_ProjectedField(variable, types[variable], name))
            case SystemValue(variable, SystemName.ID) if variable in types:
                fields.append(_ProjectedField(variable, types[variable], None))
            case _:
                return None
    schema = pa.schema(
        [pa.field(each.name, result_type_of(each.type, catalog)) for each in columns]
    )
    return Projection(schema, tuple(fields))


def _fetch_column(nodes: DenseNodes, name: str | None, at: DenseIds) -> pa.Array:
    if name is None:
        return nodes.fetch_ids(at)
    column = nodes.get_column(name)
    return to_result_values(column.take_one(int(at[0])) if len(at) == 1 else column.take(at))
