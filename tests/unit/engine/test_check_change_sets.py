from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engine.check.change_set_check import ChangeSetCheck
from omnigraph.engine.check.check_problems import Problems
from omnigraph.engine.check.checked_reads import TornFiles
from omnigraph.engine.check.schema_check import SchemaCheck
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning import (
    MAIN,
    AddColumns,
    Bulk,
    Changed,
    IdSet,
    Maintenance,
    Overwrite,
    Record,
    Replace,
    Transaction,
    make_mark,
)
from omnigraph.writers.validate import marks_of
from unit.engine.damaged_graph import (
    KNOWS,
    LEADS,
    NOTE,
    PERSON,
    RED,
    Damaged,
    check,
    ids,
)
from unit.engine.damaged_graph import (
    found_everywhere as found,
)
from unit.writers.plain_graph import PlainGraph, rows_of, type_key


def change_set(damaged: Damaged, message: str, type_: str = NOTE) -> str:
    path = damaged.record_path(damaged.graph.head().seq)
    return f"change_set: {path} {type_}: {message}"


NEW = {"@id": "new", "text": "x"}


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (Changed(), ["'new' was inserted and is not listed"]),
        (Changed(updated=ids("new")), [
            "'new' was inserted and is not listed",
            "'new' is listed as updated and was not",
        ]),
        (Changed(inserted=ids("new", "other")), ["'other' is listed as inserted and was not"]),
        (Changed(ids("new"), deleted=ids("other")), ["'other' is listed as deleted and was not"]),
        (Changed(ids("new"), updated=ids("other")), ["'other' is listed as updated and was not"]),
        (Maintenance(), ["'new' was inserted without a change set"]),
        (Bulk((), 2), ["1 rows are new, and the record says 2"]),
        (Bulk((), 1, replaces=True), ["3 rows should be gone"]),
        (Bulk(("t/x.lance",), 1), ["t/x.lance is listed and not in the table"]),
    ],
)  # fmt: skip
def test_a_change_set_that_is_not_true_is_named(
    damaged: Damaged, change: Any, messages: list[str]
) -> None:
    damaged.lie(NOTE, change, NEW)
    assert found(damaged) == [change_set(damaged, message) for message in messages]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Changed(), "'Overwrite1' was deleted and is not listed"),
        (Maintenance(), "'Overwrite1' was deleted without a change set"),
        (Bulk((), 0), "'Overwrite1' was deleted by a load that only adds"),
    ],
)
def test_a_deletion_that_is_not_listed_is_named(
    damaged: Damaged, change: Any, message: str
) -> None:
    graph = damaged.graph
    graph.commit(graph.view(), Replace(NOTE, ids("Overwrite1")), change)
    assert found(damaged) == [change_set(damaged, message)]


def rewrite(graph: PlainGraph, change: Any, type_: str = PERSON, **values: Any) -> None:
    """Write `ada` again with other values."""
    view = graph.view()
    (ada,) = (each for each in graph.entities(type_) if each["@id"] == "ada")
    rows = rows_of(view.get_shape(type_key(type_)), [{**ada, **values}])
    graph.commit(view, Replace(type_, ids("ada"), (rows,)), change)


@pytest.mark.slow
@pytest.mark.parametrize("change", [Changed(), Maintenance()])
@pytest.mark.parametrize(
    "values",
    [
        {"age": 37},
        {"age": None},
        {"mood": "sad"},
        {"height": -1.5},
        {"tags": ["x", "z"]},
        {"tags": ["x"]},
        {"tags": None},
        {"face": [0.0, 0.0]},
        {"face": None},
        {"picture": bytes(199_999) + b"\x01"},
        {"picture": None},
    ],
)
def test_a_changed_value_that_is_not_listed_is_named(
    damaged: Damaged, change: Any, values: dict[str, Any]
) -> None:
    rewrite(damaged.graph, change, **values)
    message = "'ada' was changed and is not listed"
    assert found(damaged) == [change_set(damaged, message, PERSON)]


@pytest.mark.parametrize("change", [Changed(), Maintenance()])
def test_an_entity_written_again_as_it_was_is_unchanged(damaged: Damaged, change: Any) -> None:
    rewrite(damaged.graph, change)
    assert found(damaged) == []


def test_an_update_may_be_listed_whether_it_changed_anything_or_not(damaged: Damaged) -> None:
    rewrite(damaged.graph, Changed(updated=ids("ada")))
    rewrite(damaged.graph, Changed(updated=ids("ada")), age=1)
    assert found(damaged) == []


def test_an_overwrite_is_compared_like_any_commit(damaged: Damaged) -> None:
    graph = damaged.graph
    kept, *gone = (each["@id"] for each in graph.entities(NOTE))
    entities = ({"@id": kept, "text": "other"}, NEW)
    rows = rows_of(graph.view().get_shape(type_key(NOTE)), entities)
    honest = Changed(ids("new"), updated=ids(kept), deleted=ids(*gone))
    graph.commit(graph.view(), Overwrite(NOTE, (rows,)), honest)
    assert found(damaged) == []
    graph.overwrite(NOTE, {"@id": kept, "text": "third"}, NEW, change=Changed())
    assert found(damaged) == [change_set(damaged, f"'{kept}' was changed and is not listed")]


def test_a_migration_must_leave_values_alone(damaged: Damaged) -> None:
    graph = damaged.graph
    source = graph.view().schema.source.replace("shoe: I32?", "shoe: I32?  hat: I32?")
    migrated = graph.migrated(source).transaction
    assert migrated is not None
    rows = rows_of(graph.view().get_shape(type_key(PERSON)), [{"name": "ada", "age": 1}])
    effects = (Replace(PERSON, ids("ada"), (rows,)), *migrated.effects)
    graph.committer.publish(Transaction(graph.head(), effects, {}, schema=migrated.schema))
    message = "'ada' was changed and is not listed"
    assert found(damaged) == [change_set(damaged, message, PERSON)]


def test_a_migration_must_leave_new_columns_empty(damaged: Damaged) -> None:
    graph = damaged.graph
    source = graph.view().schema.source.replace("text: String", "text: String  more: I32?")
    migrated = graph.migrated(source).transaction
    assert migrated is not None
    assert migrated.schema is not None
    (added,) = migrated.effects
    assert isinstance(added, AddColumns)
    (column,) = added.schema.names
    first = graph.entities(NOTE)[0]
    rows = rows_of(graph.view().get_shape(type_key(NOTE)), [first])
    rows = rows.append_column(column, pa.array([5], pa.int32()))
    effects = (added, Replace(NOTE, ids(first["@id"]), (rows,)))
    graph.committer.publish(Transaction(graph.head(), effects, {}, schema=migrated.schema))
    assert found(damaged) == [change_set(damaged, f"column {column} is new and is not empty")]


def test_a_missing_or_torn_change_set_file_is_named(damaged: Damaged) -> None:
    path = damaged.only("__manifest/changes/*.arrow")
    damaged.write(path, b"torn")
    problems = found(damaged)
    assert all(f"{path}: its digest is not the one of its record" in each for each in problems)
    assert any(each.startswith("change_set: ") for each in problems)
    damaged.remove(path)
    absent = f"change_set: {path}: a record names this change set, and it is absent"
    assert absent in found(damaged)


def test_a_torn_file_of_an_old_table_is_named_when_its_commit_is_compared(
    damaged: Damaged,
) -> None:
    graph = damaged.graph
    newest = graph.tables.list_references(graph.head().pins[NOTE])
    before = graph.tables.list_references(
        graph.log.read_snapshot(MAIN, graph.head().seq - 1).pins[NOTE]
    )
    file = max(path for path in before - newest if path.endswith(".lance"))
    damaged.write(file, b"torn")
    problems = found(damaged)
    assert all(f"{file}: its digest is not the one in its name" in each for each in problems)
    assert any(each.startswith("change_set: ") for each in problems)


def test_the_counts_of_a_change_set_file_are_compared(damaged: Damaged) -> None:
    path = damaged.only("__manifest/changes/*.arrow")
    (seq,) = (
        seq
        for seq in range(damaged.graph.head().seq)
        if path in damaged.bytes_of(damaged.record_path(seq)).decode()
    )
    damaged.edit(
        damaged.record_path(seq), lambda document: document["changes"][PERSON].update(n_ins=7)
    )
    message = f"{path} lists (1001, 0, 0) ids, and the record says (7, 0, 0)"
    assert found(damaged) == [f"change_set: {damaged.record_path(seq)} {PERSON}: {message}"]


def test_only_the_newest_commits_are_compared_with_their_change_sets(damaged: Damaged) -> None:
    damaged.lie(NOTE, Changed(), NEW)
    damaged.append(NOTE, {"@id": "later", "text": "x"})
    assert check(damaged, commits_max=1).problems == ()
    assert len(check(damaged, commits_max=2).problems) == 1
    assert len(check(damaged, commits_max=None).problems) == 1


def test_commits_that_branches_share_are_compared_once(damaged: Damaged) -> None:
    damaged.lie(NOTE, Changed(), NEW)
    graph = damaged.graph
    path = damaged.record_path(graph.head().seq)
    graph.branches.create("later", at=graph.head())
    assert found(damaged) == [f"change_set: {path} {NOTE}: 'new' was inserted and is not listed"]


@pytest.mark.parametrize(
    ("type_", "entity", "marks"),
    [
        (PERSON, {"name": "zoe", "mail": "z@x"}, 1),
        (PERSON, {"name": "zoe"}, 0),
        (KNOWS, {"@src": "bob", "@dst": "cleo"}, 2),
        (NOTE, NEW, 0),
    ],
)
def test_a_mark_that_is_not_listed_is_named(
    damaged: Damaged, type_: str, entity: dict[str, Any], marks: int
) -> None:
    view = damaged.graph.view()
    rows = rows_of(view.get_shape(type_key(type_)), [entity])
    honest = marks_of(view.get_shape(type_key(type_)), view.types[type_key(type_)], rows)
    assert honest is not None
    damaged.lie(type_, Changed(inserted=IdSet(rows["__id"]), marks=IdSet()), entity)
    assert found(damaged) == [
        change_set(damaged, f"mark '{mark}' of an end or a unique value is not listed", type_)
        for mark in honest
    ]
    assert len(honest) == marks


@pytest.mark.parametrize("listed", [["ada"], ["ada", RED, "more"]])
def test_the_ends_of_a_deleted_edge_are_marks_and_others_are_harmless(
    damaged: Damaged, listed: list[str]
) -> None:
    graph = damaged.graph
    marks = {
        "ada": make_mark("src", "ada"),
        RED: make_mark("dst", RED),
        "more": make_mark("dst", "more"),
    }
    change = Changed(deleted=ids("l1"), marks=ids(*(marks[name] for name in listed)))
    graph.commit(graph.view(), Replace(LEADS, ids("l1")), change)
    message = f"mark '{marks[RED]}' of an end or a unique value is not listed"
    missing = [] if RED in listed else [change_set(damaged, message, LEADS)]
    assert found(damaged) == missing


@pytest.mark.parametrize("count", [1, 5])
def test_rows_that_a_commit_left_alone_are_not_read(
    damaged: Damaged, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    for number in range(count):
        rewrite(damaged.graph, Changed(updated=ids("ada")), age=number)
        damaged.append(PERSON, {"name": f"new{number}"})
    read: list[int] = []
    reading = Table.scan_fragments

    def watched(table: Table, chosen: Any, *, columns: list[str]) -> pa.Table:
        found = reading(table, chosen, columns=columns)
        read.append(found.num_rows if "__id" in columns else 0)
        return found

    monkeypatch.setattr(Table, "scan_fragments", watched)
    monkeypatch.setattr(Table, "scan", None)
    graph = damaged.graph
    last = graph.head().seq
    problems = Problems()
    torn, schemas = TornFiles(graph.objects, graph.tables), SchemaCheck(graph.objects, problems)
    check = ChangeSetCheck(graph.objects, torn, schemas, problems)
    for seq in range(last - 2 * count + 1, last + 1):
        record = graph.log.read(MAIN.id, seq)
        assert isinstance(record, Record)
        check.check(
            record, graph.log.read_snapshot(MAIN, seq - 1), graph.log.read_snapshot(MAIN, seq)
        )
    assert problems.list_problems() == ()
    assert graph.head().pins[PERSON].rows > 1000
    # The row that came of each commit, and its copy before unless that was in a large fragment.
    assert 2 * count <= sum(read) <= 3 * count
