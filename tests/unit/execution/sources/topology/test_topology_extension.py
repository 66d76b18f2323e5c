"""A topology that followed the commits of a branch equals one that was read from its tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph import Branch, Graph
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.execution.sources.topology import (
    append_array,
    text_arrays,
    topology_columns,
    topology_edges,
    topology_entities,
    topology_refresh,
    topology_rows,
)
from omnigraph.execution.sources.topology.changed_adjacency import ChangedAdjacency
from omnigraph.execution.sources.topology.topology_refresh import LogChangeSource
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.query import typed_tree
from omnigraph.query.query_compiler import compile_query
from omnigraph.schema import load_catalog
from omnigraph.storage.tables import recent_writes
from places import fresh_uri

SCHEMA = """
node Person { name: String @key  age: I32?  city: String?  tags: [String]? }
node Place { name: String @key }
edge Knows: Person -> Person { since: I64? }
edge Visits: Person -> Place { note: String? }
"""
CHANGES = """
query remove($name: String) { delete Person where name = $name }
query close($name: String) { delete Place where name = $name }
query part($since: I64) { delete Knows where since = $since }
query age($name: String, $age: I32?) { update Person set { age: $age } where name = $name }
query move($name: String, $city: String?) { update Person set { city: $city } where name = $name }
"""


@dataclass
class World:
    """A graph, a random choice of what to do with it, and sources that follow it."""

    graph: Graph
    random: Random
    sources: SourceCache

    def step(self, branch: Branch) -> None:
        """Change the branch somehow."""
        people, places = (self._names(branch, each) for each in ("Person", "Place"))
        name = self.random.choice([*people, "p0"])
        match self.random.choice(["add", "add", "join", "join", "join", "age", "move", "remove",
                                  "close", "part", "merge", "both"]):  # fmt: skip
            case "add":
                fresh = {f"p{self.random.randrange(40)}" for _ in range(3)} - set(people)
                branch.load([self._person(each) for each in sorted(fresh)], mode="append")
            case "join" if people:
                branch.load([self._edge(people, places) for _ in range(4)], mode="append")
            case "age":
                params = {"name": name, "age": self.random.choice([None, 1, 2])}
                branch.mutate(CHANGES, name="age", params=params)
            case "move":
                params = {"name": name, "city": self.random.choice([None, "x", "y", "z"])}
                branch.mutate(CHANGES, name="move", params=params)
            case "remove":
                branch.mutate(CHANGES, name="remove", params={"name": name})
            case "close" if places:
                branch.mutate(CHANGES, name="close", params={"name": self.random.choice(places)})
            case "part":
                params = {"since": self.random.randrange(6)}
                branch.mutate(CHANGES, name="part", params=params)
            case "merge":
                chosen = {f"p{self.random.randrange(40)}" for _ in range(4)}
                branch.load([self._person(each) for each in sorted(chosen)], mode="merge")
            case "both":
                new = f"new{self.random.randrange(10**9)}"
                edge = {"edge": "Knows", "from": new, "to": new}
                branch.load([self._person(new), edge], mode="append")
            case _:
                branch.load([{"type": "Place", "data": {"name": f"c{self.random.randrange(9)}"}}],
                            mode="merge")  # fmt: skip

    def rearrange(self, branch: Branch) -> None:
        """Change how the branch is stored, or its schema, but no entity."""
        match self.random.choice(["compact", "index", "column"]):
            case "compact":
                branch.optimize()
            case "index":
                branch.ensure_indices()
            case _:
                note = f"extra{self.random.randrange(10**9)}"
                schema = branch.schema.replace("age: I32?", f"age: I32? {note}: String?", 1)
                branch.apply_schema(schema)

    def _names(self, branch: Branch, type_name: str) -> list[str]:
        nodes = SourceCache().get_topology(branch.snapshot().view).get_nodes(type_name)
        return sorted(nodes.fetch_ids(nodes.list_all()).to_pylist(), key=str.encode)

    def _person(self, name: str) -> dict[str, Any]:
        tags = self.random.choice([None, [], ["a"], ["a", "b"]])
        data = {"name": name, "age": self.random.randrange(9), "tags": tags}
        return {"type": "Person", "data": data | {"city": self.random.choice(["x", "new", None])}}

    def _edge(self, people: list[str], places: list[str]) -> dict[str, Any]:
        source = self.random.choice(people)
        if places and self.random.random() < 0.4:
            data: dict[str, Any] = {"note": self.random.choice(["n", None])}
            return {
                "edge": "Visits",
                "from": source,
                "to": self.random.choice(places),
                "data": data,
            }
        data = {"since": self.random.randrange(6)}
        return {"edge": "Knows", "from": source, "to": self.random.choice(people), "data": data}


def world(seed: int = 0) -> World:
    graph = omnigraph.create(fresh_uri(), schema=SCHEMA)
    log = graph._session.resources.log
    made = World(graph, Random(seed), SourceCache(changes=LogChangeSource(log)))
    people = [made._person(f"p{number}") for number in range(12)]
    places = [{"type": "Place", "data": {"name": f"c{number}"}} for number in range(5)]
    names = [f"p{number}" for number in range(12)]
    links = [made._edge(names, [f"c{number}" for number in range(5)]) for _ in range(30)]
    graph.branch().load([*people, *places, *links], mode="append")
    return made


CONDITIONS = [
    'name = "p3"',
    'name in ["p1", "p3", "nobody"]',
    'city = "x"',
    'city = "x" and age > 2',
    "city is null",
    "age > 3",
    'not (city = "new") or age < 2',
    'name starts_with "p1"',
    '"a" in tags',
]


@cache
def conditions() -> list[typed_tree.Expr]:
    catalog = load_catalog(SCHEMA)
    texts_ = [f"query q() {{ delete Person where {text} }}" for text in CONDITIONS]
    checked = [compile_query(text, catalog).checked for text in texts_]
    statements = [each.statements[0] for each in checked if isinstance(each, typed_tree.Mutation)]
    return [each.conditions[0] for each in statements if isinstance(each, typed_tree.DeleteNodes)]


def everything(source: TopologySource) -> dict[Any, Any]:
    """All that a source says, by ids."""
    people = source.get_nodes("Person")
    found: dict[Any, Any] = {
        text: sorted(people.fetch_ids(people.filter_nodes([condition], {})).to_pylist())
        for text, condition in zip(CONDITIONS, conditions(), strict=True)
    }
    for name in ("Person", "Place"):
        nodes = source.get_nodes(name)
        at = nodes.list_all()
        ids = nodes.fetch_ids(at).to_pylist()
        assert nodes.find(nodes.fetch_ids(at)).tolist() == at.tolist()
        assert [ids[each] for each in np.argsort(nodes.rank_ids(at))] == sorted(ids)
        assert nodes.find_by_row_ids(nodes.fetch_row_ids(at)).tolist() == at.tolist()
        columns = [nodes.fetch_values(each, at).to_pylist() for each in nodes.shape.columns]
        found[name] = dict(zip(ids, zip(*columns, strict=True), strict=True))
        assert len(ids) == nodes.count
    for name in ("Knows", "Visits"):
        found[name] = _edges(source, name)
        for is_reversed in (False, True):
            found[name, is_reversed] = _walks(source, name, is_reversed)
    return found


def _edges(source: TopologySource, name: str) -> dict[str, Any]:
    edges_ = source.get_edges(name)
    at = edges_.list_all()
    starts = edges_.source_nodes.fetch_ids(edges_.fetch_sources(at)).to_pylist()
    stops = edges_.target_nodes.fetch_ids(edges_.fetch_targets(at)).to_pylist()
    columns = [edges_.fetch_values(each, at).to_pylist() for each in edges_.shape.columns]
    ids = edges_.fetch_ids(at).to_pylist()
    assert [ids[each] for each in np.argsort(edges_.rank_ids(at))] == sorted(ids)
    return dict(zip(ids, zip(starts, stops, *columns, strict=True), strict=True))


def _walks(source: TopologySource, name: str, is_reversed: bool) -> list[Any]:
    edges_ = source.get_edges(name)
    starts, stops = edges_.source_nodes, edges_.target_nodes
    if is_reversed:
        starts, stops = stops, starts
    found: list[Any] = []
    nodes = starts.list_all()
    for asked in (nodes, *(nodes[place : place + 1] for place in range(min(len(nodes), 3)))):
        names = starts.fetch_ids(asked).to_pylist()
        places, ends, at = edges_.expand_edges(asked, is_reversed=is_reversed)
        assert np.all(np.diff((places << 32) | ends) >= 0)
        rows = zip(
            places, stops.fetch_ids(ends).to_pylist(), edges_.fetch_ids(at).to_pylist(), strict=True
        )
        matched = sorted((names[place], end, edge) for place, end, edge in rows)
        places, ends = edges_.expand_neighbours(asked, is_reversed=is_reversed)
        assert np.all(np.diff((places << 32) | ends) > 0)
        pairs = zip(places, stops.fetch_ids(ends).to_pylist(), strict=True)
        reached = sorted((names[place], end) for place, end in pairs)
        assert reached == sorted({each[:2] for each in matched})
        found.append(matched)
    neighbours = edges_.get_adjacency(is_reversed)
    assert len(neighbours.offsets) == starts.size + 1
    assert np.array_equal(np.diff(neighbours.offsets), neighbours.degrees)
    assert len(neighbours.ends) == len({each[:2] for each in found[0]})
    for start, stop in zip(neighbours.offsets[:-1], neighbours.offsets[1:], strict=True):
        assert np.all(np.diff(neighbours.ends[start:stop]) > 0)
    everybody: list[Any] = found[0]
    return everybody


@pytest.fixture
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is too small to be extended."""
    monkeypatch.setattr(topology_refresh, "CHANGED_SHARE_MAX", 10.0)
    monkeypatch.setattr(text_arrays, "TAIL_MIN", 3)
    monkeypatch.setattr(topology_columns, "TAIL_MIN", 3)
    monkeypatch.setattr(topology_entities, "TAIL_MIN", 3)
    monkeypatch.setattr(append_array, "PATCHES_MIN", 4)
    monkeypatch.setattr(topology_rows, "DELTAS_MAX", 2)
    monkeypatch.setattr(topology_refresh, "DELTAS_MAX", 2)
    monkeypatch.setattr(topology_edges, "CHANGES_MIN", 12)


@pytest.fixture(params=["own commits", "commits of others"])
def _whose(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if another process had made the commits: nothing is known of them but the log."""
    if request.param == "commits of others":
        monkeypatch.setattr(recent_writes, "STEP_BYTES_MAX", -1)


@pytest.mark.slow
@pytest.mark.usefixtures("_eager", "_whose")
@pytest.mark.parametrize("seed", range(8))
def test_sources_that_follow_a_branch_say_what_fresh_ones_say(seed: int) -> None:
    follows = world(seed)
    main = follows.graph.branch()
    other = None
    extensions = 0
    for number in range(14):
        if number == 5:
            other = follows.graph.create_branch("other", source=main)
        for branch in (main, other):
            if branch is None:
                continue
            if follows.random.random() < 0.8:
                follows.step(branch)
            if follows.random.random() < 0.2:
                follows.rearrange(branch)
            view = branch.snapshot().view
            followed = follows.sources.get_topology(view)
            assert everything(followed) == everything(SourceCache().get_topology(view))
            extensions += len(followed.get_nodes("Person").rows.numbering.segments) > 1
            _forget_some(followed, follows.random)
    assert extensions > 3


def _forget_some(source: TopologySource, random: Random) -> None:
    """Give up pieces that can be read again."""
    for type_ in (
        source.get_nodes("Person"),
        source.get_edges("Knows"),
        source.get_edges("Visits"),
    ):
        for name in type_.rows.parts.names:
            if random.random() < 0.2:
                type_.rows.parts.evict(name)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32))
def test_older_snapshots_stay_readable_in_any_order(seed: int) -> None:
    follows = world(seed)
    main = follows.graph.branch()
    snapshots = [main.snapshot()]
    for _ in range(5):
        follows.step(main)
        snapshots.append(main.snapshot())
    order = list(range(len(snapshots))) * 2
    follows.random.shuffle(order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topology_refresh, "CHANGED_SHARE_MAX", 10.0)
        for place in order:
            view = snapshots[place].view
            assert everything(follows.sources.get_topology(view)) == everything(
                SourceCache().get_topology(view)
            )


@pytest.mark.usefixtures("_eager")
def test_a_small_commit_leaves_the_arrays_of_the_version_before_in_place() -> None:
    follows = world()
    main = follows.graph.branch()
    before = follows.sources.get_topology(main.snapshot().view)
    everything(before)
    main.load([{"edge": "Knows", "from": "p1", "to": "p2"}], mode="append")
    after = follows.sources.get_topology(main.snapshot().view)
    neighbours = after.get_edges("Knows").get_adjacency(False)
    assert isinstance(neighbours, ChangedAdjacency)
    assert neighbours.base is before.get_edges("Knows").get_adjacency(False)
    assert after.get_nodes("Person").rows is before.get_nodes("Person").rows
    assert after.get_edges("Visits").rows is before.get_edges("Visits").rows


def test_a_type_that_is_replaced_as_a_whole_is_read_again() -> None:
    follows = world()
    main = follows.graph.branch()
    view = main.snapshot().view
    everything(follows.sources.get_topology(view))
    main.load([follows._person(f"p{number}") for number in range(12)], mode="overwrite")
    view = main.snapshot().view
    followed = follows.sources.get_topology(view)
    assert len(followed.get_nodes("Person").rows.numbering.segments) == 1
    assert everything(followed) == everything(SourceCache().get_topology(view))


@pytest.mark.usefixtures("_eager")
def test_branches_share_what_neither_changed() -> None:
    follows = world()
    main = follows.graph.branch()
    other = follows.graph.create_branch("other", source=main)
    other.load([follows._person("q1")], mode="append")
    ours, theirs = (follows.sources.get_topology(each.snapshot().view) for each in (main, other))
    assert everything(ours) != everything(theirs)
    assert ours.get_edges("Knows").rows is theirs.get_edges("Knows").rows
    assert ours.get_nodes("Place").rows is theirs.get_nodes("Place").rows
    assert (
        theirs.get_nodes("Person").rows.numbering.count_agreed(
            ours.get_nodes("Person").rows.numbering
        )
        == 12
    )


@pytest.mark.usefixtures("_eager")
def test_an_id_that_comes_back_is_a_new_entity() -> None:
    follows = world()
    main = follows.graph.branch()
    for _ in range(2):
        everything(follows.sources.get_topology(main.snapshot().view))
        main.mutate(CHANGES, name="remove", params={"name": "p3"})
        gone = follows.sources.get_topology(main.snapshot().view)
        assert "p3" not in everything(gone)["Person"]
        main.load([follows._person("p3"), {"edge": "Knows", "from": "p3", "to": "p1"}],
                  mode="append")  # fmt: skip
        view = main.snapshot().view
        followed = follows.sources.get_topology(view)
        assert everything(followed) == everything(SourceCache().get_topology(view))


@pytest.mark.usefixtures("_eager")
@pytest.mark.parametrize("seed", range(3))
def test_little_memory_changes_no_answer(seed: int) -> None:
    follows = world(seed)
    follows.sources.memory.bytes_max = 1
    main = follows.graph.branch()
    for _ in range(6):
        follows.step(main)
        view = main.snapshot().view
        assert everything(follows.sources.get_topology(view)) == everything(
            SourceCache().get_topology(view)
        )
