"""Hashes of texts, a column at a time, and of one text, the same."""

from __future__ import annotations

import hashlib
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes: TypeAlias = npt.NDArray[np.uint64]

# A longer text would cost a pass over the column for every eight bytes of it.
TEXT_BYTES_MAX: Final = 512

# So many rows and their hashes stay in the cache of a core while they are hashed.
_BLOCK_ROWS: Final = 32_768
_WORD_BYTES: Final = 8
_ALL_BITS: Final = 2**64 - 1
_LENGTH_FACTOR: Final = 0x9E3779B97F4A7C15
_MIX_FACTOR: Final = 0xFF51AFD7ED558CCD
_LAST_FACTOR: Final = 0xC4CEB9FE1A85EC53
_HALF: Final = 32
_HALF_BITS: Final = np.uint64(32)
_QUARTER_BITS: Final = np.uint32(16)


def hash_text(text: str) -> int:
    """The hash of one text."""
    data = text.encode()
    found = len(data) * _LENGTH_FACTOR & _ALL_BITS
    for start in range(0, len(data), _WORD_BYTES):
        word = data[start : start + _WORD_BYTES]
        value = int.from_bytes(word, "little") << 8 * (_WORD_BYTES - len(word))
        found = (found ^ value) * _MIX_FACTOR & _ALL_BITS
        found = (found ^ found >> _HALF) * _LAST_FACTOR & _ALL_BITS
    return found


def hash_texts(texts: pa.Array | pa.ChunkedArray) -> Hashes | None:
    """The hash of each text, none of them null; None if one of them is too long for it."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    found: Hashes = np.empty(len(texts), np.uint64)
    done = 0
    for chunk in chunks:
        if not _hash_chunk(chunk, found[done : done + len(chunk)]):
            return None
        done += len(chunk)
    return found


def _hash_chunk(chunk: pa.Array, found: Hashes) -> bool:
    _, offsets_buffer, data_buffer = chunk.buffers()
    if len(chunk) == 0 or data_buffer is None or data_buffer.size == 0:
        found[:] = 0
        return True
    width = np.int64 if pa.types.is_large_string(chunk.type) else np.int32
    offsets = np.frombuffer(offsets_buffer, width)[chunk.offset : chunk.offset + len(chunk) + 1]
    lengths = np.diff(offsets)
    if int(lengths.max()) > TEXT_BYTES_MAX:
        return False
    data = np.frombuffer(data_buffer, np.uint8)
    for start in range(0, len(chunk), _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, len(chunk))
        _hash_block(
            data, offsets[start : stop + 1], lengths[start:stop].astype(np.int64), found[start:stop]
        )
    return True


def _hash_block(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[Any],  # Any: integers of the width that the texts need
    lengths: npt.NDArray[np.int64],
    found: Hashes,
) -> None:
    first, last = int(offsets[0]), int(offsets[-1])
    # Eight bytes more, so that a word that begins in the last text ends in the copy.
    copy = np.zeros(last - first + _WORD_BYTES, np.uint8)
    copy[: last - first] = data[first:last]
    words = np.ndarray((last - first + 1,), "<u8", copy, strides=(1,))
    starts = offsets[:-1].astype(np.int64) - first
    found[:] = lengths.astype(np.uint64)
    found *= np.uint64(_LENGTH_FACTOR)
    shortest, longest = int(lengths.min()), int(lengths.max())
    for done in range(0, longest, _WORD_BYTES):
        if shortest >= done + _WORD_BYTES:
            _mix(found, words[starts + done])
        elif shortest > done:
            _mix(found, _mask_last_words(words, starts + done, lengths - done))
        else:
            rows = np.flatnonzero(lengths > done)
            mixed = found[rows]
            _mix(mixed, _mask_last_words(words, starts[rows] + done, lengths[rows] - done))
            found[rows] = mixed


def _mask_last_words(
    words: Hashes, places: npt.NDArray[np.int64], left: npt.NDArray[np.int64]
) -> Hashes:
    """Words of which only so many bytes belong to their text."""
    spare = np.maximum(_WORD_BYTES - left, 0) * 8
    taken: Hashes = words[places] << spare.astype(np.uint64)
    return taken


def _mix(hashes: Hashes, words: Hashes) -> None:
    hashes ^= words
    hashes *= np.uint64(_MIX_FACTOR)
    hashes ^= hashes >> np.uint64(_HALF)
    hashes *= np.uint64(_LAST_FACTOR)


def are_distinct(texts: pa.ChunkedArray) -> bool:
    """Whether no text is there twice; nulls do not count."""
    return len(find_repeated(texts)) == 0


def find_repeated(texts: pa.ChunkedArray) -> pa.Array:
    """Every text that is there more than once, each once."""
    known = texts.drop_null() if texts.null_count else texts
    hashes = hash_texts(known)
    if hashes is None:
        suspects = known
    else:
        # Half of each hash sorts twice as fast, and still leaves a handful of suspects.
        halves = (hashes >> _HALF_BITS).astype(np.uint32)
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
    may_be_shared[shared >> _QUARTER_BITS] = True
    is_among: npt.NDArray[np.bool_] = may_be_shared[halves >> _QUARTER_BITS]
    is_among[is_among] = np.isin(halves[is_among], shared)
    return is_among


def hash_any_texts(texts: pa.Array | pa.ChunkedArray) -> Hashes:
    """The hash of each text; none of them is null."""
    found = hash_texts(texts)
    if found is not None:
        return found
    # Texts this long are rare, and are hashed one by one.
    is_long = pc.greater(pc.binary_length(texts), TEXT_BYTES_MAX)
    short = hash_texts(pc.if_else(is_long, "", texts))
    assert short is not None, "an empty text is short"
    places = np.flatnonzero(is_long.to_numpy(zero_copy_only=False))
    short[places] = [_hash_long_text(text) for text in texts.filter(is_long).to_pylist()]
    return short


def hash_any_text(text: str) -> int:
    """The hash of one text, the same."""
    return hash_text(text) if len(text.encode()) <= TEXT_BYTES_MAX else _hash_long_text(text)


def _hash_long_text(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
