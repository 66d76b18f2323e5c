"""What meets a footprint, and what does not."""

from __future__ import annotations

import pytest

from omnigraph.versioning.footprint import (
    WHOLE,
    FootprintConflict,
    ReadSet,
    find_conflict,
    make_mark,
    unite_footprints,
)
from omnigraph.versioning.id_sets import IdSet
from omnigraph.versioning.record import Bulk, Changed, ChangeSet, Maintenance

KEY = "node:Person"
ADA = IdSet(["ada"])
BOB = IdSet(["bob"])
MARK = IdSet([make_mark("unique", "email", "ada@x")])
OTHER = IdSet([make_mark("unique", "email", "bob@x")])

MET: list[tuple[ReadSet, ChangeSet, str | None]] = [
    (ReadSet(ids=ADA), Changed(inserted=ADA), "ada"),
    (ReadSet(ids=ADA), Changed(updated=ADA), "ada"),
    (ReadSet(ids=ADA), Changed(deleted=ADA), "ada"),
    (ReadSet(present=ADA), Changed(deleted=ADA), "ada"),
    (ReadSet(marks=MARK), Changed(inserted=BOB, marks=MARK), None),
    (ReadSet(marks=MARK), Changed(inserted=BOB, marks=None), None),
    (WHOLE, Changed(inserted=BOB, marks=IdSet()), None),
    (ReadSet(ids=ADA), Bulk(("f",), 1), None),
    (ReadSet(ids=ADA.union(BOB), existing=ADA), Bulk(("f",), 1), None),
    (ReadSet(ids=ADA, existing=ADA), Bulk(("f",), 1, replaces=True), None),
    (ReadSet(marks=MARK), Bulk(("f",), 1), None),
    (WHOLE, Bulk(("f",), 1), None),
    (ReadSet(present=ADA), Bulk(("f",), 1, replaces=True), None),
]
NOT_MET: list[tuple[ReadSet, ChangeSet]] = [
    (ReadSet(ids=ADA), Changed(inserted=BOB)),
    (ReadSet(present=ADA), Changed(inserted=ADA)),
    (ReadSet(present=ADA), Changed(updated=ADA)),
    (ReadSet(present=ADA), Changed(deleted=BOB)),
    (ReadSet(present=ADA), Bulk(("f",), 1)),
    (ReadSet(ids=ADA, existing=ADA.union(BOB)), Bulk(("f",), 1)),
    (ReadSet(marks=MARK), Changed(inserted=BOB, marks=OTHER)),
    (ReadSet(marks=MARK), Changed(inserted=BOB, marks=IdSet())),
    (ReadSet(marks=MARK), Changed()),
    (WHOLE, Changed()),
    (WHOLE, Maintenance()),
    (ReadSet(ids=ADA, present=ADA, marks=MARK, is_whole=True), Maintenance()),
]


def _loaded(change: ChangeSet) -> Changed | Bulk | Maintenance:
    assert isinstance(change, Changed | Bulk | Maintenance)
    return change


@pytest.mark.parametrize(("reads", "change", "entity_id"), MET)
def test_a_change_meets(reads: ReadSet, change: ChangeSet, entity_id: str | None) -> None:
    assert find_conflict({KEY: reads}, {KEY: change}, _loaded) == FootprintConflict(KEY, entity_id)


@pytest.mark.parametrize(("reads", "change"), NOT_MET)
def test_a_change_does_not_meet(reads: ReadSet, change: ChangeSet) -> None:
    assert find_conflict({KEY: reads}, {KEY: change}, _loaded) is None


def test_another_type_is_never_met() -> None:
    assert find_conflict({KEY: WHOLE}, {"node:City": Changed(inserted=ADA)}, _loaded) is None


def test_marks_tell_their_parts_apart() -> None:
    assert make_mark("src", "a") != make_mark("dst", "a")
    assert make_mark("unique", "a", "bc") != make_mark("unique", "ab", "c")
    assert len(make_mark("unique", "\ud800")) == 16


def test_a_union_depends_on_all_that_its_parts_do() -> None:
    together = unite_footprints(
        [{KEY: ReadSet(ids=ADA)}, {KEY: ReadSet(ids=BOB, is_whole=True)}, {"x": WHOLE}]
    )
    assert together == {KEY: ReadSet(ids=IdSet(["ada", "bob"]), is_whole=True), "x": WHOLE}
