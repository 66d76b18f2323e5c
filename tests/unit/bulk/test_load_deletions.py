"""What a load deletes because it has all entities of a type, beside records that it rejects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Branch
from omnigraph.bulk.bulk_sources import BulkSource, LoadCounts, LocateOrigins, stage_rows
from omnigraph.bulk.splits import FileRange, GraphLocation, get_stores
from omnigraph.errors import WriteRefusedError
from omnigraph.writers.inputs.input_tables import REFUSED
from unit.bulk.bulk_world import SCHEMA

ADD = 'query add() { insert Person { name: "dee" } }'
NAMES = "query names() { match { $p: Person } return { $p.name } order { $p.name } }"


@dataclass(frozen=True, slots=True)
class AllPeople(BulkSource):
    """All people there are, and notes; something else happens before each commit."""

    people: pa.Table
    notes: pa.Table | None = None
    before_commit: Callable[[], object] | None = None

    @property
    def snapshot_types(self) -> frozenset[str]:
        return frozenset({"node:Person"})

    @property
    def locate(self) -> LocateOrigins:
        return lambda _: {}

    def accept_counts(self, counts: LoadCounts) -> None:
        del counts
        if self.before_commit is not None:
            self.before_commit()

    def prepare_ranges(self, place: GraphLocation, folder: str) -> tuple[FileRange, ...]:
        tables = {"node:Person": self.people, "node:Note": self.notes}
        return tuple(
            stage_rows(get_stores(place).objects, folder, table, type_name=name)
            for name, table in tables.items()
            if table is not None
        )


def _people(**emails: str) -> pa.Table:
    """People with all of their properties, so that no row holds what is committed."""
    count = len(emails)
    teams, ages = pa.nulls(count, pa.utf8()), pa.nulls(count, pa.int32())
    given = {"name": [*emails], "email": [*emails.values()]}
    return pa.table({**given, "age": ages, "team": teams})


def _names(branch: Branch) -> list[str]:
    return [row["p.name"] for row in branch.query(NAMES).to_pylist()]


def test_a_rejected_record_keeps_its_entity_when_the_load_is_prepared_again(
    tmp_path: Path,
) -> None:
    with omnigraph.create(tmp_path / "graph.omni", schema=SCHEMA) as graph:
        branch = graph.branch()
        held = _people(ada="a@x", bo="b@x", cy="c@x")
        branch.load(AllPeople(held), mode="merge")
        others = [ADD]

        def write_once() -> None:
            if others:
                branch.mutate(others.pop())

        same = _people(ada="a@x", bo="a@x", dee="d@x")
        source = AllPeople(same, before_commit=write_once)
        done = branch.load(source, mode="merge", on_error="quarantine")
        assert not others
        assert (done.rejected, done.deleted) == (1, {"node:Person": 1})
        assert _names(branch) == ["ada", "bo", "dee"]


@pytest.mark.parametrize(
    ("property_", "message", "is_known"),
    [
        (None, "source 'in' holds a record that cannot be read", False),
        (None, "Note: expected a text", True),
        ("text", "no text", True),
    ],
)
def test_a_record_that_cannot_be_read_may_name_an_entity_of_any_type(
    tmp_path: Path, property_: str | None, message: str, *, is_known: bool
) -> None:
    why = {"property": property_, "message": message, "record": "bo,1,2"}
    marks = pa.array([why], pa.struct([(name, pa.utf8()) for name in why]))
    notes = pa.table({"@id": ["n1"], "text": ["hello"], REFUSED: marks})
    with omnigraph.create(tmp_path / "graph.omni", schema=SCHEMA) as graph:
        branch = graph.branch()
        branch.load(AllPeople(_people(ada="a@x", bo="b@x")), mode="merge")
        rest = AllPeople(_people(ada="a@x"), notes)
        if is_known:
            branch.load(rest, mode="merge", on_error="quarantine")
        else:
            with pytest.raises(WriteRefusedError, match="which entities are missing is not known"):
                branch.load(rest, mode="merge", on_error="quarantine")
        assert _names(branch) == (["ada"] if is_known else ["ada", "bo"])
