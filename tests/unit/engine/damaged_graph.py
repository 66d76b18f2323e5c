"""A healthy graph of every kind of thing, and ways to damage it behind the engine's back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from omnigraph.engine.check.graph_check import CheckReport, check_graph
from omnigraph.storage import open_objects
from omnigraph.storage.objects import layout
from omnigraph.versioning import (
    MAIN,
    Append,
    Bulk,
    Changed,
    IdSet,
    Overwrite,
    Publishers,
    Record,
    change_sets,
    compact,
)
from omnigraph.versioning.json_fields import seal_bytes
from places import copy_of
from unit.writers.plain_graph import PlainGraph, created, opened, rows_of, type_key

SCHEMA = """
interface Named { name: String }
node Person implements Named {
  name: String @key
  age: I32?
  mood: enum(glad, sad)?
  mail: String? @unique
  height: F64?
  tags: [String]?
  face: Vector(2)?
  picture: Blob?
  @range(age, 0..150)
  @check(name, "^[a-z0-9]+$")
}
node Team { country: String  name: String  size: I32  @key(country, name) }
node Note { text: String }
edge Leads: Person -> Team @card(0..1) {}
edge Knows: Person -> Person { since: Date?  @key(@src, @dst) }
"""
WIDER = SCHEMA.replace("height: F64?", "height: F64?  shoe: I32?")
PERSON, TEAM, NOTE = "node:Person", "node:Team", "node:Note"
LEADS, KNOWS = "edge:Leads", "edge:Knows"
RED = '["nl","red"]'


def build(uri: str) -> None:
    """Every kind of commit, on a few branches."""
    graph = created(uri, SCHEMA)
    ada = {"name": "ada", "age": 36, "mood": "glad", "mail": "a@x", "height": 1.5}
    ada |= {"tags": ["x", "y"], "face": [0.0, float("-0")], "picture": bytes(200_000)}
    graph.insert(PERSON, ada, {"name": "bob", "tags": []}, {"name": "cleo", "mail": "c@x"})
    graph.insert(TEAM, {"country": "nl", "name": "red", "size": 1})
    graph.insert(LEADS, {"@id": "l1", "@src": "ada", "@dst": RED})
    graph.insert(KNOWS, {"@src": "ada", "@dst": "bob", "since": 5})
    graph.update(PERSON, {"name": "bob", "age": 7, "picture": b"small"})
    graph.insert(NOTE, {"@id": "n1", "text": "hello"}, {"@id": "n2", "text": "again"})
    graph.delete(NOTE, "n2")
    review = graph.branches.create("review/one", at=graph.head())
    graph.insert(PERSON, {"name": "dido"}, stream=review)
    nested = graph.branches.create("review/one/deeper", at=graph.head(review))
    graph.delete(PERSON, "dido", stream=nested)
    graph.branches.create("untouched", at=graph.head(nested))
    graph.branches.create("gone", at=graph.head())
    graph.branches.delete("gone")
    graph.apply(WIDER)
    graph.insert(PERSON, {"name": "eve", "shoe": 40})
    for number in range(40):
        graph.insert(NOTE, {"@id": f"m{number:02}", "text": f"note {number}"})
    assert compact(Publishers(graph.committer), MAIN, NOTE)
    _spilled(graph)
    _bulk(graph)


def _spilled(graph: PlainGraph) -> None:
    """A commit whose change set is a file."""
    count = change_sets.INLINE_IDS_MAX + 1
    graph.insert(PERSON, *({"name": f"s{number}"} for number in range(count)))


def _bulk(graph: PlainGraph) -> None:
    """A load that adds rows by their files, and one that replaces all others."""
    for effect_of, replaces in ((Append, False), (Overwrite, True)):
        view = graph.view()
        pin = view.snapshot.pins[NOTE]
        names = [f"{effect_of.__name__}{number}" for number in range(3)]
        rows = rows_of(view.get_shape(type_key(NOTE)), [{"@id": n, "text": n} for n in names])
        staged = graph.tables.write(pin, rows)
        graph.commit(
            view, effect_of(NOTE, (staged,)), Bulk(staged.list_files, 3, replaces=replaces)
        )


class Damaged:
    """A copy of a healthy graph, to be damaged."""

    def __init__(self, healthy: str, folder: Path) -> None:
        self.uri = copy_of(healthy, folder)
        self._objects = open_objects(self.uri, is_durable=False)

    @property
    def graph(self) -> PlainGraph:
        """The graph as a process sees it that has just started."""
        return opened(self.uri)

    def record_path(self, seq: int, stream: str = MAIN.id) -> str:
        return layout.build_record_path(stream, seq)

    def stream(self, branch: str) -> str:
        return self.graph.branches.resolve(branch).id

    def remove(self, path: str) -> None:
        """Remove an object, or all in a folder."""
        below = [] if self.has(path) else [entry.path for entry in self._objects.list(path)]
        assert below or self.has(path), path
        self._objects.delete(below or [path])

    def has(self, path: str) -> bool:
        return self._objects.get(path) is not None

    def write(self, path: str, data: bytes | Mapping[str, Any]) -> None:
        self._objects.put(path, data if isinstance(data, bytes) else _encode(path, data))

    def bytes_of(self, path: str) -> bytes:
        data = self._objects.get(path)
        assert data is not None, path
        return data

    def read(self, path: str) -> dict[str, Any]:
        """The JSON document at a path, without its digest: as older programs wrote it."""
        document: dict[str, Any] = json.loads(self.bytes_of(path))
        document.pop("digest", None)
        return document

    def edit(self, path: str, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the JSON document at a path."""
        document = self.read(path)
        change(document)
        self.write(path, document)

    def only(self, pattern: str) -> str:
        """The path of the only object of a pattern."""
        (found,) = (path for path in self.files() if PurePosixPath(path).match(pattern))
        return found

    def files(self) -> dict[str, bytes]:
        return {entry.path: self.bytes_of(entry.path) for entry in self._objects.list("")}

    def append(self, type_: str, *entities: Mapping[str, Any]) -> Record:
        """Rows that no rule was asked about, in an honest commit."""
        return self.graph.insert(type_, *entities)

    def lie(self, type_: str, change: Changed, *entities: Mapping[str, Any]) -> Record:
        """Rows in a commit that says something else about them."""
        graph = self.graph
        view = graph.view()
        rows = rows_of(view.get_shape(type_key(type_)), entities)
        return graph.commit(view, Append(type_, (rows,)), change)


def ids(*names: str) -> IdSet:
    return IdSet(names)


def check(damaged: Damaged, commits_max: int | None = None) -> CheckReport:
    graph = damaged.graph
    return check_graph(graph.objects, graph.tables, commits_max=commits_max)


def found(damaged: Damaged, commits_max: int | None = 0) -> list[str]:
    """Every problem with its kind; to compare the contents of commits takes most of the time."""
    problems = check(damaged, commits_max=commits_max).problems
    return [f"{problem.kind}: {problem}" for problem in problems]


def found_everywhere(damaged: Damaged) -> list[str]:
    """Every problem with its kind, with the contents of all commits compared."""
    return found(damaged, commits_max=None)


def _encode(path: str, document: Mapping[str, Any]) -> bytes:
    """A document with a digest that fits, unless it is one that is named by its own."""
    data = json.dumps(document).encode()
    return seal_bytes(path, data) if layout.has_digest_inside(path) else data
