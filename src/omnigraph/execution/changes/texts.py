"""Images as JSON text: values as an export spells them, a column at a time, and nulls."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.execution.changes.changed import Op, TypeDifference
from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.execution.export import encode_properties
from omnigraph.execution.json_text import TEXT, concatenate_texts, quote_json_strings
from omnigraph.schema.accepted import TypeKind

Json: TypeAlias = Any  # Any: whatever `json.loads` gives


def encode_images(rows: pa.Table, shape: TableShape) -> pa.Array:
    """The image of each row: all its `properties`, also nulls, and for edges its `endpoints`."""
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    members = encode_properties(columns, shape, with_nulls=True)
    parts: list[pa.Array | str] = ['{"properties":{', *members, "}"]
    if shape.type_key.kind is TypeKind.EDGE:
        parts += [',"endpoints":{"from":', quote_json_strings(columns[SOURCE_COLUMN])]
        parts += [',"to":', quote_json_strings(columns[TARGET_COLUMN]), "}"]
    # One part is a column, so that there are as many texts as rows.
    every_row = pa.repeat(pa.scalar("", TEXT), rows.num_rows)
    return concatenate_texts(every_row, *parts, "}")


def encode_difference_images(difference: TypeDifference) -> tuple[pa.Array, pa.Array]:
    """The images before and after each change as JSON text; null where there is none."""
    has_before, has_after = difference.ops != Op.INSERT, difference.ops != Op.DELETE
    before = _align_images(difference, has_before, is_old=True)
    return before, _align_images(difference, has_after, is_old=False)


def _align_images(difference: TypeDifference, has_image: Any, *, is_old: bool) -> pa.Array:
    type_key = difference.pair.old if is_old else difference.pair.new
    if type_key is None or not has_image.any():
        return pa.nulls(len(difference), TEXT)
    view = difference.old if is_old else difference.new
    rows = difference.before if is_old else difference.after
    texts = encode_images(rows, view.get_shape(type_key))
    places = np.cumsum(has_image) - 1
    return texts.take(pa.array(places, mask=~has_image))


def decode_images(texts: pa.Array) -> list[Json]:
    """Images as objects; None where there is none."""
    return [None if text is None else json.loads(text) for text in texts.to_pylist()]
