"""Which source suits a read, and what is there already."""

from __future__ import annotations

import pytest

from omnigraph.execution import sources as module
from omnigraph.execution.lookups import LookupSource
from omnigraph.execution.options import Access
from omnigraph.execution.sources import Sources
from omnigraph.execution.topology import TopologySource
from omnigraph.execution.topology.changes import LogChanges
from omnigraph.schema.accepted import TypeKey, TypeKind
from unit.execution.topology.test_topology_extension import everything, world

PERSON = TypeKey(TypeKind.NODE, "Person")


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """No type is small enough to be loaded anyway."""
    monkeypatch.setattr(module, "SMALL_ROWS", 0)
    monkeypatch.setattr("omnigraph.execution.topology.changes.CHANGED_SHARE_MAX", 0.5)


def test_a_wish_is_fulfilled() -> None:
    view = world().graph.branch().snapshot().view
    sources = Sources()
    assert isinstance(sources.source(view, Access.TOPOLOGY), TopologySource)
    assert isinstance(sources.source(view, Access.LOOKUPS), LookupSource)


def test_small_types_are_read_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    view = world().graph.branch().snapshot().view
    assert isinstance(Sources().source(view), LookupSource)
    monkeypatch.setattr(module, "SMALL_ROWS", 1_000)
    assert isinstance(Sources().source(view), TopologySource)


def test_what_is_in_memory_or_shortly_before_is_used() -> None:
    follows = world()
    main = follows.graph.branch()
    sources = Sources(changes=LogChanges(follows.graph._session.resources.log))
    first = main.snapshot().view
    assert not sources.has(first, PERSON)
    everything(sources.topology(first))
    assert sources.has(first, PERSON)
    assert isinstance(sources.source(first), TopologySource)
    main.load([follows._person("q1")], mode="append")
    second = main.snapshot().view
    assert sources.has(second, PERSON)
    main.load([follows._person(f"r{number}") for number in range(12)], mode="append")
    third = main.snapshot().view
    # This process made them, so that nothing has to be read.
    assert sources.has(third, PERSON)
    assert not Sources(changes=LogChanges(follows.graph._session.resources.log)).has(third, PERSON)
    assert sources.topology(third).nodes("Person").count == 25
    assert sources.has(third, PERSON)


def test_a_version_before_all_that_is_known_has_to_be_read() -> None:
    follows = world()
    main = follows.graph.branch()
    sources = Sources(changes=LogChanges(follows.graph._session.resources.log))
    first = main.snapshot().view
    main.load([follows._person("q1")], mode="append")
    everything(sources.topology(main.snapshot().view))
    assert not sources.has(first, PERSON)
    assert not sources.has(first, PERSON)
    assert sources.topology(first).nodes("Person").count == 12


def test_another_name_of_a_type_is_the_same_topology() -> None:
    follows = world()
    main = follows.graph.branch()
    sources = Sources(changes=LogChanges(follows.graph._session.resources.log))
    before = sources.topology(main.snapshot().view)
    expected = everything(before)
    schema = main.schema.replace("age: I32?", 'years: I32? @rename_from("age")  nick: String?')
    main.apply_schema(schema)
    after = sources.topology(main.snapshot().view).nodes("Person")
    at = after.all()
    ages = dict(zip(after.ids(at).to_pylist(), after.values("years", at).to_pylist(), strict=True))
    assert ages == {name: row[0] for name, row in expected["Person"].items()}
    assert after.values("nick", at).null_count == len(at)
    assert after.rows.numbering == before.nodes("Person").rows.numbering
