"""Rows by row id: a filter for a few, a scan for many.

Lance has a function that takes rows by id, but on every new version it first builds a map of all
row ids, which is tens of milliseconds for a million rows; the filter needs no map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph.sorted_search import are_among

ROW_ID = "_rowid"
ROW_ADDRESS = "_rowaddr"
# Measured: a filter costs 3 µs per id, a scan 0.06 µs per row. Few ids are never worth a scan.
ROWS_PER_ID = 50
FEW_IDS = 1000
# A batch costs a call into Lance and two into numpy, so a scan takes large ones.
SCAN_BATCH_ROWS = 256 * 1024

# Keys of protobuf fields: a message as the first field, and the bounds of a range.
_FIRST_MESSAGE, _START, _END = 0x0A, 0x08, 0x10
_VARINT_BITS = 0x7F


def fetch_rows_by_id(
    dataset: LanceDataset, row_ids: pa.Array, *, columns: Sequence[str], has_blobs: bool = False
) -> pa.Table:
    """The rows of these row ids that are in the version, in any order."""
    wanted = pc.unique(row_ids.cast(pa.uint64()))
    is_few = len(wanted) <= max(FEW_IDS, dataset.count_rows() // ROWS_PER_ID)
    text = f"{ROW_ID} IN ({','.join(map(str, wanted.to_pylist()))})" if is_few else None
    scanner = dataset.scanner(
        columns=list(columns),
        filter=text if len(wanted) else "false",
        blob_handling="all_binary" if has_blobs else None,
        with_row_id=True,
        batch_size=None if is_few or has_blobs else SCAN_BATCH_ROWS,
    )
    if is_few:
        return scanner.to_table()
    # Sorted once; Arrow's own membership test would hash all wanted ids again for every batch.
    ordered = np.sort(wanted.to_numpy())
    parts = [
        batch.filter(pa.array(are_among(batch.column(ROW_ID).to_numpy(), ordered)))
        for batch in scanner.to_batches()
    ]
    return pa.Table.from_batches(parts, schema=scanner.projected_schema)


def read_fragment_row_ids(
    dataset: LanceDataset, fragment_ids: Sequence[int]
) -> np.ndarray[tuple[int], np.dtype[np.uint64]] | None:
    """The row ids of fragments that were just written, in the order of their rows.

    Their metadata say them as one range; None where they do not, and the rows have to be read.
    """
    ranges = []
    for fragment_id in fragment_ids:
        fragment = dataset.get_fragment(fragment_id)
        # Any: its stubs lack the form in which it can be read.
        meta: Any = None if fragment is None else fragment.metadata.row_id_meta
        found = (
            None if meta is None else _parse_row_id_range(bytes(meta.asdict().get("Inline", ())))
        )
        if found is None:
            return None
        ranges.append(np.arange(found[0], found[1], dtype=np.uint64))
    return np.concatenate([np.zeros(0, np.uint64), *ranges])


def _parse_row_id_range(message: bytes) -> tuple[int, int] | None:
    """The bounds in a sequence that consists of one range; None if it consists of anything else.

    It is a protobuf message: a list of segments, each of which is one of several kinds.
    """
    body = message
    for _ in ("segment", "range"):
        # The first field of each, with its length: all of the message.
        if len(body) < 2 or body[0] != _FIRST_MESSAGE or body[1] != len(body) - 2:
            return None
        body = body[2:]
    fields = {_START: 0, _END: 0}
    while body:
        key, body = body[0], body[1:]
        value, shift = 0, 0
        while body and key in fields:
            byte, body = body[0], body[1:]
            value |= (byte & _VARINT_BITS) << shift
            shift += 7
            if byte <= _VARINT_BITS:
                break
        else:
            return None
        fields[key] = value
    return fields[_START], fields[_END]
