"""Errors of first mistakes in queries: one each, with what to write instead."""

from __future__ import annotations

import pytest

from omnigraph.errors import CompileError
from omnigraph.query.query_compiler import compile_query
from omnigraph.schema import load_catalog

CATALOG = load_catalog("node P { k: String @key  a: I32? }\nedge K: P -> P")

MISTAKES = {
    'match { let $h = "x" $p: P { k: $h } } return { $p.a }': (
        "T14",
        "compare it after the braces: $v.name = $h",
    ),
    'match { for $h in ["x"] $p: P { k: $h } } return { $p.a }': (
        "T14",
        "compare it after the braces: $v.name = $h",
    ),
    "match { $p: P } return { $p.a } offset 1 limit 1": (
        "Q001",
        "limit comes first: limit 10 offset 5",
    ),
    "match { $p: P optional { $p k $o } offset 1 limit 1 } return { $p.a }": (
        "Q001",
        "limit comes first: limit 10 offset 5",
    ),
    "match { $p: P } return { $p.a as b } order { $b }": (
        "T102",
        "'b' is an alias: write it without '$'",
    ),
    "match { for $r in $rows $p: P } return { $p.a }": ("T107", None),
}


@pytest.mark.parametrize("body", MISTAKES)
def test_a_mistake_has_one_error_that_says_what_to_write(body: str) -> None:
    parameters = "$rows: [{ h: String }]" if "$rows" in body else ""
    with pytest.raises(CompileError) as caught:
        compile_query(f"query q({parameters}) {{ {body} }}", CATALOG)
    assert [(each.code, each.hint) for each in caught.value.diagnostics] == [MISTAKES[body]]
