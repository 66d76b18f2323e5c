"""Conflicts of merges that compare whole entities: they are decided as a whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph import Branch
from omnigraph.errors import InvalidArgumentError
from unit.writers.merge.merge_world import change, new_graph

SCHEMA = "node P { k: String @key  a: I64?  b: I64? }"


@pytest.fixture
def main() -> Iterator[Branch]:
    """A branch that changed one property of an entity of which `review` changed another one."""
    record: dict[str, object] = {"type": "P", "data": {"k": "x", "a": 0, "b": 0}}
    with new_graph(record, schema=SCHEMA) as graph:
        change(graph.create_branch("review"), 'update P set { a: 1 } where k = "x"')
        change(graph.branch(), 'update P set { b: 1 } where k = "x"')
        yield graph.branch()


def shown(branch: Branch) -> list[dict[str, object]]:
    return branch.query("query q() { match { $p: P } return { $p.a, $p.b } }").to_pylist()


def test_lines_name_the_entity_and_decide_it(main: Branch) -> None:
    plan = main.plan_merge("review", by="entity")
    _, line = lines = list(plan.iter_decision_lines())
    assert "property" not in line
    assert (line["ours"], line["theirs"]) == ({"a": 0, "b": 1}, {"a": 1, "b": 0})
    line["take"] = "theirs"
    main.merge("review", by="entity", resolve=lines)
    assert shown(main) == [{"p.a": 1, "p.b": 0}]


def test_a_function_decides_the_entity(main: Branch) -> None:
    main.merge("review", by="entity", resolve=lambda _conflict: {"value": {"a": 5, "b": 6}})
    assert shown(main) == [{"p.a": 5, "p.b": 6}]


@pytest.mark.parametrize("take", ["ours", "theirs", "base", {"value": 5}])
def test_a_line_about_a_property_is_refused(main: Branch, take: object) -> None:
    line = {"type": "P", "id": "x", "property": "a", "take": take}
    head = main.head.id
    with pytest.raises(
        InvalidArgumentError, match="the conflict is about the whole entity"
    ) as caught:
        main.merge("review", by="entity", resolve=[line])
    assert caught.value.hint == "leave `property` out"
    assert main.head.id == head
