"""The Arrow types of results, and values on their way from tables into them.

Tables keep a DateTime as milliseconds in a type that means days to most programs; results show it
as a timestamp in UTC.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from omnigraph.query.typed_tree import NodeObject, ResultType
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.comparison import Values
from omnigraph.schema.catalog import Catalog, Property
from omnigraph.schema.property_types import VectorType

ID_FIELD = "@id"
TIMESTAMP = pa.timestamp("ms", "UTC")


def result_type_of(type_: ResultType, catalog: Catalog) -> pa.DataType:
    """The Arrow type of a result column."""
    if isinstance(type_, NodeObject):
        fields = [
            pa.field(each.name, result_type_of(each.type, catalog))
            for each in iter_object_properties(type_, catalog)
        ]
        return pa.struct([pa.field(ID_FIELD, pa.utf8()), *fields])
    return _result_arrow_type_of(arrow_type_of(type_))


def iter_object_properties(node: NodeObject, catalog: Catalog) -> Iterator[Property]:
    """What a bare node shows beside its id: all properties but blobs and vectors."""
    for each in catalog.nodes[node.type_name].properties.values():
        if not each.type.is_blob and not isinstance(each.type.value, VectorType):
            yield each


def to_result_values(values: Values) -> Values:
    """Values of a table as results have them."""
    kind = _result_arrow_type_of(values.type)
    if kind == values.type:
        return values
    # By way of plain integers: there is no loss, and lists are cast as their elements are.
    numbers = pa.list_(pa.int64()) if pa.types.is_list(kind) else pa.int64()
    return values.cast(numbers).cast(kind)


def _result_arrow_type_of(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_date64(kind):
        return TIMESTAMP
    if pa.types.is_list(kind) and pa.types.is_date64(kind.value_type):
        return pa.list_(TIMESTAMP)
    return kind
