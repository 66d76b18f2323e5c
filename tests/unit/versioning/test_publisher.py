"""Group publishing: waiting writes share a record, and each writer hears of its own."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from omnigraph.errors import (
    BranchGoneError,
    ConflictError,
    InDoubtError,
    KeyConflictError,
    StorageError,
    StorageUnknownError,
)
from omnigraph.storage.objects import layout
from omnigraph.versioning import (
    MAIN,
    Append,
    BranchAt,
    Changed,
    IdSet,
    Publisher,
    Publishers,
    ReadSet,
    Record,
    Signature,
    Transaction,
)
from omnigraph.versioning.publisher import combine_transactions
from omnigraph.versioning.record import LogEntry, PutOutcome
from unit.versioning.memory_storage import MemoryObjects
from unit.versioning.small_graph import (
    CITY,
    PERSON,
    SmallGraph,
    connecting,
    deleting,
    inserting,
    updating,
    upserting,
)

Outcome = Record | BaseException | None
Write = tuple[Transaction, Callable[..., Transaction | None] | None]


class Gate:
    """Holds the first publication back until all other writers wait behind it."""

    def __init__(self, graph: SmallGraph) -> None:
        self.graph = graph
        self.publisher = Publisher(graph.committer, MAIN)
        self.is_open = threading.Event()
        self.is_reached = threading.Event()
        self.append: Callable[[LogEntry], PutOutcome] = graph.log.append
        graph.log.append = self._held  # type: ignore[method-assign]  # the gate itself

    def _held(self, entry: LogEntry) -> PutOutcome:
        self.is_reached.set()
        assert self.is_open.wait(30)
        return self.append(entry)

    def run(self, first: Write, waiting: list[Write]) -> list[Outcome]:
        """The outcomes of a first write and of those that wait while it is published."""
        outcomes: dict[int, Outcome] = {}

        def publish(number: int, write: Write) -> None:
            try:
                outcomes[number] = self.publisher.publish(write[0], prepare_again=write[1])
            except BaseException as error:  # noqa: BLE001 — it is what the test looks at
                outcomes[number] = error

        threads = [
            threading.Thread(target=publish, args=(number, write))
            for number, write in enumerate([first, *waiting])
        ]
        threads[0].start()
        assert self.is_reached.wait(30)
        for number, thread in enumerate(threads[1:], 1):
            thread.start()
            while len(self.publisher._queue) < number:
                pass
        self.is_open.set()
        for thread in threads:
            thread.join(30)
        return [outcomes[number] for number in range(len(threads))]


def _insert(graph: SmallGraph, name: str, actor: str | None = None) -> Write:
    prepare = inserting(graph, {name: "1"}, actor=actor)
    return prepare(graph.head()), prepare


def _seqs(outcomes: list[Outcome]) -> list[int]:
    assert all(isinstance(outcome, Record) for outcome in outcomes), outcomes
    return [outcome.seq for outcome in outcomes if isinstance(outcome, Record)]


def test_waiting_writes_become_one_record_and_one_fragment(graph: SmallGraph) -> None:
    writes = [_insert(graph, f"p{number}") for number in range(9)]
    outcomes = Gate(graph).run(writes[0], writes[1:])
    assert _seqs(outcomes) == [1] + [2] * 8
    record = outcomes[-1]
    assert isinstance(record, Record)
    assert record.members == 8
    assert record.changes == {
        PERSON: Changed(inserted=IdSet(f"p{number}" for number in range(1, 9)), marks=IdSet())
    }
    assert len(graph.people()) == 9
    assert graph.head().pins[PERSON].fragments == 2


def test_inserts_updates_and_deletes_of_different_people_share_a_record(graph: SmallGraph) -> None:
    graph.insert({"ada": "1", "bob": "1", "cy": "1"})
    first = _insert(graph, "dan")
    waiting: list[Write] = [
        (updating(graph, lambda _: {"ada": "2"})(graph.head()), None),
        (deleting(graph, ["bob"])(graph.head()), None),
        _insert(graph, "eve"),
        (upserting(graph, {"cy": "3", "fay": "3"})(graph.head()), None),
    ]
    assert _seqs(Gate(graph).run(first, waiting)) == [2, 3, 3, 3, 3]
    people = graph.people()
    assert people == {"dan": "1", "ada": "2", "eve": "1", "cy": "3", "fay": "3"}


def test_writes_of_different_actors_never_share_a_record(fast_graph: SmallGraph) -> None:
    actors = ["x", "a", "b", "a", None]
    writes = [_insert(fast_graph, f"p{number}", actor) for number, actor in enumerate(actors)]
    outcomes = Gate(fast_graph).run(writes[0], writes[1:])
    assert _seqs(outcomes) == [1, 2, 3, 2, 4]
    made = [o.signature.actor for o in outcomes if isinstance(o, Record)]
    assert made == actors


@pytest.mark.parametrize("what", ["requires", "key", "message", "schema", "merge"])
def test_a_write_that_is_about_its_own_record_has_one(fast_graph: SmallGraph, what: str) -> None:
    writes = [_insert(fast_graph, f"p{number}") for number in range(4)]
    head = fast_graph.head()
    special = {
        "requires": replace(writes[2][0], requires=(BranchAt(head.commit),)),
        "key": replace(writes[2][0], signature=Signature(key="k")),
        "message": replace(writes[2][0], signature=Signature(message="m")),
        "schema": replace(writes[2][0], schema="sha256:second"),
        "merge": replace(writes[2][0], merged=head.ref),
    }[what]
    outcomes = Gate(fast_graph).run(writes[0], [writes[1], (special, None), writes[3]])
    if what == "requires":
        assert isinstance(outcomes.pop(2), Exception)
        assert _seqs(outcomes) == [1, 2, 2]
    else:
        assert _seqs(outcomes) == [1, 2, 3, 2]


def test_of_waiting_inserts_of_one_key_one_succeeds(graph: SmallGraph) -> None:
    writes = [_insert(graph, "other")] + [_insert(graph, "ada") for _ in range(8)]
    outcomes = Gate(graph).run(writes[0], writes[1:])
    lost = [outcome for outcome in outcomes if isinstance(outcome, KeyConflictError)]
    assert len(lost) == 7
    assert graph.people() == {"ada": "1", "other": "1"}


def test_a_strict_update_that_waited_behind_another_is_a_conflict(fast_graph: SmallGraph) -> None:
    fast_graph.insert({"ada": "1"})
    update = updating(fast_graph, lambda _: {"ada": "2"})(fast_graph.head())
    outcomes = Gate(fast_graph).run(_insert(fast_graph, "bob"), [(update, None), (update, None)])
    assert [type(outcome) for outcome in outcomes] == [Record, Record, ConflictError]


def test_a_batch_leaves_out_what_the_record_before_it_changed(fast_graph: SmallGraph) -> None:
    fast_graph.insert({"ada": "1"})
    first = updating(fast_graph, lambda _: {"ada": "2"})(fast_graph.head())
    late = updating(fast_graph, lambda _: {"ada": "3"})(fast_graph.head())
    waiting: list[Write] = [_insert(fast_graph, "x"), (late, None), _insert(fast_graph, "y")]
    outcomes = Gate(fast_graph).run((first, None), waiting)
    assert [type(outcome) for outcome in outcomes] == [Record, Record, ConflictError, Record]
    assert fast_graph.people() == {"ada": "2", "x": "1", "y": "1"}


def test_an_edge_and_the_deletion_of_its_end_never_share_a_record(fast_graph: SmallGraph) -> None:
    fast_graph.insert({"ada": "1", "bob": "1"})
    edge = connecting(fast_graph, {"e": ("ada", "bob")})(fast_graph.head())
    gone = deleting(fast_graph, ["ada"])(fast_graph.head())
    first = _insert(fast_graph, "cy")
    outcomes = Gate(fast_graph).run(first, [(edge, None), (gone, None)])
    assert [type(outcome) for outcome in outcomes] == [Record, Record, ConflictError]


def test_a_reader_of_a_whole_type_does_not_share_a_record_with_its_writer(
    fast_graph: SmallGraph,
) -> None:
    city = inserting(fast_graph, {"paris": "1"}, CITY)(fast_graph.head())
    counting = replace(city, footprint={PERSON: ReadSet(is_whole=True)})
    waiting = [_insert(fast_graph, "ada"), (counting, None)]
    first = inserting(fast_graph, {"rome": "1"}, CITY)
    outcomes = Gate(fast_graph).run((first(fast_graph.head()), None), waiting)
    assert [type(outcome) for outcome in outcomes] == [Record, Record, ConflictError]


def test_a_write_that_fails_does_not_fail_its_neighbours(graph: SmallGraph) -> None:
    broken = pa.table({"no_such_column": ["x"]})
    bad = Transaction(graph.head(), (Append(PERSON, (broken,)),), {PERSON: Changed(IdSet(["bad"]))})
    missing = updating(graph, lambda _: {"nobody": "1"})(graph.head())
    writes = [_insert(graph, f"p{number}") for number in range(4)]
    outcomes = Gate(graph).run(writes[0], [writes[1], (missing, None), writes[2], writes[3]])
    assert [type(outcome) for outcome in outcomes] == [
        Record,
        Record,
        ConflictError,
        Record,
        Record,
    ]
    assert len(graph.people()) == 4
    if not isinstance(graph.objects, MemoryObjects):
        waiting = [_insert(graph, "ada"), (bad, None), _insert(graph, "bob")]
        outcomes = Gate(graph).run(_insert(graph, "cy"), waiting)
        assert isinstance(outcomes.pop(2), Exception)
        assert len(_seqs(outcomes)) == 3


def test_another_process_that_meets_one_member_refuses_only_that_one(
    fast_graph: SmallGraph,
) -> None:
    fast_graph.insert({"ada": "1"})
    gate = Gate(fast_graph)
    update = updating(fast_graph, lambda _: {"ada": "2"})(fast_graph.head())
    writes = [_insert(fast_graph, f"p{number}") for number in range(3)]
    fast_graph.reopened().strict(updating(fast_graph, lambda _: {"ada": "9"}))
    outcomes = gate.run(writes[0], [writes[1], (update, None), writes[2]])
    assert [type(outcome) for outcome in outcomes] == [Record, Record, ConflictError, Record]
    assert fast_graph.people()["ada"] == "9"


def test_a_deleted_branch_is_gone_for_every_waiting_writer(fast_graph: SmallGraph) -> None:
    writes = [_insert(fast_graph, f"p{number}") for number in range(3)]
    fast_graph.reopened().committer.close(MAIN)
    outcomes = Gate(fast_graph).run(writes[0], writes[1:])
    assert [type(outcome) for outcome in outcomes] == [BranchGoneError] * 3


def test_a_batch_has_bounds(fast_graph: SmallGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.versioning.publisher.BATCH_WRITES_MAX", 3)
    writes = [_insert(fast_graph, f"p{number}") for number in range(9)]
    assert _seqs(Gate(fast_graph).run(writes[0], writes[1:])) == [1, 2, 2, 2, 3, 3, 3, 4, 4]
    monkeypatch.setattr("omnigraph.versioning.publisher.BATCH_BYTES_MAX", 1)
    writes = [_insert(fast_graph, f"q{number}") for number in range(3)]
    assert _seqs(Gate(fast_graph).run(writes[0], writes[1:])) == [5, 6, 7]


def test_a_batch_in_doubt_is_in_doubt_for_each_of_its_writers(fast_graph: SmallGraph) -> None:
    objects = fast_graph.objects
    assert isinstance(objects, MemoryObjects)
    put_new = objects.put_new

    def silent(path: str, data: bytes) -> bool:
        if path == layout.build_record_path(MAIN.id, 2):
            raise StorageUnknownError("put_new", path, "no answer")
        return put_new(path, data)

    objects.put_new = silent  # type: ignore[method-assign]  # a store that does not answer
    writes = [_insert(fast_graph, f"p{number}") for number in range(4)]
    outcomes = Gate(fast_graph).run(writes[0], writes[1:])
    assert [type(outcome) for outcome in outcomes] == [
        Record,
        InDoubtError,
        InDoubtError,
        InDoubtError,
    ]
    assert len({outcome.commit for outcome in outcomes if isinstance(outcome, InDoubtError)}) == 1


def test_a_failed_look_at_a_batch_is_nobodys_doubt(
    fast_graph: SmallGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise StorageError("get", "a record", "no answer")

    writes = [_insert(fast_graph, f"p{number}") for number in range(4)]
    monkeypatch.setattr(Publisher, "_is_valid", failing)
    outcomes = Gate(fast_graph).run(writes[0], writes[1:])
    assert [type(outcome) for outcome in outcomes] == [Record] * 4
    assert len(fast_graph.people()) == 4


def test_writers_behind_a_stopped_publishing_thread_do_not_wait_for_ever(
    fast_graph: SmallGraph,
) -> None:
    class Stop(BaseException):
        pass

    gate = Gate(fast_graph)
    append = gate.append

    def stopped(entry: LogEntry) -> PutOutcome:
        if entry.seq == 2:
            raise Stop
        return append(entry)

    gate.append = stopped
    writes = [_insert(fast_graph, f"p{number}") for number in range(4)]
    outcomes = gate.run(writes[0], writes[1:])
    assert Counter(map(type, outcomes)) == {Record: 1, Stop: 1, InDoubtError: 2}
    gate.append = append
    assert gate.publisher.publish(_insert(fast_graph, "late")[0]) is not None


def test_a_waiting_thread_that_is_stopped_on_its_turn_leaves_it_to_the_next(
    fast_graph: SmallGraph,
) -> None:
    class Stop(BaseException):
        pass

    gate = Gate(fast_graph)
    lead, append = gate.publisher._lead, gate.append
    tried: set[int] = set()
    stopped: list[int] = []

    def stopping() -> bool:
        thread = threading.get_ident()
        if thread in tried and not stopped:
            stopped.append(thread)
            raise Stop
        is_leader = lead()
        tried.add(thread)
        return is_leader

    def late(entry: LogEntry) -> PutOutcome:
        while len(tried) < 3:
            pass
        return append(entry)

    gate.publisher._lead = stopping  # type: ignore[method-assign]  # a thread that is stopped
    gate.append = late
    writes = [_insert(fast_graph, f"p{number}") for number in range(4)]
    outcomes = gate.run(writes[0], writes[1:])
    assert [type(outcome) for outcome in outcomes] == [Record, Stop, Record, Record]
    assert sorted(fast_graph.people()) == ["p0", "p2", "p3"]


def test_combined_writes_keep_what_each_of_them_read(fast_graph: SmallGraph) -> None:
    fast_graph.insert({"ada": "1", "bob": "1"})
    head = fast_graph.head()
    edge = connecting(fast_graph, {"e": ("ada", "bob")})(head)
    other = replace(
        inserting(fast_graph, {"cy": "1"})(head), signature=Signature(operations=("o",))
    )
    together = combine_transactions([edge, other], head)
    assert together.footprint == {PERSON: ReadSet(present=IdSet(["ada", "bob"]))}
    assert together.full_footprint[PERSON].ids == IdSet(["cy"])
    assert (together.members, together.signature.operations) == (2, ("o",))


def test_all_writers_of_a_stream_queue_at_one_publisher(fast_graph: SmallGraph) -> None:
    publishers = Publishers(fast_graph.committer)
    publisher = publishers.get_publisher(MAIN)
    assert publishers.get_publisher(MAIN) is publisher
    told: list[int] = []
    publishers.on_published = lambda snapshot: told.append(snapshot.seq)
    publisher.publish(_insert(fast_graph, "ada")[0])
    assert told == [1]
