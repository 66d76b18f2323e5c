"""Which source suits a read, and what is there already."""

from __future__ import annotations

import pytest

from omnigraph.execution.query_budget import Access
from omnigraph.execution.sources import source_cache as module
from omnigraph.execution.sources.index.index_source import IndexSource
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.execution.sources.topology.topology_refresh import LogChangeSource
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from unit.execution.sources.topology.test_topology_extension import everything, world

PERSON = TypeKey(TypeKind.NODE, "Person")


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """No type is small enough to be loaded anyway."""
    monkeypatch.setattr(module, "SMALL_ROWS", 0)
    monkeypatch.setattr(
        "omnigraph.execution.sources.topology.topology_refresh.CHANGED_SHARE_MAX", 0.5
    )


def test_a_wish_is_fulfilled() -> None:
    view = world().graph.branch().snapshot().view
    sources = SourceCache()
    assert isinstance(sources.get_source(view, Access.TOPOLOGY), TopologySource)
    assert isinstance(sources.get_source(view, Access.LOOKUPS), IndexSource)


def test_small_types_are_read_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    view = world().graph.branch().snapshot().view
    assert isinstance(SourceCache().get_source(view), IndexSource)
    monkeypatch.setattr(module, "SMALL_ROWS", 1_000)
    assert isinstance(SourceCache().get_source(view), TopologySource)


def test_what_is_in_memory_or_shortly_before_is_used() -> None:
    follows = world()
    main = follows.graph.branch()
    sources = SourceCache(changes=LogChangeSource(follows.graph._session.resources.log))
    first = main.snapshot().view
    assert not sources.has_cached(first, PERSON)
    everything(sources.get_topology(first))
    assert sources.has_cached(first, PERSON)
    assert isinstance(sources.get_source(first), TopologySource)
    main.load([follows._person("q1")], mode="append")
    second = main.snapshot().view
    assert sources.has_cached(second, PERSON)
    main.load([follows._person(f"r{number}") for number in range(12)], mode="append")
    third = main.snapshot().view
    # This process made them, so that nothing has to be read.
    assert sources.has_cached(third, PERSON)
    assert not SourceCache(
        changes=LogChangeSource(follows.graph._session.resources.log)
    ).has_cached(third, PERSON)
    assert sources.get_topology(third).get_nodes("Person").count == 25
    assert sources.has_cached(third, PERSON)


def test_a_version_before_all_that_is_known_has_to_be_read() -> None:
    follows = world()
    main = follows.graph.branch()
    sources = SourceCache(changes=LogChangeSource(follows.graph._session.resources.log))
    first = main.snapshot().view
    main.load([follows._person("q1")], mode="append")
    everything(sources.get_topology(main.snapshot().view))
    assert not sources.has_cached(first, PERSON)
    assert not sources.has_cached(first, PERSON)
    assert sources.get_topology(first).get_nodes("Person").count == 12


def test_another_name_of_a_type_is_the_same_topology() -> None:
    follows = world()
    main = follows.graph.branch()
    sources = SourceCache(changes=LogChangeSource(follows.graph._session.resources.log))
    before = sources.get_topology(main.snapshot().view)
    expected = everything(before)
    schema = main.schema.replace("age: I32?", 'years: I32? @rename_from("age")  nick: String?')
    main.apply_schema(schema)
    after = sources.get_topology(main.snapshot().view).get_nodes("Person")
    at = after.list_all()
    ages = dict(
        zip(
            after.fetch_ids(at).to_pylist(),
            after.fetch_values("years", at).to_pylist(),
            strict=True,
        )
    )
    assert ages == {name: row[0] for name, row in expected["Person"].items()}
    assert after.fetch_values("nick", at).null_count == len(at)
    assert after.rows.numbering == before.get_nodes("Person").rows.numbering
