"""What it takes to compile one more statement, in calls of Python: clocks vary, these do not."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from omnigraph.query.query_compiler import compile_query
from omnigraph.schema.schema_compiler import load_catalog

CATALOG = load_catalog("node Person { name: String @key  age: I32?  city: String? }")
STATEMENTS = {
    "update": ('update Person set {{ age: {0} }} where name = "p{0}"', 170),
    "insert": ('insert Person {{ name: "p{0}", age: {0}, city: "c{0}" }}', 190),
    "delete": ('delete Person where name = "p{0}"', 105),
}


def count_calls(template: str, statements: int) -> int:
    lines = [template.format(number) for number in range(statements)]
    text = "\n".join(["query q() {", *lines, "}"])
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    outer = sys.getprofile()
    sys.setprofile(count)
    try:
        compile_query(text, CATALOG)
    finally:
        sys.setprofile(outer)
    return calls


@pytest.mark.parametrize("kind", STATEMENTS)
def test_one_more_statement_costs_a_bounded_number_of_calls(kind: str) -> None:
    template, most = STATEMENTS[kind]
    count_calls(template, 1)
    assert (count_calls(template, 100) - count_calls(template, 50)) / 50 <= most
