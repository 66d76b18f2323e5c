"""A table of ids answers as a set of Python does."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from omnigraph.rows.hashing import Hashes, hash_any_text, hash_any_texts
from omnigraph.writers import key_cache
from omnigraph.writers.key_cache import FEW_MAX, ID_BYTES, IdTable


def test_it_has_what_it_was_made_of_and_nothing_else() -> None:
    chance = random.Random(5)
    texts = ["", "a", "é", "x" * 600, *(f"id-{number}" for number in range(3_000))]
    held = set(chance.sample(texts, 1_500)) | {"", "x" * 600}
    table = IdTable(pa.chunked_array([sorted(held)[:700], sorted(held)[700:]], pa.utf8()))
    assert len(table) == len(held)
    for count in (0, 1, FEW_MAX, FEW_MAX + 1, len(texts)):
        asked = chance.sample(texts, count)
        assert table.select_known(asked) == held.intersection(asked)


def test_a_changed_one_has_what_came_and_lacks_what_went() -> None:
    table = IdTable(pa.array([f"id-{number}" for number in range(100)]))
    gone, added = {"id-3", "id-99"}, {"new", "newer"}
    changed = table.with_changes(gone=gone, added=added)
    assert len(changed) == 100
    assert changed.select_known({*gone, *added, "id-4"}) == {*added, "id-4"}
    assert table.select_known({*gone, *added}) == gone


def test_an_empty_one_has_nothing() -> None:
    table = IdTable(pa.chunked_array([], pa.utf8()))
    assert (len(table), table.size, table.select_known(["a"])) == (0, 0, set())
    assert table.select_known([str(number) for number in range(50)]) == set()
    assert table.with_changes(gone=(), added=["a"]).select_known(["a", "b"]) == {"a"}


def test_those_who_share_a_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def few(texts: pa.Array) -> Hashes:
        hashes: Hashes = hash_any_texts(texts) % 3
        return hashes

    monkeypatch.setattr(key_cache, "hash_any_texts", few)
    monkeypatch.setattr(key_cache, "hash_any_text", lambda text: hash_any_text(text) % 3)
    table = IdTable(pa.array([f"id-{number}" for number in range(200)]))
    asked = [f"id-{number}" for number in range(150, 250)]
    assert table.select_known(asked) == set(asked[:50])
    assert table.select_known(asked[45:55]) == set(asked[45:50])
    assert table.with_changes(gone=asked[:50], added=()).select_known(asked) == set()


def test_long_ids_count_for_several() -> None:
    assert IdTable(pa.array(["x" * 4_000] * 10)).size > 10 * 4_000 // ID_BYTES
    assert IdTable(pa.array([f"{number}" for number in range(10)])).size == 10
