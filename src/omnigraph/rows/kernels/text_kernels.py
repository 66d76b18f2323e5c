"""Functions of texts, by code points."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.comparison import Poll, Values, flatten_chunks, to_numpy
from omnigraph.rows.kernels.function_call import Argument, FunctionCall, Kernel, make_column
from omnigraph.rows.text_analysis import tokenize_texts

_Places = npt.NDArray[np.int64]

# A longer text is a mistake, and a column of them would fill the memory.
WIDTH_MAX: Final = 1_000_000
# The rows that Python works on between two polls: each may take a microsecond.
_ROWS_PER_POLL: Final = 2**14
# Each letter of one text is compared with all of the other.
_LETTERS_PER_POLL: Final = 64
# The bytes that follow the first one of a character in UTF-8.
_FOLLOWING_MASK, _FOLLOWING = np.uint8(0xC0), np.uint8(0x80)


def _apply_arrow(function: Callable[..., Any]) -> Kernel:
    """A function of Arrow on its own."""
    return lambda call: function(call.arguments[0])


def map_rows(call: FunctionCall, compute: Callable[..., Any]) -> pa.Array:
    """A function of Python at each row: Arrow has none that takes columns here."""
    columns = [call.read_column(place) for place in range(len(call.arguments))]
    found: list[Any] = []
    for start in range(0, call.rows, _ROWS_PER_POLL):
        call.poll()
        parts = (each.slice(start, _ROWS_PER_POLL).to_pylist() for each in columns)
        found += [None if None in row else compute(*row) for row in zip(*parts, strict=True)]
    return pa.array(found, call.result)


def find_constant(value: Argument) -> Any:
    """The value of an argument that is the same at every row; None if it is a column."""
    return value.as_py() if isinstance(value, pa.Scalar) else None


def join_texts(call: FunctionCall) -> Argument:
    """Two texts, one after the other."""
    call.require_room(sum(_count_bytes(each, call.rows) for each in call.arguments))
    return pc.binary_join_element_wise(*call.arguments, "")


def _count_bytes(texts: Argument, rows: int) -> int:
    """How many bytes texts have at so many rows."""
    times = rows if isinstance(texts, pa.Scalar) else 1
    total: int = pc.sum(pc.binary_length(make_column(texts, 1))).as_py() or 0
    return total * times


def _replace(call: FunctionCall) -> Argument:
    part, other = find_constant(call.arguments[1]), find_constant(call.arguments[2])
    if part is None or other is None:
        return map_rows(call, lambda text, old, new: text.replace(old, new) if old else text)
    if not part:
        return call.arguments[0]
    growth = len(other.encode()) - len(part.encode())
    if growth > 0:
        times = pc.sum(pc.count_substring(call.read_column(0), pattern=part)).as_py() or 0
        call.require_room(times * growth)
    return pc.replace_substring(call.arguments[0], pattern=part, replacement=other)


def _split(call: FunctionCall) -> Argument:
    separator = find_constant(call.arguments[1])
    if separator is None:
        return map_rows(call, lambda text, sign: text.split(sign) if sign else None)
    if not separator:
        return pa.nulls(call.rows, call.result)
    found = pc.split_pattern(call.read_column(0), pattern=separator)
    return found.cast(call.result)


def _join(call: FunctionCall) -> Argument:
    """The texts of a list with something between them; nulls are left out."""
    lists = call.read_column(0)
    kept = lists if not lists.values.null_count else _drop_null_items(lists)
    separator = call.arguments[1]
    if (text := find_constant(separator)) is not None:
        call.require_room(len(text.encode()) * (len(kept.flatten()) - len(kept)))
    found = pc.binary_join(kept, separator)
    return pc.if_else(lists.is_valid(), found, pa.scalar(None, found.type))


def _drop_null_items(lists: pa.Array) -> pa.Array:
    items = lists.flatten()
    parents = to_numpy(pc.list_parent_indices(lists))
    is_known = to_numpy(items.is_valid())
    counts = np.bincount(parents[is_known], minlength=len(lists))
    offsets = np.append(0, np.cumsum(counts)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items.filter(pa.array(is_known)))


def _find_position(call: FunctionCall) -> Argument:
    part = find_constant(call.arguments[1])
    if part is None:
        return map_rows(call, lambda text, sign: _position_of(text.find(sign)))
    texts = call.read_column(0)
    at = pc.find_substring(texts, pattern=part)
    before = pc.utf8_length(_cut_bytes(texts, to_numpy(at).astype(np.int64)))
    found = pc.if_else(pc.greater_equal(at, 0), before, pa.scalar(None, before.type))
    return found.cast(call.result)


def _position_of(found: int) -> int | None:
    return found if found >= 0 else None


def _cut_bytes(texts: pa.Array, lengths: _Places) -> pa.Array:
    """The first bytes of each text."""
    starts = _offsets_of(texts)[:-1]
    return _take_bytes(texts, starts, starts + np.maximum(lengths, 0))


def _offsets_of(texts: pa.Array) -> _Places:
    offsets = np.frombuffer(texts.buffers()[1], np.int32)
    return offsets[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)


def _bytes_of(texts: pa.Array) -> npt.NDArray[np.uint8]:
    data = texts.buffers()[2]
    return np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)


def _take_bytes(texts: pa.Array, starts: _Places, ends: _Places) -> pa.Array:
    """Texts of some of the bytes of others; nulls stay null."""
    lengths = np.maximum(ends - starts, 0)
    offsets = np.append(0, np.cumsum(lengths))
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    data = pa.py_buffer(_bytes_of(texts)[places].tobytes())
    kept = pa.Array.from_buffers(
        pa.utf8(), len(texts), [None, pa.py_buffer(offsets.astype(np.int32).tobytes()), data]
    )
    return pc.if_else(texts.is_valid(), kept, pa.scalar(None, pa.utf8()))


def slice_texts(texts: pa.Array, start: _Places, end: _Places | None) -> pa.Array:
    """The characters of each text from one place up to another; negative ones from the end."""
    is_first = (_bytes_of(texts) & _FOLLOWING_MASK) != _FOLLOWING
    # The place of each character, and the end of the last one.
    places = np.append(np.flatnonzero(is_first), len(is_first))
    ranks = np.append(0, np.cumsum(is_first))[_offsets_of(texts)]
    counts = np.diff(ranks)
    first, last = cut_range(counts, start, end)
    return _take_bytes(texts, places[ranks[:-1] + first], places[ranks[:-1] + last])


def cut_range(counts: _Places, start: _Places, end: _Places | None) -> tuple[_Places, _Places]:
    """A range within so many items: negative places count from the end, others are cut off."""

    def place(at: _Places) -> _Places:
        return np.clip(np.where(at < 0, at + counts, at), 0, counts)

    first = place(start)
    return first, counts if end is None else np.maximum(place(end), first)


def _slice(call: FunctionCall) -> Argument:
    texts = call.read_column(0)
    start = call.read_places(1)
    end = call.read_places(2) if len(call.arguments) > 2 else None
    found = slice_texts(texts, start, end)
    return drop_where_null(found, call)


def drop_where_null(found: Values, call: FunctionCall) -> Values:
    """The values with null where an argument is null."""
    nulls = call.find_nulls()
    if nulls is None:
        return found
    known = pa.array(~np.broadcast_to(nulls, call.rows))
    return pc.if_else(known, flatten_chunks(found), pa.scalar(None, found.type))


def _pad_left(call: FunctionCall) -> Argument:
    width, sign = find_constant(call.arguments[1]), find_constant(call.arguments[2])
    if width is None or sign is None:
        widths = np.broadcast_to(call.read_numbers(1).astype(np.float64), call.rows)
        call.require_room(widths.sum(where=(widths > 0) & (widths <= WIDTH_MAX)))
        return map_rows(call, _pad)
    if len(sign) != 1 or width > WIDTH_MAX:
        return pa.nulls(call.rows, call.result)
    call.require_room(width * call.rows)
    return pc.utf8_lpad(call.arguments[0], width=max(width, 0), padding=sign)


def _pad(text: str, width: int, sign: str) -> str | None:
    return text.rjust(max(width, 0), sign) if len(sign) == 1 and width <= WIDTH_MAX else None


def _test_end(call: FunctionCall) -> Argument:
    end = find_constant(call.arguments[1])
    if end is None:
        return map_rows(call, str.endswith)
    return pc.ends_with(call.arguments[0], pattern=end)


def _cut_words(call: FunctionCall) -> Argument:
    texts = call.read_column(0)
    tokens = tokenize_texts(texts, check=call.poll)
    counts = np.bincount(tokens.texts, minlength=len(texts))
    offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    words = pa.array(tokens.vocabulary, pa.utf8()).take(pa.array(tokens.codes))
    found = pa.ListArray.from_arrays(offsets, words).cast(call.result)
    return drop_where_null(found, call)


def _count_edits(call: FunctionCall) -> Argument:
    """The least number of characters to insert, remove or replace."""
    return map_rows(call, partial(_edit_distance, call.poll))


def _edit_distance(poll: Poll, left: str, right: str) -> int:
    one = np.array(list(map(ord, left)), np.int64)
    other = np.array(list(map(ord, right)), np.int64)
    places = np.arange(len(other) + 1)
    found = places
    for number, letter in enumerate(one, 1):
        if not number % _LETTERS_PER_POLL:
            poll()
        kept = np.minimum(found[1:] + 1, found[:-1] + (other != letter))
        best = np.append(number, kept)
        # What is inserted follows the best that is before it.
        found = np.minimum.accumulate(best - places) + places
    return int(found[-1])


TEXT_KERNELS: Final[dict[str, Kernel]] = {
    "lower": _apply_arrow(pc.utf8_lower),
    "upper": _apply_arrow(pc.utf8_upper),
    "trim": _apply_arrow(pc.utf8_trim_whitespace),
    "length": lambda call: pc.utf8_length(call.arguments[0]).cast(call.result),
    "slice": _slice,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "position": _find_position,
    "pad_left": _pad_left,
    "ends_with": _test_end,
    "words": _cut_words,
    "edit_distance": _count_edits,
}
