"""Records that a stopped writer put where others had been collected, and did not withdraw.

They never were part of their branch, so that nothing that follows its commits may take them for it.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from omnigraph.errors import CorruptObjectError, HistoryGoneError
from omnigraph.execution.sources.topology.topology_refresh import LogChangeSource
from omnigraph.storage.objects import layout
from omnigraph.versioning import (
    MAIN,
    Changed,
    IdSet,
    Lineage,
    Publisher,
    Record,
    Settings,
    Signature,
    Snapshot,
    Transaction,
)
from omnigraph.versioning.first_parents import find_last_gap
from omnigraph.versioning.log import WHOLE_PINS_MAX
from omnigraph.versioning.record import generate_commit_id
from omnigraph.versioning.record_codec import encode_entry
from omnigraph.versioning.schema_store import Schemas
from unit.versioning.memory_storage import MemoryObjects, MemoryTables
from unit.versioning.small_graph import (
    CITY,
    NODE,
    PERSON,
    SCHEMA,
    SmallGraph,
    created_tables,
    inserting,
    released_commits,
    upserting,
)

SEQ, LAST = 4, 6


@pytest.fixture(params=[False, True], ids=["narrow", "wide"])
def graph(request: pytest.FixtureRequest) -> SmallGraph:
    """A graph whose records hold all pins, or only those that they touched."""
    tables = MemoryTables()
    pins = created_tables(tables)
    for number in range(WHOLE_PINS_MAX if request.param else 0):
        type_key = f"node:T{number}"
        pins[type_key] = tables.create(layout.build_table_path(type_key, "00000001"), NODE)
    graph = SmallGraph(MemoryObjects(), tables, Settings(pause=lambda _: None))
    graph.committer.create_graph(schema=SCHEMA, pins=pins)
    for seq in range(1, SEQ):
        graph.insert({f"p{seq}": "1"})
    return graph


def _leave_stray(graph: SmallGraph) -> Record:
    """Commit two more, let go of what is below the last, and leave a record of another there."""
    before = graph.head()
    for seq in range(SEQ, LAST + 1):
        graph.insert({f"p{seq}": "1"})
    released_commits(graph, SEQ + 1, kept=[SEQ - 1])
    pin = graph.tables.append(
        before.pins[CITY], [graph.tables.write(before.pins[CITY], _row("nowhere"))]
    )
    touched = {CITY: pin}
    is_whole = len(before.pins) <= WHOLE_PINS_MAX
    stray = Record(
        stream=MAIN.id,
        branch=MAIN.branch,
        seq=SEQ,
        commit=generate_commit_id(before.created_at + 1_000_000),
        parent=before.commit,
        created_at=before.created_at + 1_000_000,
        schema=SCHEMA,
        pins={**before.pins, **touched} if is_whole else touched,
        is_whole=is_whole,
        changes={CITY: Changed(inserted=IdSet(["nowhere"]), marks=IdSet())},
        signature=Signature(key="once"),
    )
    assert graph.objects.put_new(layout.build_record_path(MAIN.id, SEQ), encode_entry(stray))
    return stray


def _row(entity_id: str) -> pa.Table:
    return pa.Table.from_pylist([{"__id": entity_id, "value": ""}], schema=NODE)


def _require_true(graph: SmallGraph, *, more: int = 0) -> None:
    head = graph.head()
    assert len(graph.rows(head)) == LAST + more
    assert graph.rows(head, CITY) == {}


def test_a_process_that_starts_does_not_see_it(graph: SmallGraph) -> None:
    _leave_stray(graph)
    _require_true(graph.reopened())


def test_a_process_that_slept_does_not_follow_it(graph: SmallGraph) -> None:
    sleeper = graph.reopened()
    assert sleeper.head().seq == SEQ - 1
    _leave_stray(graph)
    _require_true(sleeper)


@pytest.mark.parametrize("is_behind", [True, False])
def test_a_write_is_not_compared_with_it(graph: SmallGraph, *, is_behind: bool) -> None:
    sleeper = graph.reopened()
    at = sleeper.head()
    _leave_stray(graph)
    if not is_behind:
        sleeper.head()
    prepare = upserting(sleeper, {f"p{SEQ}": "2"})
    record = sleeper.committer.publish(prepare(at), prepare_again=prepare)
    assert record is not None
    assert record.changes[PERSON] == Changed(updated=IdSet([f"p{SEQ}"]), marks=IdSet())
    _require_true(graph.reopened())


def test_writes_that_are_published_together_are_not_compared_with_it(graph: SmallGraph) -> None:
    sleeper = graph.reopened()
    at = sleeper.head()
    _leave_stray(graph)
    log = sleeper.log
    with pytest.raises(CorruptObjectError):
        log.read_between(MAIN, at.seq, log.read_newest_head(MAIN))
    publisher = Publisher(sleeper.committer, MAIN)
    prepare = inserting(sleeper, {"q": "1"})
    assert publisher.publish(prepare(at), prepare_again=prepare) is not None
    _require_true(graph.reopened(), more=1)


@pytest.mark.parametrize("is_behind", [True, False])
def test_its_key_is_not_that_of_a_commit(graph: SmallGraph, *, is_behind: bool) -> None:
    sleeper = graph.reopened()
    at = sleeper.head()
    stray = _leave_stray(graph)
    if not is_behind:
        assert sleeper.history.find_by_key(MAIN, "once") is None

    def prepare(snapshot: Snapshot) -> Transaction:
        transaction = inserting(sleeper, {"q": "1"})(snapshot)
        return replace(transaction, signature=Signature(key="once"))

    record = sleeper.committer.publish(prepare(at), prepare_again=prepare)
    assert record is not None
    assert record.commit != stray.commit
    _require_true(graph.reopened(), more=1)


def test_it_is_not_listed(graph: SmallGraph) -> None:
    _leave_stray(graph)
    fresh = graph.reopened()
    assert fresh.history.find_by_key(MAIN, "once") is None
    assert [each.seq for each in fresh.history.iter_commits(MAIN)] == [LAST, LAST - 1]


def test_it_is_no_ancestor(graph: SmallGraph) -> None:
    fork = graph.head()
    review = graph.branches.create("review", at=fork)
    graph.insert({"r": "1"}, review)
    stray = _leave_stray(graph)
    fresh = graph.reopened()
    above = fresh.log.read(MAIN.id, SEQ + 1)
    assert isinstance(above, Record)
    assert above.parent is not None
    lineage = Lineage(fresh.log, fresh.branches, Schemas(fresh.objects))
    assert lineage.find_merge_base(fresh.head(), fresh.head(review)).commit == fork.commit
    with pytest.raises(HistoryGoneError):
        lineage.read_between(fresh.head(), fork.seq)
    # A branch that merged the commit that was there knows it by its id.
    ref = replace(stray.ref, commit=above.parent)
    fresh.write(lambda at: replace(inserting(fresh, {"m": "1"})(at), merged=ref), review)
    with pytest.raises(HistoryGoneError):
        lineage.find_merge_base(fresh.head(), fresh.head(review))


def test_a_table_is_not_followed_over_it(graph: SmallGraph) -> None:
    known = graph.head().pins[PERSON].version
    _leave_stray(graph)
    fresh = graph.reopened()
    assert LogChangeSource(fresh.log).find_changes_since(fresh.head(), PERSON, {known}) is None


def test_a_gap_is_what_is_missing_or_is_another_commit() -> None:
    def record(seq: int, commit: str, parent: str) -> Record:
        return Record(MAIN.id, MAIN.branch, seq, commit, parent, seq, SCHEMA, {})

    line = [record(1, "b", "a"), record(2, "c", "b"), record(3, "d", "c")]
    assert find_last_gap(line) is None
    assert find_last_gap(line, up_to="d") is None
    assert find_last_gap(line, up_to="x") == 2
    assert find_last_gap([line[0], None, line[2]]) == 1
    assert find_last_gap([line[0], record(2, "x", "b"), line[2]]) == 1
    assert find_last_gap([]) is None
