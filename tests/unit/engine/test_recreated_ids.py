"""Entities that are deleted and created again: older versions go on finding the former ones."""

from __future__ import annotations

from omnigraph import Branch, Snapshot, create
from places import fresh_uri

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""
FIND = """query find($who: String) {
  match { $p: Person { name: $who }  $p knows $q }
  return { $p.age as age, $q.name as friend }
}"""
DELETE = 'query end() { delete Person where name = "zoe" }'


def _zoe(age: int, friend: str) -> list[dict[str, object]]:
    return [
        {"type": "Person", "data": {"name": "zoe", "age": age}},
        {"edge": "Knows", "from": "zoe", "to": friend},
    ]


def _found(state: Branch | Snapshot) -> list[dict[str, object]]:
    return state.query(FIND, params={"who": "zoe"}).to_pylist()


def test_an_old_version_and_a_branch_from_it_find_what_was_recreated_since() -> None:
    with create(fresh_uri(), schema=SCHEMA) as graph:
        main = graph.branch()
        people = [{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(3_000)]
        main.load(people, mode="append")
        assert _found(main) == []
        main.load(_zoe(1, "p1"), mode="append")
        first = main.snapshot()
        assert _found(first) == [{"age": 1, "friend": "p1"}]
        main.mutate(DELETE)
        assert _found(main) == []
        main.load(_zoe(2, "p2"), mode="append")
        assert _found(main) == [{"age": 2, "friend": "p2"}]
        assert _found(first) == [{"age": 1, "friend": "p1"}]
        side = graph.create_branch("side", source=first)
        assert _found(side) == [{"age": 1, "friend": "p1"}]
        side.load([{"type": "Person", "data": {"name": "yan"}}], mode="append")
        assert _found(side) == [{"age": 1, "friend": "p1"}]
