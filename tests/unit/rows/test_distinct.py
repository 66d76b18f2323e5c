"""Texts are told apart by hashes exactly as by comparison."""

from __future__ import annotations

import string
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.rows import hashing
from omnigraph.rows.hashing import TEXT_BYTES_MAX, are_distinct, find_repeated

texts = st.lists(
    st.lists(st.one_of(st.none(), st.text(alphabet="ab\x00é", max_size=20)), max_size=30),
    min_size=1,
    max_size=4,
)


@given(texts, st.sampled_from([pa.utf8(), pa.large_utf8()]))
def test_what_is_there_twice_is_found(chunks: list[list[str | None]], kind: pa.DataType) -> None:
    array = pa.chunked_array([pa.array(chunk, kind) for chunk in chunks], kind)
    counts = Counter(each for chunk in chunks for each in chunk if each is not None)
    expected = {text for text, count in counts.items() if count > 1}
    assert set(find_repeated(array).to_pylist()) == expected
    assert are_distinct(array) is not bool(expected)


def test_a_slice_is_hashed_by_its_own_texts() -> None:
    array = pa.array(["x", "a", "b", "a", "y"])
    assert are_distinct(pa.chunked_array([array.slice(1, 2), array.slice(3, 0)]))
    assert find_repeated(pa.chunked_array([array.slice(1, 3)])).to_pylist() == ["a"]


def test_long_texts_are_compared_without_hashes() -> None:
    long = "x" * (TEXT_BYTES_MAX + 1)
    assert find_repeated(pa.chunked_array([[long, "a", long]])).to_pylist() == [long]


def test_equal_hashes_of_different_texts_are_no_repetition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hashing, "_MIX_FACTOR", 0)
    array = pa.chunked_array([[*string.ascii_letters, "a"]])
    assert find_repeated(array).to_pylist() == ["a"]
