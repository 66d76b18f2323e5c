from __future__ import annotations

from typing import get_args

from omnigraph.query.ast import CompareOp
from omnigraph.query.logical_plan import Exists, Expand, Filter, Operator, Outer, Scan, Unit
from omnigraph.query.tree_walk import (
    CHILD_FIELDS,
    bound_variables_of,
    chain_of,
    iter_children,
    link_chain,
    map_chains,
    map_expression,
    rename_variables,
    used_variables_of,
    variables_of,
)
from omnigraph.query.typed_reads import EdgeStep
from omnigraph.query.typed_tree import (
    BOOL,
    STRING,
    AllOf,
    Bm25Score,
    Compare,
    Constant,
    Expr,
    PropertyValue,
    RrfScore,
)

TEXT = Constant("x", STRING)


def name_of(variable: str) -> PropertyValue:
    return PropertyValue(variable, "name", STRING)


def equal(left: str, right: str) -> Compare:
    return Compare(CompareOp.EQ, name_of(left), name_of(right))


def expand(source: str, target: str, *, edge: str | None = None, closing: bool = False) -> Expand:
    steps = (EdgeStep("Knows"),)
    return Expand(
        Outer(), source, "P", steps, target, "P", edge_variable=edge, target_is_bound=closing
    )


def test_every_expression_lists_its_children() -> None:
    assert set(CHILD_FIELDS) == set(get_args(Expr))


def test_children_are_found_in_order() -> None:
    first, second = Bm25Score("p", "a", TEXT), Bm25Score("p", "b", TEXT)
    assert list(iter_children(RrfScore((first, second)))) == [first, second]
    assert list(iter_children(AllOf((TEXT, equal("a", "b"))))) == [TEXT, equal("a", "b")]
    assert list(iter_children(TEXT)) == []


def test_an_expression_is_changed_from_the_inside_out() -> None:
    seen: list[Expr] = []

    def note(part: Expr) -> Expr:
        seen.append(part)
        return part

    condition = equal("a", "b")
    assert map_expression(condition, note) == condition
    assert seen == [name_of("a"), name_of("b"), condition]


def test_variables_are_found_and_renamed_everywhere() -> None:
    score = RrfScore((Bm25Score("p", "a", TEXT), Bm25Score("q", "b", name_of("r"))))
    assert variables_of(score) == {"p", "q", "r"}
    assert variables_of(rename_variables(score, str.upper)) == {"P", "Q", "R"}
    assert variables_of(Constant(True, BOOL)) == set()


def test_a_chain_can_be_taken_apart_and_linked_again() -> None:
    root = Filter(Scan(Unit(), "p", "Person"), TEXT)
    assert chain_of(root) == (Unit(), root.input, root)
    assert link_chain(chain_of(root)) == root


def test_changing_chains_reaches_blocks_within_blocks() -> None:
    inner = Exists(Outer(), Filter(Outer(), TEXT), is_negated=False)
    root = Exists(Filter(Unit(), TEXT), inner, is_negated=True)

    def without_filters(chain: tuple[Operator, ...]) -> list[Operator]:
        return [operator for operator in chain if not isinstance(operator, Filter)]

    assert map_chains(root, without_filters) == Exists(
        Unit(), Exists(Outer(), Outer(), is_negated=False), is_negated=True
    )


def test_an_operator_binds_and_uses_variables() -> None:
    assert bound_variables_of(expand("a", "b", edge="e")) == {"b", "e"}
    assert used_variables_of(expand("a", "b", edge="e")) == {"a"}
    assert bound_variables_of(expand("a", "b", closing=True)) == set()
    assert used_variables_of(expand("a", "b", closing=True)) == {"a", "b"}
    assert used_variables_of(Filter(Unit(), equal("a", "b"))) == {"a", "b"}


def test_a_block_uses_what_it_does_not_bind_itself() -> None:
    block = Filter(expand("a", "x"), equal("x", "b"))
    assert used_variables_of(Exists(Unit(), block, is_negated=True)) == {"a", "b"}
