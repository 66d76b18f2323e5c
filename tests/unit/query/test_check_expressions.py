from __future__ import annotations

import pytest

from omnigraph.lang.lexer import Mode
from omnigraph.query import typed_tree
from omnigraph.query.ast import TextFunction
from omnigraph.schema.property_types import Scalar, make_scalar_type
from unit.query.checking import condition_of, filter_problems, hints_of, problems_of

NULLABLE = typed_tree.BOOL.as_nullable()
NAME = typed_tree.PropertyValue("a", "name", typed_tree.STRING)
SCORE = typed_tree.PropertyValue("a", "score", typed_tree.F64.as_nullable())


@pytest.mark.parametrize(
    ("condition", "is_nullable"),
    [
        ('$a.name = "x"', False),
        ("$a.score = 1", True),
        ("$p = 1", True),
        ("$q = 1", False),
        ("$a.score is null", False),
        ("not $a.score = 1", True),
        ('not $a.name = "x"', False),
        ('$a.name = "x" and $a.score = 1', True),
        ('$a.name = "x" or $a.score is not null', False),
        ('$a.name in ["x"]', False),
        ('"x" in $b.tags', True),
        ('$a.name contains "x"', False),
        ("$b.state starts_with $a.name", True),
        ("($a.score > 1) = ($a.score > 2)", True),
    ],
)
def test_a_condition_is_nullable_if_an_operand_is(condition: str, is_nullable: bool) -> None:
    found = condition_of(condition, parameters="$p: I64?, $q: I64")
    assert found.type == typed_tree.BOOL.as_nullable(is_nullable)


def test_contains_is_membership_on_lists_and_substring_on_text() -> None:
    tags = condition_of('$b.tags contains "x"')
    assert isinstance(tags, typed_tree.Member)
    assert tags == condition_of('"x" in $b.tags')
    assert condition_of('$a.name contains "x"') == typed_tree.Substring(
        NAME, typed_tree.Constant("x", typed_tree.STRING)
    )
    assert condition_of('contains($a.name, "x")') == condition_of('$a.name contains "x"')


def test_starts_with_is_a_prefix_test() -> None:
    assert condition_of('$a.name starts_with "x"') == typed_tree.Prefix(
        NAME, typed_tree.Constant("x", typed_tree.STRING)
    )


def test_a_null_test_takes_lists_and_vectors() -> None:
    for property_ in ("tags", "vec"):
        found = condition_of(f"$b.{property_} is not null")
        assert isinstance(found, typed_tree.IsNull)
        assert found.is_negated


def test_a_parameter_wins_over_a_variable_of_its_name() -> None:
    found = condition_of("$a.score = $b", parameters="$b: F64")
    assert isinstance(found, typed_tree.Compare)
    assert found.right == typed_tree.ParameterValue("b", typed_tree.F64)


def test_a_bare_boolean_is_a_condition() -> None:
    assert condition_of("$f", parameters="$f: Bool?") == typed_tree.ParameterValue("f", NULLABLE)
    assert condition_of("$a.active") == typed_tree.PropertyValue("a", "active", NULLABLE)
    assert condition_of("true") == typed_tree.Constant(True, typed_tree.BOOL)


def test_system_fields_are_strings_that_are_never_null() -> None:
    for text, variable, name in [
        ("$a.@id", "a", typed_tree.SystemName.ID),
        ("$w.@id", "w", typed_tree.SystemName.ID),
        ("$w.@src", "w", typed_tree.SystemName.SRC),
        ("$w.@dst", "w", typed_tree.SystemName.DST),
        ("$w.@type", "w", typed_tree.SystemName.TYPE),
    ]:
        found = condition_of(f'{text} = "x"')
        assert isinstance(found, typed_tree.Compare)
        assert found.left == typed_tree.SystemValue(variable, name, typed_tree.STRING)


def test_conjuncts_are_flattened_so_that_text_tests_stay_on_top() -> None:
    found = condition_of(
        '$b.title != "y" and (search($b.title, "x") and fuzzy($b.title, "z", 1) = true)'
    )
    assert isinstance(found, typed_tree.AllOf)
    assert [type(operand) for operand in found.operands] == [
        typed_tree.Compare,
        typed_tree.TextMatch,
        typed_tree.TextMatch,
    ]


def test_a_text_test_alone_is_a_condition() -> None:
    assert condition_of('fuzzy($b.title, "z", 1) = true') == typed_tree.TextMatch(
        TextFunction.FUZZY,
        "b",
        "title",
        typed_tree.Constant("z", typed_tree.STRING),
        typed_tree.Constant(1, make_scalar_type(Scalar.I64)),
    )


@pytest.mark.parametrize(
    ("condition", "problems"),
    [
        ("$z = 1 and $z = 2", ["T102 $z"]),
        ("$z.p = 1 and $z.q = 2", ["T6 $z"]),
        ("$a.nope = $z.q", ["T6 nope", "T6 $z"]),
        ("not ($a.nope > 1 or $a.score)", ["T6 nope", "T41 $a.score"]),
        ("$a.nope in $a.tags", ["T6 nope", "T6 tags"]),
        ("$_.name = 1", ["T6 $_"]),
        ("$p.name = 1", ["T6 $p"]),
        ("$a.@type = 1", ["T7 $a.@type = 1"]),
        ('@id = "x"', ["T6 @id"]),
        ("$b.cover = $b.cover", ["T7 $b.cover"]),
        ("$a.active = 1", ["T7 $a.active = 1"]),
        (
            "rrf(bm25($b.title, $p), bm25($b.title, $p)) < 1.0",
            ["T7 rrf(bm25($b.title, $p), bm25($b.title, $p))"],
        ),
    ],
)
def test_a_wrong_part_is_reported_once_and_silences_the_rest(
    condition: str, problems: list[str]
) -> None:
    assert filter_problems(condition, parameters="$p: Vector(2)") == problems


def test_hints_name_what_was_meant() -> None:
    def hint(condition: str) -> str | None:
        (found,) = hints_of(f"match {{ $auth: Author  {condition} }} return {{ $auth.name }}")
        return found

    assert hint('$auth.nme = "x"') == "did you mean 'name'?"
    assert hint('$auth.id = "x"') == "the system field is '@id'"
    assert hint('$auht.name = "x"') == "did you mean 'auth'?"
    assert hint('$auth.bornOn = "1980-01-02"') == 'write date("…")'
    assert hint("$auth folows $x") == "did you mean 'follows'?"
    assert hint('$auth wrote $b  $b.state = "drat"') == "did you mean 'draft'?"
    assert hint("$x: Autor") == "did you mean 'Author'?"


def test_reserved_words_between_variables_are_edges_only_if_the_schema_has_them() -> None:
    assert filter_problems("$a in $b") == ["L310 in"]
    assert filter_problems("$a /* x */ in $b") == ["L310 $a /* x */ in $b"]
    assert filter_problems("$a in $b", mode=Mode.STRICT) == ["T7 in"]
    assert filter_problems("$a or $b") == ["T41 $a"]
    assert filter_problems("$f and $g", parameters="$f: Bool, $g: Bool") == []
    assert filter_problems("$f in $g", parameters="$f: Bool, $g: [Bool]") == []


def test_contains_between_variables_is_a_filter_only_on_a_parameter() -> None:
    parameters = "$q: String, $m: String"
    assert filter_problems("$q contains $m", parameters=parameters) == ["L317 contains"]
    assert filter_problems("$q contains $m", parameters=parameters, mode=Mode.STRICT) == [
        "T4 contains"
    ]
    assert filter_problems("$a contains $b") == ["T4 contains"]


def test_a_parameter_may_share_no_name() -> None:
    text = "match { $p: Author } return { $p.name }"
    assert problems_of(text, parameters="$p: I64, $p: F64") == ["T106 $p", "L315 $p"]
    assert problems_of(text, parameters="$p: I64", mode=Mode.STRICT) == ["T106 $p"]
