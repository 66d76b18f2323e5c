"""Changes with their images, in the order of a commit, read as far as somebody looks.

Ids are looked up in both states a window at a time, and images are read in pieces that a page can
hold, so that a page costs what it shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.entity_change import EntityChange
from omnigraph.engine.feed.content import (
    CommitContent,
    TypeContent,
    find_resume_index,
    list_candidate_ids,
    translate_missing_state,
)
from omnigraph.engine.feed.tokens import EntityPosition
from omnigraph.engine.session import Session
from omnigraph.execution.changes import (
    Op,
    TypeDifference,
    compute_difference,
    encode_difference_images,
)
from omnigraph.storage.blobs import is_blob

# The first images of a type tell how large they are; a few blobs may be all that memory takes.
FIRST_ROWS: Final = 256
FIRST_ROWS_WITH_BLOBS: Final = 4
# What a change takes in a document beside its images and its id.
_FRAME_BYTES: Final = 120


@dataclass(frozen=True, slots=True)
class SizedChange:
    """One change, its size in a document, and whether the commit may have more of them."""

    change: EntityChange
    size: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """How far one page can look ahead: entities, and bytes of images."""

    rows: int
    bytes: int


def read_changes(
    session: Session, content: CommitContent, *, after: EntityPosition | None, reach: ReadAhead
) -> Iterator[SizedChange]:
    """The changes of a commit behind a place, in order."""
    types = content.list_types_from(after)
    for at, each in enumerate(types):
        is_last_type = at == len(types) - 1
        ids = list_candidate_ids(session, each, content.ops)
        start = find_resume_index(ids, after.entity) if after is not None and at == 0 else 0
        while start < len(ids):
            window = ids.slice(start, reach.rows)
            start += len(window)
            is_last_window = is_last_type and start == len(ids)
            with translate_missing_state(session, content.states.stream, content.states.record):
                found = _compare_states(each, window).filter_ops(frozenset(content.ops))
                yield from _read_pieces(
                    found, reach, last_id=window[-1].as_py() if is_last_window else None
                )


def _compare_states(content: TypeContent, ids: pa.Array) -> TypeDifference:
    states = content.states
    is_line = states.record.merged is None
    return compute_difference(states.before, states.after, content.pair, ids, shares_copies=is_line)


def _read_pieces(
    found: TypeDifference, reach: ReadAhead, *, last_id: str | None
) -> Iterator[SizedChange]:
    """The changes of a window; `last_id` is the last candidate of the commit, if it is in it."""
    start, rows_max = 0, _choose_first_rows(found)
    while start < len(found):
        piece = found.slice(start, rows_max)
        start += len(piece)
        told = _build_changes(piece, last_id=last_id)
        yield from told
        mean = max(1, sum(each.size for each in told) // len(told))
        rows_max = max(1, min(reach.bytes // mean, 2 * rows_max))


def _choose_first_rows(found: TypeDifference) -> int:
    views = (found.old, found.pair.old), (found.new, found.pair.new)
    fields = (field for view, key in views if key for field in view.get_shape(key).schema)
    return FIRST_ROWS_WITH_BLOBS if any(map(is_blob, fields)) else FIRST_ROWS


def _build_changes(piece: TypeDifference, *, last_id: str | None) -> list[SizedChange]:
    before, after = encode_difference_images(piece)
    ids = piece.ids.to_pylist()
    sizes = _FRAME_BYTES + sum(
        pc.fill_null(pc.binary_length(texts), 0).to_numpy().astype(np.int64)
        for texts in (piece.ids, before, after)
    )
    kind, name = str(piece.kind), piece.type_key.name
    rows = zip(
        ids,
        piece.ops.tolist(),
        _decode_images(before),
        _decode_images(after),
        sizes.tolist(),
        strict=True,
    )
    return [
        SizedChange(
            EntityChange(kind, piece.pair.type_id, name, id_, Op(op).word, old, new),
            size,
            is_last=id_ == last_id,
        )
        for id_, op, old, new, size in rows
    ]


def _decode_images(texts: pa.Array) -> list[dict[str, object] | None]:
    """Images as objects, parsed at once; None where there is none."""
    filled = pc.fill_null(texts, "null").to_pylist()
    found: list[dict[str, object] | None] = json.loads(f"[{','.join(filled)}]")
    return found
