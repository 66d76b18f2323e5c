from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engine.check.check_problems import NAMED_MAX
from omnigraph.storage.objects import layout
from unit.engine.damaged_graph import (
    KNOWS,
    LEADS,
    NOTE,
    PERSON,
    RED,
    TEAM,
    Damaged,
    found,
)
from unit.writers.plain_graph import type_key

# ---- tables ----


def head_pin(damaged: Damaged, type_: str = NOTE) -> Any:
    return damaged.graph.head().pins[type_]


def edit_head(damaged: Damaged, change: Callable[[dict[str, Any]], object]) -> None:
    damaged.edit(damaged.record_path(damaged.graph.head().seq), change)


def test_a_missing_table_version_is_named(damaged: Damaged) -> None:
    pin = head_pin(damaged)
    damaged.remove(f"{pin.path}/_versions/d{int(pin.version, 16)}.manifest")
    (problem,) = found(damaged)
    assert problem.startswith(f"table: branch 'main' {NOTE} ({pin.path}): open failed: ")


def test_a_missing_data_file_is_named(damaged: Damaged) -> None:
    pin = head_pin(damaged)
    (file,) = (
        path for path in damaged.graph.tables.list_references(pin) if path.endswith(".lance")
    )
    damaged.remove(file)
    scan, missing = found(damaged)
    assert scan.startswith(f"table: branch 'main' {NOTE} ({pin.path}): scan failed: ")
    newest = damaged.record_path(damaged.graph.head().seq)
    assert missing == f"table: {file}: it is missing, and {newest} {NOTE} needs it"


def test_a_torn_data_file_is_named(damaged: Damaged) -> None:
    pin = head_pin(damaged)
    (file,) = (
        path for path in damaged.graph.tables.list_references(pin) if path.endswith(".lance")
    )
    damaged.write(file, b"torn")
    problems = found(damaged)
    assert f"table: {file}: its digest is not the one in its name" in problems
    assert all(file in problem for problem in problems)


def test_a_missing_large_blob_is_named(damaged: Damaged) -> None:
    path = head_pin(damaged, PERSON).path
    damaged.remove(damaged.only(f"{path}/data/*/*.blob"))
    problems = found(damaged)
    # The digest in the name of a data file covers its blobs.
    assert problems[0].startswith(f"table: {path}/data/")
    assert "its digest is not the one in its name" in problems[0]


def test_edges_are_not_blamed_for_a_table_of_nodes_that_is_gone(damaged: Damaged) -> None:
    damaged.remove(head_pin(damaged, TEAM).path)
    problems = found(damaged)
    assert problems[0].startswith(f"table: branch 'main' {TEAM} (")
    assert all("/Team-" in each for each in problems)


def test_a_pin_must_say_how_many_rows_there_are(damaged: Damaged) -> None:
    edit_head(damaged, lambda document: document["pins"][NOTE].update(rows=4))
    path = head_pin(damaged).path
    assert found(damaged) == [f"table: branch 'main' {NOTE}: {path} has 3 rows, and its pin says 4"]


def test_a_table_must_have_the_columns_of_its_type(damaged: Damaged) -> None:
    def exchange(document: dict[str, Any]) -> None:
        document["pins"][NOTE] = document["pins"][TEAM]

    edit_head(damaged, exchange)
    column = damaged.graph.view().get_shape(type_key(NOTE)).columns["text"]
    assert f"table: branch 'main' {NOTE}: the column {column} is missing" in found(damaged)


def test_a_table_must_have_the_types_of_its_columns(damaged: Damaged) -> None:
    graph = damaged.graph
    shape = graph.view().get_shape(type_key(NOTE))
    wrong = pa.schema(
        [
            field.with_type(pa.utf8() if field.name == "__id" else pa.int32())
            for field in shape.schema
        ]
    )
    pin = graph.tables.create(layout.build_table_path(NOTE, "00000009"), wrong)
    digest = {"digest": pin.digest} if pin.digest else {}
    edit_head(
        damaged,
        lambda document: document["pins"][NOTE].update(v=pin.version, uri=pin.path, **digest),
    )
    text = shape.columns["text"]
    assert f"table: branch 'main' {NOTE}: column {text} is int32, not string" in found(damaged)


# ---- entities ----


def test_an_id_that_is_there_twice_is_named(damaged: Damaged) -> None:
    damaged.append(NOTE, {"@id": "n", "text": "x"}, {"@id": "n", "text": "y"})
    assert found(damaged) == [f"id: branch 'main' {NOTE}: 'n' is there more than once"]


def test_an_entity_that_is_there_twice_breaks_no_other_rule(damaged: Damaged) -> None:
    damaged.append(PERSON, {"name": "zoe", "mail": "z@x"}, {"name": "zoe", "mail": "z@x"})
    assert found(damaged) == [f"id: branch 'main' {PERSON}: 'zoe' is there more than once"]


@pytest.mark.parametrize(
    ("type_", "entity", "problem"),
    [
        (PERSON, {"@id": "zoe", "name": "zoo"}, "key: {}: 'zoe' is not the id of its key"),
        (
            TEAM,
            {"@id": '["red","be"]', "country": "be", "name": "red", "size": 1},
            'key: {}: \'["red","be"]\' is not the id of its key',
        ),
        (
            KNOWS,
            {"@id": "k", "@src": "bob", "@dst": "ada"},
            "key: {}: 'k' is not the id of its key",
        ),
        (
            PERSON,
            {"name": "zoe", "mood": "mad"},
            "enum: {}: invalid enum value 'mad' for Person.mood (glad, sad) (entity 'zoe')",
        ),
        (
            PERSON,
            {"name": "zoe", "age": 151},
            "range: {}: @range violation on Person.age: 151 (0 to 150) (entity 'zoe')",
        ),
        (
            PERSON,
            {"name": "Zoe"},
            "check: {}: @check violation on Person.name: 'Zoe' (/^[a-z0-9]+$/) (entity 'Zoe')",
        ),
        (
            PERSON,
            {"name": "zoe", "mail": "a@x"},
            "unique: {}: @unique violation on Person.mail: a@x (entity 'zoe')",
        ),
        (
            NOTE,
            {"@id": "n"},
            (
                "required: {}: Note: non-nullable property 'text' has null or invalid values"
                " (entity 'n')"
            ),
        ),
        (
            LEADS,
            {"@id": "l", "@src": "zoe", "@dst": RED},
            "reference: {}: src 'zoe' not found in Person (entity 'l')",
        ),
        (
            LEADS,
            {"@id": "l", "@src": "bob", "@dst": "bob"},
            "reference: {}: dst 'bob' not found in Team (entity 'l')",
        ),
        (
            LEADS,
            {"@id": "l", "@src": "ada", "@dst": RED},
            (
                "cardinality: {}: @card violation on edge Leads: source 'ada' has 2 edges (max 1)"
                " (entity 'l1')"
            ),
        ),
    ],
)
def test_an_entity_that_breaks_a_rule_is_named(
    damaged: Damaged, type_: str, entity: dict[str, Any], problem: str
) -> None:
    damaged.append(type_, entity)
    assert found(damaged) == [problem.format(f"branch 'main' {type_}")]


def test_a_number_that_is_not_finite_is_named(damaged: Damaged) -> None:
    damaged.append(PERSON, {"name": "zoe", "height": float("nan")})
    (problem,) = found(damaged)
    assert problem.startswith(f"finite: branch 'main' {PERSON}: Person.height: ")


def test_edges_of_a_deleted_node_are_named(damaged: Damaged) -> None:
    damaged.graph.delete(PERSON, "ada")
    problem = "reference: branch 'main' {}: src 'ada' not found in Person (entity '{}')"
    assert found(damaged) == [
        problem.format(KNOWS, '["ada","bob"]'),
        problem.format(LEADS, "l1"),
    ]


def test_only_the_first_of_many_are_named(damaged: Damaged) -> None:
    count = NAMED_MAX + 5
    damaged.append(PERSON, *({"@id": f"x{n:02}", "name": f"y{n:02}"} for n in range(count)))
    problems = found(damaged)
    assert len(problems) == NAMED_MAX + 1
    assert problems[-1] == f"key: branch 'main' {PERSON}: … and 5 more"
    damaged.append(PERSON, *({"name": f"z{n:02}", "age": 999} for n in range(count)))
    problems = [each for each in found(damaged) if each.startswith("range")]
    assert len(problems) == NAMED_MAX + 1
    assert problems[-1] == f"range: branch 'main' {PERSON}: … and 5 more"


def test_every_live_branch_is_looked_at_and_what_they_share_is_told_once(
    damaged: Damaged,
) -> None:
    graph = damaged.graph
    stream = graph.branches.resolve("review/one")
    graph.insert(PERSON, {"name": "zoe", "age": 999}, stream=stream)
    graph.branches.create("again", at=graph.head(stream))
    (problem,) = found(damaged)
    assert problem.startswith("range: branch ")
