"""The rules of a schema, checked on writes over real tables."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import VIOLATIONS_SHOWN_MAX, WriteRefusedError
from omnigraph.writers.graph_change import RowOrigins, WriteMode
from unit.writers.validation_world import Entity, ValidationWorld, Write

SCHEMA = """
node Person {
  name: String @key
  email: String? @unique
  age: I32?
  score: F64? @unique
  state: enum(draft, out)?
  ratings: [F64]?
  face: Vector(2)?
  team: String?
  seat: String?
  @range(age, 0..150)
  @check(email, "@")
  @unique(team, seat)
}
node City { name: String @key }
edge LivesIn: Person -> City @card(1..1) { since: I32? }
edge Knows: Person -> Person { kind: enum(close, far)?  @unique(@src, @dst) }
"""
ANN: dict[str, Any] = {"name": "ann"}
BOB: dict[str, Any] = {"name": "bob"}
OSLO, ROME = {"name": "oslo"}, {"name": "rome"}


def world(**committed: Any) -> ValidationWorld:
    return ValidationWorld(SCHEMA, committed)


def home(id_: str, source: str | None, target: str | None) -> dict[str, Any]:
    return {"@id": id_, "@src": source, "@dst": target}


def test_a_write_that_breaks_no_rule_is_accepted() -> None:
    writes = {
        "Person": Write([ANN | {"age": 30, "email": "a@x", "state": "out"}, BOB]),
        "City": Write([OSLO]),
        "LivesIn": Write([home("l1", "ann", "oslo")], WriteMode.INSERT),
    }
    assert world().refusal(writes) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"age": 200}, "@range violation on Person.age: 200 (0 to 150)"),
        ({"age": -1}, "@range violation on Person.age: -1 (0 to 150)"),
        ({"state": "x"}, "invalid enum value 'x' for Person.state (draft, out)"),
        ({"email": "nowhere"}, "@check violation on Person.email: 'nowhere' (/@/)"),
        ({"score": math.nan}, "Person.score: nan is not a finite number, as F64 needs"),
        (
            {"ratings": [1.0, None, math.inf]},
            "Person.ratings: inf is not a finite number, as F64 needs",
        ),
        ({"face": [math.nan, 1.0]}, "Person.face: nan is not a finite number, as F32 needs"),
        ({"face": [1.0, None]}, "Person.face: null is not allowed as an element"),
    ],
)
def test_a_value_that_breaks_a_rule_is_told(values: dict[str, Any], message: str) -> None:
    refused = world().refusal({"Person": Write([ANN, BOB | values])})
    assert refused is not None
    assert [each.message for each in refused.violations] == [message]
    (violation,) = refused.violations
    assert (violation.type_name, violation.entity_id) == ("Person", "bob")
    assert violation.property == next(iter(values))
    assert refused.hint


def test_a_list_may_hold_null() -> None:
    assert world().messages({"Person": Write([ANN | {"ratings": [None, 1.0]}])}) == []


def test_null_breaks_no_rule_of_a_nullable_property() -> None:
    assert world().messages({"Person": Write([ANN, BOB])}) == []


def test_a_required_value_must_be_there() -> None:
    graph = ValidationWorld("node Task { title: String  done: Bool }")
    assert graph.messages({"Task": Write([{"@id": "1", "title": "t"}, {"@id": "2"}])}) == [
        "Task: non-nullable property 'done' has null or invalid values",
        "Task: non-nullable property 'done' has null or invalid values",
        "Task: non-nullable property 'title' has null or invalid values",
    ]


def test_rows_without_ends_are_told_and_break_no_later_check() -> None:
    edge = {"@id": "l1", "@src": None, "@dst": None}
    assert world().messages({"LivesIn": Write([edge]), "Knows": Write([edge])}) == [
        "cannot assign null to an end of Knows",
        "cannot assign null to an end of Knows",
        "cannot assign null to an end of LivesIn",
        "cannot assign null to an end of LivesIn",
    ]


def test_a_null_key_breaks_no_later_check() -> None:
    assert world().messages({"Person": Write([{"@id": "?", "name": None}])}) == [
        "Person: non-nullable property 'name' has null or invalid values"
    ]


def test_an_enum_of_an_edge_is_checked() -> None:
    knows = home("k1", "ann", "ann") | {"kind": "foe"}
    messages = world(Person=[ANN]).messages({"Knows": Write([knows])})
    assert messages == ["invalid enum value 'foe' for Knows.kind (close, far)"]


def test_violations_are_told_in_the_order_of_the_checks() -> None:
    writes = {
        "LivesIn": Write([home("l1", "ann", "rome"), home("l2", "ann", "oslo")]),
        "Person": Write([ANN | {"email": "a@x", "age": -1}, BOB | {"email": "a@x", "state": "x"}]),
        "City": Write([OSLO]),
        "Knows": Write([home("k1", "ann", "bob"), home("k2", "ann", "bob")]),
    }
    assert world().messages(writes) == [
        "@range violation on Person.age: -1 (0 to 150)",
        "invalid enum value 'x' for Person.state (draft, out)",
        "@unique violation on Person.email: a@x",
        "@unique violation on Knows.(@src, @dst): ann, bob",
        "dst 'rome' not found in City",
        "@card violation on edge LivesIn: source 'ann' has 2 edges (max 1)",
    ]


def test_missing_values_of_all_types_are_told_before_other_rules() -> None:
    writes = {"Person": Write([ANN | {"age": -1}]), "Knows": Write([home("k1", "ann", None)])}
    assert world().messages(writes) == [
        "cannot assign null to an end of Knows",
        "@range violation on Person.age: -1 (0 to 150)",
    ]


def test_violations_of_later_checks_are_counted_after_the_first_ones_are_full() -> None:
    rows = [{"name": f"p{n:02}", "age": -1, "email": f"{n // 2}@x"} for n in range(30)]
    refused = world().refusal({"Person": Write(rows)})
    assert refused is not None
    assert {each.rule for each in refused.violations} == {"range"}
    assert refused.count == 30 + 15


def test_values_are_told_row_by_row() -> None:
    rows = [ANN | {"age": 999, "state": "x"}, BOB | {"age": 888, "email": "b"}]
    assert world().messages({"Person": Write(rows)}) == [
        "invalid enum value 'x' for Person.state (draft, out)",
        "@range violation on Person.age: 999 (0 to 150)",
        "@range violation on Person.age: 888 (0 to 150)",
        "@check violation on Person.email: 'b' (/@/)",
    ]


def test_the_first_violations_are_told_and_all_are_counted() -> None:
    rows = [{"name": f"p{n:02}", "age": 1000 + n, "state": "x"} for n in range(30)]
    refused = world().refusal({"Person": Write(rows)})
    assert refused is not None
    assert (len(refused.violations), refused.count) == (VIOLATIONS_SHOWN_MAX, 60)
    shown = refused.message.splitlines()
    assert shown[0] == "invalid enum value 'x' for Person.state (draft, out)"
    assert shown[19] == "@range violation on Person.age: 1009 (0 to 150)"
    assert shown[20] == "… and 40 more"


def test_a_violation_names_the_place_its_row_came_from() -> None:
    origins = RowOrigins("people.jsonl", pa.array([4, 7, 9]))
    rows = [ANN | {"email": "a@x"}, BOB | {"age": -5}, {"name": "cyd", "email": "a@x"}]
    refused = world().refusal({"Person": Write(rows, origins=origins)})
    assert refused is not None
    assert refused.message.splitlines() == [
        "people.jsonl line 7: @range violation on Person.age: -5 (0 to 150)",
        "people.jsonl line 9: @unique violation on Person.email: a@x",
    ]


def test_a_key_that_a_load_holds_twice_is_told_with_the_place_of_the_later_one() -> None:
    origins = RowOrigins("people.jsonl", pa.array([3]))
    write = Write([ANN | {"age": 2}], batches=[[ANN, ANN | {"age": 2}]], origins=origins)
    refused = world().refusal({"Person": write})
    assert str(refused) == "people.jsonl line 3: @unique violation on Person.name: ann"


def test_a_long_value_is_cut() -> None:
    refused = world().refusal({"Person": Write([ANN | {"email": "x" * 500}])})
    assert refused is not None
    (violation,) = refused.violations
    assert violation.value == "x" * 79 + "…"
    assert len(violation.message) < 130


class TestRanges:
    @pytest.mark.parametrize(
        ("type_", "bounds", "good", "bad"),
        [
            ("I64", f"..{2**53}", 2**53, 2**53 + 1),
            ("U64", f"{2**53 + 1}..", 2**53 + 1, 2**53),
            ("F64", f"..{2**53 + 1}", float(2**53), float(2**53 + 2)),
            ("F64", f"{2**53 + 1}..", float(2**53 + 2), float(2**53)),
            ("I32", "0.5..2.5", 1, 0),
            ("I32", "0.5..2.5", 2, 3),
            ("I32", "-99999999999999999999.5..1", -(2**31), 2),
            ("U32", "-5..9", 0, 10),
            ("F32", "0.1..", 0.125, 0.0999),
            # The 32-bit float nearest to 0.1 is above it.
            ("F32", "..0.1", 0.0999, 0.1),
            ("F64", "0..1", -0.0, -5e-324),
        ],
    )
    def test_bounds_are_compared_exactly(
        self, type_: str, bounds: str, good: float, bad: float
    ) -> None:
        graph = ValidationWorld(f"node T {{ v: {type_}  @range(v, {bounds}) }}")
        assert graph.messages({"T": Write([{"@id": "1", "v": good}])}) == []
        (message,) = graph.messages({"T": Write([{"@id": "1", "v": bad}])})
        assert message.startswith("@range violation on T.v: ")

    @pytest.mark.parametrize(
        "bounds", ["5000000000..", "..-5000000000", "99999999999999999999..", "2..1"]
    )
    def test_nothing_is_within_bounds_that_the_type_cannot_reach(self, bounds: str) -> None:
        graph = ValidationWorld(f"node T {{ v: I32?  @range(v, {bounds}) }}")
        rows: list[Entity] = [{"@id": "1", "v": 1}, {"@id": "2"}]
        (message,) = graph.messages({"T": Write(rows)})
        assert message.startswith("@range violation on T.v: 1 (")

    def test_nan_is_in_no_range(self) -> None:
        graph = ValidationWorld("node T { v: F64  @range(v, ..5) }")
        messages = graph.messages({"T": Write([{"@id": "1", "v": math.nan}])})
        assert messages == [
            "T.v: nan is not a finite number, as F64 needs",
            "@range violation on T.v: nan (at most 5)",
        ]


PATTERNS = [
    "^a",
    "a$",
    "b+c?",
    r"\bfoo\b",
    r"(?i)É",
    r"^\p{Greek}+$",
    r"[^\n]$",
    "",
    r"\d{2,3}",
    ".",
]


@given(pattern=st.sampled_from(PATTERNS), text=st.text("abcéÉαβ foo\n019", max_size=8))
def test_a_pattern_finds_what_the_engine_that_admitted_it_finds(pattern: str, text: str) -> None:
    escaped = pattern.replace("\\", "\\\\")
    graph = CHECKED.setdefault(
        pattern, ValidationWorld(f'node T {{ v: String  @check(v, "{escaped}") }}')
    )
    is_accepted = graph.messages({"T": Write([{"@id": "1", "v": text}])}) == []
    assert is_accepted == (re2.search(pattern, text) is not None)


CHECKED: dict[str, ValidationWorld] = {}


class TestUniqueness:
    def test_a_committed_value_cannot_be_taken(self) -> None:
        graph = world(Person=[ANN | {"email": "a@x"}])
        refused = graph.refusal({"Person": Write([BOB | {"email": "a@x"}])})
        assert refused is not None
        (violation,) = refused.violations
        assert violation.message == "@unique violation on Person.email: a@x"
        assert (violation.rule, violation.property, violation.value) == ("unique", "email", "a@x")
        assert violation.entity_id == "bob"

    def test_a_row_does_not_collide_with_the_copy_it_replaces(self) -> None:
        graph = world(Person=[ANN | {"email": "a@x"}])
        assert graph.messages({"Person": Write([ANN | {"email": "a@x", "age": 3}])}) == []

    def test_a_value_freed_by_the_same_write_may_be_taken(self) -> None:
        graph = world(Person=[ANN | {"email": "a@x"}, BOB | {"email": "b@x"}])
        swapped = [ANN | {"email": "b@x"}, BOB | {"email": "a@x"}]
        assert graph.messages({"Person": Write(swapped)}) == []
        deleted = Write([BOB | {"email": "a@x"}], deleted=["ann"])
        assert graph.messages({"Person": deleted}) == []

    def test_overwriting_frees_every_value(self) -> None:
        graph = world(Person=[ANN | {"email": "a@x"}])
        write = Write([BOB | {"email": "a@x"}], WriteMode.OVERWRITE)
        assert graph.messages({"Person": write}) == []

    def test_both_zeros_are_one_value(self) -> None:
        graph = world(Person=[ANN | {"score": -0.0}])
        expected = ["@unique violation on Person.score: 0"]
        assert graph.messages({"Person": Write([BOB | {"score": 0.0}])}) == expected
        rows = [BOB | {"score": 0.0}, {"name": "cyd", "score": -0.0}]
        assert world().messages({"Person": Write(rows)}) == expected

    def test_a_tuple_is_compared_member_by_member(self) -> None:
        graph = world(Person=[ANN | {"team": "a, b", "seat": "c"}])
        free = [BOB | {"team": "a", "seat": "b, c"}, {"name": "cyd", "team": "a, b", "seat": None}]
        assert graph.messages({"Person": Write(free)}) == []
        taken = Write([BOB | {"team": "a, b", "seat": "c"}])
        assert graph.messages({"Person": taken}) == [
            "@unique violation on Person.(seat, team): c, a, b"
        ]

    def test_a_null_member_exempts(self) -> None:
        rows = [ANN | {"team": "a"}, BOB | {"team": "a"}]
        assert world(Person=[{"name": "cyd", "team": "a"}]).messages({"Person": Write(rows)}) == []

    def test_null_members_exempt_among_many_tuples(self) -> None:
        teams, seats = ["a", "b", "c", "d"], ["1", "2", None, None]
        rows = [{"name": t, "team": t, "seat": s} for t, s in zip(teams, seats, strict=True)]
        assert world().messages({"Person": Write(rows)}) == []

    def test_shared_tuples_are_told_in_the_order_of_their_first_rows(self) -> None:
        tuples = [("x", "1"), ("y", "2"), ("x", "2"), ("x", "2"), ("y", "2")]
        rows = [{"name": str(n), "team": t, "seat": s} for n, (t, s) in enumerate(tuples)]
        refused = world().refusal({"Person": Write(rows)})
        assert refused is not None
        assert [(each.value, each.entity_id) for each in refused.violations] == [
            ("2, y", "4"),
            ("2, x", "3"),
        ]

    def test_a_shared_tuple_is_one_violation(self) -> None:
        rows = [{"name": f"p{n}", "email": "a@x"} for n in range(5)]
        graph = world(Person=[ANN | {"email": "a@x"}])
        assert graph.messages({"Person": Write(rows)}) == ["@unique violation on Person.email: a@x"]

    def test_a_tuple_shared_in_a_batch_and_after_it_is_one_violation(self) -> None:
        rows = [ANN | {"email": "a@x"}, BOB | {"email": "a@x"}]
        write = Write(rows, batches=[rows, [ANN]])
        assert world().messages({"Person": write}) == ["@unique violation on Person.email: a@x"]

    def test_each_batch_must_be_unique_in_itself(self) -> None:
        first = [ANN | {"email": "a@x"}, BOB | {"email": "a@x"}]
        second = [BOB | {"email": "b@x"}]
        write = Write([first[0], second[0]], batches=[first, second])
        assert world().messages({"Person": write}) == ["@unique violation on Person.email: a@x"]
        apart = Write([ANN, second[0]], batches=[[first[0]], [first[1]], [ANN], second])
        assert world().messages({"Person": apart}) == []

    def test_the_ends_of_an_edge_can_be_unique(self) -> None:
        graph = world(Person=[ANN, BOB], Knows=[home("k1", "ann", "bob")])
        messages = graph.messages({"Knows": Write([home("k2", "ann", "bob")], WriteMode.INSERT)})
        assert messages == ["@unique violation on Knows.(@src, @dst): ann, bob"]

    def test_many_tuples_of_many_members_are_told_apart(self) -> None:
        names = [f"v{n}" for n in range(7)]
        declared = " ".join(f"{name}: I64" for name in names)
        graph = ValidationWorld(f"node T {{ {declared} @unique({', '.join(names)}) }}")
        rows = [
            {"@id": str(n), **{name: n * 7 + i for i, name in enumerate(names)}} for n in range(900)
        ]
        assert graph.messages({"T": Write(rows)}) == []
        twin = rows[450] | {"@id": "twin"}
        (message,) = graph.messages({"T": Write([*rows, twin])})
        assert message.endswith(": " + ", ".join(str(450 * 7 + i) for i in range(7)))


class TestReferences:
    def test_an_end_may_be_committed_or_written(self) -> None:
        graph = world(Person=[ANN], City=[OSLO])
        writes = {
            "Person": Write([BOB]),
            "LivesIn": Write([home("l1", "ann", "oslo"), home("l2", "bob", "oslo")]),
        }
        assert graph.messages(writes) == []

    def test_a_missing_end_is_told(self) -> None:
        graph = world(Person=[ANN])
        refused = graph.refusal(
            {"Knows": Write([home("k1", "zed", "ann"), home("k2", "ann", "yve")])}
        )
        assert refused is not None
        assert [each.message for each in refused.violations] == [
            "src 'zed' not found in Person",
            "dst 'yve' not found in Person",
        ]
        assert [each.entity_id for each in refused.violations] == ["k1", "k2"]
        assert [each.property for each in refused.violations] == ["@src", "@dst"]

    def test_a_node_that_ends_is_missing(self) -> None:
        graph = world(Person=[ANN, BOB])
        writes = {
            "Person": Write(deleted=["bob"]),
            "Knows": Write([home("k1", "ann", "bob")]),
        }
        assert graph.messages(writes) == ["dst 'bob' not found in Person"]

    def test_an_edge_cannot_be_left_behind_at_a_node_that_ends(self) -> None:
        graph = world(Person=[ANN, BOB], Knows=[home("k1", "ann", "bob")])
        refused = graph.refusal({"Person": Write(deleted=["bob"])})
        assert refused is not None
        (violation,) = refused.violations
        assert violation.message == "dst 'bob' not found in Person: edge Knows 'k1' needs it"
        assert (violation.type_name, violation.entity_id) == ("Knows", "k1")
        with_edge = {"Person": Write(deleted=["bob"]), "Knows": Write(deleted=["k1"])}
        assert graph.messages(with_edge) == []

    def test_overwriting_cannot_drop_a_node_that_an_edge_needs(self) -> None:
        graph = world(Person=[ANN, BOB], Knows=[home("k1", "ann", "bob")])
        only_ann = {"Person": Write([ANN], WriteMode.OVERWRITE)}
        assert graph.messages(only_ann) == [
            "dst 'bob' not found in Person: edge Knows 'k1' needs it"
        ]
        assert graph.messages({"Person": Write([ANN, BOB], WriteMode.OVERWRITE)}) == []
        both = only_ann | {"Knows": Write([], WriteMode.OVERWRITE)}
        assert graph.messages(both) == []


class TestCardinality:
    def test_a_source_cannot_have_too_many_edges(self) -> None:
        graph = world(Person=[ANN], City=[OSLO, ROME], LivesIn=[home("l1", "ann", "oslo")])
        write = Write([home("l2", "ann", "rome")], WriteMode.INSERT)
        assert graph.messages({"LivesIn": write}) == [
            "@card violation on edge LivesIn: source 'ann' has 2 edges (max 1)"
        ]

    def test_the_committed_edges_of_a_source_that_is_written_too_are_counted(self) -> None:
        graph = world(Person=[ANN], City=[OSLO, ROME], LivesIn=[home("l1", "ann", "oslo")])
        writes = {
            "Person": Write([ANN | {"age": 1}]),
            "LivesIn": Write([home("l2", "ann", "rome")], WriteMode.INSERT),
        }
        assert graph.messages(writes) == [
            "@card violation on edge LivesIn: source 'ann' has 2 edges (max 1)"
        ]

    def test_sources_are_told_in_the_order_of_their_ids(self) -> None:
        graph = world(Person=[ANN, BOB], City=[OSLO, ROME])
        edges = [
            home(f"{who}-{city}", who, city) for who in ("bob", "ann") for city in ("oslo", "rome")
        ]
        assert graph.messages({"LivesIn": Write(edges)}) == [
            "@card violation on edge LivesIn: source 'ann' has 2 edges (max 1)",
            "@card violation on edge LivesIn: source 'bob' has 2 edges (max 1)",
        ]

    def test_a_replaced_edge_counts_once(self) -> None:
        graph = world(Person=[ANN], City=[OSLO, ROME], LivesIn=[home("l1", "ann", "oslo")])
        assert graph.messages({"LivesIn": Write([home("l1", "ann", "rome")])}) == []

    def test_the_former_source_of_a_moved_edge_is_counted(self) -> None:
        graph = world(Person=[ANN, BOB], City=[OSLO], LivesIn=[home("l1", "ann", "oslo")])
        assert graph.messages({"LivesIn": Write([home("l1", "bob", "oslo")])}) == [
            "@card violation on edge LivesIn: source 'ann' has 0 edges (min 1)"
        ]

    def test_the_source_of_a_deleted_edge_is_counted_unless_it_ends_too(self) -> None:
        graph = world(Person=[ANN], City=[OSLO], LivesIn=[home("l1", "ann", "oslo")])
        edge = {"LivesIn": Write(deleted=["l1"])}
        assert graph.messages(edge) == [
            "@card violation on edge LivesIn: source 'ann' has 0 edges (min 1)"
        ]
        assert graph.messages(edge | {"Person": Write(deleted=["ann"])}) == []

    def test_the_sources_of_overwritten_edges_are_counted(self) -> None:
        graph = world(Person=[ANN, BOB], City=[OSLO], LivesIn=[home("l1", "ann", "oslo")])
        write = Write([home("l2", "bob", "oslo")], WriteMode.OVERWRITE)
        assert graph.messages({"LivesIn": write}) == [
            "@card violation on edge LivesIn: source 'ann' has 0 edges (min 1)"
        ]

    def test_a_node_that_never_had_an_edge_is_not_counted(self) -> None:
        assert world().messages({"Person": Write([ANN])}) == []

    def test_the_edges_of_a_node_that_is_new_are_counted(self) -> None:
        writes = {
            "Person": Write([ANN], WriteMode.INSERT),
            "City": Write([OSLO, ROME], WriteMode.INSERT),
            "LivesIn": Write(
                [home("l1", "ann", "oslo"), home("l2", "ann", "rome")], WriteMode.INSERT
            ),
        }
        assert world().messages(writes) == [
            "@card violation on edge LivesIn: source 'ann' has 2 edges (max 1)"
        ]


def test_nothing_is_left_of_a_refused_write() -> None:
    graph = world(Person=[ANN])
    with pytest.raises(WriteRefusedError):
        graph.validate({"Person": Write([BOB | {"age": -1}])})
    assert graph.messages({"Person": Write([BOB])}) == []
