from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass, field

import pytest

from omnigraph.errors import StorageError, StorageUnknownError
from omnigraph.storage import Objects, open_objects
from omnigraph.storage.objects.faults import (
    CRASHES,
    FAILURES,
    PAUSES,
    DurableStep,
    Fault,
    FaultKind,
    FaultyObjects,
    FaultyTables,
    SimulatedCrash,
    Steps,
    iter_faults,
)


def fresh() -> Objects:
    return open_objects(f"memory://{uuid.uuid4().hex}")


def scenario(store: Objects, steps: Steps) -> None:
    """Two objects, then a hint, then the first object goes."""
    objects = FaultyObjects(store, steps)
    assert objects.get("a") is None
    assert objects.put_new("a", b"1")
    assert objects.put_new("b", b"2")
    objects.put("hint", b"2")
    objects.delete(["a", "b"])


def names(store: Objects) -> str:
    return " ".join(entry.path for entry in store.list(""))


def test_every_step_is_met_before_and_after_it_happens() -> None:
    seen = []
    for fault in iter_faults(lambda steps: scenario(fresh(), steps)):
        store, steps = fresh(), fault.create_steps()
        with pytest.raises(SimulatedCrash):
            scenario(store, steps)
        assert steps.has_fired
        seen.append((str(fault), names(store)))
    assert seen == [
        ("001-put_new-crash-before", ""),
        ("001-put_new-crash-after", "a"),
        ("002-put_new-crash-before", "a"),
        ("002-put_new-crash-after", "a b"),
        ("003-put-crash-before", "a b"),
        ("003-put-crash-after", "a b hint"),
        ("004-delete-crash-before", "a b hint"),
        ("004-delete-crash-after", "b hint"),
        ("005-delete-crash-before", "b hint"),
        ("005-delete-crash-after", "hint"),
    ]


@pytest.mark.parametrize(
    ("kind", "error", "left"),
    [
        (FaultKind.ERROR, StorageError, "a"),
        (FaultKind.UNKNOWN_BEFORE, StorageUnknownError, "a"),
        (FaultKind.UNKNOWN_AFTER, StorageUnknownError, "a b"),
    ],
)
def test_a_failure_is_raised_and_the_process_lives_on(
    kind: FaultKind, error: type[StorageError], left: str
) -> None:
    store, steps = fresh(), Fault(2, kind, "put_new").create_steps()
    with pytest.raises(error) as caught:
        scenario(store, steps)
    assert type(caught.value) is error
    assert names(store) == left
    assert FaultyObjects(store, steps).put_new("c", b"3")


def test_the_kinds_of_faults_may_be_chosen() -> None:
    faults = list(iter_faults(lambda steps: scenario(fresh(), steps), FAILURES))
    assert len(faults) == 5 * 3
    assert {fault.kind for fault in faults} == set(FAILURES)
    assert set(CRASHES) | set(FAILURES) | set(PAUSES) == set(FaultKind)


def test_a_dead_process_writes_nothing_more() -> None:
    store, steps = fresh(), Fault(1, FaultKind.CRASH_AFTER, "put_new").create_steps()
    objects = FaultyObjects(store, steps)

    def cleaning_up() -> None:
        try:
            objects.put_new("a", b"1")
        finally:
            objects.delete(["a"])

    with pytest.raises(SimulatedCrash):
        cleaning_up()
    assert names(store) == "a"
    assert steps.taken == [DurableStep("put_new", "a")]


def test_a_crash_is_not_caught_by_a_handler_of_errors() -> None:
    objects = FaultyObjects(fresh(), Fault(1, FaultKind.CRASH_BEFORE, "put").create_steps())

    def careful() -> None:
        try:
            objects.put("a", b"1")
        except Exception:  # noqa: BLE001 (the careless handler under test)
            pytest.fail("a dead process handled an error")

    with pytest.raises(SimulatedCrash):
        careful()


def test_a_fault_beyond_the_last_step_is_not_met() -> None:
    store, steps = fresh(), Fault(6, FaultKind.CRASH_BEFORE, "put").create_steps()
    scenario(store, steps)
    assert not steps.has_fired


def test_threads_share_one_counter_and_one_crash() -> None:
    store, steps = fresh(), Fault(30, FaultKind.CRASH_BEFORE, "put_new").create_steps()
    objects = FaultyObjects(store, steps)

    def write(number: int) -> None:
        try:
            for turn in range(20):
                objects.put_new(f"{number}/{turn}", b"")
        except SimulatedCrash:
            pass

    threads = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(steps.taken) == 30
    assert len(list(store.list(""))) == 29


@dataclass(frozen=True)
class FakePin:
    path: str


@dataclass
class FakeTables:
    root: str = "root"
    done: list[str] = field(default_factory=list)

    def create(self, path: str, schema: object) -> FakePin:
        self.done.append(f"create {path} {schema}")
        return FakePin(path)

    def append(self, pin: FakePin, *, staged: int) -> FakePin:
        self.done.append(f"append {pin.path} {staged}")
        return pin

    def open(self, pin: FakePin) -> str:
        return f"table {pin.path}"


def test_the_writes_of_tables_and_objects_are_steps_of_one_counter() -> None:
    def run(steps: Steps, tables: FakeTables) -> None:
        wrapped, objects = FaultyTables(tables, steps), FaultyObjects(fresh(), steps)
        pin = wrapped.create("t/x", "schema")
        assert wrapped.open(pin) == "table t/x"
        assert wrapped.root == "root"
        objects.put_new("a", b"1")
        wrapped.append(pin, staged=3)

    counted = Steps()
    run(counted, FakeTables())
    assert counted.taken == [
        DurableStep("create", "t/x"),
        DurableStep("put_new", "a"),
        DurableStep("append", "t/x"),
    ]
    done = []
    for fault in iter_faults(lambda steps: run(steps, FakeTables())):
        tables = FakeTables()
        with pytest.raises(SimulatedCrash):
            run(fault.create_steps(), tables)
        done.append(len(tables.done))
    assert done == [0, 1, 1, 1, 1, 2]
