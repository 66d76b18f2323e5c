"""Where an input of the shell ends, and what it stands for."""

from __future__ import annotations

import pytest

from omnigraph.cli.shell.shell_input import declare, is_whole, split_inputs


@pytest.mark.parametrize(
    "text",
    [
        "",
        r"\branch",
        "exit",
        "show all;",
        "query q() { match { $p: P } return { $p.n } }",
        "match { $p: P } return { $p.n }",
        "match { $p: P }\nreturn { $p.n };",
        "match { $p: P }\nreturn { $p.n }\n",
        'insert P { n: "}" }',
    ],
)
def test_an_input_is_whole(text: str) -> None:
    assert is_whole(text)


@pytest.mark.parametrize(
    "text",
    [
        "query q() {",
        "match { $p: P }",
        "match { $p: P }\nreturn { $p.n }",
        'insert P { n: "a',
        "/* open",
        "query q() { return { [1, 2 } ",
    ],
)
def test_an_input_goes_on(text: str) -> None:
    assert not is_whole(text)


def test_a_bare_body_is_that_of_a_query() -> None:
    assert declare("return { 1 as one };") == "query shell() { return { 1 as one }\n}"
    assert declare("return { 1 as one } // why") == "query shell() { return { 1 as one } // why\n}"
    assert declare("branch list;") == "branch list;"


def test_lines_are_split_where_an_input_is_whole() -> None:
    lines = [
        "match { $p: P }\n",
        "return { $p.n }\n",
        "\n",
        "\\log\n",
        "show all;\n",
        "query q() {",
    ]
    assert [each.split() for each in split_inputs(lines)] == [
        ["match", "{", "$p:", "P", "}", "return", "{", "$p.n", "}"],
        [r"\log"],
        ["show", "all;"],
        ["query", "q()", "{"],
    ]


@pytest.mark.parametrize(
    ("value", "declared"),
    [
        (3, "$x: I64"),
        (True, "$x: Bool"),
        (0.5, "$x: F64"),
        ("a", "$x: String"),
        (None, "$x: String?"),
        (["a"], "$x: [String]"),
        ([1, "a"], ""),
        ({}, ""),
    ],
)
def test_a_bare_body_declares_the_values_that_it_uses(value: object, declared: str) -> None:
    values = {"x": value, "p": 1, "unused": 2}
    body = 'match { $p: P  $p.n = $x  $p.t != "$unused" } return { $p.n }'
    assert declare(body, values).startswith(f"query shell({declared}) {{ match")
