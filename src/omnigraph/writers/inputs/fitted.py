"""Values made to fit a property, and a mask of those that do not."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc


class CoercedColumn(NamedTuple):
    """Converted values, null where a value is bad; `bad` is None when all fit."""

    values: pa.Array
    bad: pa.Array | None


def build_coerced(values: pa.Array, *, bad_of: pa.Array) -> CoercedColumn:
    """Values of which those that are null, and are not in what they came from, are bad."""
    if values.null_count == bad_of.null_count:
        return CoercedColumn(values, None)
    return CoercedColumn(values, pc.and_(values.is_null(), bad_of.is_valid()))


def select_fitting(values: pa.Array, fits: pa.Array) -> pa.Array:
    """The values that fit, and null for the others."""
    if pc.all(fits, skip_nulls=True).as_py() is not False:
        return values
    return pc.if_else(fits, values, None)
