"""Graphs that are loaded in units of a few lines, beside graphs that are loaded at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Branch, Graph
from omnigraph.bulk import splits
from omnigraph.engine import LoadResult
from omnigraph.errors import VIOLATIONS_SHOWN_MAX, WriteRefusedError

SCHEMA = """
node Person {
  name: String @key
  email: String? @unique
  age: I32?
  @range(age, 0..150)
  team: enum(red, green, blue)?
}
node Place { x: I32  y: I32  @key(x, y)  title: String? }
node Note { text: String? }
edge Knows: Person -> Person { since: Date? }
edge Wrote: Person -> Note @card(0..2)
edge Member: Person -> Place { role: String?  @unique(src, dst) }
"""


def person(name: str, **data: object) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def knows(source: str, target: str, **more: object) -> dict[str, Any]:
    return {"edge": "Knows", "from": source, "to": target, **more}


def note(note_id: str, text: str = "") -> dict[str, Any]:
    return {"type": "Note", "id": note_id, "data": {"text": text}}


def wrote(source: str, target: str, **more: object) -> dict[str, Any]:
    return {"edge": "Wrote", "from": source, "to": target, **more}


def crowd(count: int) -> list[dict[str, Any]]:
    """People who know each other, one after the other."""
    people = [person(f"p{n}", email=f"{n}@example.com", age=n % 90) for n in range(count)]
    return [*people, *(knows(f"p{n}", f"p{n * 7 % count}", id=f"k{n}") for n in range(count))]


@dataclass
class Twins:
    """Two equal graphs: one is loaded at once, the other in units."""

    folder: Path
    at_once: Branch
    in_units: Branch
    graphs: list[Graph] = field(default_factory=list)

    def lines(self, records: Iterable[dict[str, Any] | str], name: str = "data.jsonl") -> Path:
        path = self.folder / name
        texts = (each if isinstance(each, str) else json.dumps(each) for each in records)
        path.write_text("".join(f"{text}\n" for text in texts))
        return path

    def load(self, source: Any, mode: Any = "append", **options: Any) -> None:
        """Load both, and compare all there is afterwards."""
        expected = self.at_once.load(source, mode=mode, **options)
        made = self.bulk(source, mode, **options)
        assert (made.nodes, made.edges) == (expected.nodes, expected.edges)
        assert exported(self.in_units) == exported(self.at_once)

    def bulk(self, source: Any, mode: Any = "append", **options: Any) -> LoadResult:
        options.setdefault("rejects", self.folder / "rejects")
        return self.in_units.load(source, mode=mode, **options)

    def refused(self, source: Any, mode: Any = "append", **options: Any) -> WriteRefusedError:
        """Both refuse, in the same words; the graph in units is as it was."""
        before = exported(self.in_units)
        with pytest.raises(WriteRefusedError) as expected:
            self.at_once.load(source, mode=mode, **options)
        with pytest.raises(WriteRefusedError) as made:
            self.bulk(source, mode, **options)
        assert type(made.value) is type(expected.value)
        assert made.value.message == expected.value.message
        assert made.value.count == expected.value.count
        # Units tell more of them than a message shows.
        shown = made.value.violations[:VIOLATIONS_SHOWN_MAX]
        assert shown == expected.value.violations
        assert exported(self.in_units) == before
        assert self.leftovers() == []
        return made.value

    def rejected(self) -> list[dict[str, Any]]:
        """What the files of rejected records tell, all of them."""
        files = sorted((self.folder / "rejects").glob("*.parquet"))
        return [row for file in files for row in pq.read_table(file).to_pylist()]

    def leftovers(self) -> list[str]:
        """Notes of units that are still there, and their folders."""
        place = self.folder / "units" / "__manifest" / "staging"
        return [str(each) for each in place.rglob("*")]


def exported(branch: Branch) -> list[str]:
    """Everything in a branch but the ids that were drawn for it, in the order of texts."""
    lines = [line for block in branch.export() for line in block.splitlines()]
    rows = [json.loads(line) for line in lines]
    return sorted(json.dumps(_without_drawn_id(row), sort_keys=True) for row in rows)


def _without_drawn_id(row: dict[str, Any]) -> dict[str, Any]:
    is_drawn = len(str(row.get("id", ""))) == 26
    return {name: value for name, value in row.items() if name != "id" or not is_drawn}


def small_units(monkeypatch: pytest.MonkeyPatch, size: int = 2_000) -> None:
    """Cut files into units of so few bytes or rows that every test has several."""
    monkeypatch.setattr(splits, "SPLIT_BYTES", size)
    monkeypatch.setattr(splits, "SPLIT_ROWS", max(size // 20, 1))


def twins(folder: Path) -> Twins:
    graphs = [
        omnigraph.create(str(folder / name), schema=SCHEMA, durable=False)
        for name in ("once", "units")
    ]
    return Twins(folder, graphs[0].branch(), graphs[1].branch(), graphs)


def names(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [row["rule"] for row in rows]
