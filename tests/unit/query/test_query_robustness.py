"""Any input ends in a tree or in diagnostics: no Python error, no hang, no deep recursion."""

from __future__ import annotations

import random

import pytest

from omnigraph.lang.diagnostics import Diagnostic, Severity
from omnigraph.lang.lexer import Mode
from omnigraph.query import ast
from omnigraph.query.parser import ParsedFile, parse_query_file
from omnigraph.query.query_printer import print_expr, print_file

SAMPLES = [
    """query stuck($cut: F64, $me: String) @description("d") {
  match {
    $a: Author { state: "open", }
    $a.email is null or not $a.score < $cut
    not { $a follows $_ }
    count { $a wrote $b  $b.state = "draft" } >= 1
    $a $link:(follows | "in"){1,2} $x
    $x.@id != $me and contains($x.name, "y") // why
  }
  return { $a, $link.@type as via, $x.handle in ["ann", $me, 1.5] as known, count($x) as n }
  order { nearest($a.v, "x"), count($x) desc }
  limit 10
}""",
    """query claim($h: String, $by: String?) {
  update Author set { email: $by in: 2 } where handle = $h and (email is null or @id = "x")
  insert Author { handle: "a", born: date("2020-01-01") }
}
query gone() { delete Mentors where @src = $s and starts_with(x, "y") }""",
    'set a.b = 5;\nreset all;\nbranch create "review/x" from main;',
    "explain query q() { match { $a <*> $b sum($b.x) { $a * $b } < now() } return { $a } }",
]


@pytest.mark.slow
def test_mutated_texts_end_in_diagnostics() -> None:
    chooser = random.Random(20)
    for _ in range(25_000):
        text = mutated(chooser, chooser.choice(SAMPLES))
        parsed = parse_query_file(text, mode=chooser.choice(list(Mode)))
        if not errors_of(parsed):
            print_file(parsed.file)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000,
        "(" * 10_000 + "true" + ")" * 10_000,
        "not " * 10_000 + "true",
        "not { " * 10_000,
        "not { " * 10_000 + "$a" + " }" * 10_000,
        "exists {\n" * 10_000 + "}\n" * 10_000,
        "[" * 10_000 + "]" * 10_000 + " = 1",
        "count(" * 10_000 + ")" * 10_000,
        "search(" * 10_000,
    ],
)
def test_deep_nesting_is_one_diagnostic(text: str) -> None:
    (found,) = errors_of(parse_query_file(wrapped(text)))
    assert "nested more than 64 levels deep" in found.message


@pytest.mark.slow
def test_long_chains_are_not_deep() -> None:
    for word in ("or", "and"):
        text = f" {word} ".join(["$a.x"] * 100_000)
        (query,) = parse_query_file(wrapped(text)).file.queries
        assert isinstance(query.body, ast.ReadBody)
        (found,) = query.body.clauses
        assert isinstance(found, ast.Filter)
        assert print_expr(found.condition) == text


MEGABYTES_10 = 10_000_000
VALID = SAMPLES[0] + "\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "$" * MEGABYTES_10,
        '"' + "x" * MEGABYTES_10,
        '"' + "\\" * MEGABYTES_10,
        "query q() { match { /*" + "x" * MEGABYTES_10,
        "query q() { match { " + "\u20ac@|" * 300_000,
        "{" * 1_000_000,
        "query q($x: Foo)\n" * 100_000,
        "query query query\n" * 100_000,
        "query q() { match { " + "count(\n" * 200_000,
        "query q() { match { " + "$a: T { x: ) }\n" * 100_000,
        "set set set\n" * 100_000,
    ],
    ids=range(11),
)
def test_megabytes_of_garbage_end_in_diagnostics(text: str) -> None:
    parsed = parse_query_file(text)
    assert errors_of(parsed)
    assert parsed.file == ast.File(())


@pytest.mark.slow
def test_megabytes_of_comments_are_nothing() -> None:
    assert parse_query_file("/**/" * 500_000).file == ast.File(())


def test_ten_megabytes_of_one_string_are_one_string() -> None:
    (query,) = parse_query_file(
        f'query q() {{ delete T where x = "{"y" * MEGABYTES_10}" }}'
    ).file.queries
    assert isinstance(query.body, ast.MutationBody)


@pytest.mark.slow
def test_ten_megabytes_of_queries_are_read() -> None:
    count = MEGABYTES_10 // len(VALID)
    assert len(parse_query_file(VALID * count).file.queries) == count


def errors_of(parsed: ParsedFile) -> list[Diagnostic]:
    return [found for found in parsed.diagnostics if found.severity is Severity.ERROR]


def wrapped(text: str) -> str:
    return f"query q() {{ match {{ {text} }} return {{ 1 as one }} }}"


def mutated(chooser: random.Random, text: str) -> str | bytes:
    for _ in range(chooser.randrange(1, 4)):
        start = chooser.randrange(len(text) + 1)
        end = min(len(text), start + chooser.choice([0, 1, 1, 3, 12]))
        piece = chooser.choice(
            [
                "",
                text[start:end] * 2,
                chooser.choice(SAMPLES)[start:end],
                chr(
                    chooser.choice([0, 10, 34, 36, 47, 92, 123, 125, 233, 0x2028, 0x1F600, 0xD800])
                ),
                chooser.choice(
                    ["not ", "in ", "{", "}", "(", ")", "$a", "count", " and ", "*/", '"']
                ),
            ]
        )
        text = text[:start] + piece + text[end:]
    if chooser.random() < 0.1:
        data = bytearray(text.encode("utf-8", "surrogatepass"))
        data[chooser.randrange(len(data))] ^= 1 << chooser.randrange(8)
        return bytes(data)
    return text
