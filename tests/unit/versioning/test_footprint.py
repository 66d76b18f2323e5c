"""What meets a footprint, and what does not."""

from __future__ import annotations

import pytest

from omnigraph.versioning.footprint import WHOLE, Meeting, Reads, mark, meeting, union
from omnigraph.versioning.idset import IdSet
from omnigraph.versioning.record import Bulk, Changed, ChangeSet, Maintenance

KEY = "node:Person"
ADA = IdSet(["ada"])
BOB = IdSet(["bob"])
MARK = IdSet([mark("unique", "email", "ada@x")])
OTHER = IdSet([mark("unique", "email", "bob@x")])

MET: list[tuple[Reads, ChangeSet, str | None]] = [
    (Reads(ids=ADA), Changed(inserted=ADA), "ada"),
    (Reads(ids=ADA), Changed(updated=ADA), "ada"),
    (Reads(ids=ADA), Changed(deleted=ADA), "ada"),
    (Reads(present=ADA), Changed(deleted=ADA), "ada"),
    (Reads(marks=MARK), Changed(inserted=BOB, marks=MARK), None),
    (Reads(marks=MARK), Changed(inserted=BOB, marks=None), None),
    (WHOLE, Changed(inserted=BOB, marks=IdSet()), None),
    (Reads(ids=ADA), Bulk(("f",), 1), None),
    (Reads(ids=ADA.union(BOB), existing=ADA), Bulk(("f",), 1), None),
    (Reads(ids=ADA, existing=ADA), Bulk(("f",), 1, replaces=True), None),
    (Reads(marks=MARK), Bulk(("f",), 1), None),
    (WHOLE, Bulk(("f",), 1), None),
    (Reads(present=ADA), Bulk(("f",), 1, replaces=True), None),
]
NOT_MET: list[tuple[Reads, ChangeSet]] = [
    (Reads(ids=ADA), Changed(inserted=BOB)),
    (Reads(present=ADA), Changed(inserted=ADA)),
    (Reads(present=ADA), Changed(updated=ADA)),
    (Reads(present=ADA), Changed(deleted=BOB)),
    (Reads(present=ADA), Bulk(("f",), 1)),
    (Reads(ids=ADA, existing=ADA.union(BOB)), Bulk(("f",), 1)),
    (Reads(marks=MARK), Changed(inserted=BOB, marks=OTHER)),
    (Reads(marks=MARK), Changed(inserted=BOB, marks=IdSet())),
    (Reads(marks=MARK), Changed()),
    (WHOLE, Changed()),
    (WHOLE, Maintenance()),
    (Reads(ids=ADA, present=ADA, marks=MARK, is_whole=True), Maintenance()),
]


def _loaded(change: ChangeSet) -> Changed | Bulk | Maintenance:
    assert isinstance(change, Changed | Bulk | Maintenance)
    return change


@pytest.mark.parametrize(("reads", "change", "entity_id"), MET)
def test_a_change_meets(reads: Reads, change: ChangeSet, entity_id: str | None) -> None:
    assert meeting({KEY: reads}, {KEY: change}, _loaded) == Meeting(KEY, entity_id)


@pytest.mark.parametrize(("reads", "change"), NOT_MET)
def test_a_change_does_not_meet(reads: Reads, change: ChangeSet) -> None:
    assert meeting({KEY: reads}, {KEY: change}, _loaded) is None


def test_another_type_is_never_met() -> None:
    assert meeting({KEY: WHOLE}, {"node:City": Changed(inserted=ADA)}, _loaded) is None


def test_marks_tell_their_parts_apart() -> None:
    assert mark("src", "a") != mark("dst", "a")
    assert mark("unique", "a", "bc") != mark("unique", "ab", "c")
    assert len(mark("unique", "\ud800")) == 16


def test_a_union_depends_on_all_that_its_parts_do() -> None:
    together = union([{KEY: Reads(ids=ADA)}, {KEY: Reads(ids=BOB, is_whole=True)}, {"x": WHOLE}])
    assert together == {KEY: Reads(ids=IdSet(["ada", "bob"]), is_whole=True), "x": WHOLE}
