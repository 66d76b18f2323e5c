"""Change sets that do not fit into a record go to a file, and come back the same."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import reduce
from multiprocessing import get_context

import pytest

from omnigraph.errors import CorruptObjectError
from omnigraph.versioning.change_sets import (
    INLINE_IDS_MAX,
    combine_change_sets,
    load_change_set,
    seal_change_set,
)
from omnigraph.versioning.id_sets import IdSet
from omnigraph.versioning.record import Bulk, Changed, Maintenance, Spilled
from unit.versioning.memory_storage import MemoryObjects

MANY = IdSet(f"p{number:06}" for number in range(20_000))


def test_a_small_change_set_stays_in_its_record() -> None:
    objects, change = MemoryObjects(), Changed(inserted=IdSet("ab"))
    assert seal_change_set(objects, change) is change
    assert objects.data == {}
    assert load_change_set(objects, change) is change


@pytest.mark.parametrize("change", [Bulk(("f",), 3), Maintenance(), Spilled("f")])
def test_other_change_sets_are_sealed_as_they_are(change: Bulk | Maintenance | Spilled) -> None:
    assert seal_change_set(MemoryObjects(), change) is change


@pytest.mark.parametrize("marks", [None, IdSet(), IdSet("xyz")])
def test_a_large_change_set_survives_its_file(marks: IdSet | None) -> None:
    objects = MemoryObjects()
    change = Changed(inserted=MANY, updated=IdSet("ab"), deleted=IdSet("c"), marks=marks)
    sealed = seal_change_set(objects, change)
    assert isinstance(sealed, Spilled)
    assert (sealed.inserted, sealed.updated, sealed.deleted) == (20_000, 2, 1)
    assert load_change_set(objects, sealed) == change


def test_marks_count_towards_the_bound() -> None:
    marks = IdSet(f"{number:016x}" for number in range(INLINE_IDS_MAX))
    change = Changed(inserted=IdSet("a"), marks=marks)
    assert isinstance(seal_change_set(MemoryObjects(), change), Spilled)


def test_few_but_long_ids_are_spilled_too() -> None:
    change = Changed(inserted=IdSet(f"{number}" * 9000 for number in range(9)))
    assert isinstance(seal_change_set(MemoryObjects(), change), Spilled)


def test_a_missing_or_damaged_file_is_named() -> None:
    objects = MemoryObjects()
    with pytest.raises(CorruptObjectError, match=r"gone\.arrow: a record names this"):
        load_change_set(objects, Spilled("gone.arrow"))
    objects.put("torn.arrow", b"ARROW1")
    with pytest.raises(CorruptObjectError, match=r"torn\.arrow: is not a change set"):
        load_change_set(objects, Spilled("torn.arrow"))


def test_a_flipped_bit_of_a_file_is_found_before_arrow_reads_it() -> None:
    objects = MemoryObjects()
    sealed = seal_change_set(
        objects, Changed(inserted=MANY, deleted=IdSet("c"), marks=IdSet("xyz"))
    )
    assert isinstance(sealed, Spilled)
    whole = objects.data[sealed.file]
    for place in random.Random(5).sample(range(len(whole)), 300):
        objects.put(sealed.file, _flipped(whole, place))
        with pytest.raises(CorruptObjectError, match="its digest is not the one of its record"):
            load_change_set(objects, sealed)


@pytest.mark.slow
def test_a_damaged_file_without_a_digest_does_not_end_the_process() -> None:
    """In a process of its own: Arrow ends it with a signal where its reader believes the file."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        outcomes = pool.submit(_outcomes_without_digest).result(timeout=60)
    assert outcomes["refused"] > 50
    assert sum(outcomes.values()) == 400


def _outcomes_without_digest() -> Counter[str]:
    objects, rng, outcomes = MemoryObjects(), random.Random(6), Counter[str]()
    sealed = seal_change_set(
        objects, Changed(inserted=MANY, deleted=IdSet("c"), marks=IdSet("xyz"))
    )
    assert isinstance(sealed, Spilled)
    whole = objects.data[sealed.file]
    for _ in range(400):
        # Offsets and framing are where damage leads out of buffers.
        places = rng.sample(range(len(whole)), 2) + rng.sample(range(2000), 1)
        objects.put(sealed.file, reduce(_flipped, places, whole))
        try:
            load_change_set(objects, replace(sealed, digest=None))
            outcomes["read"] += 1
        except CorruptObjectError:
            outcomes["refused"] += 1
    return outcomes


def _flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 0x40]) + data[place + 1 :]


def test_combined_changes_hold_every_id_and_forget_marks_that_one_of_them_lacks() -> None:
    first = Changed(IdSet("a"), IdSet("b"), IdSet("c"), IdSet("x"))
    second = Changed(IdSet("d"), IdSet(), IdSet("e"), IdSet("y"))
    assert combine_change_sets([first, second]) == Changed(
        IdSet("ad"), IdSet("b"), IdSet("ce"), IdSet("xy")
    )
    assert combine_change_sets([first, Changed(IdSet("d"))]).marks is None
