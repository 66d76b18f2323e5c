"""Texts with the words of a query marked: they are cut at the words, and joined with the marks."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.comparison import Poll, flatten_chunks
from omnigraph.rows.kernels.function_call import FunctionCall
from omnigraph.rows.kernels.text_kernels import find_constant
from omnigraph.rows.text_analysis import (
    RUNS_PER_CHECK,
    WORD,
    analyze_text,
    offsets_of,
    split_blocks,
    split_runs,
)

_Places = npt.NDArray[np.int64]

BEFORE: Final = "«"
AFTER: Final = "»"


class _Words(NamedTuple):
    """The words of texts in order: their text, their bytes, and whether they are looked for."""

    texts: _Places
    starts: _Places
    ends: _Places
    is_hit: npt.NDArray[np.bool_]


def mark_texts(call: FunctionCall) -> pa.Array:
    """The texts with marks around the words of a query, cut to so many words."""
    query, before, after, words_max = map(find_constant, call.arguments[1:])
    if query is None or (words_max is not None and words_max < 1):
        return pa.nulls(call.rows, call.result)
    marks = (BEFORE if before is None else before, AFTER if after is None else after)
    wanted = frozenset(analyze_text(query))
    texts = call.read_column(0)
    found = [pa.array([], pa.utf8())]
    for block in split_blocks(texts):
        call.poll()
        known = block.fill_null("")
        words = _find_words(known, wanted, call.poll)
        call.require_room(int(np.count_nonzero(words.is_hit)) * len("".join(marks).encode()))
        starts, ends = _choose_windows(known, words, words_max)
        found.append(_mark_words(known, words, (starts, ends), marks))
    marked = flatten_chunks(pa.chunked_array(found, pa.utf8()))
    return pc.if_else(texts.is_valid(), marked, pa.scalar(None, pa.utf8()))


def _find_words(texts: pa.Array, wanted: frozenset[str], poll: Poll) -> _Words:
    """The words of texts; each distinct run of letters is analysed once."""
    runs = split_runs(texts)
    counts, parts = [], []
    for number, run in enumerate(runs.texts.dictionary.to_pylist()):
        if not number % RUNS_PER_CHECK:
            poll()
        own = list(WORD.finditer(run))
        counts.append(len(own))
        parts += [
            (
                len(run[: each.start()].encode()),
                len(run[: each.end()].encode()),
                not wanted.isdisjoint(analyze_text(each.group())),
            )
            for each in own
        ]
    known = np.array(parts, np.int64).reshape(-1, 3)
    counted = np.array(counts, np.int64)
    indices = runs.texts.indices.to_numpy()
    repeats = counted[indices]
    places = np.repeat((np.cumsum(counted) - counted)[indices], repeats)
    places += np.arange(len(places)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    run_starts = np.repeat(runs.starts, repeats)
    text_indices = np.repeat(np.repeat(np.arange(len(texts)), runs.counts), repeats)
    found = known[places]
    return _Words(
        text_indices, run_starts + found[:, 0], run_starts + found[:, 1], found[:, 2] != 0
    )


def _choose_windows(
    texts: pa.Array, words: _Words, words_max: int | None
) -> tuple[_Places, _Places]:
    """From which byte to which each text is shown: around its first hit, if it is cut."""
    offsets = offsets_of(texts)
    starts, ends = offsets[:-1] - offsets[0], offsets[1:] - offsets[0]
    if words_max is None or not len(words.texts):
        return starts, ends
    counts = np.bincount(words.texts, minlength=len(texts))
    firsts = np.cumsum(counts) - counts
    hits = np.flatnonzero(words.is_hit)[::-1]
    first_hits = np.zeros(len(texts), np.int64)
    # Written from the last to the first, so that the first one stays.
    first_hits[words.texts[hits]] = hits - firsts[words.texts[hits]]
    low = np.clip(first_hits - (words_max - 1) // 2, 0, np.maximum(counts - words_max, 0))
    high = np.minimum(low + words_max, counts)
    last = len(words.texts) - 1
    return (
        np.where(low > 0, words.starts[np.minimum(firsts + low, last)], starts),
        np.where(high < counts, words.ends[np.minimum(firsts + high - 1, last)], ends),
    )


def _mark_words(
    texts: pa.Array, words: _Words, windows: tuple[_Places, _Places], marks: tuple[str, str]
) -> pa.Array:
    """The texts between their windows' ends, cut at each hit and joined again."""
    starts, ends = windows
    is_shown = words.is_hit & (words.starts >= starts[words.texts])
    hits = np.flatnonzero(is_shown & (words.ends <= ends[words.texts]))
    own = np.arange(len(texts))
    cuts = np.concatenate([starts, words.starts[hits], words.ends[hits], ends])
    of_text = np.concatenate([own, words.texts[hits], words.texts[hits], own])
    kinds = np.repeat([0, 1, 2, 3], [len(own), len(hits), len(hits), len(own)])
    order = np.lexsort([kinds, cuts, of_text])
    cuts, of_text, kinds = cuts[order] + offsets_of(texts)[0], of_text[order], kinds[order]
    pieces = pa.StringArray.from_buffers(
        max(len(cuts) - 1, 0), pa.py_buffer(cuts.astype(np.int32)), texts.buffers()[2]
    )
    is_own = of_text[1:] == of_text[:-1]
    pieces, is_hit = pieces.filter(pa.array(is_own)), pa.array(kinds[:-1][is_own] == 1)
    marked = pc.if_else(is_hit, pc.binary_join_element_wise(marks[0], pieces, marks[1], ""), pieces)
    counts = np.bincount(of_text[:-1][is_own], minlength=len(texts))
    offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    return pc.binary_join(pa.ListArray.from_arrays(offsets, marked), "")
