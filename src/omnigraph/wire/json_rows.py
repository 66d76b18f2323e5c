"""The rows of a read as JSON bytes, exactly those of `Result.to_json_rows`.

A few rows are encoded as Python values, since a call into Arrow costs as much as dozens of them;
more of them a column at a time.
"""

from __future__ import annotations

from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.result import Result
from omnigraph.rows.comparison import flatten_chunks
from omnigraph.rows.json_encoding import TEXT, encode_json_objects

# Up to so many rows Python is faster.
FEW_ROWS: Final = 24
# Rows are made and joined so many at a time, which bounds the memory beside the answer itself.
_ROWS_AT_ONCE: Final = 65_536


def encode_document(document: Any) -> bytes:  # Any: a JSON document
    """The bytes of a document; integers of any length are numbers."""
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:
        # orjson knows no integer beyond 64 bits.
        import json  # noqa: PLC0415 — rarely needed

        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def encode_rows(result: Result) -> bytes:
    """The rows of a result as a JSON array."""
    rows = result.to_arrow()
    if rows.num_rows <= FEW_ROWS or not rows.column_names:
        return encode_document(result.to_json_rows())
    starts = range(0, rows.num_rows, _ROWS_AT_ONCE)
    parts = (_encode_part(rows.slice(start, _ROWS_AT_ONCE)) for start in starts)
    return b"[" + b",".join(parts) + b"]"


def encode_read(document: dict[str, Any], result: Result) -> bytes:  # Any: a JSON document
    """A document with the rows of a result as its member `rows`, which is the last one."""
    return b'%b,"rows":%b}' % (encode_document(document)[:-1], encode_rows(result))


def _encode_part(rows: pa.Table) -> bytes:
    columns = [flatten_chunks(column) for column in rows.itercolumns()]
    texts = encode_json_objects(rows.column_names, columns)
    ends = pa.array([0, len(texts)], pa.int64())
    joined = pc.binary_join(pa.LargeListArray.from_arrays(ends, texts), pa.scalar(",", TEXT))
    whole: bytes = joined[0].as_buffer().to_pybytes()
    return whole
