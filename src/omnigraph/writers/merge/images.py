"""Entities in conflict as people compare them: their properties on all three sides."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, TypeAlias

import pyarrow as pa

from omnigraph.execution.changes import rows_at
from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.execution.json_values import json_values
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET
from omnigraph.storage.blobs import is_blob
from omnigraph.versioning.effects import ID_COLUMN

# A blob may be large, and is told by its size and hash.
_BLOBS_MAX: Final = 16

Image: TypeAlias = Mapping[str, object]
# An entity at the base, on ours and on theirs; None where it does not exist.
Images: TypeAlias = tuple[Image | None, Image | None, Image | None]


def images_at(view: View, type_key: TypeKey | None, ids: pa.Array) -> dict[str, Image]:
    """The properties of some entities, by id; nulls are left out, ends are `@src` and `@dst`."""
    if type_key is None or type_key not in view.types or not len(ids):
        return {}
    shape = view.shape(type_key)
    blobs = {field.name for field in shape.schema if is_blob(field)}
    light = [name for name in shape.schema.names if name not in blobs]
    chosen = light if len(ids) > _BLOBS_MAX else None
    rows = rows_at(view, type_key, ids, columns=chosen)
    columns = {
        name: _blob_values(rows[column]) if column in blobs else json_values(rows[column])
        for name, column in shape.columns.items()
        if column in rows.column_names
    }
    if type_key.kind is TypeKind.EDGE:
        ends = {SOURCE: rows[SOURCE_COLUMN], TARGET: rows[TARGET_COLUMN]}
        columns = {name: end.to_pylist() for name, end in ends.items()} | columns
    return {
        entity_id: {
            name: values[place] for name, values in columns.items() if values[place] is not None
        }
        for place, entity_id in enumerate(rows[ID_COLUMN].to_pylist())
    }


def differing_only(images: Images) -> Images:
    """The images of an entity that is on all sides without what is the same on all of them."""
    base, ours, theirs = images
    if base is None or ours is None or theirs is None:
        return images
    names = {
        name
        for name in {**base, **ours, **theirs}
        if not base.get(name) == ours.get(name) == theirs.get(name)
    }
    return _only(base, names), _only(ours, names), _only(theirs, names)


def _only(image: Image, names: set[str]) -> Image:
    return {name: value for name, value in image.items() if name in names}


def _blob_values(values: pa.ChunkedArray) -> list[object]:
    return [
        None if blob is None else {"bytes": len(blob), "sha256": hashlib.sha256(blob).hexdigest()}
        for blob in values.to_pylist()
    ]
