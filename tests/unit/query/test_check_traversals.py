from __future__ import annotations

import pytest

from omnigraph.lang.lexer import Mode
from omnigraph.query import typed_reads, typed_tree
from omnigraph.schema.property_types import EnumType, PropertyType, Scalar, ScalarType
from unit.query.checking import filter_problems, pattern_of, problems_of, read_of

WROTE = typed_reads.EdgeStep("Wrote")
WRITTEN = typed_reads.EdgeStep("Wrote", is_reversed=True)


def traversal_of(clauses: str) -> typed_reads.Traversal:
    (found,) = [
        clause
        for clause in pattern_of(clauses).clauses
        if isinstance(clause, typed_reads.Traversal)
    ]
    return found


@pytest.mark.parametrize(
    ("clauses", "ends", "step"),
    [
        ("$x: Author  $x wrote $y", ("Author", "Book"), WROTE),
        ("$x: Book  $x wrote $y", ("Book", "Author"), WRITTEN),
        ("$y: Book  $x wrote $y", ("Author", "Book"), WROTE),
        ("$y: Author  $x wrote $y", ("Book", "Author"), WRITTEN),
        ("$x wrote $y", ("Author", "Book"), WROTE),
        ("$x wrote $y  $x: Book", ("Book", "Author"), WRITTEN),
        ("$x wrote $y  $y: Author", ("Book", "Author"), WRITTEN),
        ("$x: Author  $x wROTE $y", ("Author", "Book"), WROTE),
        ("$x: Author  $x follows $y", ("Author", "Author"), typed_reads.EdgeStep("Follows")),
        ('$x: Author  $x "in" $y', ("Author", "Book"), typed_reads.EdgeStep("In")),
    ],
)
def test_the_direction_follows_from_the_types(
    clauses: str, ends: tuple[str, str], step: typed_reads.EdgeStep
) -> None:
    found = traversal_of(clauses)
    assert (found.source, found.target) == ("x", "y")
    assert (found.source_type, found.target_type) == ends
    assert found.steps == (step,)
    assert not found.is_selection


def test_the_direction_is_inferred_inside_blocks() -> None:
    pattern = pattern_of("$b: Book  not { $b wrote $a  $x drew $a }")
    block = pattern.clauses[1]
    assert isinstance(block, typed_reads.ExistsBlock)
    written, drawn = block.pattern.clauses
    assert isinstance(written, typed_reads.Traversal)
    assert written.steps == (WRITTEN,)
    assert isinstance(drawn, typed_reads.Traversal)
    assert drawn.steps == (typed_reads.EdgeStep("Drew"),)


def test_each_edge_of_an_alternation_has_its_own_direction() -> None:
    found = traversal_of("$x: Author  $x (wrote | drew | wrote) $y")
    assert found.steps == (WROTE, typed_reads.EdgeStep("Drew", is_reversed=True))
    assert found.target_type == "Book"
    assert found.is_selection


def test_a_wildcard_takes_every_edge_that_fits() -> None:
    found = traversal_of("$x: Book  $x * $y  $y: Author")
    assert found.steps == (
        WRITTEN,
        typed_reads.EdgeStep("Drew"),
        typed_reads.EdgeStep("In", is_reversed=True),
    )
    assert traversal_of("$x: Note  $y: Note  $x * $y").steps == ()
    both_ways = traversal_of("$x: Author  $y: Author  $x <*>{1,3} $y")
    assert [step.edge_type for step in both_ways.steps] == ["Follows", "Mentors", "Likes"]
    assert (both_ways.is_undirected, both_ways.minimum, both_ways.maximum) == (True, 1, 3)


def test_an_anonymous_edge_variable_is_none() -> None:
    assert traversal_of("$x: Author  $x $_:follows $y").edge_variable is None
    assert traversal_of("$x: Author  $x $w:follows{1,1} $y").edge_variable == "w"


def test_a_loop_is_a_traversal_to_the_same_variable() -> None:
    found = traversal_of("$x: Author  $x follows $x")
    assert (found.source, found.target) == ("x", "x")
    assert filter_problems("$c wrote $c") == ["T5 wrote"]


def test_hops_between_two_types_act_as_one() -> None:
    found = traversal_of("$x: Author  $x wrote{1,4} $y")
    assert (found.minimum, found.maximum) == (1, 1)
    assert traversal_of("$x: Author  $x follows{2,4} $y").maximum == 4


@pytest.mark.parametrize(
    ("clauses", "problems"),
    [
        ("$a wrote $c  $c follows $d", ["T5 $c"]),
        ("$a wrote $d  $d: Note", ["T5 $d"]),
        ("$a follows $b", ["T5 $b"]),
        ("$b (wrote | follows) $x", ["T5 follows"]),
        ("$a (wrote | nope | nada) $x", ["T4 nope", "T4 nada"]),
        ("$a (wrote | drew){1,2} $x", ["T5 {1,2}"]),
        ("$a <wrote | follows> $x", ["T22 wrote"]),
        ("$a * $x", ["T105 $x"]),
        ("$a * $_", ["T105 $_"]),
        ("$a follows $x  $a * $x", ["T105 $x"]),
        ("$a $e:*{1,2} $c  $c: Author", ["T23 {1,2}"]),
        ("$a $b:follows $x", ["T23 $b"]),
        ("$a $w:follows $x  exists { $a $w:follows $y }", ["T23 $w"]),
    ],
)
def test_a_traversal_that_does_not_fit_is_refused(clauses: str, problems: list[str]) -> None:
    assert filter_problems(clauses) == problems


def test_a_wildcard_sees_declarations_of_outer_blocks() -> None:
    assert filter_problems("exists { $a * $x  $x: Author }") == []
    assert filter_problems("$a follows $x  exists { $x * $b }  $x: Author") == []


def test_old_forms_are_refused_in_strict_mode() -> None:
    assert filter_problems("$a wrote{1,2} $x", mode=Mode.STRICT) == ["T5 {1,2}"]
    assert filter_problems("$x follows $y", mode=Mode.STRICT) == ["T104 $x follows $y"]


def edge_property(edges: str, name: str) -> PropertyType:
    read = read_of(f"match {{ $a: Author  $a $e:{edges} $x }} return {{ $e.{name} }}")
    type_ = read.columns[0].type
    assert isinstance(type_, PropertyType)
    return type_


def test_a_property_of_several_edge_types_covers_all_of_them() -> None:
    assert edge_property("(wrote | drew)", "role") == PropertyType(
        EnumType(("artist", "helper", "lead")), is_nullable=True
    )
    assert edge_property("(wrote | drew)", "since") == typed_tree.DATETIME.as_nullable()
    assert edge_property("drew", "since") == typed_tree.DATETIME
    assert edge_property("(mentors | likes)", "note") == PropertyType(
        ScalarType(Scalar.STRING), is_nullable=True
    )


def test_a_property_that_an_edge_type_lacks_is_refused() -> None:
    text = "match { $a: Author  $a $e:(follows | mentors) $x } return { $e.since }"
    assert problems_of(text) == ["T6 since"]
    empty = "match { $x: Note  $y: Note  $x $e:* $y } return { $e.since, $e.@type }"
    assert problems_of(empty) == ["T6 since"]
