"""Fields over versions: segments that are shared, masked, added and merged."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from model import search as model
from omnigraph.execution.search import field_index as module
from omnigraph.execution.search.bm25 import TextField, score_bm25
from omnigraph.execution.search.field_index import RowIds, extend_index, make_single_segment
from omnigraph.execution.search.text_filter import match_rows
from omnigraph.execution.search.text_segment import (
    TextSegment,
    build_text_segment,
    merge_text_segments,
)
from omnigraph.query.ast import TextFunction
from omnigraph.rows.text_search import TextQuery
from unit.execution.search.searched import WORDS, some_text

Texts = dict[int, str | None]


def segment_of(texts: Texts, row_ids: Sequence[int]) -> TextSegment:
    ordered = sorted(row_ids)
    values = pa.array([texts[row] for row in ordered], pa.utf8())
    return build_text_segment(np.array(ordered, np.uint64), values)


def assert_is_field_of(field: TextField, texts: Texts, random: Random) -> None:
    rows = np.array(list(texts), np.uint64)
    places = field.find_row_indices(rows)
    assert (places >= 0).all()
    query = " ".join(random.choice(WORDS) for _ in range(3))
    scores = score_bm25(field, query).astype(np.float32).take(places)
    expected = model.bm25({str(row): text for row, text in texts.items()}, query)
    assert {str(row): float(score) for row, score in zip(rows, scores, strict=True) if score} == (
        expected
    )
    for edits in (0, 1, 2):
        wanted = TextQuery(TextFunction.FUZZY, query, edits)
        expected_rows = [
            model.matches(wanted.function, text, query, edits) is True for text in texts.values()
        ]
        assert match_rows(field, wanted).take(places).tolist() == expected_rows


@pytest.mark.parametrize("segments_max", [1, 3, 8])
@pytest.mark.parametrize("seed", range(4))
def test_a_field_follows_its_table(
    seed: int, segments_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SEGMENTS_MAX", segments_max)
    monkeypatch.setattr(module, "LOOSE_SHARE", 0.25 * (1 + seed % 2))
    random = Random(seed)
    texts: Texts = {row: some_text(random) for row in range(0, 40, 1 + seed % 2)}
    field = make_single_segment(segment_of(texts, list(texts)))
    made: list[int] = []
    next_row = 50

    def make(row_ids: RowIds) -> TextSegment:
        made.append(len(row_ids))
        return segment_of(texts, row_ids.tolist())

    for _ in range(12):
        for row in random.sample(list(texts), min(len(texts), random.randrange(4))):
            del texts[row]
        new = random.randrange(5)
        texts |= {row: some_text(random) for row in range(next_row, next_row + new)}
        next_row += new + random.randrange(3)
        row_ids = np.array(random.sample(list(texts), len(texts)), np.uint64)
        field = extend_index(field, row_ids, make=make, merge=merge_text_segments)
        assert len(field.segments) <= segments_max
        assert_is_field_of(field, texts, random)
    assert sum(made) < 12 * 5, "only new rows are read"


def test_a_field_can_lose_and_gain_everything() -> None:
    random = Random(1)
    texts: Texts = dict.fromkeys(range(5), "sea cats")
    field = make_single_segment(segment_of(texts, list(texts)))
    field = extend_index(
        field,
        np.empty(0, np.uint64),
        make=lambda _: pytest.fail("nothing"),
        merge=merge_text_segments,
    )
    assert_is_field_of(field, {}, random)
    new: Texts = dict.fromkeys(range(10, 14), "boats")
    field = extend_index(
        field,
        np.arange(10, 14, dtype=np.uint64),
        make=lambda rows: segment_of(new, rows.tolist()),
        merge=merge_text_segments,
    )
    assert_is_field_of(field, new, random)


def test_rows_that_are_not_in_a_field_have_no_place() -> None:
    texts: Texts = dict.fromkeys((3, 4, 5), "sea")
    together = make_single_segment(segment_of(texts, [3, 4, 5]))
    apart = make_single_segment(segment_of(texts | {9: "sea"}, [3, 5, 9]))
    rows = np.array([0, 3, 4, 5, 6, 9, 2**64 - 1], np.uint64)
    assert together.find_row_indices(rows).tolist() == [-1, 0, 1, 2, -1, -1, -1]
    assert apart.find_row_indices(rows).tolist() == [-1, 0, -1, 1, -1, 2, -1]
    nothing = make_single_segment(segment_of({}, []))
    assert nothing.find_row_indices(rows).tolist() == [-1] * 7
    assert score_bm25(nothing, "sea").tolist() == []
