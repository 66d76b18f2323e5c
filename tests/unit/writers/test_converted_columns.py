"""Properties that get another type, on a graph with entities, branches and history."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.errors import (
    MergeConflictError,
    MigrationUnsupportedError,
    StoredSchemaError,
    WriteRefusedError,
)
from omnigraph.schema.schema_identity import decode_accepted
from unit.writers.merge.merge_world import new_graph

SCHEMA = """node Book {
  isbn: I32 @key
  pages: I32? @index
  price: F32?
  sold: I64?
  code: String?
  at: DateTime?
}
edge Cites: Book -> Book { weight: I32? }
"""
BOOKS: list[dict[str, Any]] = [
    {"type": "Book", "data": {"isbn": 1, "pages": 320, "price": 0.5, "sold": 9, "code": "7"}},
    {"type": "Book", "data": {"isbn": 2, "pages": 80, "sold": 2**53 + 1, "code": "08"}},
    {"type": "Book", "data": {"isbn": 3, "at": "2020-01-01T10:00:00Z"}},
    {"edge": "Cites", "from": "1", "to": "2", "data": {"weight": 4}},
]
PAGES = "query q() { match { $b: Book } return { $b.isbn, $b.pages } order { $b.isbn } }"


def new_books(**options: Any) -> Graph:
    return new_graph(*BOOKS, schema=SCHEMA, **options)


def changed(*pairs: tuple[str, str]) -> str:
    text = SCHEMA
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


WIDE = changed(("pages: I32?", "pages: I64?"))
WIDER = changed(("pages: I32?", "pages: F64?"))


def pages(branch: Any) -> list[Any]:
    return [row["b.pages"] for row in branch.query(PAGES).to_pylist()]


def test_a_widened_property_keeps_its_number_and_old_commits_their_type() -> None:
    with new_books() as graph:
        main = graph.branch()
        before, old = main.head, main.snapshot().view
        steps = main.apply_schema(
            changed(
                ("pages: I32?", "pages: F64?"),
                ("price: F32?", "price: F64?"),
                ("isbn: I32", "isbn: I64"),
                ("weight: I32?", "weight: I64?"),
            )
        ).plan.to_json()["steps"]
        assert [step["kind"] for step in steps] == ["widen_property"] * 4
        new = main.snapshot().view
        assert new.accepted.identities == old.accepted.identities
        assert new.accepted.features == ("converted-columns", "system-columns")
        assert decode_accepted(new.accepted.to_json()) == new.accepted
        assert pages(main) == [320.0, 80.0, None]
        main.mutate("query q() { update Book set { pages: 2.5 } where isbn = 2 }")
        main.load([{"type": "Book", "data": {"isbn": 2**40, "pages": 1.5}}], mode="append")
        assert pages(main) == [320.0, 2.5, None, 1.5]
        assert main.query("query q() { match { $b: Book { pages: 320 } } return { $b.isbn } }")
        assert pages(graph.snapshot(before)) == [320, 80, None]
        changes = {(each.op, each.id) for each in graph.diff(before, main.head)}
        assert changes == {("update", "2"), ("insert", str(2**40))}
        assert not graph.check().problems


def test_a_wider_type_than_values_allow_names_the_entities() -> None:
    with new_books() as graph:
        main = graph.branch()
        text = changed(("sold: I64?", "sold: F64?"))
        [found] = main.plan_schema(text).violations
        assert str(found.message) == (
            "[OG-MF-108] node:Book: 1 entity contradicts 'widen node:Book.sold from I64 to F64':"
            " '2' (9007199254740993)"
        )
        with pytest.raises(MigrationUnsupportedError, match="OG-MF-108"):
            main.apply_schema(text)
        assert main.schema == SCHEMA


@pytest.mark.parametrize(
    ("old", "new", "examples"),
    [
        ("sold: I64?", "sold: I32?", "'2' (9007199254740993)"),
        ("code: String?", "code: I64?", "'2' (08)"),
        ("at: DateTime?", "at: Date?", "'3' (2020-01-01T10:00:00.000Z)"),
        ("pages: I32?", "pages: String?", ""),
        ("price: F32?", "price: I64?", "'1' (0.5)"),
    ],
)
def test_other_types_need_consent_and_values_that_survive(
    old: str, new: str, examples: str
) -> None:
    with new_books() as graph:
        main, text = graph.branch(), changed((old, new))
        refusal = main.plan_schema(text).refusal
        assert refusal is not None
        assert "--convert" in refusal
        plan = main.plan_schema(text, convert=True)
        assert [", ".join(map(str, each.examples)) for each in plan.violations] == (
            [examples] if examples else []
        )
        if not examples:
            main.apply_schema(text, convert=True)
            assert pages(main) == ["320", "80", None]
            main.apply_schema(SCHEMA, convert=True)
            assert pages(main) == [320, 80, None]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("isbn: I32", "isbn: F64"),
        ("isbn: I32", "isbn: String"),
        ("pages: I32?", 'sheets: String? @rename_from("pages")'),
        ("price: F32?", "price: [F32]?"),
    ],
)
def test_what_would_change_ids_or_names_is_refused(old: str, new: str) -> None:
    with new_books() as graph:
        plan = graph.branch().plan_schema(changed((old, new)), convert=True)
        assert plan.schema is None
        assert "OG-MF-106" in str(plan.refusal)


@pytest.mark.parametrize("into", ["main", "review"])
@pytest.mark.parametrize("text", [WIDE, WIDER])
def test_branches_of_two_types_merge_both_ways(text: str, into: str) -> None:
    with new_books() as graph:
        main = graph.branch()
        review = graph.create_branch("review")
        main.apply_schema(text)
        main.mutate("query q() { update Book set { pages: 100 } where isbn = 1 }")
        review.mutate("query q() { update Book set { pages: 81 } where isbn = 2 }")
        review.load([{"type": "Book", "data": {"isbn": 4, "pages": 4}}], mode="append")
        target, source = (main, "review") if into == "main" else (review, "main")
        merged = target.merge(source)
        assert merged.outcome == "merged"
        assert pages(target) == [100, 81, None, 4]
        assert target.schema == text
        assert target.merge(source).outcome == "already_up_to_date"
        assert not graph.check().problems


def test_an_untouched_branch_adopts_the_converted_table() -> None:
    with new_books() as graph:
        main = graph.branch()
        review = graph.create_branch("review")
        review.apply_schema(WIDER)
        review.mutate("query q() { update Book set { pages: 0.5 } where isbn = 1 }")
        main.load([{"edge": "Cites", "from": "2", "to": "1"}], mode="append")
        main.merge("review")
        assert pages(main) == [0.5, 80.0, None]
        pins = [each.snapshot().view.snapshot.pins["node:Book"] for each in (main, review)]
        assert pins[0] == pins[1]


def test_equal_changes_of_both_branches_meet_and_different_ones_conflict() -> None:
    with new_books() as graph:
        main = graph.branch()
        same, other = graph.create_branch("same"), graph.create_branch("other")
        for branch in (main, same):
            branch.apply_schema(WIDE)
        same.mutate(f"query q() {{ update Book set {{ pages: {2**40} }} where isbn = 2 }}")
        main.merge("same")
        assert pages(main) == [320, 2**40, None]
        other.apply_schema(WIDER)
        with pytest.raises(MergeConflictError, match="its type is not the same on both branches"):
            main.merge("other")
        other.apply_schema(WIDE, convert=True)
        other.mutate("query q() { update Book set { pages: 3 } where isbn = 3 }")
        main.merge("other")
        assert pages(main) == [320, 2**40, 3]


def test_a_revert_brings_the_type_back_if_values_allow_it() -> None:
    with new_books() as graph:
        main = graph.branch()
        widened = main.apply_schema(WIDE).commit
        assert widened is not None
        main.mutate("query q() { update Book set { pages: 5 } where isbn = 3 }")
        main.revert(widened.id)
        assert main.schema == SCHEMA
        assert pages(main) == [320, 80, 5]
        again = main.apply_schema(WIDE).commit
        assert again is not None
        main.mutate(f"query q() {{ update Book set {{ pages: {2**40} }} where isbn = 3 }}")
        with pytest.raises(Exception, match=str(2**40)):
            main.revert(again.id)
        assert pages(main) == [320, 80, 2**40]


def test_a_merge_refuses_values_that_do_not_survive_the_conversion_of_the_other_branch() -> None:
    with new_books() as graph:
        main = graph.branch()
        review = graph.create_branch("review")
        review.mutate('query q() { update Book set { code: "x" } where isbn = 1 }')
        main.mutate('query q() { update Book set { code: "8" } where isbn = 2 }')
        main.apply_schema(changed(("code: String?", "code: I64?")), convert=True)
        with pytest.raises(WriteRefusedError, match=r"Book\.code: x of one branch"):
            main.merge("review")


def test_a_stored_schema_whose_column_belongs_to_nothing_is_damaged() -> None:
    with new_books() as graph:
        main = graph.branch()
        main.apply_schema(WIDE)
        document = main.snapshot().view.accepted.to_json()
        document["columns"][0][0] += 100
        with pytest.raises(StoredSchemaError, match="a column belongs to no property"):
            decode_accepted(document)


SPANS = "node Span { id: String @key start: I32? end: I32? @check(start <= end) }"
SPAN_TEXTS = SPANS.replace("I32?", "String?")
SPAN: dict[str, Any] = {"type": "Span", "data": {"id": "a", "start": 9, "end": 10}}


def test_a_conversion_is_refused_if_a_condition_is_false_of_the_converted_values() -> None:
    with new_graph(SPAN, schema=SPANS) as graph:
        main = graph.branch()
        plan = main.plan_schema(SPAN_TEXTS, convert=True)
        assert [(each.check.code, each.count) for each in plan.violations] == [("OG-MF-107", 1)]
        with pytest.raises(MigrationUnsupportedError, match="'a' \\(10, 9\\)"):
            main.apply_schema(SPAN_TEXTS, convert=True)
        main.mutate('query q() { update Span set { end: 90 } where id = "a" }')
        main.apply_schema(SPAN_TEXTS, convert=True)


def test_a_merge_holds_converted_values_against_the_conditions_of_both_sides() -> None:
    with new_graph(SPAN, schema=SPANS.replace("@check(start <= end)", "")) as graph:
        main, trial = graph.branch(), graph.create_branch("trial")
        trial.apply_schema(SPANS)
        main.apply_schema(SPAN_TEXTS.replace("@check(start <= end)", ""), convert=True)
        for target, source in ((main, trial), (trial, main)):
            with pytest.raises(MergeConflictError, match="value_constraint_violation"):
                target.merge(source)


@pytest.mark.parametrize(
    ("rule", "kind", "value"),
    [
        ("@unique(x)", "I64", "12"),
        ("@unique(x)", "String", '"12"'),
        ("@unique(x, y)", "F64", "12.0"),
    ],
)
def test_converted_values_stay_unique_in_a_merge(rule: str, kind: str, value: str) -> None:
    schema = f"node A {{ id: String @key  x: I32?  y: I32?  {rule} }}"
    row: dict[str, Any] = {"type": "A", "data": {"id": "a", "x": 1, "y": 7}}
    with new_graph(row, schema=schema) as graph:
        main, trial = graph.branch(), graph.create_branch("trial")
        trial.apply_schema(schema.replace("x: I32", f"x: {kind}"), convert=True)
        trial.mutate(f'query q() {{ insert A {{ id: "b", x: {value}, y: 7 }} }}')
        main.mutate('query q() { insert A { id: "c", x: 12, y: 7 } }')
        for target, source in ((main, trial), (trial, main)):
            with pytest.raises(MergeConflictError, match="unique_violation"):
                target.merge(source)
        main.mutate('query q() { update A set { x: 13 } where id = "c" }')
        assert main.merge(trial).outcome == "merged"


def test_entities_that_share_a_value_are_all_that_a_revert_reports() -> None:
    schema = "node A { id: String @key  x: I32? @unique }"
    row: dict[str, Any] = {"type": "A", "data": {"id": "a", "x": 3}}
    with new_graph(row, schema=schema) as graph:
        main = graph.branch()
        main.apply_schema("node A { id: String @key  x: String? }", convert=True)
        changed_at = main.head
        main.mutate('query q() { insert A { id: "b", x: "3" } }')
        with pytest.raises(MergeConflictError) as refused:
            main.revert(changed_at)
        assert refused.value.count == len(refused.value.conflicts) == 2
