"""How well texts fit a query: BM25, with the statistics of the whole field."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.execution.search.field_index import FieldIndex
from omnigraph.execution.search.text_segment import TextSegment, totals_of
from omnigraph.rows.comparison import Poll, skip_poll
from omnigraph.rows.text_analysis import Codes, analyze_text
from omnigraph.rows.vocabulary import ABSENT

TextField: TypeAlias = FieldIndex[TextSegment]
Scores: TypeAlias = npt.NDArray[np.float64]

K1: Final = 1.2
B: Final = 0.75


def score_bm25(field: TextField, query: str | None, poll: Poll = skip_poll) -> Scores:
    """The score of every row of a field, by place; zero for rows without a token of the query."""
    scores = np.zeros(field.starts[-1])
    wanted = sorted(set(analyze_text(query or "")))
    if not wanted:
        return scores
    documents, total = _compute_statistics(field)
    for token in wanted:
        poll()
        places, frequencies, lengths = _collect_postings(field, token)
        if not len(places):
            continue
        # In this order of operations every engine gets the same bits.
        rarity = math.log(1 + (documents - len(places) + 0.5) / (len(places) + 0.5))
        norms = K1 * (1 - B + B * (lengths.astype(np.int64) * documents / total))
        scores[places] += rarity * frequencies * (K1 + 1) / (frequencies + norms)
    return scores


def _compute_statistics(field: TextField) -> tuple[int, int]:
    """How many texts there are, and how many tokens they have together."""
    parts = [
        segment.totals if alive is None else totals_of(segment.lengths[alive])
        for segment, alive in zip(field.segments, field.alive, strict=True)
    ]
    return sum(documents for documents, _ in parts), sum(tokens for _, tokens in parts)


def _collect_postings(field: TextField, token: str) -> tuple[Codes, Codes, Codes]:
    """The rows with a token, by place: how often each has it, and its length."""
    found: list[tuple[Codes, Codes, Codes]] = []
    for start, segment, alive in zip(field.starts, field.segments, field.alive, strict=False):
        code = segment.vocabulary.find_code(token)
        if code == ABSENT:
            continue
        places, frequencies = segment.get_posting(code)
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
