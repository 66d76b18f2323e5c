from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.export import export_text
from omnigraph.errors import TypeNotFoundError
from omnigraph.rows import json_export
from omnigraph.rows.columns import build_table_shape
from omnigraph.rows.json_export import export_lines
from omnigraph.rows.view import View, table_types_of
from omnigraph.schema import load_catalog
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind
from omnigraph.schema.catalog import EdgeType
from omnigraph.schema.property_types import (
    DECLARED_SCALARS,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
)
from omnigraph.schema.schema_identity import accept_schema
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning import MAIN, Snapshot
from omnigraph.versioning.schema_store import StoredSchema
from unit.execution.stored_values import SCALAR_VALUES, TEXTS, column

SCHEMA = f"""
node Zebra {{
  {"".join(f"p{scalar}: {scalar}? " for scalar in DECLARED_SCALARS)}
  {"".join(f"l{scalar}: [{scalar}]? " for scalar in DECLARED_SCALARS if scalar is not Scalar.BLOB)}
  kind: enum(b, a)?
  vector: Vector(2)?
}}
node Bare {{}}
edge Zips: Zebra -> Bare {{ weight: F32? at: DateTime? }}
edge Anchors: Bare -> Bare
"""
Entities = dict[str, dict[str, Any]]
ACCEPTED = accept_schema(load_catalog(SCHEMA)).schema
ZEBRA = TypeKey(TypeKind.NODE, "Zebra")
BARE = TypeKey(TypeKind.NODE, "Bare")
ZIPS = TypeKey(TypeKind.EDGE, "Zips")


def values_of(type_: PropertyType) -> st.SearchStrategy[Any]:
    match type_.value:
        case EnumType(values):
            return st.sampled_from(values)
        case VectorType(dimension):
            return st.tuples(*[SCALAR_VALUES[Scalar.F32]] * dimension)
        case ListType(element):
            return st.lists(st.none() | SCALAR_VALUES[element], max_size=3).map(tuple)
        case _:
            assert type_.scalar is not None
            return SCALAR_VALUES[type_.scalar]


def entities_of(type_key: TypeKey) -> st.SearchStrategy[Entities]:
    type_ = table_types_of(ACCEPTED.catalog)[type_key]
    ends = {"@src": TEXTS, "@dst": TEXTS} if isinstance(type_, EdgeType) else {}
    properties = {
        name: st.none() | values_of(property_.type) for name, property_ in type_.properties.items()
    }
    return st.dictionaries(TEXTS, st.fixed_dictionaries(ends | properties), max_size=6)


def rows(accepted: AcceptedSchema, type_key: TypeKey, entities: Entities) -> pa.Table:
    shape = build_table_shape(accepted, type_key)
    type_ = table_types_of(accepted.catalog)[type_key]
    texts = {"__id": list(entities)}
    for column_name, name in {"__src": "@src", "__dst": "@dst"}.items():
        texts[column_name] = [entity.get(name, "") for entity in entities.values()]
    columns = {name: pa.array(values, pa.utf8()) for name, values in texts.items()}
    for name, column_name in shape.columns.items():
        values = [entity.get(name) for entity in entities.values()]
        columns[column_name] = column(values, type_.properties[name].type)
    return pa.table([columns[name] for name in shape.schema.names], schema=shape.schema)


def view_of(
    graph: Mapping[TypeKey, Iterable[Entities]], accepted: AcceptedSchema = ACCEPTED
) -> View:
    """A view of a graph whose types have one fragment for each group of entities."""
    tables = Tables(f"memory://{uuid.uuid4().hex}", is_durable=False)
    pins: dict[str, Pin] = {}
    for type_key in table_types_of(accepted.catalog):
        pin = tables.create(
            f"t/{type_key.kind}-{type_key.name}.lance", build_table_shape(accepted, type_key).schema
        )
        for entities in graph.get(type_key, ()):
            pin = tables.append(pin, [tables.write(pin, rows(accepted, type_key, entities))])
        pins[str(type_key)] = pin
    snapshot = Snapshot(MAIN, 1, "commit", 0, "digest", pins)
    return View(snapshot, StoredSchema("digest", SCHEMA, accepted), tables)


def exported(view: View, *types: str) -> str:
    return b"".join(export_lines(view, types=types)).decode()


def spelled(graph: Mapping[TypeKey, Entities]) -> str:
    """The export that the slow way makes of the same entities."""
    types = table_types_of(ACCEPTED.catalog)
    return export_text(
        ACCEPTED.catalog,
        [(types[key], graph.get(key, {})) for key in sorted(types, key=str)],
    )


@pytest.mark.slow
@given(entities_of(ZEBRA), entities_of(ZIPS), entities_of(BARE))
def test_an_export_has_the_lines_of_the_slow_one(
    zebras: Entities, zips: Entities, bare: Entities
) -> None:
    graph = {ZEBRA: zebras, ZIPS: zips, BARE: bare}
    view = view_of({key: [entities] if entities else [] for key, entities in graph.items()})
    assert exported(view) == spelled(graph)


def test_edges_come_before_nodes_and_types_by_name() -> None:
    ends = {"@src": "x", "@dst": "y"}
    anchors = TypeKey(TypeKind.EDGE, "Anchors")
    view = view_of(
        {ZEBRA: [{"z": {}}], BARE: [{"b": {}}], ZIPS: [{"e": ends}], anchors: [{"a": ends}]}
    )
    assert exported(view).splitlines() == [
        '{"edge":"Anchors","id":"a","from":"x","to":"y","data":{}}',
        '{"edge":"Zips","id":"e","from":"x","to":"y","data":{}}',
        '{"type":"Bare","id":"b","data":{}}',
        '{"type":"Zebra","id":"z","data":{}}',
    ]


def test_entities_come_by_id_in_the_order_of_bytes_whatever_fragment_they_are_in() -> None:
    view = view_of({BARE: [{"b": {}, "￿": {}, "B": {}}, {"": {}, "😀": {}, "a": {}, "é": {}}]})
    lines = exported(view).splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["", "B", "a", "b", "é", "￿", "😀"]


def test_a_large_type_is_read_and_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_export, "FIRST_ROWS_WITH_BLOBS", 3)
    monkeypatch.setattr(json_export, "READ_BYTES", 4096)
    monkeypatch.setattr(json_export, "CHUNK_BYTES", 1024)
    zebras = {f"{n * 7919 % 500:03d}": {"pI64": n, "pString": "x" * n} for n in range(500)}
    view = view_of({ZEBRA: [zebras]})
    chunks = list(export_lines(view))
    assert len(chunks) > 50
    assert max(map(len, chunks)) < 8192
    assert all(chunk.endswith(b"\n") for chunk in chunks)
    nothing = dict.fromkeys(ACCEPTED.catalog.nodes["Zebra"].properties)
    full = {id_: {**nothing, **values} for id_, values in zebras.items()}
    assert b"".join(chunks).decode() == spelled({ZEBRA: full})


def test_some_types_can_be_exported_alone() -> None:
    view = view_of({ZEBRA: [{"z": {}}], BARE: [{"b": {}}]})
    assert exported(view, "Bare") == '{"type":"Bare","id":"b","data":{}}\n'
    assert exported(view, "Zips") == ""
    assert exported(view, "Zebra", "Bare") == exported(view)


def test_a_name_means_the_node_and_the_edge_type_of_that_name() -> None:
    accepted = accept_schema(load_catalog("node Link {} edge Link: Link -> Link")).schema
    graph: dict[TypeKey, list[Entities]] = {
        TypeKey(TypeKind.NODE, "Link"): [{"n": {}}],
        TypeKey(TypeKind.EDGE, "Link"): [{"e": {"@src": "n", "@dst": "n"}}],
    }
    assert exported(view_of(graph, accepted), "Link").splitlines() == [
        '{"edge":"Link","id":"e","from":"n","to":"n","data":{}}',
        '{"type":"Link","id":"n","data":{}}',
    ]


def test_an_unknown_type_is_refused_before_the_first_line_with_a_suggestion() -> None:
    view = view_of({})
    with pytest.raises(TypeNotFoundError, match="unknown type 'Zebr'") as refused:
        export_lines(view, types=["Bare", "Zebr"])
    assert refused.value.hint == "did you mean 'Zebra'?"
    assert refused.value.code == "type_not_found"


def test_the_column_of_a_dropped_property_is_not_exported() -> None:
    view = view_of({BARE: []})
    shape = view.get_shape(BARE)
    wider = pa.schema([*shape.schema, pa.field("c99", pa.utf8())])
    pin = view.tables.create("t/Wider.lance", wider)
    staged = view.tables.write(pin, pa.table([["b"], ["old"]], schema=wider))
    pins = {**view.snapshot.pins, str(BARE): view.tables.append(pin, [staged])}
    snapshot = Snapshot(MAIN, 2, "later", 0, "digest", pins)
    later = View(snapshot, view.schema, view.tables)
    assert exported(later) == '{"type":"Bare","id":"b","data":{}}\n'
