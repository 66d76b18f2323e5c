"""Entities in conflict as people compare them: their properties on all three sides."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, TypeAlias

import pyarrow as pa

from omnigraph.execution.changes import fetch_rows
from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.execution.json_values import encode_json_values
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET
from omnigraph.storage.blobs import is_blob
from omnigraph.versioning.effects import ID_COLUMN

# A blob may be large, and is told by its size and hash.
_BLOBS_MAX: Final = 16

EntityImage: TypeAlias = Mapping[str, object]
# An entity at the base, on ours and on theirs; None where it does not exist.
SideImages: TypeAlias = tuple[EntityImage | None, EntityImage | None, EntityImage | None]


def read_images(view: View, type_key: TypeKey | None, ids: pa.Array) -> dict[str, EntityImage]:
    """The properties of some entities, by id; nulls are left out, ends are `@src` and `@dst`."""
    if type_key is None or type_key not in view.types or not len(ids):
        return {}
    shape = view.get_shape(type_key)
    blobs = {field.name for field in shape.schema if is_blob(field)}
    light = [name for name in shape.schema.names if name not in blobs]
    chosen = light if len(ids) > _BLOBS_MAX else None
    rows = fetch_rows(view, type_key, ids, columns=chosen)
    columns = {
        name: _describe_blobs(rows[column]) if column in blobs else encode_json_values(rows[column])
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


def select_differing(images: SideImages) -> SideImages:
    """The images of an entity that is on all sides without what is the same on all of them."""
    base, ours, theirs = images
    if base is None or ours is None or theirs is None:
        return images
    names = {
        name
        for name in {**base, **ours, **theirs}
        if not base.get(name) == ours.get(name) == theirs.get(name)
    }
    return _select_names(base, names), _select_names(ours, names), _select_names(theirs, names)


def _select_names(image: EntityImage, names: set[str]) -> EntityImage:
    return {name: value for name, value in image.items() if name in names}


def _describe_blobs(values: pa.ChunkedArray) -> list[object]:
    return [
        None if blob is None else {"bytes": len(blob), "sha256": hashlib.sha256(blob).hexdigest()}
        for blob in values.to_pylist()
    ]
