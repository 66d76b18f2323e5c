"""What people write out of habit is answered with what to write instead."""

from __future__ import annotations

import pytest

from omnigraph.query import lint_file
from omnigraph.schema import load_catalog

CATALOG = load_catalog("""
node Author { name: String @key  email: String?  year: I32? }
node Book { title: String @key }
edge Wrote: Author -> Book { since: Date? }
edge Likes: Author -> Book
edge Follows: Author -> Author
edge Not: Author -> Author
""")


def only(text: str) -> tuple[str, str, str]:
    """The code, the place and the hint of the one diagnostic of a text."""
    (found,) = lint_file(text, CATALOG).diagnostics
    assert found.hint is not None
    return found.code, text[found.span.start : found.span.end], found.hint


def read(clause: str = "", *, item: str = "$a.name", tail: str = "") -> str:
    return f"query q() {{ match {{ $a: Author\n{clause} }} return {{ {item} }} {tail} }}"


@pytest.mark.parametrize(
    ("clause", "place", "hint"),
    [
        ("$a.year == 1", "=", "write '='"),
        ("$a.year <> 1", ">", "write '!='"),
        ("$a.year = 1 && $a.year = 2", "&&", "write 'and'"),
        ("$a.year = 1 || $a.year = 2", "|", "write 'or'"),
        ("!$a.active", "!", "write 'not'"),
        ('$a.name =~ "x"', "~", 'matches($v.name, "pattern")'),
        ("$a.name = 'x'", "'", "double quotes"),
        ("$a.year = 1 AND $a.year = 2", "AND", "write 'and'"),
        ("$a.email IS NULL", "IS", "write 'is'"),
        ("NOT($a.year = 1)", "NOT", "write 'not'"),
        ("$a.year > 1e5", "1e5", "no exponent"),
        ("$a.year = +1", "+", "between two values"),
        ("$a-[wrote]->$b", "-", "'$a edge $b'"),
        ("$a <-[wrote]- $b", "-", "'$a edge $b'"),
        ("$a -> $b", "->", "'$a edge $b'"),
        (", $b: Book", ",", "line ends"),
        ("# why", "#", "'//'"),
        ("-- why", "-", "'//'"),
        ("$A: Author", "$", "lower-case"),
        ("where $a.year = 1", "where", "without a keyword"),
        ("OPTIONAL { $a wrote $b }", "OPTIONAL", "write 'optional'"),
        ('not { $a wrote $b } and $a.name = "x"', "and", "clause of its own"),
        ('not { $a wrote $b } or $a.name = "x"', "or", "not exists"),
        ("$a (follows) $b", ")", "stands bare"),
        ("$a follows{2} $b", "}", "write {2,2}"),
        ("$a follows* $b", "*", "edge{1,3}"),
        ("$a wrote | likes $b", "|", "in parentheses"),
    ],
)
def test_a_clause_of_another_language_gets_a_hint(clause: str, place: str, hint: str) -> None:
    code, where, shown = only(read(clause))
    assert (code, where) == ("Q001", place)
    assert hint in shown


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        (read(item="$a.name AS n"), "AS", "write 'as'"),
        (read(item="sum(*) as n"), "*", "count(*)"),
        (read(tail="order { $a.name DESC }"), "DESC", "write 'desc'"),
        (read(tail="skip 3"), "skip", "write: offset 20"),
        ("select * from x", "select", "query name()"),
        ("QUERY q() { }", "QUERY", "write 'query'"),
        ("query my-query() { }", "-", "letters, digits and '_'"),
        ("query q($A: I32) { }", "$", "lower-case"),
        ("query q() { MATCH { } }", "MATCH", "write 'match'"),
        ("query q() { match { $a: Author } where true }", "where", "without a keyword"),
        ("query q() { merge Author { } }", "merge", "'upsert'"),
        ("query q() { insert Wrote { @src: 1 } }", "@", "'from' and 'to'"),
    ],
)
def test_a_query_of_another_language_gets_a_hint(text: str, place: str, hint: str) -> None:
    found = lint_file(text, CATALOG).diagnostics[0]
    assert (found.code, text[found.span.start : found.span.end]) == ("Q001", place)
    assert hint in (found.hint or "")


@pytest.mark.parametrize(
    ("text", "code", "place", "hint"),
    [
        (read("$a not $b"), "T7", "not", 'write "not" in quotes'),
        (read("$a $e:(wrote|likes) $b $e.since is null"), "T6", "since", "Wrote, Likes must"),
        (read(item="distinct $a.name"), "T102", "distinct", "write 'return distinct { … }'"),
        ("query q($n: Int) { match { $a: Author } return { $a } }", "T107", "Int", "I32 or I64"),
        (
            'query q($b: String) { insert Wrote { src: $b, to: "t" } }',
            "T11",
            "src",
            "'from'",
        ),
        (
            "query q($i: String) { insert Author { name: $i, id: $i } }",
            "T11",
            "id",
            "follows from the key",
        ),
    ],
)
def test_a_wrong_meaning_gets_a_hint(text: str, code: str, place: str, hint: str) -> None:
    found, where, shown = only(text)
    assert (found, where) == (code, place)
    assert hint in shown


def test_filters_that_only_look_like_traversals_stay_filters() -> None:
    text = """query q($f: Bool, $s: String) {
      match { $a: Author $f (true) $a follows $b $s < "x" $b wrote $c }
      return { $a.name }
    }"""
    assert lint_file(text, CATALOG).diagnostics == ()


def test_no_place_lies_beyond_the_end_of_the_text() -> None:
    text = 'set engine = v2;\nquery q($n: I32) { match { $a: Author { name: "x" } } return { $a } }'
    for end in range(len(text)):
        for found in lint_file(text[:end], CATALOG).diagnostics:
            assert 0 <= found.span.start <= found.span.end <= end
