"""Texts to numbers: as a dictionary would say, for one text and for many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.execution.sources.topology import text_index
from omnigraph.execution.sources.topology.text_arrays import (
    ChainedIndex,
    TextArray,
    build_ranks,
    grow_index,
    text_array_of,
)
from omnigraph.execution.sources.topology.text_index import FEW_TEXTS, TextIndex
from omnigraph.rows import hashing
from omnigraph.rows.hashing import TEXT_BYTES_MAX, Hashes, hash_text, hash_texts

words = st.text(max_size=20) | st.text(alphabet="ab", min_size=7, max_size=9)
# Texts without the longest common parts would hardly ever share the first words of a hash.
many_words = st.lists(words, unique=True, max_size=60)


def array(values: Sequence[str | None], *, is_large: bool = False) -> pa.Array:
    return pa.array(values, pa.large_string() if is_large else pa.utf8())


@given(st.lists(words, max_size=40), st.booleans(), st.integers(0, 3))
def test_one_text_and_a_column_of_texts_have_the_same_hashes(
    values: list[str], is_large: bool, start: int
) -> None:
    texts = array(values, is_large=is_large)
    found = hash_texts(texts)
    assert found is not None
    assert found.tolist() == [hash_text(text) for text in values]
    part = hash_texts(pa.chunked_array([texts.slice(start), texts.slice(0, start)], texts.type))
    assert part is not None
    assert part.tolist() == [hash_text(text) for text in (*values[start:], *values[:start])]


def test_hashes_do_not_depend_on_where_a_block_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = array([f"{'x' * (number % 30)}{number}" for number in range(1_000)])
    whole = hash_texts(texts)
    monkeypatch.setattr(hashing, "_BLOCK_ROWS", 7)
    parts = hash_texts(texts)
    assert whole is not None
    assert parts is not None
    assert whole.tolist() == parts.tolist()
    assert len(set(whole.tolist())) == 1_000


def test_very_long_texts_are_not_hashed_but_found() -> None:
    long = "x" * (TEXT_BYTES_MAX + 1)
    assert hash_texts(array(["a", long])) is None
    index = text_index.build_text_index(array(["a", long, "b"]))
    assert index.table is None
    check(index, ["a", long, "b"], ["a", long, "c", "b", None] * 5)


@given(many_words, st.lists(words | st.none(), max_size=3 * FEW_TEXTS))
def test_an_index_finds_what_a_dictionary_finds(
    values: list[str], others: list[str | None]
) -> None:
    index = text_index.build_text_index(array(values))
    for asked in ([*others, *values], others[:3], values[:3], [], values * 3):
        check(index, values, asked)


@given(many_words, st.lists(words | st.none(), max_size=40))
def test_hashes_that_collide_change_no_answer(values: list[str], others: list[str | None]) -> None:
    def two_bits(texts: pa.Array) -> Hashes:
        found = hash_texts(texts)
        assert found is not None
        return found & np.uint64(0b11 << 62)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_index, "hash_text", lambda text: hash_text(text) & (0b11 << 62))
        patch.setattr(text_index, "hash_texts", two_bits)
        index = text_index.build_text_index(array(values))
        assert len(values) < 5 or index.table is None
        check(index, values, [*others, *values])


@given(many_words, st.data())
def test_nulls_and_numbers_that_are_left_out_are_not_found(
    values: list[str], data: st.DataObject
) -> None:
    places = st.lists(st.integers(0, max(len(values) - 1, 0)), unique=True, max_size=len(values))
    gone, unwanted = data.draw(places), data.draw(places)
    texts = [None if place in gone else text for place, text in enumerate(values)]
    among = np.array([each for each in range(len(values)) if each not in unwanted], np.int32)
    index = text_index.build_text_index(array(texts), among)
    expected = [-1 if each in {*gone, *unwanted} else each for each in range(len(values))]
    assert index.find(array(values)).tolist() == expected


@given(many_words, st.integers(0, 60), st.lists(words, max_size=40), st.booleans())
def test_an_index_that_grew_finds_what_a_whole_one_finds(
    values: list[str], count: int, others: list[str], is_together: bool
) -> None:
    count = min(count, len(values))
    base = text_index.build_text_index(array(values[:count]))
    texts = TextArray(array(values[:count]), array(values[count:]))
    among = np.arange(len(values), dtype=np.int32)
    if is_together:
        found = grow_index(texts, among, base)
    else:
        # In two steps, beside a branch that goes another way.
        first = ChainedIndex(base).extend(array(values[count : count + 2]))
        first.extend(array(["other way"]))
        found = first.extend(array(values[count + 2 :]))
    numbers = {text: number for number, text in enumerate(values)}
    asked = [*values, *others]
    expected = [numbers.get(text, -1) for text in asked]
    assert found.find(array(asked)).tolist() == expected
    assert [found.find_one(text) for text in asked] == expected
    assert found.find_known(pa.chunked_array([array(values)])).tolist() == list(range(len(values)))
    if is_together:
        assert found.tail is None


def test_an_id_that_comes_back_has_its_new_number() -> None:
    base = text_index.build_text_index(array(["a", "b", "c"]))
    texts = TextArray(array(["a", "b", "c"]), array(["b"]))
    among = np.array([0, 2, 3], np.int32)
    for found in (grow_index(texts, among, base), ChainedIndex(base).extend(array(["b"]))):
        assert found.find(array(["a", "b", "c"])).tolist() == [0, 3, 2]
        assert found.find_known(array(["c", "b"] * 10)).tolist() == [2, 3] * 10
        assert found.find_one("b") == 3


@given(st.lists(st.none() | words, max_size=40), st.integers(0, 40), st.lists(st.integers(0, 39)))
def test_texts_in_two_arrays_are_taken_as_from_one(
    values: list[str | None], count: int, places: list[int]
) -> None:
    texts = TextArray(array(values[:count]), array(values[count:]))
    at = np.array([place for place in places if place < len(values)], np.int32)
    assert texts.take(at).to_pylist() == [values[place] for place in at]
    assert texts.whole.to_pylist() == values
    assert len(texts) == len(values)


@given(many_words, st.integers(0, 60), st.sets(st.integers(0, 59)))
def test_ranks_compare_as_texts_do_however_they_came(
    values: list[str], count: int, gone: set[int]
) -> None:
    known: list[str | None] = [None if place in gone else text for place, text in enumerate(values)]
    base = build_ranks(text_array_of(array(known[:count])))
    grown = base.extend(TextArray(array(known[:count]), array(known[count : count + 3])))
    grown.take(np.arange(min(count, len(known)), min(count + 3, len(known)), dtype=np.int32))
    grown = grown.extend(TextArray(array(known[:count]), array(known[count:])))
    at = np.array([place for place, text in enumerate(known) if text is not None], np.int32)
    expected = sorted(at.tolist(), key=lambda place: values[place].encode())
    for found in (grown, grown.settle()):
        assert at[np.argsort(found.take(at))].tolist() == expected
        assert len(set(found.take(at).tolist())) == len(at)
    # Ranks of texts that nobody knows any more.
    base = build_ranks(text_array_of(array(values[:count])))
    again = base.extend(TextArray(array(known[:count]), array(known[count:])))
    for found in (again, again.settle()):
        assert at[np.argsort(found.take(at))].tolist() == expected


def check(index: TextIndex, values: list[str], asked: Sequence[str | None]) -> None:
    numbers = {text: number for number, text in enumerate(values)}
    expected = [-1 if text is None else numbers.get(text, -1) for text in asked]
    assert index.find(array(asked)).tolist() == expected
    assert [index.find_one(text) for text in asked] == expected
