"""Publishing: what becomes of a write when others commit, stores fail, or time passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import (
    ConflictError,
    GraphExistsError,
    KeyConflictError,
    PreconditionFailedError,
)
from omnigraph.storage.objects import layout
from omnigraph.versioning import (
    MAIN,
    AddColumns,
    Append,
    BranchAt,
    Bulk,
    Changed,
    Drop,
    IdSet,
    LocatedRows,
    Maintain,
    Maintenance,
    Overwrite,
    ReadSet,
    Record,
    Register,
    Rename,
    Replace,
    Settings,
    Signature,
    Snapshot,
    Transaction,
)
from unit.versioning.memory_storage import MemoryObjects, MemoryTables
from unit.versioning.small_graph import (
    CITY,
    KNOWS,
    NODE,
    PERSON,
    SmallGraph,
    connecting,
    created_tables,
    deleting,
    inserting,
    memory_graph,
    updating,
    upserting,
)


def _counting(graph: SmallGraph) -> list[str]:
    """The names of the table operations from now on."""
    calls: list[str] = []
    inner = graph.tables

    class Counting:
        def __getattr__(self, name: str) -> Any:
            calls.append(name)
            return getattr(inner, name)

    graph.tables = graph.committer.tables = Counting()
    return calls


def test_a_commit_says_who_made_it_and_what_changed(graph: SmallGraph) -> None:
    head = graph.head()
    transaction = inserting(graph, {"ada": "1"}, actor="eve")(head)
    signature = replace(transaction.signature, message="hires", operations=("op-1",))
    record = graph.committer.publish(replace(transaction, signature=signature))
    assert record is not None
    assert record.signature == Signature("eve", "hires", None, ("op-1",))
    assert (record.branch, record.seq, record.parent) == ("main", 1, head.commit)
    assert record.changes == {PERSON: Changed(inserted=IdSet(["ada"]), marks=IdSet())}
    assert graph.reopened().log.read(MAIN.id, 1) == record


def test_a_write_on_an_untouched_branch_reads_the_record_it_follows_and_the_floor(
    fast_graph: SmallGraph,
) -> None:
    transaction = inserting(fast_graph, {"ada": "1"})(fast_graph.head())
    assert isinstance(fast_graph.objects, MemoryObjects)
    fast_graph.objects.calls.clear()
    fast_graph.committer.publish(transaction)
    assert [name for name, _ in fast_graph.objects.calls] == ["get", "put_new", "list", "put"]


def test_a_commit_covers_several_tables_at_once(graph: SmallGraph) -> None:
    people = inserting(graph, {"ada": "1"})(graph.head())
    cities = inserting(graph, {"paris": "2"}, CITY)(graph.head())
    graph.committer.publish(
        replace(
            people,
            effects=people.effects + cities.effects,
            changes={**people.changes, **cities.changes},
        )
    )
    head = graph.reopened().head()
    assert (graph.rows(head), graph.rows(head, CITY)) == ({"ada": "1"}, {"paris": "2"})


def test_a_write_to_other_tables_costs_the_loser_no_table_work(graph: SmallGraph) -> None:
    late = inserting(graph, {"ada": "1"})(graph.head())
    graph.reopened().insert({"paris": "2"}, type_key=CITY)
    calls = _counting(graph)
    record = graph.committer.publish(late)
    assert record is not None
    assert record.seq == 2
    assert calls == ["write", "append"]
    assert graph.rows(graph.head(), CITY) == {"paris": "2"}


def _attempts(graph: SmallGraph, step: str) -> list[str]:
    """Who takes turns looks at what others wrote before an attempt, who does not after it."""
    return [step] if "://" not in graph.committer.log.objects.uri else [step, step]


def test_a_moved_table_is_committed_again_without_writing_its_rows_again(
    graph: SmallGraph,
) -> None:
    late = inserting(graph, {"ada": "1"})(graph.head())
    graph.reopened().insert({"bob": "2"})
    calls = _counting(graph)
    graph.committer.publish(late)
    assert calls == ["write", *_attempts(graph, "append")]
    assert graph.people() == {"ada": "1", "bob": "2"}


def test_dead_rows_are_looked_up_again_where_the_table_moved(graph: SmallGraph) -> None:
    graph.insert({"ada": "1", "bob": "1", "cy": "1"})
    update = updating(graph, lambda _: {"ada": "2"})(graph.head())
    delete = deleting(graph, ["cy"])(graph.head())
    upsert = upserting(graph, {"bob": "3", "dan": "3"})(graph.head())
    for transaction in (update, delete, upsert):
        graph.reopened().committer.publish(transaction)
    assert graph.people() == {"ada": "2", "bob": "3", "dan": "3"}


def test_rows_that_were_looked_up_are_not_looked_up_again(graph: SmallGraph) -> None:
    graph.insert({"ada": "1", "bob": "1"})
    pin = graph.head().pins[PERSON]
    found = graph.tables.open(pin).find("__id", pa.array(["ada"]))["_rowid"].combine_chunks()
    late = updating(graph, lambda _: {"ada": "2"})(graph.head())
    (effect,) = late.effects
    assert isinstance(effect, Replace)
    known = replace(late, effects=(replace(effect, found=LocatedRows(pin.version, found)),))
    graph.reopened().insert({"cy": "1"})
    calls = _counting(graph)
    graph.committer.publish(known)
    assert calls == ["write", *_attempts(graph, "replace")]
    assert graph.people() == {"ada": "2", "bob": "1", "cy": "1"}


def test_a_strict_write_of_what_another_changed_is_a_conflict(graph: SmallGraph) -> None:
    graph.insert({"ada": "1"})
    late = updating(graph, lambda _: {"ada": "2"})(graph.head())
    other = graph.reopened().strict(updating(graph, lambda _: {"ada": "3"}))
    with pytest.raises(ConflictError, match="changed node:Person 'ada'") as conflict:
        graph.committer.publish(late)
    assert (conflict.value.type_key, conflict.value.entity_id) == (PERSON, "ada")
    assert conflict.value.commit == other.commit
    assert conflict.value.retryable
    assert graph.people() == {"ada": "3"}


def test_a_repeatable_write_is_prepared_again(graph: SmallGraph) -> None:
    prepare = upserting(graph, {"ada": "2"})
    late = prepare(graph.head())
    graph.reopened().insert({"ada": "1"})
    record = graph.committer.publish(late, prepare_again=prepare)
    assert record is not None
    assert record.changes == {PERSON: Changed(updated=IdSet(["ada"]), marks=IdSet())}
    assert graph.people() == {"ada": "2"}


def test_a_second_strict_insert_of_a_key_is_a_key_conflict(graph: SmallGraph) -> None:
    prepare = inserting(graph, {"ada": "2"})
    late = prepare(graph.head())
    graph.reopened().insert({"ada": "1"})
    with pytest.raises(KeyConflictError, match="node:Person 'ada' already exists"):
        graph.committer.publish(late, prepare_again=prepare)


def test_a_write_that_has_nothing_left_to_do_makes_no_commit(fast_graph: SmallGraph) -> None:
    late = inserting(fast_graph, {"ada": "1"})(fast_graph.head())
    fast_graph.reopened().insert({"ada": "1"})
    assert fast_graph.committer.publish(late, prepare_again=lambda _: None) is None
    assert fast_graph.head().seq == 1


Prepare = Callable[[SmallGraph], Callable[[Snapshot], Transaction]]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda g: deleting(g, ["ada"]), lambda g: connecting(g, {"e": ("bob", "ada")})),
        (lambda g: connecting(g, {"e": ("bob", "ada")}), lambda g: deleting(g, ["ada"])),
        (lambda g: connecting(g, {"e": ("ada", "bob")}), lambda g: deleting(g, ["ada"])),
    ],
)
def test_an_edge_never_lands_beside_the_deletion_of_its_end(
    graph: SmallGraph, first: Prepare, second: Prepare
) -> None:
    graph.insert({"ada": "1", "bob": "1"})
    late = second(graph)(graph.head())
    graph.reopened().strict(first(graph))
    with pytest.raises(ConflictError):
        graph.committer.publish(late)


def test_unrelated_edges_and_deletions_do_not_meet(graph: SmallGraph) -> None:
    graph.insert({"ada": "1", "bob": "1", "cy": "1"})
    late = deleting(graph, ["cy"])(graph.head())
    graph.reopened().strict(connecting(graph, {"e": ("ada", "bob")}))
    graph.committer.publish(late)
    head = graph.head()
    assert list(graph.rows(head, KNOWS)) == ["e"]
    assert set(graph.rows(head)) == {"ada", "bob"}


def test_a_predicate_over_a_whole_type_meets_every_change_of_it(fast_graph: SmallGraph) -> None:
    late = inserting(fast_graph, {"paris": "1"}, CITY)(fast_graph.head())
    late = replace(late, footprint={PERSON: ReadSet(is_whole=True)})
    fast_graph.reopened().insert({"ada": "1"})
    with pytest.raises(ConflictError, match=r"changed node:Person$"):
        fast_graph.committer.publish(late)


@pytest.mark.parametrize(
    "effect",
    [
        Overwrite(PERSON),
        AddColumns(PERSON, pa.schema([("more", pa.string())])),
        Drop(PERSON),
        Rename(PERSON, "node:Human"),
    ],
)
def test_an_exclusive_effect_meets_every_change_of_its_type(
    fast_graph: SmallGraph, effect: Overwrite | AddColumns | Drop | Rename
) -> None:
    late = Transaction(fast_graph.head(), (effect,), {})
    fast_graph.reopened().insert({"ada": "1"})
    with pytest.raises(ConflictError):
        fast_graph.committer.publish(late)
    fast_graph.committer.publish(Transaction(fast_graph.head(), (effect,), {}))


def test_a_bulk_write_is_exclusive_unless_it_lists_what_it_looked_up(
    fast_graph: SmallGraph,
) -> None:
    late = inserting(fast_graph, {"ada": "1"})(fast_graph.head())
    bulk = replace(late, changes={PERSON: Bulk(("file",), 1)})
    listed = replace(bulk, footprint={PERSON: ReadSet(ids=IdSet(["ada"]))})
    fast_graph.reopened().insert({"bob": "1"})
    with pytest.raises(ConflictError):
        fast_graph.committer.publish(bulk)
    fast_graph.committer.publish(listed)
    assert set(fast_graph.people()) == {"ada", "bob"}


def test_a_change_of_the_schema_meets_every_write(fast_graph: SmallGraph) -> None:
    late = inserting(fast_graph, {"paris": "1"}, CITY)(fast_graph.head())
    wider = AddColumns(PERSON, pa.schema([("more", pa.string())]))
    other = fast_graph.reopened()
    other.committer.publish(Transaction(other.head(), (wider,), {}, schema="sha256:second"))
    assert other.head().schema == "sha256:second"
    with pytest.raises(ConflictError, match="changed schema"):
        fast_graph.committer.publish(late)


def test_types_come_go_and_change_their_names(graph: SmallGraph) -> None:
    pin = graph.tables.create("t/Doc-1.lance", NODE)
    rows = pa.Table.from_pylist([{"__id": "d", "value": "1"}], schema=NODE)
    effects = (
        Register("node:Doc", pin),
        Append("node:Doc", (rows,)),
        Drop(CITY),
        Rename(PERSON, "node:Human"),
    )
    changes = {"node:Doc": Changed(inserted=IdSet(["d"]))}
    record = graph.committer.publish(Transaction(graph.head(), effects, changes))
    assert isinstance(record, Record)
    assert (record.registered, record.dropped) == (("node:Doc",), (CITY,))
    assert record.renamed == {PERSON: "node:Human"}
    head = graph.reopened().head()
    assert sorted(head.pins) == [KNOWS, "node:Doc", "node:Human"]
    assert graph.rows(head, "node:Doc") == {"d": "1"}
    assert graph.rows(graph.history.read_by_seq(MAIN, 0), CITY) == {}


def test_a_new_type_may_take_over_the_name_of_one_that_is_renamed_or_ends(
    graph: SmallGraph,
) -> None:
    graph.insert({"ada": "1"})
    person, city = (graph.tables.create(f"t/new-{each}.lance", NODE) for each in (1, 2))
    rows = [pa.Table.from_pylist([{"__id": each, "value": "2"}], schema=NODE) for each in "xyz"]
    effects = (
        Append(PERSON, (rows[0],)),
        Drop(CITY),
        Register(PERSON, person),
        Append(PERSON, (rows[1],)),
        Register(CITY, city),
        Append(CITY, (rows[2],)),
        Rename(PERSON, "node:Human"),
    )
    changes = {
        "node:Human": Changed(inserted=IdSet(["x"])),
        PERSON: Changed(inserted=IdSet(["y"])),
        CITY: Changed(inserted=IdSet(["z"])),
    }
    graph.committer.publish(Transaction(graph.head(), effects, changes))
    head = graph.reopened().head()
    assert graph.rows(head, "node:Human") == {"ada": "1", "x": "2"}
    assert graph.rows(head, PERSON) == {"y": "2"}
    assert graph.rows(head, CITY) == {"z": "2"}


def test_no_type_gets_a_name_that_another_one_keeps(graph: SmallGraph) -> None:
    pin = graph.tables.create("t/Doc-1.lance", NODE)
    for effects in (
        (Register(PERSON, pin),),
        (Register("node:Doc", pin), Rename(PERSON, "node:Doc")),
        (Rename(PERSON, CITY),),
    ):
        with pytest.raises(ConflictError, match="exists"):
            graph.committer.publish(Transaction(graph.head(), effects, {}))


def test_a_column_is_added_and_filled_in_one_commit(graph: SmallGraph) -> None:
    graph.insert({"ada": "1"})
    column = pa.field("more", pa.string())
    filled = [{"__id": "ada", "value": "1", "more": "m"}]
    effects = (
        AddColumns(PERSON, pa.schema([column])),
        Replace(PERSON, IdSet(["ada"]), (pa.Table.from_pylist(filled, NODE.append(column)),)),
    )
    changes = {PERSON: Changed(updated=IdSet(["ada"]))}
    graph.committer.publish(Transaction(graph.head(), effects, changes))
    assert graph.tables.open(graph.head().pins[PERSON]).scan().to_pylist() == filled


def test_a_type_cannot_start_twice_or_end_twice(fast_graph: SmallGraph) -> None:
    pin = fast_graph.head().pins[PERSON]
    with pytest.raises(ConflictError, match="already exists"):
        fast_graph.committer.publish(Transaction(fast_graph.head(), (Register(PERSON, pin),), {}))
    with pytest.raises(ConflictError, match="does not exist"):
        fast_graph.committer.publish(Transaction(fast_graph.head(), (Drop("node:Nobody"),), {}))


def test_maintenance_meets_nobody_and_is_met_by_nobody(graph: SmallGraph) -> None:
    for number in range(40):
        graph.insert({f"p{number}": "x", f"q{number}": "x"})
    tables = graph.tables
    compacted = tables.compact(tables.plan_compaction(graph.head().pins[PERSON]))
    rewrite = Transaction(graph.head(), (Maintain(PERSON, compacted),), {PERSON: Maintenance()})
    update = updating(graph, lambda _: {"p3": "y"})(graph.head())
    late = updating(graph, lambda _: {"p5": "y"})(graph.head())
    graph.reopened().committer.publish(update)
    record = graph.reopened().committer.publish(rewrite)
    assert record is not None
    assert record.is_maintenance
    graph.committer.publish(late)
    values = graph.people()
    assert (len(values), values["p3"], values["p5"], values["p7"]) == (80, "y", "y", "x")
    assert graph.head().pins[PERSON].fragments < 40


def test_a_compaction_whose_fragments_are_gone_is_planned_again(fast_graph: SmallGraph) -> None:
    for number in range(6):
        fast_graph.insert({f"p{number}": "x"})
    tables = fast_graph.tables
    compacted = tables.compact(tables.plan_compaction(fast_graph.head().pins[PERSON]))
    late = Transaction(fast_graph.head(), (Maintain(PERSON, compacted),), {PERSON: Maintenance()})
    fast_graph.reopened().strict(deleting(fast_graph, ["p0"]))
    with pytest.raises(ConflictError, match="no longer the fragments"):
        fast_graph.committer.publish(late)
    again: list[Snapshot] = []
    assert fast_graph.committer.publish(late, prepare_again=again.append) is None
    assert [snapshot.seq for snapshot in again] == [7]


def test_an_expected_head_is_a_precondition(graph: SmallGraph) -> None:
    head = graph.head()
    expecting = replace(inserting(graph, {"ada": "1"})(head), requires=(BranchAt(head.commit),))
    other = graph.reopened().insert({"bob": "1"})
    with pytest.raises(PreconditionFailedError) as failed:
        graph.committer.publish(expecting)
    assert (failed.value.expected, failed.value.actual) == (head.commit, other.commit)
    fresh = inserting(graph, {"ada": "1"})(graph.head())
    with pytest.raises(PreconditionFailedError):
        graph.committer.publish(replace(fresh, requires=(BranchAt(head.commit),)))
    record = graph.committer.publish(replace(fresh, requires=(BranchAt(other.commit),)))
    assert record is not None
    assert record.parent == other.commit


def test_maintenance_does_not_break_an_expected_head(fast_graph: SmallGraph) -> None:
    for number in range(6):
        expected = fast_graph.insert({f"p{number}": "x"}).commit
    tables = fast_graph.tables
    compacted = tables.compact(tables.plan_compaction(fast_graph.head().pins[PERSON]))
    effects = (Maintain(PERSON, compacted),)
    fast_graph.committer.publish(Transaction(fast_graph.head(), effects, {PERSON: Maintenance()}))
    late = inserting(fast_graph, {"ada": "1"})(fast_graph.head())
    assert fast_graph.committer.publish(replace(late, requires=(BranchAt(expected),)))


def test_a_request_that_was_committed_is_not_committed_again(fast_graph: SmallGraph) -> None:
    first = inserting(fast_graph, {"ada": "1"})(fast_graph.head())
    keyed = replace(first, signature=Signature(key="request-7"))
    record = fast_graph.reopened().committer.publish(keyed)
    assert fast_graph.committer.publish(keyed) == record
    assert fast_graph.head().seq == 1


def test_a_replacement_of_somebody_who_is_not_there_is_a_conflict(fast_graph: SmallGraph) -> None:
    with pytest.raises(ConflictError, match="1 rows to replace, 0 found"):
        fast_graph.strict(updating(fast_graph, lambda _: {"nobody": "1"}))


def test_one_of_two_creators_of_a_graph_wins(fast_graph: SmallGraph) -> None:
    before = fast_graph.head()
    pins = created_tables(MemoryTables())
    with pytest.raises(GraphExistsError):
        fast_graph.reopened().committer.create_graph(schema="sha256:other", pins=pins)
    assert fast_graph.reopened().head() == before


def test_a_creation_that_died_after_its_format_can_be_repeated() -> None:
    objects, tables = MemoryObjects(), MemoryTables()
    objects.put(layout.FORMAT, b'{"format":1}')
    graph = SmallGraph(objects, tables, Settings())
    graph.committer.create_graph(schema="sha256:a", pins=created_tables(tables))
    graph.log.require_graph()


def test_a_graph_of_a_newer_program_is_not_overwritten() -> None:
    graph = memory_graph()
    graph.objects.put(layout.FORMAT, b'{"format":3}')
    with pytest.raises(Exception, match="has format 3"):
        graph.reopened().committer.create_graph(schema="sha256:a", pins={})


def test_a_commit_may_change_no_table(fast_graph: SmallGraph) -> None:
    merged = fast_graph.head().ref
    record = fast_graph.committer.publish(Transaction(fast_graph.head(), (), {}, merged=merged))
    assert record is not None
    assert record.merged == merged
    assert not record.is_maintenance
