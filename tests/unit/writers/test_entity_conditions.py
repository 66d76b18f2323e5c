"""`@check` of an expression: by every writer, at once and for what exists."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.errors import (
    CompileError,
    MergeConflictError,
    MigrationUnsupportedError,
    WriteRefusedError,
)
from omnigraph.schema import format_schema
from omnigraph.schema.schema_identity import decode_accepted
from unit.writers.merge.merge_world import new_graph

SCHEMA = """node Term {
  code: String @key
  start: Date?
  end: Date?
  seats: I32?
  @check(start <= end)
}
edge Follows: Term -> Term {
  weight: F64?
  note: String?
  @range(weight, 0..1)
  @check(note, "^[a-z]+$")
  @check(weight > 0.0 or note is not null)
}
"""
ROW = {"code": "a", "start": "2024-01-01", "end": "2024-06-01", "seats": 3}
BAD = "@check violation on Term: start <= end (end = 2023-01-01, start = 2024-01-01)"


def test_every_writer_keeps_a_condition_and_null_passes() -> None:
    with new_graph(schema=SCHEMA) as graph:
        main = graph.branch()
        main.load([ROW, {"code": "open", "start": "2024-01-01"}], type="Term", mode="append")
        with pytest.raises(WriteRefusedError) as caught:
            main.mutate(
                'query q() { update Term set { end: date("2023-01-01") } where code = "a" }'
            )
        assert BAD in str(caught.value)
        assert caught.value.violations[0].entity_id == "a"
        text = 'query q() { insert Term { code: "x", start: date("2024-01-01"), end: start } }'
        with pytest.raises(WriteRefusedError):
            main.mutate(text.replace("end: start", 'end: date("2023-01-01")'))
        with pytest.raises(WriteRefusedError, match="start <= end"):
            main.load([ROW | {"end": "2023-01-01"}], type="Term", mode="merge")
        with pytest.raises(WriteRefusedError, match="start <= end"):
            main.load([{"code": "a", "end": "2023-01-01"}], type="Term", mode="patch")
        found = main.load(
            pa.table({"code": ["a", "b"], "end": ["2023-01-01", "2023-01-01"]}),
            type="Term",
            mode="patch",
            on_error="quarantine",
        )
        assert found.rejected == 1
        assert main.count("Term") == 3
        main.load(
            [{"from": "a", "to": "b", "weight": 0.0, "note": "x"}], type="Follows", mode="append"
        )
        for row in ({"weight": 0.0}, {"weight": 2.0}, {"note": "X"}):
            with pytest.raises(WriteRefusedError, match="violation on Follows"):
                main.load([{"from": "b", "to": "a", **row}], type="Follows", mode="append")
        assert not graph.check().problems


def test_a_condition_of_a_schema_change_names_the_entities_that_contradict_it() -> None:
    with new_graph(schema=SCHEMA) as graph:
        main = graph.branch()
        main.load([ROW, ROW | {"code": "b", "seats": 9}], type="Term", mode="append")
        text = SCHEMA.replace(
            "@check(start <= end)", "@check(start<=end)\n  @check(seats * 2 < 10)"
        )
        plan = main.plan_schema(text)
        assert [str(step) for step in plan.steps] == ["add @check(seats * 2 < 10) to node:Term"]
        [violation] = plan.violations
        assert violation.message == (
            "[OG-MF-107] node:Term: 1 entity contradicts"
            " 'add @check(seats * 2 < 10) to node:Term': 'b' (9)"
        )
        with pytest.raises(MigrationUnsupportedError):
            main.apply_schema(text)
        main.mutate('query q() { update Term set { seats: 1 } where code = "b" }')
        main.apply_schema(text)
        accepted = main.snapshot().view.accepted
        assert "expression-checks" in accepted.features
        assert decode_accepted(accepted.to_json()) == accepted
        dropped = main.apply_schema(SCHEMA.replace("  @check(start <= end)\n", ""))
        assert {str(step) for step in dropped.plan.steps} == {
            "drop @check(start <= end) of node:Term",
            "drop @check(seats * 2 < 10) of node:Term",
        }


def test_halves_that_a_merge_joins_must_keep_a_condition() -> None:
    with new_graph(schema=SCHEMA) as graph:
        main = graph.branch()
        main.load([ROW], type="Term", mode="append")
        review = graph.create_branch("review")
        main.mutate('query q() { update Term set { start: date("2024-05-01") } where code = "a" }')
        review.mutate('query q() { update Term set { end: date("2024-02-01") } where code = "a" }')
        with pytest.raises(MergeConflictError) as caught:
            main.merge("review")
        assert [each.kind for each in caught.value.conflicts] == ["value_constraint_violation"]


def test_a_condition_and_a_type_of_two_branches_that_do_not_fit_conflict() -> None:
    with new_graph(schema=SCHEMA) as graph:
        main = graph.branch()
        review = graph.create_branch("review")
        main.apply_schema(SCHEMA.replace("seats: I32?", "seats: String?"), convert=True)
        review.apply_schema(SCHEMA.replace("seats: I32?", "seats: I32?\n  @check(seats > 0)"))
        with pytest.raises(MergeConflictError, match=r"seats > 0.*cannot compare"):
            main.merge("review")


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("start + 1", "T41"),
        ("start < 3", "T7"),
        ("ending > start", "S013"),
        ("start < today()", "S016"),
        ("count(start) > 1", "T44"),
        ("start <= ", "Q001"),
        ("start <= end end", "Q001"),
        ("$x.start <= end", "T14"),
    ],
)
def test_an_expression_that_is_not_a_condition_of_the_type_is_refused(
    condition: str, code: str
) -> None:
    with pytest.raises(CompileError) as caught:
        new_graph(schema=SCHEMA.replace("start <= end", condition))
    assert code in {each.code for each in caught.value.diagnostics}


def test_the_formatter_spells_conditions_in_one_way() -> None:
    untidy = 'node A { n: I32?  s: String?  @check( n>-1  and(length(s)<n*2 or s in["a","b"]) ) }'
    tidy = format_schema(untidy)
    assert '  @check(n > -1 and (length(s) < n * 2 or s in ["a", "b"]))\n' in tidy
    assert format_schema(tidy) == tidy
