"""The texts of some rows, turned around: for each token the rows that have it, and how often."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.search.field_index import Integers, Mask, RowIds
from omnigraph.rows.comparison import Values, to_numpy
from omnigraph.rows.stoppable_call import call_stoppably
from omnigraph.rows.text_analysis import Analyzer, Codes, analyze_text, tokenize_texts
from omnigraph.rows.vocabulary import Vocabulary

# The length of a text that is null, which is not a document.
NO_TEXT: Final = -1


class Posting(NamedTuple):
    """The rows with a token, as places in a segment, and how often each has it."""

    row_indices: Codes
    frequencies: Codes


@dataclass(frozen=True)
class TextSegment:
    """The texts of rows, in the order of their row ids."""

    row_ids: RowIds
    # How many tokens each text has.
    lengths: Codes
    vocabulary: Vocabulary
    # The postings of a token lie from the start of its code to the start of the next one.
    starts: Integers
    places: Codes
    frequencies: Codes

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        arrays = (self.row_ids, self.lengths, self.starts, self.places, self.frequencies)
        return sum(each.nbytes for each in arrays) + self.vocabulary.nbytes

    @property
    def blank_rows(self) -> RowIds:
        """None: a row without a text counts too."""
        return np.empty(0, np.uint64)

    @cached_property
    def totals(self) -> tuple[int, int]:
        """How many texts there are, and how many tokens they have together."""
        return totals_of(self.lengths)

    def get_posting(self, code: int) -> Posting:
        """The rows with a token."""
        here = slice(int(self.starts[code]), int(self.starts[code + 1]))
        return Posting(self.places[here], self.frequencies[here])

    def find_rows_with(self, codes: Iterable[int]) -> Codes:
        """The rows that have one of some tokens, each maybe more than once."""
        if isinstance(codes, range):
            # The postings of tokens that follow each other do so too.
            return self.places[self.starts[codes.start] : self.starts[codes.stop]]
        found = [self.get_posting(code).row_indices for code in codes]
        return np.concatenate(found) if found else np.empty(0, np.int32)


def totals_of(lengths: Codes) -> tuple[int, int]:
    """How many texts there are, of those with these lengths, and their tokens together."""
    known = lengths[lengths != NO_TEXT]
    return len(known), int(known.sum(dtype=np.int64))


def build_text_segment(
    row_ids: RowIds,
    texts: Values,
    analyze: Analyzer = analyze_text,
    *,
    check: Callable[[], None] = lambda: None,
) -> TextSegment:
    """The segment of texts, whose row ids are ascending."""
    tokens = tokenize_texts(texts, analyze, check=check)
    lengths = np.bincount(tokens.texts, minlength=len(row_ids)).astype(np.int32)
    lengths[to_numpy(texts.is_null())] = NO_TEXT
    check()
    order = pc.array_sort_indices(pa.array(tokens.vocabulary, pa.utf8()))
    codes = np.empty(len(order), np.int64)
    codes[order.to_numpy()] = np.arange(len(order))
    keys = codes.take(tokens.codes) * len(row_ids) + tokens.texts
    keys = call_stoppably(lambda: np.sort(keys), check, nbytes=keys.nbytes)
    check()
    firsts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else keys
    frequencies = np.diff(np.append(firsts, len(keys))).astype(np.int32)
    vocabulary = Vocabulary(pa.array(tokens.vocabulary, pa.utf8()).take(order))
    return _build_segment(
        row_ids, lengths, vocabulary, keys=keys.take(firsts), frequencies=frequencies
    )


def merge_text_segments(
    segments: Sequence[TextSegment], alive: Sequence[Mask | None]
) -> TextSegment:
    """One segment for several, without the rows that are gone."""
    is_alive = np.concatenate(
        [
            np.ones(len(segment.row_ids), np.bool_) if mask is None else mask
            for segment, mask in zip(segments, alive, strict=True)
        ]
    )
    row_ids = np.concatenate([segment.row_ids for segment in segments])
    lengths = np.concatenate([segment.lengths for segment in segments])
    order = np.argsort(row_ids, kind="stable")
    order = order[is_alive[order]]
    # Where each row of the old segments is in the new one; rows that are gone have no place.
    new_places = np.full(len(row_ids), -1, np.int64)
    new_places[order] = np.arange(len(order))
    tokens = pa.chunked_array([segment.vocabulary.tokens for segment in segments]).unique()
    tokens = tokens.take(pc.array_sort_indices(tokens))
    keys: list[Integers] = []
    frequencies: list[Codes] = []
    before = 0
    for segment in segments:
        codes = pc.index_in(segment.vocabulary.tokens, value_set=tokens).to_numpy()
        places = new_places.take(segment.places + np.int64(before))
        kept = places >= 0
        of_postings = np.repeat(codes.astype(np.int64), np.diff(segment.starts))
        keys.append((of_postings * len(order) + places)[kept])
        frequencies.append(segment.frequencies[kept])
        before += len(segment.row_ids)
    joined = np.concatenate(keys)
    by_key = np.argsort(joined, kind="stable")
    return _build_segment(
        row_ids[order],
        lengths[order],
        Vocabulary(tokens),
        keys=joined.take(by_key),
        frequencies=np.concatenate(frequencies).take(by_key),
    )


def _build_segment(
    row_ids: RowIds, lengths: Codes, vocabulary: Vocabulary, *, keys: Integers, frequencies: Codes
) -> TextSegment:
    """A segment of postings in order, each of which is a code and a place in one number."""
    firsts = np.arange(len(vocabulary) + 1) * len(row_ids)
    starts = np.searchsorted(keys, firsts)
    places = (keys % len(row_ids)).astype(np.int32) if len(keys) else np.empty(0, np.int32)
    return TextSegment(row_ids, lengths, vocabulary, starts, places, frequencies)
