"""Images as JSON text: values as an export spells them, a column at a time, and nulls."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.execution.changes.changed import Op, TypeDifference
from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.execution.export import data_texts
from omnigraph.execution.json_text import TEXT, joined, json_strings
from omnigraph.schema.accepted import TypeKind

Json: TypeAlias = Any  # Any: whatever `json.loads` gives


def image_texts(rows: pa.Table, shape: TableShape) -> pa.Array:
    """The image of each row: all its `properties`, also nulls, and for edges its `endpoints`."""
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    members = data_texts(columns, shape, with_nulls=True)
    parts: list[pa.Array | str] = ['{"properties":{', *members, "}"]
    if shape.type_key.kind is TypeKind.EDGE:
        parts += [',"endpoints":{"from":', json_strings(columns[SOURCE_COLUMN])]
        parts += [',"to":', json_strings(columns[TARGET_COLUMN]), "}"]
    # One part is a column, so that there are as many texts as rows.
    every_row = pa.repeat(pa.scalar("", TEXT), rows.num_rows)
    return joined(every_row, *parts, "}")


def images(difference: TypeDifference) -> tuple[pa.Array, pa.Array]:
    """The images before and after each change as JSON text; null where there is none."""
    has_before, has_after = difference.ops != Op.INSERT, difference.ops != Op.DELETE
    before = _spread(difference, has_before, is_old=True)
    return before, _spread(difference, has_after, is_old=False)


def _spread(difference: TypeDifference, has_image: Any, *, is_old: bool) -> pa.Array:
    type_key = difference.pair.old if is_old else difference.pair.new
    if type_key is None or not has_image.any():
        return pa.nulls(len(difference), TEXT)
    view = difference.old if is_old else difference.new
    rows = difference.before if is_old else difference.after
    texts = image_texts(rows, view.shape(type_key))
    places = np.cumsum(has_image) - 1
    return texts.take(pa.array(places, mask=~has_image))


def decoded(texts: pa.Array) -> list[Json]:
    """Images as objects; None where there is none."""
    return [None if text is None else json.loads(text) for text in texts.to_pylist()]
