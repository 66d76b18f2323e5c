"""Writes that others overtake between their preparation and their commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl
import pyarrow as pa
import pyarrow.dataset as pds
import pytest

from omnigraph import Branch, errors
from omnigraph.engine.commit_loop import STARTS_MAX, Operation, Terms, WriteOutcome, write
from omnigraph.engine.write_operations import LoadOperation, MigrationOperation, MutationOperation
from omnigraph.execution.query_budget import Budget
from omnigraph.policy.acts import Act
from omnigraph.rows.view import View
from omnigraph.versioning import Transaction
from omnigraph.writers.inputs import InputOptions, InputSource, Text
from omnigraph.writers.load_records import LoadMode
from omnigraph.writers.prepare import Request
from unit.engine.company import CHANGES, SCHEMA, ages, company, person

WIDER = SCHEMA.replace("  age: I32?\n", "  age: I32?\n  email: String?\n")


@pytest.fixture
def main() -> Iterator[Branch]:
    """The main branch of a graph."""
    with company() as graph:
        yield graph.branch()


@dataclass
class Overtaken:
    """An operation; when it is prepared for the first time, something else happens after it."""

    inner: Operation
    meanwhile: Callable[[], object]
    preparations: int = 0

    @property
    def may_repeat(self) -> bool:
        return self.inner.may_repeat

    def abandon(self) -> None:
        self.inner.abandon()

    def list_acts(self, branch: str) -> tuple[Act, ...]:
        return self.inner.list_acts(branch)

    def prepare(self, view: View, request: Request) -> Transaction | None:
        self.preparations += 1
        transaction = self.inner.prepare(view, request)
        if self.preparations == 1:
            self.meanwhile()
        return transaction


def _mutating(main: Branch, query: str, /, **params: object) -> MutationOperation:
    resources = main._session.resources
    return MutationOperation(resources, CHANGES, name=query, params=params, budget=Budget())


def _loading(main: Branch, source: InputSource, mode: LoadMode = LoadMode.APPEND) -> LoadOperation:
    return LoadOperation(main._session.resources, source, mode=mode, options=InputOptions())


def _write(main: Branch, operation: Operation, terms: Terms | None = None) -> WriteOutcome:
    return write(main._session, main._stream, operation, terms or Terms())


def _birthday(main: Branch, who: str, age: int) -> object:
    return main.mutate(CHANGES, name="birthday", params={"who": who, "age": age})


def test_a_head_that_moves_after_the_preparation_is_noticed(main: Branch) -> None:
    mutating = _mutating(main, "birthday", who="Ada", age=1)
    operation = Overtaken(mutating, lambda: _birthday(main, "Bob", 1))
    with pytest.raises(errors.PreconditionFailedError):
        _write(main, operation, Terms(if_commit=main.head.id))
    assert ages(main) == {"Ada": 36, "Bob": 1}


def test_an_update_of_what_others_changed_is_a_conflict(main: Branch) -> None:
    mutating = _mutating(main, "birthday", who="Ada", age=1)
    operation = Overtaken(mutating, lambda: _birthday(main, "Ada", 99))
    with pytest.raises(errors.ConflictError) as caught:
        _write(main, operation)
    assert (caught.value.type_key, caught.value.entity_id) == ("node:Person", "Ada")
    assert (operation.preparations, ages(main)["Ada"]) == (1, 99)


@pytest.mark.parametrize(
    ("meanwhile", "place"),
    [
        ('query q() { insert MemberOf { from: "Bob", to: "Red" } }', "edge:MemberOf"),
        ('query q() { delete MemberOf where from = "Ada" }', "edge:MemberOf"),
        ('query q() { update Person set { age: 7 } where name = "Bob" }', "node:Person"),
    ],
)
def test_a_match_whose_answer_others_changed_is_a_conflict(
    main: Branch, meanwhile: str, place: str
) -> None:
    main.mutate('query q() { insert Team { name: "Red" } insert Team { name: "Blue" } }')
    main.mutate('query q() { insert MemberOf { from: "Ada", to: "Red" } }')
    text = """query q() { match { $p: Person  $p memberOf $t  $t.name = "Red" }
        update $p set { age: coalesce($p.age, 0) + 1 } }"""
    mutating = MutationOperation(
        main._session.resources, text, name=None, params=None, budget=Budget()
    )
    operation = Overtaken(mutating, lambda: main.mutate(meanwhile))
    with pytest.raises(errors.ConflictError) as caught:
        _write(main, operation)
    assert (caught.value.type_key, ages(main)["Ada"]) == (place, 36)


def test_a_match_of_one_node_goes_through_beside_changes_of_others(main: Branch) -> None:
    text = 'query q() { match { $p: Person { name: "Ada" } } update $p set { age: $p.age + 1 } }'
    mutating = MutationOperation(
        main._session.resources, text, name=None, params=None, budget=Budget()
    )
    operation = Overtaken(mutating, lambda: _birthday(main, "Bob", 99))
    assert _write(main, operation).record is not None
    assert (operation.preparations, ages(main)) == (1, {"Ada": 37, "Bob": 99})
    mutating = MutationOperation(
        main._session.resources, text, name=None, params=None, budget=Budget()
    )
    with pytest.raises(errors.ConflictError):
        _write(main, Overtaken(mutating, lambda: _birthday(main, "Ada", 1)))
    assert ages(main)["Ada"] == 1


def test_an_upsert_of_what_others_changed_is_prepared_again(main: Branch) -> None:
    text = 'query q() { upsert Person { name: "Ada", age: coalesce(age, 0) + 1 } }'
    mutating = MutationOperation(
        main._session.resources, text, name=None, params=None, budget=Budget()
    )
    operation = Overtaken(mutating, lambda: _birthday(main, "Ada", 50))
    assert _write(main, operation).record is not None
    assert (operation.preparations, ages(main)["Ada"]) == (2, 51)


def test_an_update_of_something_else_goes_through(main: Branch) -> None:
    mutating = _mutating(main, "birthday", who="Ada", age=1)
    operation = Overtaken(mutating, lambda: _birthday(main, "Bob", 99))
    assert _write(main, operation).record is not None
    assert (operation.preparations, ages(main)) == (1, {"Ada": 1, "Bob": 99})


def test_an_update_goes_through_beside_a_bulk_append(main: Branch) -> None:
    rows = pa.table({"name": pa.array(range(100_000), pa.int32()).cast(pa.string())})
    mutating = _mutating(main, "birthday", who="Ada", age=1)
    operation = Overtaken(mutating, lambda: main.load(rows, type="Person", mode="append"))
    assert _write(main, operation).record is not None
    assert (operation.preparations, main.count("Person")) == (1, 100_002)
    assert ages(main)["Ada"] == 1


def test_an_insert_beside_a_bulk_append_of_the_same_entity_is_prepared_again(main: Branch) -> None:
    rows = pa.table({"name": pa.array(range(100_000), pa.int32()).cast(pa.string())})
    mutating = _mutating(main, "hire", name="7", age=2)
    operation = Overtaken(mutating, lambda: main.load(rows, type="Person", mode="append"))
    assert _write(main, operation).record is not None
    assert (operation.preparations, main.count("Person")) == (2, 100_002)
    assert ages(main)["7"] == 2


def test_an_insert_of_what_others_inserted_is_prepared_again(main: Branch) -> None:
    mutating = _mutating(main, "hire", name="Cyd", age=2)
    operation = Overtaken(mutating, lambda: main.load([person("Cyd", 1)], mode="append"))
    assert _write(main, operation).record is not None
    assert (operation.preparations, ages(main)["Cyd"]) == (2, 2)


def test_an_append_of_what_others_appended_is_a_key_conflict(main: Branch) -> None:
    loading = _loading(main, [person("Cyd", 2)])
    operation = Overtaken(loading, lambda: main.load([person("Cyd", 1)], mode="append"))
    with pytest.raises(errors.KeyConflictError):
        _write(main, operation)
    assert (operation.preparations, ages(main)["Cyd"]) == (2, 1)


def test_an_overwrite_of_what_others_wrote_is_a_conflict(main: Branch) -> None:
    loading = _loading(main, [person("Ada", 2)], LoadMode.OVERWRITE)
    operation = Overtaken(loading, lambda: main.load([person("Dov", 1)], mode="append"))
    with pytest.raises(errors.ConflictError):
        _write(main, operation)
    assert set(ages(main)) == {"Ada", "Bob", "Dov"}


def test_an_edge_does_not_land_beside_the_end_of_its_node(main: Branch) -> None:
    mutating = _mutating(main, "join", who="Bob", team="Engines")
    leave = {"who": "Bob"}
    operation = Overtaken(mutating, lambda: main.mutate(CHANGES, name="leave", params=leave))
    with pytest.raises(errors.WriteRefusedError):
        _write(main, operation)
    assert (operation.preparations, main.count("MemberOf")) == (2, 1)


def test_a_request_that_was_repeated_meanwhile_is_made_once(main: Branch) -> None:
    records = [person("Cyd")]
    made: list[str] = []

    def repeat() -> None:
        made.append(main.load(records, mode="append", key="job-7").commit.id)

    written = _write(main, Overtaken(_loading(main, records), repeat), Terms(key="job-7"))
    assert written.record is not None
    assert ([written.record.commit], written.is_repeated) == (made, True)
    assert len(ages(main)) == 3


def test_a_load_is_read_again_under_another_schema(main: Branch) -> None:
    operation = Overtaken(_loading(main, [person("Cyd", 1)]), lambda: main.apply_schema(WIDER))
    assert _write(main, operation).record is not None
    assert (operation.preparations, ages(main)["Cyd"]) == (3, 1)
    text = "query q() { match { $p: Person } return { $p.email } }"
    assert len(main.query(text)) == 3
    assert main.graph.check().problems == ()


class Cursor:
    """A table that is there once: the second reading gives what is left."""

    def __init__(self) -> None:
        self._rows = pa.table({"name": ["Cyd"]})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        rows, self._rows = self._rows, self._rows.slice(0, 0)
        return rows.__arrow_c_stream__(requested_schema)


class Records:
    """Records that somebody else gives out, who knows whether twice."""

    def __iter__(self) -> Iterator[dict[str, object]]:
        yield person("Cyd", 1)


def _rows() -> pa.Table:
    return pa.table({"name": ["Cyd"]})


@pytest.mark.parametrize(
    ("make", "is_repeatable"),
    [
        (lambda: iter([person("Cyd")]), False),
        (Records, False),
        (Cursor, False),
        (lambda: _rows().to_reader(), False),
        (lambda: pds.Scanner.from_batches(_rows().to_reader()).to_reader(), False),
        (_rows, True),
        (lambda: _rows().to_pandas(), True),
        (lambda: pl.from_arrow(_rows()), True),
        (lambda: (person("Cyd"),), True),
        (lambda: Text('{"type":"Person","data":{"name":"Cyd"}}'), True),
    ],
)
def test_only_what_is_known_to_give_its_rows_again_is_read_again_under_another_schema(
    main: Branch, make: Callable[[], InputSource], is_repeatable: bool
) -> None:
    source = make()
    are_records = make is Records or isinstance(source, tuple | Text | type(iter([])))
    options = InputOptions(type=None if are_records else "Person")
    loading = LoadOperation(main._session.resources, source, mode=LoadMode.APPEND, options=options)
    operation = Overtaken(loading, lambda: main.apply_schema(WIDER))
    if is_repeatable:
        assert _write(main, operation).record is not None
    else:
        with pytest.raises(errors.ConflictError, match="another schema"):
            _write(main, operation)
    assert ("Cyd" in ages(main)) is is_repeatable


def test_a_source_is_read_again_by_its_author_who_may_write_meanwhile(main: Branch) -> None:
    readers: list[str] = []

    def progress(_: int) -> None:
        readers.append(threading.current_thread().name)
        main.mutate(CHANGES, name="hire", params={"name": f"p{len(readers)}", "age": None})

    options = InputOptions(progress=progress)
    resources = main._session.resources
    loading = LoadOperation(resources, [person("Cyd")], mode=LoadMode.APPEND, options=options)
    operation = Overtaken(loading, lambda: main.apply_schema(WIDER))
    author = threading.Thread(target=_write, args=(main, operation), name="author", daemon=True)
    author.start()
    author.join(60)
    assert not author.is_alive()
    assert set(readers) == {"author"}
    assert {"Cyd", "p1", "p2"} <= set(ages(main))


def test_a_schema_that_never_rests_is_a_conflict(main: Branch) -> None:
    class Restless(Overtaken):
        def prepare(self, view: View, request: Request) -> Transaction | None:
            transaction = self.inner.prepare(view, request)
            self.preparations += 1
            main.apply_schema(f"// {self.preparations}\n{SCHEMA}")
            return transaction

    operation = Restless(_loading(main, [person("Cyd")]), lambda: None)
    with pytest.raises(errors.ConflictError, match=f"{STARTS_MAX} times"):
        _write(main, operation)
    assert len(ages(main)) == 2


def test_records_that_come_once_cannot_be_read_again_under_another_schema(main: Branch) -> None:
    loading = _loading(main, iter([person("Cyd", 1)]))
    operation = Overtaken(loading, lambda: main.apply_schema(WIDER))
    with pytest.raises(errors.ConflictError, match="another schema"):
        _write(main, operation)
    assert len(ages(main)) == 2


def test_records_that_come_once_are_prepared_as_often_as_needed(main: Branch) -> None:
    loading = _loading(main, iter([person("Cyd", 2)]), LoadMode.MERGE)
    operation = Overtaken(loading, lambda: main.load([person("Cyd", 1)], mode="append"))
    assert _write(main, operation).record is not None
    assert (operation.preparations, ages(main)["Cyd"]) == (2, 2)


def test_a_mutation_is_compiled_again_under_another_schema(main: Branch) -> None:
    without_age = SCHEMA.replace("  age: I32?\n", "")
    mutating = _mutating(main, "hire", name="Cyd", age=2)
    operation = Overtaken(mutating, lambda: main.apply_schema(without_age))
    with pytest.raises(errors.CompileError):
        _write(main, operation)
    assert main.count("Person") == 2


def test_two_schemas_at_once_are_a_conflict(main: Branch) -> None:
    other = SCHEMA.replace("node Note {\n", "node Note {\n  title: String?\n")
    operation = Overtaken(
        MigrationOperation(main._session.resources, WIDER), lambda: main.apply_schema(other)
    )
    with pytest.raises(errors.ConflictError, match="another schema"):
        _write(main, operation)
    assert main.schema == other


def test_a_branch_that_ends_meanwhile_refuses_the_write(main: Branch) -> None:
    review = main.graph.create_branch("review")
    loading = _loading(review, [person("Cyd")])
    operation = Overtaken(loading, lambda: main.graph.delete_branch("review"))
    with pytest.raises(errors.BranchGoneError):
        _write(review, operation)


def _raise_floor(main: Branch) -> None:
    log, stream = main._session.resources.log, main._stream
    main.load([person("Dov", 1)], mode="append")
    log.floors.put(stream.id, log.read_head(stream).snapshot.seq)


def _fence(main: Branch) -> None:
    main._session.resources.committer.fence(main._stream)


@pytest.mark.parametrize("clean_up", [_raise_floor, _fence])
def test_what_is_missing_after_a_clean_up_makes_a_write_start_again(
    main: Branch, clean_up: Callable[[Branch], object]
) -> None:
    def miss() -> None:
        clean_up(main)
        raise errors.CorruptObjectError("some/file", "it is absent")

    operation = Overtaken(_loading(main, [person("Cyd", 2)]), miss)
    assert _write(main, operation).record is not None
    assert (operation.preparations, ages(main)["Cyd"]) == (2, 2)


def test_what_is_missing_without_a_clean_up_is_damage(main: Branch) -> None:
    def miss() -> None:
        raise errors.CorruptObjectError("some/file", "it is absent")

    operation = Overtaken(_loading(main, [person("Cyd", 2)]), miss)
    with pytest.raises(errors.CorruptObjectError):
        _write(main, operation)
    assert operation.preparations == 1
