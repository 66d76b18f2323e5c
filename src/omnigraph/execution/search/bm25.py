"""How well texts fit a query: BM25, with the statistics of the whole field."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.execution.search.field import Field
from omnigraph.execution.search.segment_types import Mask
from omnigraph.execution.search.text_segment import TextSegment, totals_of
from omnigraph.execution.text import analyze
from omnigraph.execution.tokens import Codes
from omnigraph.execution.vocabulary import ABSENT

TextField: TypeAlias = Field[TextSegment]
Scores: TypeAlias = npt.NDArray[np.float64]

K1: Final = 1.2
B: Final = 0.75


def bm25_scores(field: TextField, query: str | None) -> Scores:
    """The score of every row of a field, by place; zero for rows without a token of the query."""
    scores = np.zeros(field.starts[-1])
    wanted = sorted(set(analyze(query or "")))
    if not wanted:
        return scores
    documents, total = _statistics(field)
    for token in wanted:
        places, frequencies, lengths = _posting(field, token)
        if not len(places):
            continue
        # In this order of operations every engine gets the same bits.
        rarity = math.log(1 + (documents - len(places) + 0.5) / (len(places) + 0.5))
        norms = K1 * (1 - B + B * (lengths.astype(np.int64) * documents / total))
        scores[places] += rarity * frequencies * (K1 + 1) / (frequencies + norms)
    return scores


def matching_rows(field: TextField, query: str | None, edits: int) -> Mask:
    """Which rows have a token within so many edits of a token of the query, by place."""
    found = np.zeros(field.starts[-1], np.bool_)
    wanted = sorted(set(analyze(query or "")))
    for start, segment in zip(field.starts, field.segments, strict=False):
        found[segment.having(_codes(segment, wanted, edits)) + np.int64(start)] = True
    return found


def _codes(segment: TextSegment, wanted: list[str], edits: int) -> Iterable[int]:
    if edits:
        return map(int, segment.vocabulary.near(wanted, edits))
    return [code for code in map(segment.vocabulary.code, wanted) if code != ABSENT]


def _statistics(field: TextField) -> tuple[int, int]:
    """How many texts there are, and how many tokens they have together."""
    parts = [
        segment.totals if alive is None else totals_of(segment.lengths[alive])
        for segment, alive in zip(field.segments, field.alive, strict=True)
    ]
    return sum(documents for documents, _ in parts), sum(tokens for _, tokens in parts)


def _posting(field: TextField, token: str) -> tuple[Codes, Codes, Codes]:
    """The rows with a token, by place: how often each has it, and its length."""
    found: list[tuple[Codes, Codes, Codes]] = []
    for start, segment, alive in zip(field.starts, field.segments, field.alive, strict=False):
        code = segment.vocabulary.code(token)
        if code == ABSENT:
            continue
        places, frequencies = segment.posting(code)
        if alive is not None:
            is_alive = alive.take(places)
            places, frequencies = places[is_alive], frequencies[is_alive]
        found.append((places + np.int32(start), frequencies, segment.lengths.take(places)))
    if len(found) == 1:
        return found[0]
    nothing: Codes = np.empty(0, np.int32)
    columns = zip(*found, strict=True) if found else ((nothing,),) * 3
    all_places, frequencies, lengths = map(np.concatenate, columns)
    return all_places, frequencies, lengths
