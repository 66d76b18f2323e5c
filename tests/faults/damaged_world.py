"""A small graph with every kind of stored object, and what its readers must answer.

The graph and the disk cache lie below one folder, which a copy replaces as a whole: files of the
cache name the address of their graph.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import omnigraph
from omnigraph.execution.sources.source_cache import FOLDER_VARIABLE
from omnigraph.execution.sources.topology import topology_rows
from omnigraph.storage import open_objects
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.versioning import change_sets
from omnigraph.versioning.retention_floors import Floors

SCHEMA: Final = """
node Person {
  name: String @key
  age: I32?  @index
  tags: [String]?
  face: Vector(4)?
  picture: Blob?
}
node Team { name: String @key }
edge Leads: Person -> Team {}
edge Knows: Person -> Person { since: Date? }
"""
WIDER: Final = SCHEMA.replace("age: I32?  @index", "age: I32?  @index\n  shoe: I32?")
QUERIES: Final = (
    "query q() { match { $p: Person } return { $p.name, $p.age, $p.tags } order { $p.name } }",
    "query q() { match { $p: Person { age: 3 } } return { $p.name } order { $p.name } }",
    "query q() { match { $p: Person  $p knows $q  $q knows $r } return { count($r) as n } }",
    "query q() { match { $p: Person  $p leads $t } return { $p.name, $t.name } order { $p.name } }",
)
# The kind of an object by its path below the folder; the first that matches.
KINDS: Final = {
    "cache": r"cache/.*",
    "format": r"graph/__manifest/format\.json",
    "hint": r"graph/__manifest/[^/]+/latest\.json",
    "checkpoint": r"graph/__manifest/[^/]+/checkpoints/.*",
    "floor": r"graph/__manifest/[^/]+/floors/.*",
    "tag": r"graph/__manifest/tags/.*",
    "branch": r"graph/__manifest/branches/.*",
    "name": r"graph/__manifest/names/.*",
    "schema": r"graph/__manifest/schemas/.*",
    "change_set": r"graph/__manifest/changes/.*",
    "record": r"graph/__manifest/[^/]+\.[^/]+/\d{20}\.json",
    "other": r"graph/__manifest/.*",
    "linear": r"graph/t/[^/]+/_versions/\d{20}\.manifest",
    "manifest": r"graph/t/[^/]+/_versions/d\d+\.manifest",
    "deletions": r"graph/t/[^/]+/_deletions/.*",
    "index": r"graph/t/[^/]+/_indices/.*",
    "blob": r"graph/t/[^/]+/data/[^/]+/.*",
    "data": r"graph/t/[^/]+/data/[^/]+\.lance",
    "lance": r"graph/t/.*",
}


def kind_of(path: str) -> str:
    """What an object below the folder is."""
    return next(kind for kind, pattern in KINDS.items() if re.fullmatch(pattern, path))


def build(folder: Path) -> None:
    """Write the graph, and the files of the disk cache that its readers leave."""
    change_sets.INLINE_IDS_MAX = 6  # type: ignore[misc]  # a change set of few ids becomes a file
    _use(folder)
    graph = omnigraph.create(str(folder / "graph"), schema=SCHEMA, actor="ada")
    main = graph.branch()
    names = [f"p{number:02}" for number in range(24)]
    main.load(_lines(names), mode="append", message="people")
    main.mutate('query q() { update Person set { age: 77 } where name = "p03" }')
    main.mutate('query q() { delete Person where name = "p23" }')
    graph.tag("release/1")
    main.ensure_indices()
    review = graph.create_branch("review/x")
    review.mutate('query q() { update Person set { age: 5 } where name = "p01" }')
    review.mutate('query q() { insert Team { name: "blue" } }')
    graph.create_branch("gone")
    graph.delete_branch("gone")
    main.apply_schema(WIDER)
    main.mutate('query q() { update Person set { shoe: 40, age: 3 } where name = "p05" }')
    _add_rare_objects(folder / "graph", graph)
    graph.close()
    answers(folder)


def _add_rare_objects(address: Path, graph: Any) -> None:  # Any: private parts of a graph
    """Objects that only large or old graphs have: a floor, a checkpoint, files left by a writer."""
    objects = open_objects(str(address), is_durable=False)
    Floors(objects).put("main.0", 1)
    objects.delete([layout.build_record_path("main.0", 0)])
    log = graph._session.resources.log
    head = log.read_head(graph._session.resources.branches.resolve("main"))
    log.write_checkpoint(head.snapshot)
    tables = Tables(str(address), is_durable=False)
    tables.write(head.snapshot.pins["node:Team"], pa.table({"__id": ["left behind"]}))
    objects.put(f"{layout.STAGING}/01load/part", b"notes of a load that died")


def _lines(names: list[str]) -> list[dict[str, Any]]:
    people = [
        {
            "type": "Person",
            "data": {
                "name": name,
                "age": at % 7,
                "tags": [name, "x"],
                "face": [0.5 * at, 1.0, -1.0, at],
                "picture": "base64:" + ("QUJD" * 25_000 if at == 2 else "QUJD"),
            },
        }
        for at, name in enumerate(names)
    ]
    teams = [{"type": "Team", "data": {"name": name}} for name in ("red", "green")]
    knows = [
        {"edge": "Knows", "from": left, "to": names[(at * 5 + 1) % len(names)]}
        for at, left in enumerate(names)
    ]
    leads = [{"edge": "Leads", "from": names[at], "to": "red"} for at in range(3)]
    return [*people, *teams, *knows, *leads]


def _use(folder: Path) -> None:
    os.environ[FOLDER_VARIABLE] = str(folder / "cache")
    topology_rows._FILES_ROWS_MIN = 0  # type: ignore[misc]  # nothing is too small for a file


def answers(folder: Path) -> dict[str, Callable[[], str]]:
    """What each reader finds, by its name; calling one opens the graph if none did."""
    _use(folder)
    graph = omnigraph.open(str(folder / "graph"))
    readers: dict[str, Callable[[], str]] = {}
    for number, query in enumerate(QUERIES):
        readers[f"main {number}"] = partial(_query, graph, query)
    readers["review"] = lambda: _rows(graph.branch("review/x").query(QUERIES[0]))
    readers["tag"] = lambda: _rows(graph.snapshot("release/1").query(QUERIES[0]))
    readers["names"] = lambda: f"{graph.branches()} {[each.name for each in graph.tags()]}"
    readers["log"] = lambda: str([(c.id, c.message) for c in graph.branch().commits()])
    readers["diff"] = lambda: _diff(graph)
    readers["blob"] = lambda: _digest(
        graph.branch().blob("node", "Person", "p02", "picture").read(0, 9000)
    )
    readers["export"] = lambda: _digest(b"".join(graph.branch().export()))
    readers["close"] = partial(_close, graph)
    return readers


def write(folder: Path) -> str:
    """Write a little to main, and say what can be read of it then."""
    _use(folder)
    with omnigraph.open(str(folder / "graph")) as graph:
        main = graph.branch()
        main.mutate('query q() { update Person set { age: 99 } where name = "p07" }')
        main.load([{"edge": "Knows", "from": "p07", "to": "p08"}], mode="append")
        main.mutate('query q() { delete Person where name = "p09" }')
        text = "query q() { match { $p: Person { age: 99 } } return { $p.name } }"
        found = [row["p.name"] for row in main.query(text).to_pylist()]
        return f"{found} of {graph.snapshot('main').count('Person')}"


# What a write to the healthy graph gives.
WRITTEN: Final = "['p07'] of 22"


def _query(graph: Any, query: str) -> str:  # Any: a graph
    return _rows(graph.branch().query(query))


def _close(graph: Any) -> str:  # Any: a graph
    graph.close()
    return ""


def _diff(graph: Any) -> str:  # Any: a graph
    found = graph.diff("release/1", "main")
    return _digest(json.dumps(found.to_json(), sort_keys=True, default=str).encode())


def _rows(result: Any) -> str:  # Any: a result
    return _digest(json.dumps(result.to_arrow().to_pylist(), default=str).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def expected(folder: Path) -> Mapping[str, str]:
    """What the readers of the healthy graph answer."""
    return {name: read() for name, read in answers(folder).items()}


def copy_to(healthy: Path, folder: Path) -> None:
    """Another copy in the place of what is there; files are shared until they are damaged."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(healthy, folder, copy_function=os.link)
