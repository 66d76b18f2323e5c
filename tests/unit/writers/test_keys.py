"""The ids in memory answer exactly as the tables do, at every version that is asked about."""

from __future__ import annotations

import random
from collections.abc import Set

import pyarrow as pa
import pytest

from omnigraph.execution.view import View
from omnigraph.ids import new_ulid
from omnigraph.schema import load_catalog
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.schema.identity import accept_schema
from omnigraph.storage import Tables, layout, open_objects
from omnigraph.versioning import (
    MAIN,
    Append,
    Bulk,
    Changed,
    Committer,
    IdSet,
    Log,
    Replace,
    Snapshot,
    Transaction,
)
from omnigraph.versioning.schemas import Schemas, StoredSchema
from omnigraph.writers import keys as keys_module
from omnigraph.writers.keys import Keys

PERSON = TypeKey(TypeKind.NODE, "Person")
KEY = str(PERSON)


class People:
    """A graph with one type, written around the writers."""

    def __init__(self) -> None:
        uri = f"memory://{new_ulid()}"
        self.tables = Tables(uri)
        self.log = Log(open_objects(uri))
        self.committer = Committer(self.log, self.tables)
        accepted = accept_schema(load_catalog("node Person { name: String @key }")).schema
        self.schema: StoredSchema = Schemas(self.log.objects).put("", accepted)
        empty = pa.schema([pa.field("__id", pa.utf8(), nullable=False), pa.field("c2", pa.utf8())])
        pin = self.tables.create(layout.table(KEY, "00000001"), empty)
        self.committer.create_graph(schema=self.schema.digest, pins={KEY: pin})

    def view(self, snapshot: Snapshot | None = None) -> View:
        return View(snapshot or self.log.head(MAIN).snapshot, self.schema, self.tables)

    def write(self, new: set[str], gone: Set[str] = frozenset(), *, is_bulk: bool = False) -> View:
        """Commit new people and end others."""
        snapshot = self.log.head(MAIN).snapshot
        rows = pa.table({"__id": pa.array(sorted(new), pa.utf8())})
        changed = Changed(inserted=IdSet(new), deleted=IdSet(gone), marks=IdSet())
        change = Bulk(("x",), len(new)) if is_bulk else changed
        effect = Replace(KEY, IdSet(gone), (rows,)) if gone else Append(KEY, (rows,))
        self.committer.publish(Transaction(snapshot, (effect,), {KEY: change}))
        return self.view()


def answered(keys: Keys, view: View, ids: list[str]) -> set[str]:
    mask = keys.existing(view, PERSON, pa.array(ids, pa.utf8()))
    return {
        entity_id for entity_id, is_there in zip(ids, mask.to_pylist(), strict=True) if is_there
    }


def stored(view: View) -> set[str]:
    return set(view.table(PERSON).scan(columns=["__id"])["__id"].to_pylist())


@pytest.fixture
def people() -> People:
    return People()


def test_every_version_gets_the_answer_of_its_own_table(people: People) -> None:
    chance = random.Random(3)
    everybody = [f"p{number}" for number in range(40)]
    keys = Keys(people.log)
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
    keys = Keys(people.log)
    people.write({"a"})
    assert answered(keys, people.view(), ["a", "b"]) == {"a"}
    known = next(iter(keys._known.values()))
    view = people.write({"b"}, {"a"})
    assert answered(keys, view, ["a", "b"]) == {"b"}
    assert next(iter(keys._known.values())) is known


def test_a_bulk_load_makes_the_set_start_again(people: People) -> None:
    keys = Keys(people.log)
    people.write({"a"})
    answered(keys, people.view(), ["a"])
    view = people.write({"b"}, is_bulk=True)
    assert answered(keys, view, ["a", "b", "c"]) == {"a", "b"}


def test_forgotten_changes_send_older_questions_to_the_table(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "RECENT_MAX", 2)
    keys = Keys(people.log)
    old = people.write({"a"})
    answered(keys, old, ["a"])
    for name in "bcdef":
        answered(keys, people.write({name}), ["a"])
    assert answered(keys, old, list("abcdef")) == {"a"}
    assert answered(keys, people.view(), list("abcdefg")) == set("abcdef")


def test_sets_stay_within_their_bound(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "TYPE_IDS_MAX", 1)
    keys = Keys(people.log)
    view = people.write({"a", "b"})
    assert answered(keys, view, ["a", "c"]) == {"a"}
    assert not keys._known
