"""What people write out of habit is answered with what to write instead."""

from __future__ import annotations

import pytest

from omnigraph.schema import compile_schema


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ('node A { p: String @index = "x" }', "=", "a default follows the type"),
        ("node A { p: String! }", "!", "ends in '?'"),
        ("node A { p: [String?] }", "?", "[String]?"),
        ("node A { p: [[String]] }", "[", "cannot hold lists"),
        ("node A { p: Vector }", "}", "Vector(3)"),
        ("node A { p: Int }", "Int", "I32 or I64"),
        ("node A { p: float }", "float", "F32 or F64"),
        ("node A { p: Text }", "Text", "String"),
        ("node A { p: I32 @range(p, 0..1e5) }", "1e5", "no exponent"),
        ("node A { p: String @description('x') }", "'", "double quotes"),
        ("# why\nnode A {}", "#", "'//'"),
        ("-- why\nnode A {}", "-", "'//'"),
        ("config { }", "config", "types only"),
        ("node A extends B {}", "extends", "'implements'"),
    ],
)
def test_a_schema_of_another_language_gets_a_hint(text: str, place: str, hint: str) -> None:
    found = compile_schema(text).diagnostics[0]
    assert (found.code, text[found.span.start : found.span.end]) == ("S001", place)
    assert hint in (found.hint or "")


def test_enum_values_may_look_like_bad_numbers() -> None:
    assert compile_schema("node A { p: enum(2d, 1e-5, 3-x, 1_000) }").diagnostics == ()
    (found,) = compile_schema("node A { p: enum(1.5e3) }").diagnostics
    assert found.code == "S001"


def test_a_pattern_of_any_length_is_cut_in_the_message() -> None:
    pattern = "(" + "a" * 10_000
    (found,) = compile_schema(f'node A {{ p: String @check(p, "{pattern}") }}').diagnostics
    assert found.code == "S020"
    assert len(found.message) < 200
