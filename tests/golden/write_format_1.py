"""Writes the golden store of format 1, with the program of commit 50e1d173^ on the path:

    git worktree add /tmp/older 50e1d173^
    PYTHONPATH=/tmp/older/src:tests python -m golden.write_format_1 ARCHIVE

That program wrote no digests, and kept the events of tags apart from those of branches.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import omnigraph
from golden.golden_archive import pack

SCHEMA = """\
node Person {
  name: String @key
  age: I32?
  email: String? @unique
}
node Place { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> Place
"""
NEXT_SCHEMA = SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")').replace(
    "email: String? @unique\n", "email: String? @unique\n  motto: String?\n"
)
MANY = 1_200


def write(folder: Path) -> None:
    create: Any = omnigraph.create
    graph = create(str(folder), schema=SCHEMA, actor="ada")
    main = graph.branch()
    main.load(_list_people(), mode="append", message="first people")
    # Its change set is too large for its record.
    main.load(
        [_person(f"p{number:04}", number % 90) for number in range(MANY)],
        mode="append",
        message="many people",
    )
    graph.tag("v1")
    graph.tag("old")
    graph.delete_tag("old")
    graph.create_branch("review/x")
    review = graph.branch("review/x")
    review.load([_person("dora", 50)], mode="append", message="dora on a branch")
    graph.tag("drafted", review)
    main.load([_person("eve", 51)], mode="append", message="eve on main")
    main.merge("review/x", message="review merged")
    main.apply_schema(NEXT_SCHEMA)
    main.mutate('query q() { update Person set { motto: "onward" } where name = "ada" }')
    main.mutate('query q() { delete Person where name = "p0003" }')
    graph.create_branch("short")
    graph.delete_branch("short")
    graph.create_branch("draft")
    graph.branch("draft").load(
        [{"type": "Person", "data": {"name": "fay", "years": 33}}], mode="append"
    )
    graph.close()


def _person(name: str, age: int) -> dict[str, object]:
    return {"type": "Person", "data": {"name": name, "age": age}}


def _list_people() -> list[dict[str, object]]:
    ends = [("ada", "bob"), ("bob", "cyd"), ("cyd", "ada")]
    knows: list[dict[str, object]] = [
        {"edge": "Knows", "from": source, "to": target, "data": {"since": "2020-05-01"}}
        for source, target in ends
    ]
    return [
        _person("ada", 36),
        _person("bob", 41),
        _person("cyd", 29),
        {"type": "Place", "data": {"name": "Oslo"}},
        *knows,
        {"edge": "LivesIn", "from": "ada", "to": "Oslo", "data": {}},
    ]


if __name__ == "__main__":
    pack(write, Path(sys.argv[1]))
