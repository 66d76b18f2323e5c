"""Values that cannot be computed for entities that a statement writes by their keys."""

from __future__ import annotations

import pytest

from omnigraph.errors import AmbiguousUpdateError, ValueFaultError, WriteRefusedError
from unit.writers.merge.merge_world import new_graph

SCHEMA = "node P { k: String @key  a: F64? }"
RECORDS = "$rows: [{ k: String, d: F64 }]"
QUERIES = [
    "for $r in $rows { upsert P { a: 1.0 / $r.d, k: $r.k } }",
    "for $r in $rows { create P { k: $r.k, a: 1.0 / $r.d } }",
    'match { $p: P } create P { k: "c", a: 1.0 / ($p.a - 1.0) }',
]


@pytest.mark.parametrize("body", QUERIES)
def test_a_value_fault_names_the_entity(body: str) -> None:
    rows = [{"k": "b", "d": 1.0}, {"k": "c", "d": 0.0}, {"k": "d", "d": 2.0}]
    with new_graph({"type": "P", "data": {"k": "a", "a": 1.0}}, schema=SCHEMA) as graph:
        main, text = graph.branch(), f"query q({RECORDS if '$rows' in body else ''}) {{ {body} }}"
        with pytest.raises(ValueFaultError, match="the value of P 'c' cannot") as caught:
            main.mutate(text, params={"rows": rows} if "$rows" in body else None)
        assert caught.value.entity_id == "c"
        assert main.count("P") == 1


def test_different_times_of_one_day_are_shown_with_their_times() -> None:
    schema = "node P { k: String @key  at: DateTime? }"
    rows = [{"k": "b", "at": f"2020-01-01T{hour}:00:00Z"} for hour in (10, 11)]
    text = "query q($rows: [{ k: String, at: DateTime }]) "
    text += "{ for $r in $rows { upsert P { k: $r.k, at: $r.at } } }"
    with new_graph(schema=schema) as graph, pytest.raises(AmbiguousUpdateError) as caught:
        graph.branch().mutate(text, params={"rows": rows})
    assert "'2020-01-01T10:00:00.000Z'" in str(caught.value)
    assert "'2020-01-01T11:00:00.000Z'" in str(caught.value)


def test_values_that_are_not_unique_are_shown_as_json_has_them() -> None:
    schema = (
        "node P { k: String @key  at: DateTime? @unique  day: Date?  n: I32?  @unique(day, n) }"
    )
    with new_graph(schema=schema) as graph:
        main = graph.branch()
        row = {"k": "a", "at": "2020-01-01T10:00:00Z", "day": "2020-01-02", "n": 7}
        main.load([row], type="P", mode="append")
        with pytest.raises(WriteRefusedError) as caught:
            main.load([row | {"k": "b"}], type="P", mode="append")
        assert "P.at: 2020-01-01T10:00:00.000Z" in str(caught.value)
        assert "P.(day, n): 2020-01-02, 7" in str(caught.value)
        main.apply_schema(schema.replace(" @unique(day, n)", "").replace(" @unique", ""))
        main.load([row | {"k": "b"}], type="P", mode="append")
        [violation, _] = main.plan_schema(schema).violations
        assert "'a' (2020-01-01T10:00:00.000Z)" in violation.message
