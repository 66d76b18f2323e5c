"""A small graph whose two branches migrate separately."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import omnigraph
from omnigraph import Branch, Graph
from places import fresh_uri

PEOPLE = """node Person {
  name: String @key
  age: I32?
}

node City {
  name: String @key
}

edge LivesIn: Person -> City {
  since: I32?
}
"""


def changed(schema: str, *replacements: tuple[str, str]) -> str:
    """A schema text with some words replaced."""
    for old, new in replacements:
        assert old in schema
        schema = schema.replace(old, new)
    return schema


def entity(type_name: str, **data: Any) -> dict[str, Any]:
    return {"type": type_name, "data": data}


def lives(who: str, where: str, **data: Any) -> dict[str, Any]:
    return {"edge": "LivesIn", "from": who, "to": where, "data": data}


def contents(branch: Branch) -> set[str]:
    """Every entity as one text; edges without their generated ids."""
    found = set()
    for line in b"".join(branch.export()).decode().splitlines():
        record = json.loads(line)
        record.pop("id", None)
        record["data"] = {k: v for k, v in record["data"].items() if v is not None and k != "id"}
        found.add(json.dumps(record, sort_keys=True))
    return found


def people(branch: Branch, *properties: str, type_name: str = "Person") -> dict[str, Any]:
    """One property of everybody, or several."""
    records = map(json.loads, contents(branch))
    return {
        record["data"]["name"]: tuple(record["data"].get(each) for each in properties)
        for record in records
        if record.get("type") == type_name
    }


@contextmanager
def people_graph() -> Iterator[Graph]:
    """Ada and Bob in Rome, and a branch called review; it must be healthy in the end."""
    with omnigraph.create(fresh_uri(), schema=PEOPLE) as graph:
        graph.branch().load(
            [
                entity("Person", name="Ada", age=36),
                entity("Person", name="Bob", age=41),
                entity("City", name="Rome"),
                lives("Ada", "Rome", since=1),
            ],
            mode="append",
        )
        graph.create_branch("review")
        yield graph
        report = graph.check(commits_max=None)
        assert report.is_healthy, report.problems


def sides(graph: Graph, *, is_reversed: bool) -> tuple[Branch, Branch]:
    """The two branches, as target and source."""
    both = graph.branch("main"), graph.branch("review")
    return (both[1], both[0]) if is_reversed else both


both_directions = pytest.mark.parametrize("is_reversed", [False, True])

WITH_EMAIL = changed(PEOPLE, ("age: I32?", "age: I32?\n  email: String?"))
WITH_PHONE = changed(PEOPLE, ("age: I32?", "age: I32?\n  phone: String?"))
