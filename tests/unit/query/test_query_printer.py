"""Printed trees read back as the same trees, with no parenthesis too many."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from omnigraph.lang.diagnostics import Severity
from omnigraph.query import ast
from omnigraph.query.parser import parse_query_file
from omnigraph.query.query_printer import (
    LINE_CHARACTERS_MAX,
    format_queries,
    print_expr,
    print_file,
)
from unit.query.query_trees import exprs, files

ROUND_TRIPS = settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.slow
@given(files)
@ROUND_TRIPS
def test_a_printed_file_reads_back_as_the_same_tree(file: ast.File) -> None:
    parsed = parse_query_file(print_file(file))
    assert [found for found in parsed.diagnostics if found.severity is Severity.ERROR] == []
    assert parsed.file == file


@pytest.mark.slow
@given(files)
@ROUND_TRIPS
def test_a_printed_file_is_already_formatted(file: ast.File) -> None:
    text = print_file(file)
    assert format_queries(text) == text


@given(exprs)
@ROUND_TRIPS
def test_a_printed_expression_reads_back_as_the_same_tree(expr: ast.Expr) -> None:
    assert projected(print_expr(expr)) == expr


@pytest.mark.slow
@given(exprs)
@ROUND_TRIPS
def test_no_printed_pair_of_parentheses_can_be_left_out(expr: ast.Expr) -> None:
    text = print_expr(expr)
    for opening, closing in parentheses(text):
        shorter = f"{text[:opening]} {text[opening + 1 : closing]} {text[closing + 1 :]}"
        assert projected(shorter) != expr


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("((1)) = ((2))", "1 = 2"),
        ("(a and b) or c", "a and b or c"),
        ("a and (b or c)", "a and (b or c)"),
        ("(a or b) or c", "(a or b) or c"),
        ("a and (b and c)", "a and (b and c)"),
        ("not (a = b)", "not a = b"),
        ("not (not a)", "not not a"),
        ("not (a and b)", "not (a and b)"),
        ("(not a) = b", "(not a) = b"),
        ("(a = b) = (c = d)", "(a = b) = (c = d)"),
        ("(a is null) in (b)", "(a is null) in b"),
        ("(contains(a, b)) = true", "contains(a, b) = true"),
        ('a contains ("x")', 'a contains "x"'),
        ("[ 1 ,2.50, $x ]", "[1, 2.50, $x]"),
        (
            "rrf( bm25($d.t , $q),nearest( $d.v,$q) ,60 )",
            "rrf(bm25($d.t, $q), nearest($d.v, $q), 60)",
        ),
    ],
)
def test_parentheses_are_kept_only_where_they_matter(written: str, printed: str) -> None:
    expr = projected(written)
    assert expr is not None
    assert print_expr(expr) == printed


def test_a_condition_that_looks_like_a_traversal_is_printed_in_parentheses() -> None:
    text = print_file(read("query q($s: String) { match { ($s contains $t) } return { 1 } }"))
    assert "    ($s contains $t)\n" in text


def test_clauses_that_would_run_together_are_printed_with_a_semicolon() -> None:
    written = 'query q() { match { $f; "knows"; $g; count; (true) } return { 1 } }'
    text = print_file(read(written))
    assert '    $f;\n    "knows"\n    $g;\n    count;\n    true\n' in text
    assert read(text) == read(written)


def test_long_lists_are_broken_into_lines_and_short_ones_are_not() -> None:
    items = ", ".join(f"$person.property_number_{number} as p{number}" for number in range(6))
    text = print_file(read(f"query q() {{ match {{ $p: P }} return {{ {items} }} limit 1 }}"))
    assert "  return {\n    $person.property_number_0 as p0,\n" in text
    assert "    $p: P\n" in text
    assert max(map(len, text.splitlines())) <= LINE_CHARACTERS_MAX


def read(text: str) -> ast.File:
    parsed = parse_query_file(text)
    assert [str(found) for found in parsed.diagnostics] == []
    return parsed.file


def projected(text: str) -> ast.Expr | None:
    """The one expression in a `return`, or None when the text is not one expression."""
    parsed = parse_query_file(f"query q() {{ match {{ $p: P }} return {{ {text} }} }}")
    match parsed.file.queries:
        case (ast.Query(body=ast.ReadBody(projections=(ast.Projection(value, None),))),):
            return value
        case _:
            return None


def parentheses(text: str) -> list[tuple[int, int]]:
    """The offsets of matching parentheses outside strings."""
    found = []
    stack = []
    is_in_string = False
    is_escaped = False
    for offset, character in enumerate(text):
        if is_in_string:
            is_in_string = is_escaped or character != '"'
            is_escaped = character == "\\" and not is_escaped
        elif character == '"':
            is_in_string = True
        elif character == "(":
            stack.append(offset)
        elif character == ")":
            found.append((stack.pop(), offset))
    return found
