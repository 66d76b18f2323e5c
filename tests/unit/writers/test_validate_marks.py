"""What a validation reads, what a write holds, and that the two meet."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from omnigraph.rows.view import table_types_of
from omnigraph.versioning import Changed, Footprint, IdSet
from omnigraph.versioning.footprint import find_conflict, make_mark
from omnigraph.versioning.id_sets import DeferredIds
from omnigraph.writers.graph_change import MARKS_MAX, WriteMode
from omnigraph.writers.validate import image_after as reads_module
from omnigraph.writers.validate import marks_of
from unit.writers.validation_world import Entity, ValidationWorld, Write, Writes

SCHEMA = """
node Person { name: String @key  email: String? @unique  team: String?  seat: I32?  born: F64?
  @unique(team, seat)  @unique(name, email)  @unique(born) }
node City { name: String @key }
edge LivesIn: Person -> City @card(0..1) { since: I32? }
edge Knows: Person -> Person { note: String? @unique }
edge Mentors: Person -> Person { @key(@src, @dst)  @unique(@src, @dst) }
"""
PEOPLE = [{"name": "ann"}, {"name": "bob"}]


@pytest.fixture
def graph() -> ValidationWorld:
    return ValidationWorld(
        SCHEMA,
        {
            "Person": PEOPLE,
            "City": [{"name": "oslo"}],
            "Knows": [edge("k1", "ann", "ann")],
        },
    )


def edge(id_: str, source: str, target: str, **values: Any) -> dict[str, Any]:
    return {"@id": id_, "@src": source, "@dst": target, **values}


def holds(graph: ValidationWorld, name: str, *entities: Entity) -> IdSet | None:
    key = graph.keys[name]
    return marks_of(
        graph.view.get_shape(key),
        table_types_of(graph.view.catalog)[key],
        graph.rows(name, entities),
    )


def is_met(graph: ValidationWorld, reads: Footprint, name: str, *entities: Entity) -> bool:
    """Whether a commit that inserted these entities meets what a write has read."""
    changed = Changed(inserted=IdSet(["other"]), marks=holds(graph, name, *entities))

    def loaded(_: object) -> Changed:
        return changed

    return find_conflict(reads, {str(graph.keys[name]): changed}, loaded) is not None


def test_committed_ends_must_stay(graph: ValidationWorld) -> None:
    writes = {
        "Person": Write([{"name": "cyd"}]),
        "Knows": Write([edge("k2", "ann", "cyd"), edge("k3", "bob", "ann")]),
    }
    reads = graph.validate(writes)
    assert reads["node:Person"].present == IdSet(["ann", "bob"])
    assert not len(reads["node:Person"].ids)


def test_a_looked_up_value_meets_who_takes_it(graph: ValidationWorld) -> None:
    reads = graph.validate({"Person": Write([{"name": "cyd", "email": "c@x"}])})
    assert is_met(graph, reads, "Person", {"name": "dov", "email": "c@x"})
    assert not is_met(graph, reads, "Person", {"name": "dov", "email": "d@x"})
    assert not is_met(graph, reads, "Person", {"name": "c@x"})


def test_a_looked_up_tuple_meets_who_takes_all_of_it(graph: ValidationWorld) -> None:
    reads = graph.validate({"Person": Write([{"name": "cyd", "team": "a", "seat": 7}])})
    assert is_met(graph, reads, "Person", {"name": "dov", "team": "a", "seat": 7})
    assert not is_met(graph, reads, "Person", {"name": "dov", "team": "a", "seat": 8})
    assert not is_met(graph, reads, "Person", {"name": "dov", "team": "a"})


def test_both_zeros_have_one_mark(graph: ValidationWorld) -> None:
    reads = graph.validate({"Person": Write([{"name": "cyd", "born": 0.0}])})
    assert is_met(graph, reads, "Person", {"name": "dov", "born": -0.0})


def test_a_counted_source_meets_whose_edges_change(graph: ValidationWorld) -> None:
    reads = graph.validate({"LivesIn": Write([edge("l1", "ann", "oslo")], WriteMode.INSERT)})
    assert is_met(graph, reads, "LivesIn", edge("l2", "ann", "oslo"))
    assert not is_met(graph, reads, "LivesIn", edge("l2", "bob", "oslo"))


def test_a_node_that_ends_meets_new_edges_at_it(graph: ValidationWorld) -> None:
    reads = graph.validate({"Person": Write(deleted=["bob"])})
    assert is_met(graph, reads, "Knows", edge("k2", "bob", "ann"))
    assert is_met(graph, reads, "Knows", edge("k2", "ann", "bob"))
    assert is_met(graph, reads, "LivesIn", edge("l2", "bob", "oslo"))
    assert not is_met(graph, reads, "LivesIn", edge("l2", "ann", "bob"))
    assert not is_met(graph, reads, "Knows", edge("k2", "ann", "ann"))


def test_a_node_that_overwriting_drops_meets_new_edges_at_it(graph: ValidationWorld) -> None:
    reads = graph.validate({"Person": Write(PEOPLE[:1], WriteMode.OVERWRITE)})
    assert is_met(graph, reads, "Knows", edge("k2", "ann", "bob"))
    assert not is_met(graph, reads, "Knows", edge("k2", "ann", "ann"))


def test_keys_and_groups_around_them_need_no_mark(graph: ValidationWorld) -> None:
    assert graph.validate({"Person": Write([{"name": "cyd"}])}) == {}
    reads = graph.validate({"Mentors": Write([edge("", "ann", "bob")])})
    assert reads.keys() == {"node:Person"}
    assert holds(graph, "Person", {"name": "cyd", "email": None}) == IdSet()


def test_overwriting_reads_no_mark_of_the_type_it_overwrites(graph: ValidationWorld) -> None:
    write = Write([{"name": name, "email": f"{name}@x"} for name in ("ann", "bob")])
    overwritten: Writes = {"Person": Write(write.rows, WriteMode.OVERWRITE)}
    assert graph.validate(overwritten) == {}


def test_the_marks_of_edges_are_their_ends_and_unique_values(graph: ValidationWorld) -> None:
    column = graph.view.get_shape(graph.keys["Knows"]).columns["note"]
    marks = holds(graph, "Knows", edge("k2", "ann", "bob", note="hi"))
    assert marks == IdSet(
        [make_mark("src", "ann"), make_mark("dst", "bob"), make_mark(f"unique:{column}", "hi")]
    )


def test_rows_without_the_columns_of_a_group_hold_no_marks_of_it(graph: ValidationWorld) -> None:
    key = graph.keys["Knows"]
    ends = graph.rows("Knows", [edge("k2", "ann", "bob", note="hi")]).select(["__src", "__dst"])
    marks = marks_of(graph.view.get_shape(key), graph.view.catalog.edges["Knows"], ends)
    assert marks == IdSet([make_mark("src", "ann"), make_mark("dst", "bob")])


def test_many_marks_are_made_when_they_are_asked_for(graph: ValidationWorld) -> None:
    rows = [{"name": f"p{n}", "email": f"e{n}"} for n in range(MARKS_MAX + 1)]
    reads = graph.validate({"Person": Write(rows, WriteMode.INSERT)})["node:Person"]
    column = graph.view.get_shape(graph.keys["Person"]).columns["email"]
    assert not reads.is_whole
    assert isinstance(reads.marks, DeferredIds)
    assert len(reads.marks) == len(rows)
    taken = make_mark(f"unique:{column}", "e7")
    assert reads.marks.find_first_common(IdSet([taken])) == taken
    assert reads.marks.find_first_common(IdSet([make_mark(f"unique:{column}", "free")])) is None
    assert holds(graph, "Person", *rows) is None


def test_more_marks_than_can_be_made_are_the_whole_type(
    graph: ValidationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads_module, "DEFERRED_MARKS_MAX", 5)
    rows = [{"name": f"p{n}", "email": f"e{n}", "born": float(n)} for n in range(3)]
    reads = graph.validate({"Person": Write(rows, WriteMode.INSERT)})["node:Person"]
    assert reads.is_whole
    assert not len(reads.marks)
    reads = graph.validate({"Person": Write(rows[:2], WriteMode.INSERT)})["node:Person"]
    assert not reads.is_whole


def test_new_sources_are_not_looked_up() -> None:
    graph = ValidationWorld(SCHEMA, {"City": [{"name": "oslo"}]})
    writes = {
        "Person": Write([{"name": "ann"}], WriteMode.INSERT),
        "LivesIn": Write([edge("l1", "ann", "oslo")], WriteMode.INSERT),
    }
    reads = graph.validate(writes)
    assert reads.keys() == {"node:City"}
    assert reads["node:City"].present == IdSet(pa.array(["oslo"]))
