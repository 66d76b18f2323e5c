"""Whether texts are all different, told by hashes: several times faster than a table of texts.

Texts with different hashes are different. Equal hashes prove nothing, so the few rows that share
one are compared as they are.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes: TypeAlias = npt.NDArray[np.uint64]

_WORD_BYTES: Final = 8
_LENGTH_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_FACTOR: Final = np.uint64(0xFF51AFD7ED558CCD)
_LAST_FACTOR: Final = np.uint64(0xC4CEB9FE1A85EC53)
_HALF: Final = np.uint64(32)
_QUARTER: Final = np.uint32(16)
# Longer texts would be hashed a few at a time, which is slower than a table of them.
TEXT_BYTES_MAX: Final = 512


def are_distinct(texts: pa.ChunkedArray) -> bool:
    """Whether no text is there twice; nulls do not count."""
    return len(repeated(texts)) == 0


def repeated(texts: pa.ChunkedArray) -> pa.Array:
    """Every text that is there more than once, each once."""
    known = texts.drop_null() if texts.null_count else texts
    hashes = _hashed(known)
    if hashes is None:
        suspects = known
    else:
        # Half of each hash sorts twice as fast, and still leaves a handful of suspects.
        halves = (hashes >> _HALF).astype(np.uint32)
        ordered = np.sort(halves)
        shared = ordered[1:][ordered[1:] == ordered[:-1]]
        if not len(shared):
            return pa.array([], texts.type)
        suspects = known.filter(pa.array(_is_among(halves, shared)))
    counted = suspects.value_counts()
    values, counts = counted.field("values"), counted.field("counts")
    return values.filter(pc.greater(counts, 1))


def _is_among(
    halves: npt.NDArray[np.uint32], shared: npt.NDArray[np.uint32]
) -> npt.NDArray[np.bool_]:
    """Which halves are one of a few; most are ruled out by their first bits."""
    may_be_shared = np.zeros(1 << 16, np.bool_)
    may_be_shared[shared >> _QUARTER] = True
    is_among: npt.NDArray[np.bool_] = may_be_shared[halves >> _QUARTER]
    is_among[is_among] = np.isin(halves[is_among], shared)
    return is_among


def _hashed(texts: pa.ChunkedArray) -> Hashes | None:
    """A hash per text, or None for texts that are not worth it."""
    parts = []
    for chunk in texts.chunks:
        hashes = _hashed_chunk(chunk)
        if hashes is None:
            return None
        parts.append(hashes)
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def _hashed_chunk(chunk: pa.Array) -> Hashes | None:
    width = np.int64 if pa.types.is_large_string(chunk.type) else np.int32
    _, offsets_buffer, data_buffer = chunk.buffers()
    if len(chunk) == 0 or data_buffer is None:
        return np.zeros(len(chunk), np.uint64)
    offsets = np.frombuffer(offsets_buffer, width)[chunk.offset : chunk.offset + len(chunk) + 1]
    starts, lengths = offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int64)
    longest, first, last = int(lengths.max()), int(offsets[0]), int(offsets[-1])
    if longest > TEXT_BYTES_MAX:
        return None
    # Eight bytes more, so that a word that begins in the last text ends in the buffer.
    data = np.zeros(last - first + _WORD_BYTES, np.uint8)
    data[: last - first] = np.frombuffer(data_buffer, np.uint8)[first:last]
    words = np.ndarray((last - first + 1,), "<u8", data, strides=(1,))
    hashes = lengths.astype(np.uint64) * _LENGTH_FACTOR
    for done in range(0, longest, _WORD_BYTES):
        _mix(hashes, words, starts - first + done, lengths - done)
    return hashes


def _mix(
    hashes: Hashes,
    words: Hashes,
    places: npt.NDArray[np.int64],
    left: npt.NDArray[np.int64],
) -> None:
    """Take the next eight bytes of every text that has any left into its hash."""
    rows: slice | npt.NDArray[np.int64] = slice(None)
    if int(left.min()) <= 0:
        rows = np.nonzero(left > 0)[0]
    spare = np.maximum(_WORD_BYTES - left[rows], 0) * 8
    taken = words[places[rows]] << spare.astype(np.uint64)
    mixed = (hashes[rows] ^ taken) * _MIX_FACTOR
    mixed ^= mixed >> _HALF
    hashes[rows] = mixed * _LAST_FACTOR
