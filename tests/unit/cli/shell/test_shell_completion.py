"""The words that the shell offers."""

from __future__ import annotations

import pytest

from omnigraph.cli.shell.shell_completion import Vocabulary, list_completions

KNOWN = Vocabulary(
    nodes={"Person": ("name", "age"), "City": ("name", "size")},
    edges={"LivesIn": ("since",)},
    functions=("lower", "length"),
    branches=("main", "review"),
    formats=("table", "json"),
    parameters=("$least",),
    commands=("\\branch", "\\format", "\\schema"),
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("match { $p: Per", ["Person"]),
        ("match { $p: Person  return { $p.", ["name", "age", "@id"]),
        ("match { $p: Person  $p li", ["livesIn"]),
        ("match { $p: Person  $p.age > $l", ["$least"]),
        ("match { $p: Person { ag", ["age"]),
        ("match { $person: Person  return { $per", ["$person"]),
        ("update Li", ["LivesIn"]),
        ("insert City { si", ["size"]),
        ("return { low", ["lower"]),
        ("mat", ["match"]),
        ("\\b", ["\\branch"]),
        ("\\branch r", ["review"]),
        ("\\format j", ["json"]),
        ("\\schema Pe", ["Person"]),
        ("return { $x.si", ["size", "since"]),
    ],
)
def test_words_are_offered_where_they_may_stand(text: str, words: list[str]) -> None:
    assert sorted(list_completions(text, KNOWN)) == sorted(words)
