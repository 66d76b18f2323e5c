"""Tests of columns of texts: many parts at once as one by one, and as long as nothing stops it."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.rows import text_analysis, text_predicates
from omnigraph.rows.comparison import Values
from omnigraph.rows.text_predicates import contains, contains_any, has_prefix

# Letters that mean something in a pattern, and some that take several bytes.
letters = st.text(st.sampled_from("ab\\.*+?|()[]{}^$-#& \n\t\0éß東😀QE0"), max_size=4)


@given(st.lists(letters | st.none(), max_size=8), st.lists(letters, min_size=1, max_size=80))
def test_any_of_many_parts_is_where_one_of_them_is(
    texts: list[str | None], parts: list[str]
) -> None:
    found = contains_any(pa.array(texts, pa.utf8()), parts)
    expected = [None if text is None else any(part in text for part in parts) for text in texts]
    assert found.to_pylist() == expected


def test_parts_too_long_for_one_pattern_are_looked_for_apart() -> None:
    parts = [letter * 3_000 for letter in "abc"] + [f"z{number}" for number in range(200)]
    texts = pa.array(["x" + "b" * 3_000, "b" * 2_999, "az199", None, "y"])
    assert contains_any(texts, parts).to_pylist() == [True, False, True, None, False]


@pytest.mark.parametrize(
    "test",
    [
        lambda texts, poll: contains(texts, "7", poll),
        lambda texts, poll: contains_any(texts, ["17", "27"], poll),
        lambda texts, poll: has_prefix(texts, "text 7", poll),
        lambda texts, poll: contains(texts, texts, poll),
        lambda texts, poll: contains("a text 7", texts, poll),
    ],
    ids=["part", "parts", "prefix", "pairs", "pairs with a constant"],
)
def test_many_bytes_of_texts_are_tested_in_blocks(
    monkeypatch: pytest.MonkeyPatch, test: Callable[[Values, Callable[[], None]], Values]
) -> None:
    texts = pa.array([*(f"text {number}" for number in range(1_000)), None])
    whole = test(texts, lambda: None)
    polls: list[None] = []
    monkeypatch.setattr(text_analysis, "BLOCK_BYTES", 200)
    monkeypatch.setattr(text_predicates, "BLOCK_BYTES", 200)
    assert test(texts, lambda: polls.append(None)).to_pylist() == whole.to_pylist()
    assert len(polls) > 30
