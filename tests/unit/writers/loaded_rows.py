"""Short ways to read an input, and to see what a load makes of it next to the model."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from model.loading import Loader
from model.store import Store
from omnigraph.rows.columns import TableShape
from omnigraph.schema import load_catalog
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind
from omnigraph.schema.schema_identity import accept_schema
from omnigraph.writers.inputs import Dialect, Input, InputOptions, InputSource, Text, read_input
from omnigraph.writers.load_records import LoadChange, LoadMode, build_load_change

Row = dict[str, Any]
DIALECTS = (Dialect.STRICT, Dialect.COMPATIBLE)


def accept(text: str) -> AcceptedSchema:
    return accept_schema(load_catalog(text)).schema


def node(name: str) -> TypeKey:
    return TypeKey(TypeKind.NODE, name)


def edge(name: str) -> TypeKey:
    return TypeKey(TypeKind.EDGE, name)


def read(
    source: InputSource | str,
    schema: str | AcceptedSchema,
    *,
    dialect: Dialect = Dialect.STRICT,
    type: str | None = None,  # noqa: A002
) -> Input:
    """Read a source; a `str` is a text of records here, a path is a `Path`."""
    accepted = accept(schema) if isinstance(schema, str) else schema
    wrapped = Text(source) if isinstance(source, str) else source
    return read_input(wrapped, accepted, InputOptions(dialect=dialect, type=type))


def load(
    source: InputSource | str,
    schema: str | AcceptedSchema,
    *,
    mode: LoadMode = LoadMode.APPEND,
    dialect: Dialect = Dialect.STRICT,
    type: str | None = None,  # noqa: A002
) -> LoadChange:
    return build_load_change(read(source, schema, dialect=dialect, type=type), mode)


def rows_of(rows: pa.Table, shape: TableShape) -> list[Row]:
    """Rows by the names of their properties, as plain Python: dates are counts, lists tuples."""
    columns = {"__id": "@id", "__src": "@src", "__dst": "@dst"}
    columns |= {column: name for name, column in shape.columns.items()}
    found = []
    for name in rows.column_names:
        values = rows[name].combine_chunks()
        found.append([_plain(value) for value in _counts(values).to_pylist()])
    named = [columns[name] for name in rows.column_names]
    return [dict(zip(named, values, strict=True)) for values in zip(*found, strict=True)]


def loaded_rows(loaded: LoadChange) -> dict[str, list[Row]]:
    """What a load writes, by type."""
    return {str(key): rows_of(change.rows, change.shape) for key, change in loaded.change.items()}


def model_rows(text: str, accepted: AcceptedSchema, *, is_strict: bool) -> dict[str, list[Row]]:
    """What the model makes of a text; fresh ids are `new`."""
    store = Store(accepted, new_id=lambda: "new")
    batches = Loader(store, is_strict).batches(text)
    return {
        str(_key(accepted, type_.name, "@src" in rows[0])): [
            {name: value for name, value in row.items() if name != "@type"} for row in rows
        ]
        for type_, rows in batches
    }


def _key(_accepted: AcceptedSchema, name: str, is_edge: bool) -> TypeKey:
    return edge(name) if is_edge else node(name)


def _counts(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_date32(kind):
        return values.cast(pa.int32())
    if pa.types.is_date64(kind):
        return values.cast(pa.int64())
    if pa.types.is_list(kind) and pa.types.is_date32(kind.value_type):
        return values.cast(pa.list_(pa.int32()))
    if pa.types.is_list(kind) and pa.types.is_date64(kind.value_type):
        return values.cast(pa.list_(pa.int64()))
    return values


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
