"""The Arrow types of results, and values on their way from tables into them.

Tables keep a DateTime as milliseconds in a type that means days to most programs; results show it
as a timestamp in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from omnigraph.query.typed_tree import (
    EdgeObject,
    NodeList,
    NodeObject,
    PathObject,
    PathPart,
    ResultType,
)
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.comparison import Values
from omnigraph.rows.json_encoding import encode_plain_texts
from omnigraph.schema.catalog import Catalog, Property
from omnigraph.schema.property_types import VectorType
from omnigraph.schema.type_sets import is_type_set

TYPE_FIELD, ID_FIELD, SOURCE_FIELD, TARGET_FIELD = "@type", "@id", "@src", "@dst"
TIMESTAMP = pa.timestamp("ms", "UTC")


def result_type_of(type_: ResultType, catalog: Catalog) -> pa.DataType:
    """The Arrow type of a result column."""
    if isinstance(type_, PathObject):
        return _path_type_of(type_, catalog)
    if isinstance(type_, NodeList):
        return pa.list_(result_type_of(NodeObject(type_.type_name), catalog))
    if isinstance(type_, EdgeObject):
        return _edge_type_of(type_, catalog)
    if isinstance(type_, NodeObject):
        fields = [
            pa.field(each.name, result_type_of(each.type, catalog))
            for each in iter_object_properties(type_, catalog)
        ]
        own = [TYPE_FIELD, ID_FIELD] if is_type_set(type_.type_name) else [ID_FIELD]
        return pa.struct([*(pa.field(name, pa.utf8()) for name in own), *fields])
    return _result_arrow_type_of(arrow_type_of(type_))


def _edge_type_of(edge: EdgeObject, catalog: Catalog) -> pa.DataType:
    own = [TYPE_FIELD] if len(edge.edge_types) > 1 else []
    types = [catalog.edges[name].properties for name in edge.edge_types]
    return _object_type_of([*own, ID_FIELD, SOURCE_FIELD, TARGET_FIELD], types, catalog)


def iter_object_properties(node: NodeObject, catalog: Catalog) -> Iterator[Property]:
    """What a bare node shows beside its id: all properties but blobs and vectors."""
    return _iter_readable(catalog.nodes[node.type_name].properties)


def _iter_readable(properties: Mapping[str, Property]) -> Iterator[Property]:
    return filter(is_shown, properties.values())


def is_shown(property_: Property) -> bool:
    """Whether an object of an entity has a property: blobs and vectors are left out."""
    return not property_.type.is_blob and not isinstance(property_.type.value, VectorType)


def _path_type_of(path: PathObject, catalog: Catalog) -> pa.DataType:
    nodes = [catalog.nodes[name].properties for name in path.node_types]
    edges = [catalog.edges[name].properties for name in path.edge_types]
    nodes_type = pa.list_(_object_type_of([TYPE_FIELD, ID_FIELD], nodes, catalog))
    fields = [TYPE_FIELD, ID_FIELD, SOURCE_FIELD, TARGET_FIELD]
    edges_type = pa.list_(_object_type_of(fields, edges, catalog))
    match path.part:
        case PathPart.NODES:
            return nodes_type
        case PathPart.EDGES:
            return edges_type
        case PathPart.WHOLE:
            members = {"nodes": nodes_type, "edges": edges_type, "length": pa.int64()}
            return pa.struct(list(members.items()))


def _object_type_of(
    fields: Iterable[str], types: Iterable[Mapping[str, Property]], catalog: Catalog
) -> pa.DataType:
    """An object that an entity of any of several types fits."""
    kinds: dict[str, pa.DataType] = {}
    for properties in types:
        for each in _iter_readable(properties):
            kind = result_type_of(each.type, catalog)
            kinds[each.name] = _unite_types(kinds.get(each.name, kind), kind)
    return pa.struct([*(pa.field(name, pa.utf8()) for name in fields), *kinds.items()])


def _unite_types(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type for values of two: numbers are the widest, and all else is text if it differs."""
    if one == other:
        return one
    kinds = (one, other)
    if all(map(pa.types.is_integer, kinds)) and not any(map(pa.types.is_uint64, kinds)):
        return pa.int64()
    numbers = [pa.types.is_integer(each) or pa.types.is_floating(each) for each in kinds]
    return pa.float64() if all(numbers) else pa.utf8()


def fit_result_values(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of a property as those of a type that holds them beside others."""
    found = to_result_values(values)
    if found.type == kind:
        return found
    fitting = encode_plain_texts(found) if pa.types.is_string(kind) else found
    return fitting.cast(kind, safe=False)


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
