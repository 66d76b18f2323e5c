from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.rows.columns import TableShape, arrow_type_of, build_table_shape
from omnigraph.schema import load_catalog
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind
from omnigraph.schema.property_types import (
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    ValueType,
    VectorType,
)
from omnigraph.schema.schema_identity import accept_schema, evolve_schema
from omnigraph.storage.tables.lance_tables import Tables, make_blob_field


def node(name: str) -> TypeKey:
    return TypeKey(TypeKind.NODE, name)


def edge(name: str) -> TypeKey:
    return TypeKey(TypeKind.EDGE, name)


def accept(text: str) -> AcceptedSchema:
    return accept_schema(load_catalog(text), domain="01ARZ3NDEKTSV4RRFFQ69G5FAV").schema


def evolve(accepted: AcceptedSchema, text: str) -> AcceptedSchema:
    evolved = evolve_schema(accepted, load_catalog(text)).schema
    assert evolved is not None
    return evolved


def test_a_node_lies_as_its_id_and_one_column_for_each_property() -> None:
    shape = build_table_shape(
        accept("node B { y: I32  x: String? }  node A { k: Bool }"), node("B")
    )
    assert shape == TableShape(
        type_key=node("B"),
        schema=pa.schema(
            [
                pa.field("__id", pa.utf8(), nullable=False),
                pa.field("c4", pa.utf8()),
                pa.field("c5", pa.int32()),
            ]
        ),
        columns={"x": "c4", "y": "c5"},
        key={},
    )
    assert list(shape.columns) == ["x", "y"]


def test_an_edge_has_its_ends_right_after_its_id() -> None:
    shape = build_table_shape(accept("node A {}  edge E: A -> A { since: Date }"), edge("E"))
    assert shape.schema == pa.schema(
        [
            *(pa.field(name, pa.utf8(), nullable=False) for name in ("__id", "__src", "__dst")),
            pa.field("c3", pa.date32()),
        ]
    )


def test_an_edge_and_a_node_of_the_same_name_have_their_own_tables() -> None:
    accepted = accept("node A { a: I32 @key }  edge A: A -> A { b: Bool }")
    node_shape, edge_shape = (
        build_table_shape(accepted, node("A")),
        build_table_shape(accepted, edge("A")),
    )
    assert (node_shape.schema.names, node_shape.key) == (["__id", "c3"], {"a": "c3"})
    assert (edge_shape.schema.names, edge_shape.key) == (["__id", "__src", "__dst", "c4"], {})


def test_the_key_lists_ends_first_and_then_properties_by_number() -> None:
    accepted = accept("node A { z: I32  b: String  @key(z, b) }")
    assert list(build_table_shape(accepted, node("A")).key.items()) == [("b", "c2"), ("z", "c3")]
    accepted = accept("node A {}  edge E: A -> A { at: Date  @key(@src, @dst, at) }")
    keyed = build_table_shape(accepted, edge("E")).key
    assert list(keyed.items()) == [("@src", "__src"), ("@dst", "__dst"), ("at", "c3")]


def test_a_rename_changes_no_column_and_no_key_order() -> None:
    old = accept("node A { b: I32  c: String  @key(b, c) }")
    new = evolve(
        old,
        'node Z @rename_from("A") { y: I32 @rename_from("b")  c: String  @key(y, c) }',
    )
    before, after = build_table_shape(old, node("A")), build_table_shape(new, node("Z"))
    assert after.schema == before.schema
    assert list(after.columns.items()) == [("c", "c3"), ("y", "c2")]
    assert list(after.key.values()) == list(before.key.values()) == ["c2", "c3"]


def test_a_name_that_comes_back_gets_a_new_column() -> None:
    first = accept("node A { a: I32  b: I32? }")
    third = evolve(evolve(first, "node A { a: I32 }"), "node A { a: I32  b: I32? }")
    assert (
        build_table_shape(third, node("A")).columns["b"]
        != build_table_shape(first, node("A")).columns["b"]
    )


def test_an_added_property_stands_at_the_end_whatever_its_name() -> None:
    old = accept("node A { m: I32 }")
    before = build_table_shape(old, node("A"))
    after = build_table_shape(evolve(old, "node A { a: I32?  m: I32 }"), node("A"))
    assert list(after.schema)[:-1] == list(before.schema)
    assert list(after.columns) == ["a", "m"]


def test_an_interface_has_no_table() -> None:
    accepted = accept("interface I { a: I32 }")
    with pytest.raises(ValueError, match="interface:I has no table"):
        build_table_shape(accepted, TypeKey(TypeKind.INTERFACE, "I"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ScalarType(Scalar.STRING), pa.utf8()),
        (ScalarType(Scalar.BLOB), pa.large_binary()),
        (ScalarType(Scalar.BOOL), pa.bool_()),
        (ScalarType(Scalar.I32), pa.int32()),
        (ScalarType(Scalar.I64), pa.int64()),
        (ScalarType(Scalar.U32), pa.uint32()),
        (ScalarType(Scalar.U64), pa.uint64()),
        (ScalarType(Scalar.F32), pa.float32()),
        (ScalarType(Scalar.F64), pa.float64()),
        (ScalarType(Scalar.DATE), pa.date32()),
        (ScalarType(Scalar.DATETIME), pa.date64()),
        (EnumType(("x", "y")), pa.utf8()),
        (VectorType(3), pa.list_(pa.field("item", pa.float32(), nullable=True), 3)),
        (ListType(Scalar.DATE), pa.list_(pa.field("item", pa.date32(), nullable=True))),
    ],
    ids=str,
)
def test_every_value_type_has_its_arrow_type(value: ValueType, expected: pa.DataType) -> None:
    assert arrow_type_of(PropertyType(value)) == expected
    assert arrow_type_of(PropertyType(value, is_nullable=True)) == expected


def test_a_blob_column_is_marked_for_the_tables() -> None:
    shape = build_table_shape(accept("node A { b: Blob? }"), node("A"))
    assert shape.schema.field("c2").equals(make_blob_field("c2"), check_metadata=True)


EVERY_TYPE = """
node A {
    a: String  b: Bool  c: I32  d: I64  e: U32  f: U64  g: F32  h: F64  i: Date  j: DateTime
    k: Vector(2)?  l: [String]?  m: [DateTime]?  n: enum(x, y)  o: [Bool]?  p: [F32]?
}
"""


def test_a_table_gives_every_type_back_as_it_was_written(tmp_path: Path) -> None:
    shape = build_table_shape(accept(EVERY_TYPE), node("A"))
    moment = 1_700_000_000_123
    numbers = {"c": -1, "d": -(2**63), "e": 2**32 - 1, "f": 2**64 - 1, "g": 0.5, "h": 0.1}
    others = {"a": "é", "b": True, "i": -1, "j": moment, "n": "x"}
    lists = {"k": [1.0, 2.0], "l": ["x", None], "m": [moment, None], "o": [], "p": None}
    values: dict[str, object] = {**numbers, **others, **lists}
    row = {column: values[name] for name, column in shape.columns.items()}
    nulls = dict.fromkeys(row)
    rows = pa.Table.from_pylist([{"__id": "1"} | row, {"__id": "2"} | nulls], shape.schema)
    tables = Tables(str(tmp_path), is_durable=False)
    pin = tables.create("t", shape.schema)
    found = tables.open(tables.append(pin, [tables.write(pin, rows)])).scan()
    assert found.schema.equals(shape.schema)
    assert found.equals(rows)
    assert found[shape.columns["j"]].cast(pa.int64()).to_pylist() == [moment, None]


def test_rows_of_a_schema_that_dropped_a_required_property_still_fit_the_table(
    tmp_path: Path,
) -> None:
    old = accept("node A { a: I32  b: I32 }")
    new = build_table_shape(evolve(old, "node A { b: I32 }"), node("A"))
    tables = Tables(str(tmp_path), is_durable=False)
    pin = tables.create("t", build_table_shape(old, node("A")).schema)
    rows = pa.Table.from_pylist([{"__id": "1", "c3": 5}], new.schema)
    found = tables.open(tables.append(pin, [tables.write(pin, rows)])).scan()
    assert found.to_pylist() == [{"__id": "1", "c2": None, "c3": 5}]
