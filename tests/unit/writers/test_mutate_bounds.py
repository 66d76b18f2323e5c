"""What a mutation reads: no more than it needs, once, and within its bound."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import ResourceLimitError
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage.tables.table_reader import Table
from omnigraph.writers import committed_values, matching_rows
from omnigraph.writers.existing_rows import CommittedState
from unit.writers.mutation_world import MutationWorld

BLOBS = "node Doc { name: String @key  n: I32?  text: String?  body: Blob? }"


SET_BODY = "query q($body: Blob?) { update Doc set { body: $body }"
CITIES = "node City { name: String @key }  edge Twin: City -> City  edge Road: City -> City"


def docs(count: int) -> str:
    body = base64.b64encode(b"x" * 300).decode()
    return "".join(
        json.dumps({"type": "Doc", "data": {"name": f"d{n}", "n": n, "body": f"base64:{body}"}})
        + "\n"
        for n in range(count)
    )


def test_an_update_reads_the_blobs_of_the_rows_that_change_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = MutationWorld(BLOBS, docs(40))
    read: list[int] = []
    take = Table.take

    def watched(self: Table, row_ids: pa.Array, *, columns: Any = None) -> pa.Table:
        read.append(len(row_ids))
        return take(self, row_ids, columns=columns)

    def unread(self: Table, **options: Any) -> Any:
        assert "c2" not in options["columns"], "blobs are not scanned"
        return batches(self, **options)

    batches = Table.scan_batches
    shape = world.view.get_shape(TypeKey(TypeKind.NODE, "Doc"))
    assert shape.columns["body"] == "c2"
    monkeypatch.setattr(Table, "take", watched)
    monkeypatch.setattr(Table, "scan_batches", unread)
    mutated = world.run('update Doc set { n: 7 } where n > 9 and name contains "d"')
    (change,) = mutated.change.values()
    assert change.rows["c2"].to_pylist() == [b"x" * 300] * 30
    assert sum(read) == 30
    read.clear()
    world.run("update Doc set { n: 1 } where n > 9 update Doc set { n: 2 } where n = 12")
    # The second statement sees the row that the first one wrote.
    assert sum(read) == 30
    read.clear()
    world.run(f"{SET_BODY} where n > 9 }}", {"body": "base64:eA=="})
    assert read == []


def test_updates_keep_blobs_where_they_belong(monkeypatch: pytest.MonkeyPatch) -> None:
    world = MutationWorld(BLOBS, docs(30))
    monkeypatch.setattr(committed_values, "_PART_BYTES", 1_000)
    world.mutate(f"{SET_BODY} where n < 4 }}", {"body": "base64:eA=="})
    world.mutate("update Doc set { n: 5 } where n < 12")
    world.mutate(f"{SET_BODY} where n = 5 }}", {"body": None})
    world.mutate('update Doc set { text: "t" } where n > 0')


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("update Doc set { n: 1 } where n >= 0", 6_000),
        ("query q($body: Blob?) { update Doc set { body: $body } where n >= 0 }", 600),
        ("delete Doc where n >= 0", 400),
    ],
)
def test_a_mutation_that_reads_too_much_is_refused_before_it_holds_it(
    monkeypatch: pytest.MonkeyPatch, text: str, limit: int
) -> None:
    world = MutationWorld(BLOBS, docs(40))
    monkeypatch.setattr(matching_rows, "MUTATION_BYTES_MAX", limit)
    with pytest.raises(ResourceLimitError) as failure:
        world.run(text)
    assert failure.value.limit == limit
    assert failure.value.actual < 3 * limit
    assert "several parts" in (failure.value.hint or "")
    monkeypatch.setattr(matching_rows, "MUTATION_BYTES_MAX", 100 * limit)
    world.run(text)


def test_the_edges_of_a_cascade_are_looked_up_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    twin = '{"edge": "Twin", "from": "Bern", "to": "Bonn"}'
    cities = "".join(f'{{"type": "City", "data": {{"name": "{n}"}}}}\n' for n in ("Bern", "Bonn"))
    world = MutationWorld(CITIES, cities + twin)
    asked: list[tuple[str, str]] = []
    edges_at = CommittedState.find_edges_at

    def watched(self: CommittedState, type_key: TypeKey, end: str, ids: pa.Array) -> pa.Table:
        asked.append((type_key.name, end))
        return edges_at(self, type_key, end, ids)

    monkeypatch.setattr(CommittedState, "find_edges_at", watched)
    world.validated('delete City where @id = "Bern"')
    assert asked == [("Twin", "__src"), ("Twin", "__dst")]


def test_the_rows_of_a_match_count_as_read(monkeypatch: pytest.MonkeyPatch) -> None:
    world = MutationWorld(BLOBS, docs(20))
    text = "match { $a: Doc  $b: Doc } update $a set { text: $a.name }"
    monkeypatch.setattr(matching_rows, "MUTATION_BYTES_MAX", 100_000)
    assert world.mutate(text).nodes == 20
    monkeypatch.setattr(matching_rows, "MUTATION_BYTES_MAX", 2_000)
    with pytest.raises(ResourceLimitError, match="the number of bytes that one mutation reads"):
        world.run(text)
