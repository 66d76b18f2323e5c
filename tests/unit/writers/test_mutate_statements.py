"""Mutations of many statements: they share what they read, and each sees the ones before it."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from omnigraph.errors import WriteRefusedError
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.footprint import WHOLE, ReadSet
from omnigraph.versioning.id_sets import IdSet
from unit.writers.mutation_world import MutationWorld

SCHEMA = """
node Doc { name: String @key  n: I32?  text: String?  body: Blob? }
node Code { number: U32 @key  label: String? }
edge Cites: Doc -> Doc { weight: F64? }
"""


def seed(count: int) -> str:
    body = base64.b64encode(b"x" * 30).decode()
    docs: list[dict[str, Any]] = [
        {"type": "Doc", "data": {"name": f"d{n}", "n": n % 5, "body": f"base64:{body}"}}
        for n in range(count)
    ]
    docs += [{"type": "Code", "data": {"number": n, "label": "old"}} for n in range(count)]
    docs += [
        {"edge": "Cites", "id": f"e{n}", "from": f"d{n}", "to": f"d{n * 7 % count}", "data": {}}
        for n in range(count)
    ]
    return "".join(json.dumps(each) + "\n" for each in docs)


def reads_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The reads of tables from now on."""
    found: list[str] = []
    for name in ("find", "take", "scan", "scan_batches", "fetch_rows"):
        original = getattr(Table, name)

        def watched(
            self: Table, *args: Any, _name: str = name, _own: Any = original, **more: Any
        ) -> Any:
            found.append(_name)
            return _own(self, *args, **more)

        monkeypatch.setattr(Table, name, watched)
    return found


@pytest.mark.parametrize(
    "statement",
    [
        'update Doc set { n: 7 } where name = "d%d"',
        'update Doc set { n: coalesce(n, 0) + 1 } where name = "d%d"',
        'upsert Doc { name: "d%d", n: coalesce(n, 0) + 1 }',
        'update Doc set { n: 7 } where text = "t%d"',
        "update Code set { label: \"new\" } where number = %d",
        'update Doc set { text: "x" } where n = %d',
        'delete Cites where from = "d%d"',
        'delete Cites where @id = "e%d"',
        'delete Doc where name = "d%d"',
        'delete Code where number = %d',
    ],
)  # fmt: skip
def test_what_is_read_does_not_follow_the_number_of_statements(
    monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    reads = reads_of(monkeypatch)
    counts = []
    for statements in (3, 30):
        world = MutationWorld(SCHEMA, seed(40))
        reads.clear()
        world.run(" ".join(statement % n for n in range(statements)))
        counts.append(len(reads) - reads.count("take"))
    assert counts[0] == counts[1]


def test_statements_see_what_the_ones_before_them_did() -> None:
    world = MutationWorld(SCHEMA, seed(4))
    updated = world.mutate(
        'update Doc set { n: 1 } where name = "new"'
        ' insert Doc { name: "new", n: 2 }'
        ' update Doc set { n: 3 } where name = "new"'
        ' update Doc set { text: "a" } where name = "d1"'
        ' update Doc set { text: "b" } where name = "d1"'
        ' insert Doc { name: "d1", n: 9 }'
        ' update Doc set { text: "c" } where name = "d2"'
        ' update Doc set { n: 4 } where text = "c"'
        ' update Doc set { text: "d" } where name = "d2"'
        ' update Doc set { n: 5 } where name = "nobody"'
    )
    assert updated.nodes == 8
    docs = world.image()["Doc"]
    assert (docs["new"]["n"], docs["d1"]["n"], docs["d1"]["text"]) == (3, 9, None)
    assert (docs["d2"]["n"], docs["d2"]["text"], docs["d2"]["body"]) == (4, "d", b"x" * 30)


def statements(chance: random.Random) -> Iterator[str]:
    """Writes of a few documents and codes, by key, by value, and by both."""
    for _ in range(chance.randint(2, 25)):
        name, number = f"d{chance.randint(0, 12)}", chance.randint(0, 6)
        yield chance.choice(
            [
                f'insert Doc {{ name: "{name}", n: {number} }}',
                f'update Doc set {{ n: {number} }} where name = "{name}"',
                f'update Doc set {{ text: "{number}" }} where name = "{name}"',
                f'update Doc set {{ text: "{number}", n: 1 }} where @id = "{name}"',
                f'update Doc set {{ n: n + {number} }} where name = "{name}"',
                f'update Doc set {{ text: text + "{number}", n: 0 }} where name = "{name}"',
                f'upsert Doc {{ name: "{name}", n: {number} }}',
                f'upsert Doc {{ name: "{name}", n: coalesce(n, 0) + 1 }}',
                f'update Doc set {{ n: {number + 1} }} where n = {number}',
                f'update Doc set {{ n: {number} }} where text = "{number}"',
                f'update Doc set {{ n: 0 }} where name = "{name}" and n > {number}',
                f"insert Code {{ number: {number} }}",
                f'update Code set {{ label: "{name}" }} where number = {number}',
            ]
        )  # fmt: skip


@pytest.mark.parametrize("number", range(25))
def test_random_statements_do_what_the_model_says(number: int) -> None:
    chance = random.Random(number)
    world = MutationWorld(SCHEMA, seed(8))
    for _ in range(3):
        world.mutate(" ".join(statements(chance)))
    deletes = ('delete Doc where name = "d{}"', 'delete Cites where from = "d{}"',
               'delete Cites where to = "d{}"', "delete Code where number = {}")  # fmt: skip
    chosen = chance.choices(deletes, k=chance.randint(1, 8))
    world.mutate(" ".join(text.format(chance.randint(0, 9)) for text in chosen))


def test_values_are_computed_from_what_the_statement_before_left() -> None:
    world = MutationWorld(SCHEMA, seed(4))
    updated = world.mutate(
        'update Doc set { n: n + 1, text: "a" } where name = "d1"'
        ' update Doc set { n: n + 1 } where name = "d2"'
        ' update Doc set { n: n * 10, text: text + "b" } where name = "d1"'
        ' update Doc set { n: n + 1 } where name = "nobody"'
        ' update Doc set { text: "c" } where name = "d1"'
        ' update Doc set { text: text + "d" } where name = "d1"'
        ' upsert Doc { name: "d1", n: n + 2 }'
        ' insert Doc { name: "new", n: 5 }'
        ' update Doc set { n: n + 1 } where name = "new"'
        ' upsert Doc { name: "other", n: coalesce(n, 7) }'
        ' upsert Doc { name: "other", n: n + 1 }'
        ' update Doc set { n: n + 1 } where name = "other"'
    )
    assert updated.nodes == 11
    docs = world.image()["Doc"]
    assert (docs["d1"]["n"], docs["d1"]["text"], docs["d1"]["body"]) == (22, "cd", b"x" * 30)
    assert (docs["d2"]["n"], docs["new"]["n"], docs["other"]["n"]) == (3, 6, 9)


def test_zeros_of_both_signs_are_not_taken_for_one() -> None:
    world = MutationWorld("node P { name: String @key  x: F64? }")
    world.mutate('insert P { name: "a", x: 1 } insert P { name: "b", x: 1 }')
    world.mutate(
        'update P set { x: x * 0.0 } where name = "a" update P set { x: x * -0.0 } where name = "b"'
    )
    found = {name: str(entity["x"]) for name, entity in world.image()["P"].items()}
    assert found == {"a": "0.0", "b": "-0.0"}


def test_a_new_entity_is_complete_after_its_first_statement() -> None:
    world = MutationWorld("node P { name: String @key  x: I64  y: I64? }")
    texts = ['upsert P { name: "a", y: 1 }', 'upsert P { name: "a", x: 1 }']
    with pytest.raises(WriteRefusedError, match="missing required property 'x' of P"):
        world.run(" ".join(texts))
    assert world.mutate(" ".join(reversed(texts))).nodes == 2


def test_a_mutation_depends_on_what_its_statements_name() -> None:
    world = MutationWorld(SCHEMA, seed(4))
    named = world.run(
        'update Doc set { n: 1 } where name = "d1" update Doc set { n: 1 } where name = "no"'
    )
    assert named.reads == {"node:Doc": ReadSet(ids=IdSet(["d1", "no"]))}
    by_value = world.run("update Doc set { n: 1 } where n = 3 update Doc set { n: 1 } where n = 4")
    assert by_value.reads == {"node:Doc": WHOLE}
