"""Conditions on texts whose column has an ordered index: the rows are those without one."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from unit.execution.model_views import add_nodes, assert_reads_agree, indexed, model_graph, view_of

SCHEMA = "node Doc { k: String @key  t: String? @index  n: I64 }"
TEXTS = [
    None, "", " ", "sea", "seal", "Sea", "se\u0301a", "séa", "sea%", "se_", "s\\a", "it's", '"q"',
    "東京", "東", "\U0001f980", "\uffff", "a\u0000b", "sea" * 200, "zz",
]  # fmt: skip
CONDITIONS = [
    "$d.t = $x",
    "$d.t != $x",
    "$d.t < $x",
    "$d.t >= $x",
    "$d.t > $x and $d.t <= $y",
    "$d.t in [$x, $y]",
    "not ($d.t in [$x, $y])",
    "$d.t starts_with $x",
    "$d.t contains $x",
    "$d.t is null or $d.t = $x",
    "$d.t is not null and $d.n < 3",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_an_index_on_texts_changes_no_answer(condition: str) -> None:
    random = Random(condition)
    graph = model_graph(SCHEMA)
    nodes = [
        {"k": f"d{number}", "t": random.choice(TEXTS), "n": number % 5} for number in range(80)
    ]
    add_nodes(graph, "Doc", nodes)
    view = view_of(graph)
    key = TypeKey(TypeKind.NODE, "Doc")
    known = [text for text in TEXTS if text is not None]
    names = [name for name in ("x", "y") if f"${name}" in condition]
    declared = ", ".join(f"${name}: String" for name in names)
    text = f"query q({declared}) {{ match {{ $d: Doc  {condition} }} return {{ $d.k }} }}"
    found = 0
    for _ in range(6):
        params: dict[str, Any] = {name: random.choice(known) for name in names}
        for each in (view, indexed(view, key, ["t"])):
            found += len(assert_reads_agree(graph, each, text, params))
    assert found
