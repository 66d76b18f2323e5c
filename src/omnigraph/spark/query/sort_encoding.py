"""What Spark sorts as we would: texts, bytes or integers in the order of values."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.rows.comparison import Values, flatten_chunks, to_comparable, to_numpy
from omnigraph.rows.row_order import encode_floats, encode_ordered_bytes

_SIGN_BIT: Final = np.uint64(2**63)


def sort_type_of(kind: pa.DataType) -> pa.DataType:
    """The type of what values of a type are sorted by."""
    if pa.types.is_string(kind):
        return pa.utf8()
    return pa.binary() if pa.types.is_nested(kind) else pa.int64()


def encode_sort_values(values: Values) -> pa.Array:
    """Texts, bytes or integers in the order of values; nulls stay nulls."""
    known = flatten_chunks(to_comparable(values))
    kind = known.type
    if pa.types.is_string(kind):
        return known
    if pa.types.is_nested(kind):
        return encode_ordered_bytes(known).cast(pa.binary())
    if pa.types.is_floating(kind):
        codes = encode_floats(to_numpy(known.cast(pa.float64())))
    elif pa.types.is_uint64(kind):
        codes = (to_numpy(known) ^ _SIGN_BIT).view(np.int64)
    else:
        codes = to_numpy(known).astype(np.int64)
    return pa.array(codes, mask=to_numpy(known.is_null()))
