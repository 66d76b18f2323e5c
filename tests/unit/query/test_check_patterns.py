from __future__ import annotations

import pytest

from omnigraph.lang.lexer import Mode
from omnigraph.query import typed_reads, typed_tree
from omnigraph.query.ast import AggregateFunction, CompareOp
from omnigraph.schema.property_types import Scalar, make_scalar_type
from unit.query.checking import filter_problems, pattern_of, problems_of


def bindings_of(pattern: typed_reads.Pattern) -> list[tuple[str, str]]:
    return [
        (clause.variable, clause.type_name)
        for clause in pattern.clauses
        if isinstance(clause, typed_reads.Binding)
    ]


def block_of(clauses: str) -> typed_reads.Pattern:
    block = pattern_of(clauses).clauses[-1]
    assert isinstance(block, typed_reads.ExistsBlock)
    return block.pattern


def test_property_matches_become_conditions() -> None:
    pattern = pattern_of('$b: Book { title: "x", tags: "y", pages: $n }', parameters="$n: I32?")
    (binding,) = pattern.clauses
    assert isinstance(binding, typed_reads.Binding)
    title, tags, pages = binding.conditions
    assert title == typed_tree.Compare(
        CompareOp.EQ,
        typed_tree.PropertyValue("b", "title", typed_tree.STRING),
        typed_tree.Constant("x", typed_tree.STRING),
    )
    assert isinstance(tags, typed_tree.Member)
    assert tags.item == typed_tree.Constant("y", typed_tree.STRING)
    assert isinstance(pages, typed_tree.Compare)
    assert pages.type.is_nullable


def test_a_match_takes_a_constant_expression() -> None:
    pattern = pattern_of("$a: Author { active: $n > 1 or true }", parameters="$n: I64?")
    (binding,) = pattern.clauses
    assert isinstance(binding, typed_reads.Binding)
    (condition,) = binding.conditions
    assert isinstance(condition, typed_tree.Compare)
    assert isinstance(condition.right, typed_tree.AnyOf)


def test_bindings_of_one_variable_are_one_conjunction() -> None:
    pattern = pattern_of('$b: Book { title: "x" }  $a wrote $b  $b: Book { isbn: "y" }')
    binding, traversal = pattern.clauses
    assert isinstance(binding, typed_reads.Binding)
    assert len(binding.conditions) == 2
    assert isinstance(traversal, typed_reads.Traversal)


def test_a_block_may_bind_an_outer_variable_again() -> None:
    block = block_of('$b: Book  exists { $b: Book { title: "x" } }')
    assert bindings_of(block) == [("b", "Book")]
    assert block.nodes == ()


def test_variables_are_listed_in_order_of_appearance() -> None:
    pattern = pattern_of("$a: Author  $a $w:wrote $b  $_ wrote $b  $c: Book")
    names = [name for name, _ in pattern.nodes]
    assert names[:2] == ["a", "b"]
    assert names[2].startswith(typed_tree.ANONYMOUS_PREFIX)
    assert pattern.nodes[3] == ("c", "Book")
    assert pattern.edges == (("w", ("Wrote",)),)


def test_every_anonymous_end_is_its_own_variable() -> None:
    pattern = pattern_of("$a: Author  $a wrote $_  $a wrote $_  $_ $_:wrote $b  $_: Note")
    anonymous = {name for name, _ in pattern.nodes if name.startswith(typed_tree.ANONYMOUS_PREFIX)}
    assert len(anonymous) == 4
    assert pattern.edges == ()


def test_a_variable_used_in_a_block_and_declared_later_stays_local() -> None:
    pattern = pattern_of("$a: Author  not { $a wrote $b }  $b: Book")
    block = pattern.clauses[1]
    assert isinstance(block, typed_reads.ExistsBlock)
    assert block.pattern.nodes == (("b", "Book"),)
    assert pattern.nodes == (("a", "Author"), ("b", "Book"))


def test_a_later_outer_declaration_gives_no_type_to_a_block() -> None:
    assert filter_problems("exists { $a follows $x  $x * $y  $y: Book }  $x: Author") == ["T105 $x"]


@pytest.mark.parametrize(
    ("clauses", "problems"),
    [
        ("not { $x: Book }", ["T9 not { $x: Book }"]),
        ("exists { $x: Book }", ["T39 exists { $x: Book }"]),
        ("count { $x: Book } > 1", ["T39 count { $x: Book } > 1"]),
        ("max($a.score) { $x: Author } > 1", ["T39 max($a.score) { $x: Author } > 1"]),
        ("not { $x: Book not { $x wrote $a } }", ["T9 not { $x: Book not { $x wrote $a } }"]),
        ("not { $z.p = 1 }", ["T6 $z"]),
        ("not { $a.score = 1 }", []),
        ("not { $a: Author }", []),
        ("not { $x wrote $b }", []),
        ('not { $x: Book  search($b.title, "x") }', []),
        ("exists { $x: Author not { $x.name = $a.name } $x.score = $a.score }", []),
    ],
)
def test_a_block_mentions_an_outer_variable_itself(clauses: str, problems: list[str]) -> None:
    assert filter_problems(clauses) == problems


def test_a_parameter_is_no_outer_variable() -> None:
    parameters = "$a: String"
    assert filter_problems('not { $a = "x" }', parameters=parameters) == [
        "L315 $a",
        'T9 not { $a = "x" }',
    ]


def test_the_bound_of_a_block_takes_the_type_of_the_aggregate() -> None:
    pattern = pattern_of(
        "$a: Author  count { $a wrote $b } > 2  sum($b.pages) { $a wrote $b } = 3"
        "  min($b.title) { $a wrote $b } < $t  count($b) { $a wrote $b } = 1.5",
        parameters="$t: String?",
    )
    counted, summed, smallest, fraction = pattern.clauses[1:]
    assert isinstance(counted, typed_reads.AggregateBlock)
    assert counted.argument is None
    assert counted.value == typed_tree.Constant(2, make_scalar_type(Scalar.I64))
    assert isinstance(summed, typed_reads.AggregateBlock)
    assert summed.function is AggregateFunction.SUM
    assert summed.value == typed_tree.Constant(3.0, typed_tree.F64)
    assert isinstance(smallest, typed_reads.AggregateBlock)
    assert smallest.value == typed_tree.ParameterValue("t", typed_tree.STRING.as_nullable())
    assert isinstance(fraction, typed_reads.AggregateBlock)
    assert isinstance(fraction.argument, typed_tree.NodeValue)
    assert fraction.value == typed_tree.Constant(1.5, typed_tree.F64)


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ("count { $a wrote $x } > $z", "T102 $z"),
        ("count { $a wrote $x } > (1 = 1)", "T7 count { $a wrote $x } > (1 = 1)"),
        ('count { $a wrote $x } > date("2020-01-01")', 'T40 date("2020-01-01")'),
        ("max($x.title) { $a wrote $x } = now()", "T40 now()"),
        ("avg($x) { $a wrote $x } = 1", "T8 $x"),
        ("sum(count($x)) { $a wrote $x } = 1", "T8 count($x)"),
        ("count($w) { $a $w:wrote $x } = 1", "T23 $w"),
    ],
)
def test_a_block_that_cannot_be_compared_is_refused(block: str, problem: str) -> None:
    assert filter_problems(block) == [problem]


def test_groups_without_a_declared_variable_are_scanned() -> None:
    pattern = pattern_of("$a: Author  $x wrote $y  $z drew $x  $_ follows $a")
    kinds = [
        clause.variable if isinstance(clause, typed_reads.Binding) else type(clause).__name__
        for clause in pattern.clauses
    ]
    assert kinds == ["a", "x", "Traversal", "Traversal", "Traversal"]
    assert bindings_of(pattern)[1] == ("x", "Author")


def test_each_group_without_a_declared_variable_is_reported() -> None:
    clauses = "$c follows $d  $d wrote $e  $m in $n  $a follows $_"
    assert filter_problems(clauses) == ["L314 $c follows $d", "L314 $m in $n", "L310 in"]
    assert filter_problems(clauses, mode=Mode.STRICT) == [
        "T104 $c follows $d",
        "T104 $m in $n",
        "T7 in",
    ]


def test_a_block_is_anchored_by_outer_variables() -> None:
    assert filter_problems("exists { $a follows $x  $x wrote $y }") == []
    assert filter_problems("exists { $a follows $x  $m follows $n }") == ["L314 $m follows $n"]


def test_a_group_with_a_wrong_traversal_is_not_called_unanchored() -> None:
    assert filter_problems("$c nope $a  $c follows $d") == ["T4 nope"]


def test_a_variable_keeps_its_type_in_blocks() -> None:
    assert filter_problems("exists { $b: Author }") == ["T101 Author"]


def test_reserved_variables_are_refused_wherever_they_appear() -> None:
    assert filter_problems("$a follows $__x  $a $__w:follows $y  $__x.name = $__x.handle") == [
        "T100 $__x",
        "T100 $__w",
    ]


def test_a_node_type_must_be_known_even_inside_blocks() -> None:
    assert problems_of(
        "match { $a: Author  not { $a wrote $x  $x: Bok  $x.nope = 1 } } return { $a.name }"
    ) == ["T1 Bok"]
