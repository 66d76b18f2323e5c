"""What may happen on either side of a merge: the rows and the columns of a generated table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from fuzz.merging.both import Both
from fuzz.merging.edits import ADDITIONS, RELAXED, TIGHTENED, Edit, edited

# Done to a branch.
Step: TypeAlias = Callable[[Both, str], None]


def _load(*records: dict[str, Any]) -> Step:
    return lambda both, branch: both.load(branch, list(records))


def _mutate(statement: str) -> Step:
    parameters = "$none: I32?" if "$none" in statement else ""
    return lambda both, branch: both.mutate(branch, f"query c({parameters}) {{ {statement} }}")


def _migrate(number: int, edits: Sequence[Edit] = ADDITIONS) -> Step:
    def step(both: Both, branch: str) -> None:
        schema = edited(both.model.graph(branch).catalog, edits[number])
        assert schema is not None
        both.migrate(branch, schema)

    return step


def _person(name: str, **data: object) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def _edge(type_name: str, source: str, target: str, **more: object) -> dict[str, Any]:
    return {"edge": type_name, "from": source, "to": target, **more}


# Ada knows Bob by e1 and leads a team; Bob is a member; nobody knows Cem.
_BOB = _person("bob", age=7, face=[1.0, 2.0])
_E1 = _edge("Knows", "ada", "bob", id="e1")

OPERATIONS: dict[str, list[Step]] = {
    "nothing": [],
    "insert a node": [_load(_person("eve", age=1))],
    "insert it otherwise": [_load(_person("eve", age=2))],
    "insert a node with a mail": [_load(_person("dov", email="d@x"))],
    "insert an edge": [_load(_edge("Knows", "bob", "cem", id="e9"))],
    "insert it elsewhere": [_load(_edge("Knows", "cem", "ada", id="e9"))],
    "insert an edge by its ends": [_load(_edge("MemberOf", "cem", "bob"))],
    "insert a leader": [_load(_edge("Leads", "cem", "ada", id="l1"))],
    "insert a second leader": [_load(_edge("Leads", "cem", "bob", id="l2"))],
    "update a number": [_mutate('update Person set { age: 1 } where name = "bob"')],
    "update it otherwise": [_mutate('update Person set { age: 2 } where name = "bob"')],
    "update to null": [_mutate('update Person set { age: $none } where name = "bob"')],
    "update a vector": [_load(_person("bob", age=7, face=[1.0, 3.0]))],
    "update a blob": [_load(_person("ada", email="a@x", photo="base64:AAED"))],
    "update a mail": [_mutate('update Person set { email: "d@x" } where name = "cem"')],
    "update an edge": [_load(_edge("Knows", "ada", "bob", id="e1", data={"since": "2020-01-01"}))],
    "delete a node": [_mutate('delete Person where name = "cem"')],
    "delete a node with edges": [_mutate('delete Person where name = "bob"')],
    "delete an edge": [_mutate('delete Knows where @id = "e1"')],
    "move an edge": [_load(_edge("Knows", "ada", "cem", id="e1"))],
    "move it elsewhere": [_load(_edge("Knows", "cem", "bob", id="e1"))],
    "update and back": [_load(_person("bob", age=9)), _load(_BOB)],
    "insert and delete": [
        _load(_person("eve"), _edge("Knows", "eve", "bob", id="e9")),
        _mutate('delete Person where name = "eve"'),
    ],
    "delete and insert": [_mutate('delete Knows where @id = "e1"'), _load(_E1)],
    "move and back": [_load(_edge("Knows", "ada", "cem", id="e1")), _load(_E1)],
    "add a property": [_migrate(3)],
    "add a property and use it": [
        _migrate(3),
        _load(_BOB | {"data": _BOB["data"] | {"nick": "b"}}),
    ],
    "add another property": [_migrate(0)],
    "add it otherwise": [_migrate(4)],
    "add a type": [_migrate(5), _load({"type": "Memo", "id": "m1", "data": {"text": "x"}})],
    "count": [_mutate('update Person set { hits: 4 } where name = "cem"')],
    "count otherwise": [
        _mutate('update Person set { hits: 9223372036854775807 } where name = "cem"')
    ],
    "change a set": [_mutate('update Person set { marks: ["b", "c"] } where name = "cem"')],
    "change it otherwise": [
        _mutate('update Person set { marks: ["d", "a", "b"] } where name = "cem"')
    ],
    "raise": [_mutate('update Person set { best: "y" } where name = "cem"')],
    "lower": [_mutate('update Person set { best: "a", hits: 2 } where name = "cem"')],
    "forget": [_load(_person("cem"))],
    "narrow a range": [_migrate(0, TIGHTENED)],
    "go beyond it": [_load(_person("dov", age=150))],
    "bound the edges of a node": [_migrate(2, TIGHTENED)],
    "add an edge beyond it": [_load(_edge("Knows", "ada", "cem", id="e8"))],
    "make texts unique": [_migrate(3, TIGHTENED)],
    "write a text twice": [_load({"type": "Note", "id": "n2", "data": {"text": "hello"}})],
    "narrow a range and back": [_migrate(0, TIGHTENED), _migrate(0, RELAXED)],
    "add an edge type": [_migrate(7), _load(_edge("Likes", "cem", "n1", id="k1"))],
}
