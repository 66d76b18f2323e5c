"""The ids in memory answer exactly as the tables do, at every version that is asked about."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Set
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.ids import generate_ulid
from omnigraph.rows.view import View
from omnigraph.schema import load_catalog
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.schema_identity import accept_schema
from omnigraph.storage import Tables, open_objects
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning import (
    MAIN,
    Append,
    Branches,
    Bulk,
    Changed,
    Committer,
    IdSet,
    Log,
    Replace,
    Snapshot,
    Stream,
    Transaction,
    change_sets,
)
from omnigraph.versioning.schema_store import Schemas, StoredSchema
from omnigraph.writers import key_cache as keys_module
from omnigraph.writers.key_cache import LOOKUPS_MIN, KeyCache

PERSON = TypeKey(TypeKind.NODE, "Person")
KEY = str(PERSON)


class People:
    """A graph with one type, written around the writers."""

    def __init__(self) -> None:
        uri = f"memory://{generate_ulid()}"
        self.tables = Tables(uri)
        self.log = Log(open_objects(uri))
        self.committer = Committer(self.log, self.tables)
        accepted = accept_schema(load_catalog("node Person { name: String @key }")).schema
        self.schema: StoredSchema = Schemas(self.log.objects).put("", accepted)
        empty = pa.schema([pa.field("__id", pa.utf8(), nullable=False), pa.field("c2", pa.utf8())])
        pin = self.tables.create(layout.build_table_path(KEY, "00000001"), empty)
        self.committer.create_graph(schema=self.schema.digest, pins={KEY: pin})

    def view(self, snapshot: Snapshot | None = None) -> View:
        return View(snapshot or self.log.read_head(MAIN).snapshot, self.schema, self.tables)

    def write(
        self,
        new: set[str],
        gone: Set[str] = frozenset(),
        *,
        is_bulk: bool = False,
        on: Stream = MAIN,
    ) -> View:
        """Commit new people and end others."""
        snapshot = self.log.read_head(on).snapshot
        rows = pa.table({"__id": pa.array(sorted(new), pa.utf8())})
        changed = Changed(inserted=IdSet(new), deleted=IdSet(gone), marks=IdSet())
        change = Bulk(("x",), len(new)) if is_bulk else changed
        effect = Replace(KEY, IdSet(gone), (rows,)) if gone else Append(KEY, (rows,))
        self.committer.publish(Transaction(snapshot, (effect,), {KEY: change}))
        return self.view(self.log.read_head(on).snapshot)


def answered(keys: KeyCache, view: View, ids: list[str]) -> set[str]:
    mask = keys.find_existing(view, PERSON, pa.array(ids, pa.utf8()))
    return {
        entity_id for entity_id, is_there in zip(ids, mask.to_pylist(), strict=True) if is_there
    }


def stored(view: View) -> set[str]:
    return set(view.open_table(PERSON).scan(columns=["__id"])["__id"].to_pylist())


def known_sets(keys: KeyCache) -> list[Any]:
    return [place.known for _, place in keys._slots.list_items() if place.known is not None]


def branched(snapshot: Snapshot, name: str) -> Snapshot:
    """The snapshot as the start of a branch."""
    return replace(snapshot, stream=Stream(name, name, (snapshot.ref,)))


@pytest.fixture
def people() -> People:
    return People()


def test_every_version_gets_the_answer_of_its_own_table(people: People) -> None:
    chance = random.Random(3)
    everybody = [f"p{number}" for number in range(40)]
    keys = KeyCache(people.log)
    views = [people.view()]
    for _ in range(25):
        there = stored(views[-1])
        gone = set(chance.sample(sorted(there), min(len(there), chance.randrange(3))))
        absent = sorted({*everybody} - there)
        new = set(chance.sample(absent, min(len(absent), 3)))
        views.append(people.write(new, gone))
        for view in chance.sample(views, min(4, len(views))):
            assert answered(keys, view, everybody) == stored(view)


def test_a_set_is_carried_forward_and_the_table_is_not_read_again(people: People) -> None:
    keys = KeyCache(people.log)
    people.write({"a"})
    assert answered(keys, people.view(), ["a", "b"]) == {"a"}
    (known,) = known_sets(keys)
    view = people.write({"b"}, {"a"})
    assert answered(keys, view, ["a", "b"]) == {"b"}
    assert known_sets(keys) == [known]
    assert known_sets(keys)[0] is known


def test_sets_of_branches_share_what_the_branches_have_in_common(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "OWN_IDS_MIN", 8)
    chance = random.Random(11)
    everybody = [f"p{number}" for number in range(300)]
    keys, branches = KeyCache(people.log), Branches(people.committer)
    people.write(set(everybody[:200]))
    streams = [MAIN]
    for number in range(60):
        on = chance.choice(streams)
        view = people.view(people.log.read_head(on).snapshot)
        assert answered(keys, view, everybody) == stored(view)
        there = stored(view)
        absent = sorted({*everybody} - there)
        gone = set(chance.sample(sorted(there), chance.randrange(3)))
        people.write(set(chance.sample(absent, 2)), gone, on=on)
        if number % 5 == 0:
            at = people.log.read_head(chance.choice(streams)).snapshot
            streams.append(branches.create(f"b{number}", at=at))
    sets = known_sets(keys)
    bases = {known.base for known in sets}
    assert len(sets) > 8
    assert len(bases) <= len(sets) / 2
    assert all(known.own <= 200 / 4 for known in sets)


def test_a_set_is_not_made_over_a_commit_that_lists_no_ids(people: People) -> None:
    keys, branches = KeyCache(people.log), Branches(people.committer)
    people.write({"a"})
    early = branches.create("early", at=people.log.read_head(MAIN).snapshot)
    assert answered(keys, people.write({"b"}, on=early), ["a", "b", "c"]) == {"a", "b"}
    view = people.write({"c"}, is_bulk=True)
    assert answered(keys, view, ["a", "b", "c"]) == {"a", "c"}


def test_a_bulk_load_makes_the_set_start_again(people: People) -> None:
    keys = KeyCache(people.log)
    people.write({"a"})
    answered(keys, people.view(), ["a"])
    view = people.write({"b"}, is_bulk=True)
    assert answered(keys, view, ["a", "b", "c"]) == {"a", "b"}


def test_forgotten_changes_send_older_questions_to_the_table(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "RECENT_MAX", 2)
    keys = KeyCache(people.log)
    old = people.write({"a"})
    answered(keys, old, ["a"])
    for name in "bcdef":
        answered(keys, people.write({name}), ["a"])
    assert answered(keys, old, list("abcdef")) == {"a"}
    assert answered(keys, people.view(), list("abcdefg")) == set("abcdef")


def test_sets_stay_within_their_bound(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "TYPE_IDS_MAX", 1)
    keys = KeyCache(people.log)
    view = people.write({"a", "b"})
    assert answered(keys, view, ["a", "c"]) == {"a"}
    assert known_sets(keys) == []


def test_the_set_that_was_not_asked_for_longest_is_forgotten_first(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "IDS_MAX", 3)
    # Sets that have nothing in common.
    monkeypatch.setattr(keys_module, "RECORDS_MAX", -1)
    keys = KeyCache(people.log)
    view = people.write({"a", "b"})
    for stream in ("first", "second"):
        moved = branched(view.snapshot, stream)
        assert answered(keys, people.view(moved), ["a", "c"]) == {"a"}
    assert [stream for (stream, _), place in keys._slots.list_items() if place.known] == ["second"]


def test_a_commit_of_more_changes_than_are_remembered_makes_the_set_start_again(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "RECENT_MAX", 2)
    keys = KeyCache(people.log)
    answered(keys, people.write({"a"}), ["a"])
    (known,) = known_sets(keys)
    view = people.write({"b", "c"}, {"a"})
    assert answered(keys, view, list("abcd")) == {"b", "c"}
    assert known_sets(keys)[0] is not known
    assert known.contains_each([*"abc"]) == [True, False, False]


def test_a_large_change_set_is_not_even_read(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "RECENT_MAX", 2_000)
    keys = KeyCache(people.log)
    answered(keys, people.write({"a"}), ["a"])
    view = people.write({f"n{number}" for number in range(2_001)})
    monkeypatch.setattr(change_sets, "load_change_set", None)
    assert answered(keys, view, ["a", "n7", "x"]) == {"a", "n7"}


@pytest.mark.parametrize("is_other_branch", [False, True])
def test_ids_are_read_again_where_a_change_set_was_collected(
    people: People, monkeypatch: pytest.MonkeyPatch, *, is_other_branch: bool
) -> None:
    monkeypatch.setattr(change_sets, "INLINE_IDS_MAX", 2)
    keys = KeyCache(people.log)
    answered(keys, people.write({"a"}), ["a"])
    (known,) = known_sets(keys)
    view = people.write({"b", "c", "d"}, {"a"})
    # A clean-up removes the file, while the record is still in the memory of this process.
    files = [entry.path for entry in people.log.objects.list("__manifest/changes")]
    assert len(files) == 1
    people.log.objects.delete(files)
    if is_other_branch:
        view = people.view(branched(view.snapshot, "review"))
    assert answered(keys, view, list("abcx")) == {"b", "c"}
    assert known_sets(keys)[-1] is not known


def test_places_that_are_no_longer_asked_about_are_forgotten(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "SLOTS_MAX", 3)
    monkeypatch.setattr(keys_module, "TYPE_IDS_MAX", 0)
    keys = KeyCache(people.log)
    view = people.write({"a"})
    for number in range(10):
        answered(keys, people.view(branched(view.snapshot, f"s{number}")), ["a"])
    assert [stream for (stream, _), _ in keys._slots.list_items()] == ["s7", "s8", "s9"]


class Later(Executor):
    """Does what it is given when it is told to."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], object]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        self.jobs.append(lambda: fn(*args, **named))
        return Future()


def test_many_ids_are_read_in_the_background_for_whoever_goes_on_to_ask(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "READ_AT_ONCE_MAX", 1)
    later = Later()
    keys = KeyCache(people.log, later)
    view = people.write({"a", "b"})
    for number in range(LOOKUPS_MIN + 2):
        assert bool(later.jobs) == (number >= LOOKUPS_MIN)
        assert answered(keys, view, ["a", "c"]) == {"a"}
    assert known_sets(keys) == []
    view = people.write({"c"}, {"a"})
    [read] = later.jobs
    read()
    assert len(known_sets(keys)) == 1
    monkeypatch.setattr(Table, "find", None)
    assert answered(keys, view, ["a", "b", "c"]) == {"b", "c"}


def test_ids_that_take_too_much_memory_are_not_kept_and_not_read_again(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "IDS_MAX", 50)
    keys = KeyCache(people.log)
    view = people.write({"x" * 5_000})
    assert answered(keys, view, ["x" * 5_000, "y"]) == {"x" * 5_000}
    monkeypatch.setattr(Table, "scan", None)
    assert answered(keys, view, ["x" * 5_000, "y"]) == {"x" * 5_000}
    assert known_sets(keys) == []


def test_nobody_waits_while_the_ids_of_another_type_are_read(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = KeyCache(people.log)
    view = people.write({"a"})
    other = people.view(replace(view.snapshot, stream=replace(view.snapshot.stream, id="other")))
    scan, is_read, may_go_on = Table.scan, threading.Event(), threading.Event()

    def slow(self: Table, **options: Any) -> pa.Table:
        if threading.current_thread() is reader:
            is_read.set()
            assert may_go_on.wait(30)
        return scan(self, **options)

    monkeypatch.setattr(Table, "scan", slow)
    answers: list[set[str]] = []
    reader = threading.Thread(target=lambda: answers.append(answered(keys, view, ["a", "b"])))
    reader.start()
    assert is_read.wait(30)
    try:
        assert answered(keys, other, ["a", "b"]) == {"a"}
        assert answers == []
    finally:
        may_go_on.set()
        reader.join(30)
    assert answers == [{"a"}]
