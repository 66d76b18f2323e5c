from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from omnigraph.engine.check.graph_check import check_graph
from omnigraph.errors import CompileError, ConflictError, MigrationUnsupportedError
from omnigraph.schema.migration import AddProperty, AddType, DropType
from omnigraph.storage.objects.faults import Fault, SimulatedCrash, Steps, iter_faults
from omnigraph.versioning import (
    MAIN,
    Append,
    Changed,
    IdSet,
    Publishers,
    Record,
    Signature,
    compact,
)
from omnigraph.writers.schema_migration import Migration
from unit.writers.plain_graph import (
    ADA,
    BOB,
    PEOPLE,
    PlainGraph,
    created,
    everything_stored,
    ids,
    rows_of,
    type_key,
)


@pytest.fixture
def graph(tmp_path: Path) -> PlainGraph:
    """Two people, a city, and an edge between them."""
    graph = created(tmp_path / "graph", PEOPLE)
    graph.insert("node:Person", ADA, BOB)
    graph.insert("node:City", {"name": "Rome"})
    graph.insert("edge:LivesIn", {"@id": "e1", "@src": "ada", "@dst": "Rome", "since": 7})
    return graph


def changed(source: str, *replacements: tuple[str, str]) -> str:
    for old, new in replacements:
        assert old in source
        source = source.replace(old, new)
    return source


# ---- nothing to do, and only a text ----


def test_the_text_in_force_gives_no_commit_and_writes_nothing(graph: PlainGraph) -> None:
    head, stored = graph.head(), everything_stored(graph)
    migrated = graph.migrated(PEOPLE)
    assert migrated.transaction is None
    assert migrated.plan.steps == ()
    assert migrated.rebuild_transaction(head) is None
    assert graph.apply(PEOPLE) is None
    assert (graph.head(), everything_stored(graph)) == (head, stored)


def test_another_comment_gives_a_commit_without_steps(graph: PlainGraph) -> None:
    before = graph.head()
    source = "// Who lives where.\n" + PEOPLE
    migrated = graph.migrated(source)
    assert migrated.plan.steps == ()
    record = graph.publish(migrated)
    assert record is not None
    assert not record.is_maintenance
    after = graph.head()
    assert (after.seq, after.pins) == (before.seq + 1, before.pins)
    assert graph.view().schema.source == source
    assert graph.view().accepted == graph.view(before).accepted
    assert graph.apply(source) is None


def test_a_text_of_the_past_comes_into_force_again(graph: PlainGraph) -> None:
    first = graph.head().schema
    graph.apply(PEOPLE + "// more")
    assert graph.head().schema != first
    graph.apply(PEOPLE)
    assert graph.head().schema == first


# ---- refusals ----


def test_an_unsupported_change_is_refused_with_its_code_and_changes_nothing(
    graph: PlainGraph,
) -> None:
    head, stored = graph.head(), everything_stored(graph)
    retyped = changed(PEOPLE, ("age: I32?", "age: [I32]?"), ("node City", "node Town {} node City"))
    with pytest.raises(MigrationUnsupportedError, match=r"^\[OG-MF-106\] node:Person\.age: "):
        graph.migrated(retyped)
    with pytest.raises(MigrationUnsupportedError, match=r"^\[OG-MF-103\] node:City\.size: "):
        graph.migrated(changed(PEOPLE, ("@key }", "@key  size: I32 }")))
    with pytest.raises(MigrationUnsupportedError, match=r"^\[S030\] node:Person\.years: "):
        graph.migrated(changed(PEOPLE, ("age: I32?", 'years: I32? @rename_from("old")')))
    assert (graph.head(), everything_stored(graph)) == (head, stored)


def test_a_text_with_errors_is_refused(graph: PlainGraph) -> None:
    with pytest.raises(CompileError, match="Town"):
        graph.migrated(changed(PEOPLE, ("Person -> City", "Person -> Town")))


# ---- properties ----

EVERY_KIND = {
    "text": ("String?", "long"),
    "flag": ("Bool?", True),
    "small": ("I32?", -7),
    "large": ("U64?", 2**63),
    "half": ("F32?", 0.5),
    "exact": ("F64?", 0.1),
    "day": ("Date?", 19_000),
    "moment": ("DateTime?", 1_700_000_000_123),
    "mood": ("enum(glad, sad)?", "glad"),
    "tags": ("[String]?", ["a", "b"]),
    "numbers": ("[F64]?", [1.5]),
    "direction": ("Vector(3)?", [1.0, 2.0, 3.0]),
    "picture": ("Blob?", b"\x00\x01"),
}


def test_added_properties_are_null_in_old_entities_and_new_ones_may_have_them(
    graph: PlainGraph,
) -> None:
    declared = "  ".join(f"{name}: {kind}" for name, (kind, _) in EVERY_KIND.items())
    migrated = graph.migrated(changed(PEOPLE, ("age: I32?", f"age: I32?  {declared}")))
    assert {step.name for step in migrated.plan.steps if isinstance(step, AddProperty)} == set(
        EVERY_KIND
    )
    graph.publish(migrated)
    assert graph.head().pins["node:Person"].fragments == 1, "no row was written"
    values = {name: value for name, (_, value) in EVERY_KIND.items()}
    graph.insert("node:Person", {"name": "cleo", **values})
    absent = dict.fromkeys(EVERY_KIND)
    ada, bob, cleo = graph.reopened().entities("node:Person")
    assert ada == {"@id": "ada", **ADA, **absent}
    assert bob == {"@id": "bob", **BOB, **absent}
    assert {name: cleo[name] for name in EVERY_KIND} == values


def test_properties_added_one_by_one_keep_to_themselves(graph: PlainGraph) -> None:
    source = PEOPLE
    for number, (name, (kind, value)) in enumerate(EVERY_KIND.items()):
        source = changed(source, ("age: I32?", f"age: I32?  {name}: {kind}"))
        graph.apply(source)
        graph.insert("node:Person", {"name": f"p{number}", name: value})
    found = {entity["@id"]: entity for entity in graph.reopened().entities("node:Person")}
    assert {key: found["ada"][key] for key in ADA} == ADA
    for number, (name, (_, value)) in enumerate(EVERY_KIND.items()):
        others = {other: found[f"p{number}"][other] for other in EVERY_KIND if other != name}
        assert found[f"p{number}"][name] == value
        assert others == dict.fromkeys(others)


def test_a_property_of_an_edge_may_be_added_too(graph: PlainGraph) -> None:
    graph.apply(changed(PEOPLE, ("since: Date?", "since: Date?  rent: F64?")))
    graph.insert("edge:LivesIn", {"@id": "e2", "@src": "bob", "@dst": "Rome", "rent": 2.5})
    found = graph.entities("edge:LivesIn")
    assert [(edge["@src"], edge["@dst"], edge["rent"]) for edge in found] == [
        ("ada", "Rome", None),
        ("bob", "Rome", 2.5),
    ]


def test_a_property_of_an_interface_is_a_column_of_each_type_that_has_it(tmp_path: Path) -> None:
    source = (
        "interface Named { name: String }  node A implements Named {}  node B implements Named {}"
    )
    graph = created(tmp_path / "graph", source)
    graph.insert("node:A", {"@id": "a", "name": "x"})
    graph.apply(changed(source, ("name: String", "name: String  nick: String?")))
    graph.insert("node:B", {"@id": "b", "name": "y", "nick": "z"})
    assert graph.entities("node:A") == [{"@id": "a", "name": "x", "nick": None}]
    assert graph.entities("node:B") == [{"@id": "b", "name": "y", "nick": "z"}]


def test_a_renamed_property_keeps_its_values_and_touches_no_table(graph: PlainGraph) -> None:
    before = graph.head()
    graph.apply(changed(PEOPLE, ("age: I32?", 'years: I32? @rename_from("age")')))
    assert graph.head().pins == before.pins
    assert graph.entities("node:Person")[0] == {"@id": "ada", "name": "ada", "years": 36}
    assert graph.entities("node:Person", before)[0] == {"@id": "ada", "name": "ada", "age": 36}


def test_a_dropped_property_is_gone_now_and_there_in_the_past(graph: PlainGraph) -> None:
    before = graph.head()
    graph.apply(changed(PEOPLE, ("  age: I32?", "")))
    assert graph.head().pins == before.pins
    graph.insert("node:Person", {"name": "cleo"})
    assert graph.entities("node:Person") == [
        {"@id": name, "name": name} for name in ("ada", "bob", "cleo")
    ]
    assert graph.entities("node:Person", before)[0]["age"] == 36


def test_a_property_added_under_a_dropped_name_never_shows_the_old_values(
    graph: PlainGraph,
) -> None:
    graph.apply(changed(PEOPLE, ("  age: I32?", "")))
    graph.insert("node:Person", {"name": "cleo"})
    record = graph.apply(PEOPLE)
    assert record is not None
    assert record.schema != graph.log.read_snapshot(graph.head().stream, 0).schema
    graph.insert("node:Person", {"name": "dido", "age": 50})
    found = graph.reopened().entities("node:Person")
    assert {entity["@id"]: entity["age"] for entity in found} == {
        "ada": None,
        "bob": None,
        "cleo": None,
        "dido": 50,
    }


def test_a_name_may_come_back_with_another_type(graph: PlainGraph) -> None:
    graph.apply(changed(PEOPLE, ("  age: I32?", "")))
    graph.apply(changed(PEOPLE, ("age: I32?", "age: String?")))
    graph.insert("node:Person", {"name": "cleo", "age": "old"})
    assert [entity["age"] for entity in graph.entities("node:Person")] == [None, None, "old"]


# ---- types ----


def test_a_renamed_type_keeps_its_entities_its_edges_and_its_table(graph: PlainGraph) -> None:
    before = graph.head()
    source = changed(
        PEOPLE, ("node Person", 'node Human @rename_from("Person")'), ("Person ->", "Human ->")
    )
    record = graph.apply(source)
    assert record is not None
    assert dict(record.renamed) == {"node:Person": "node:Human"}
    after = graph.head()
    assert sorted(after.pins) == ["edge:LivesIn", "node:City", "node:Human"]
    assert after.pins["node:Human"] == before.pins["node:Person"]
    assert after.pins["edge:LivesIn"] == before.pins["edge:LivesIn"]
    assert ids(graph, "node:Human") == ["ada", "bob"]
    assert graph.entities("edge:LivesIn")[0]["@src"] == "ada"
    assert len(graph.entities("node:Person", before)) == 2


def test_a_type_may_be_renamed_and_extended_at_once(graph: PlainGraph) -> None:
    source = changed(
        PEOPLE,
        ("node Person", 'node Human @rename_from("Person")'),
        ("Person ->", "Human ->"),
        ("age: I32?", 'years: I32? @rename_from("age")  nick: String?'),
    )
    graph.apply(source)
    assert graph.entities("node:Human")[0] == {
        "@id": "ada",
        "name": "ada",
        "years": 36,
        "nick": None,
    }
    graph.insert("node:Human", {"name": "cleo", "nick": "c"})
    assert graph.reopened().entities("node:Human")[2]["nick"] == "c"


def test_names_may_move_along_a_chain_when_the_last_one_is_free(graph: PlainGraph) -> None:
    source = 'node C @rename_from("B") {}  node B2 @rename_from("A") { x: I32? }'
    chain = created(Path(graph.uri).parent / "chain", "node A { x: I32? }  node B {}")
    chain.insert("node:A", {"@id": "1", "x": 1})
    chain.insert("node:B", {"@id": "2"})
    chain.apply(source)
    assert sorted(chain.head().pins) == ["node:B2", "node:C"]
    chain.apply('node B @rename_from("C") {}  node A @rename_from("B2") { x: I32? }')
    assert chain.entities("node:A") == [{"@id": "1", "x": 1}]
    assert chain.entities("node:B") == [{"@id": "2"}]


def test_a_dropped_type_is_gone_now_and_there_in_the_past(graph: PlainGraph) -> None:
    before = graph.head()
    migrated = graph.migrated("node Person { name: String @key  age: I32? }")
    assert [type(step) for step in migrated.plan.steps] == [DropType, DropType]
    record = graph.publish(migrated)
    assert record is not None
    assert sorted(record.dropped) == ["edge:LivesIn", "node:City"]
    assert sorted(graph.head().pins) == ["node:Person"]
    assert [city["@id"] for city in graph.entities("node:City", before)] == ["Rome"]


def test_a_type_added_under_a_dropped_name_starts_empty_with_another_table(
    graph: PlainGraph,
) -> None:
    before = graph.head()
    graph.apply("node Person { name: String @key  age: I32? }")
    migrated = graph.migrated(PEOPLE)
    assert [type(step) for step in migrated.plan.steps] == [AddType, AddType]
    record = graph.publish(migrated)
    assert record is not None
    assert sorted(record.registered) == ["edge:LivesIn", "node:City"]
    assert graph.entities("node:City") == []
    assert graph.head().pins["node:City"].path != before.pins["node:City"].path
    old, new = (graph.view(at).accepted.identities[type_key("node:City")] for at in (before, None))
    assert not {old.id, old.incarnation_id} & {new.id, new.incarnation_id}
    graph.insert("node:City", {"name": "Rome"})
    assert ids(graph, "node:City") == ["Rome"]


def test_wider_enums_indexes_and_descriptions_change_the_schema_alone(tmp_path: Path) -> None:
    source = "node A { k: String @key  mood: enum(glad, sad) }"
    graph = created(tmp_path / "graph", source)
    graph.insert("node:A", {"k": "x", "mood": "sad"})
    before = graph.head()
    wider = changed(
        source,
        ("glad,", "glad, calm,"),
        ("node A {", 'node A @description("an A") {'),
        ("k: String @key", "k: String @key @index"),
    )
    migrated = graph.migrated(wider)
    assert len(migrated.plan.steps) == 3
    assert migrated.transaction is not None
    assert migrated.transaction.effects == ()
    graph.publish(migrated)
    assert graph.head().pins == before.pins
    assert graph.entities("node:A") == [{"@id": "x", "k": "x", "mood": "sad"}]


def test_ids_of_composite_keys_survive_renames_that_turn_the_order_of_names(
    tmp_path: Path,
) -> None:
    source = "node A { a: String  b: String  @key(a, b) }"
    graph = created(tmp_path / "graph", source)
    graph.insert("node:A", {"a": "1", "b": "2"})
    assert ids(graph, "node:A") == ['["1","2"]']
    graph.apply('node A { z: String @rename_from("a")  b: String  @key(b, z) }')
    shape = graph.view().get_shape(type_key("node:A"))
    again = rows_of(shape, [{"z": "1", "b": "2"}])
    assert again["__id"].to_pylist() == ids(graph, "node:A") == ['["1","2"]']
    graph.update("node:A", {"z": "1", "b": "2"})
    assert graph.entities("node:A") == [{"@id": '["1","2"]', "z": "1", "b": "2"}]


# ---- beside other commits ----


def wide(name: str = "nick") -> str:
    return changed(PEOPLE, ("age: I32?", f"age: I32?  {name}: String?"))


def test_entities_committed_meanwhile_do_not_refuse_a_migration(graph: PlainGraph) -> None:
    migrated = graph.migrated(wide())
    assert migrated.transaction is not None
    graph.insert("node:Person", {"name": "cleo"})
    graph.delete("node:Person", "bob")
    with pytest.raises(ConflictError):
        graph.committer.publish(migrated.transaction)
    graph.publish(migrated)
    found = graph.reopened().entities("node:Person")
    assert [(entity["@id"], entity["nick"]) for entity in found] == [("ada", None), ("cleo", None)]


def test_another_migration_meanwhile_is_a_conflict(graph: PlainGraph) -> None:
    migrated = graph.migrated(wide("nick"))
    graph.apply(wide("title"))
    head = graph.head()
    with pytest.raises(ConflictError, match="another schema came into force on branch 'main'"):
        graph.publish(migrated)
    assert graph.head() == head


def test_a_write_prepared_for_the_old_schema_is_a_conflict(graph: PlainGraph) -> None:
    view = graph.view()
    rows = rows_of(view.get_shape(type_key("node:City")), [{"name": "Oslo"}])
    graph.apply(wide())
    with pytest.raises(ConflictError, match="schema"):
        graph.commit(view, Append("node:City", (rows,)), Changed(inserted=IdSet(["Oslo"])))


def test_compacted_tables_take_columns_and_tables_with_new_columns_are_compacted(
    graph: PlainGraph,
) -> None:
    for number in range(40):
        graph.insert("node:Person", {"name": f"p{number:02}", "age": number})
    before = graph.migrated(wide())
    assert compact(Publishers(graph.committer), MAIN, "node:Person")
    graph.publish(before)
    for number in range(40, 80):
        graph.insert("node:Person", {"name": f"p{number:02}", "nick": f"n{number}"})
    assert compact(Publishers(graph.committer), MAIN, "node:Person")
    found = {entity["@id"]: entity for entity in graph.reopened().entities("node:Person")}
    assert len(found) == 82
    assert (found["p07"]["age"], found["p07"]["nick"]) == (7, None)
    assert (found["p47"]["age"], found["p47"]["nick"]) == (None, "n47")


def test_other_branches_keep_their_schema(graph: PlainGraph) -> None:
    review = graph.branches.create("review", at=graph.head())
    graph.apply(wide())
    assert graph.view(stream=review).schema.source == PEOPLE
    graph.insert("node:Person", {"name": "cleo"}, stream=review)
    graph.apply(changed(PEOPLE, ("  age: I32?", "")), stream=review)
    assert graph.entities("node:Person", graph.head(review)) == [
        {"@id": name, "name": name} for name in ("ada", "bob", "cleo")
    ]
    assert graph.entities("node:Person")[0] == {"@id": "ada", **ADA, "nick": None}


def test_the_commit_says_who_made_it(graph: PlainGraph) -> None:
    record = graph.apply(wide(), signature=Signature(actor="ada", message="nicknames"))
    assert record is not None
    assert (record.signature.actor, record.signature.message) == ("ada", "nicknames")
    assert record.changes == {}


def test_a_crash_during_a_migration_shows_all_of_it_or_nothing(tmp_path: Path) -> None:
    source = changed(PEOPLE, ("age: I32?", "nick: String?"), ("since: Date?", "rent: F64?"))
    source += "node Town {}"

    def start(name: str) -> PlainGraph:
        graph = created(tmp_path / name, PEOPLE)
        graph.insert("node:Person", ADA)
        return graph

    def migrate(graph: PlainGraph, steps: Steps) -> Record | None:
        return graph.with_faults(steps).apply(source)

    def outcome(fault: Fault) -> bool:
        graph = start(str(fault))
        before = graph.head()
        steps = fault.create_steps()
        with suppress(SimulatedCrash):
            migrate(graph, steps)
        assert steps.has_fired
        graph = graph.reopened()
        is_migrated = graph.head().schema != before.schema
        if not is_migrated:
            assert graph.head() == before
            graph.apply(source)
        graph.insert("node:Person", {"name": "cleo", "nick": "c"})
        graph.insert("node:Town", {"@id": "t"})
        assert [entity["nick"] for entity in graph.entities("node:Person")] == [None, "c"]
        assert check_graph(graph.objects, graph.tables).problems == ()
        return is_migrated

    outcomes = [outcome(fault) for fault in iter_faults(lambda steps: migrate(start("n"), steps))]
    assert len(outcomes) >= 10
    assert {True, False} == set(outcomes)


def test_a_migration_is_repeated_only_where_its_schema_is_in_force(graph: PlainGraph) -> None:
    migrated = graph.migrated(wide())
    graph.insert("node:City", {"name": "Oslo"})
    again = migrated.rebuild_transaction(graph.head())
    assert again is not None
    assert again.snapshot == graph.head()
    assert isinstance(migrated, Migration)
    assert migrated.transaction is not None
    assert again.effects == migrated.transaction.effects
