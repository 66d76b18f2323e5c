"""Golden stores: archives of a graph, and of what the program that wrote it read from it.

An archive has the graph below `store`, and below `expected` the export of every branch and tag, and
the commits of each branch. This module also runs with programs of long ago, so it asks little.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import omnigraph

FOLDER = Path(__file__).parent
STORE = "store"
EXPECTED = "expected"


def pack(write: Callable[[Path], None], archive: Path) -> None:
    """Write a store, and what can be read from it, to an archive."""
    with TemporaryDirectory() as folder:
        store, expected = Path(folder, STORE), Path(folder, EXPECTED)
        write(store)
        expected.mkdir()
        for name, text in describe(store).items():
            Path(expected, name).write_text(text)
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for path in files:
                entry = tarfile.TarInfo(str(path.relative_to(folder)))
                entry.size = path.stat().st_size
                tar.addfile(entry, io.BytesIO(path.read_bytes()))
        archive.write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def unpack(name: str, folder: Path) -> Path:
    """Unpack a golden store below a folder; the path of the graph."""
    with tarfile.open(FOLDER / f"{name}.tar.gz") as tar:
        tar.extractall(folder, filter="data")
    return folder / STORE


def read_expected(folder: Path) -> dict[str, str]:
    """What the program that wrote a store read from it, by file name."""
    return {path.name: path.read_text() for path in sorted(Path(folder, EXPECTED).iterdir())}


def describe(store: Path) -> dict[str, str]:
    """The exports and the histories of a graph, by file name."""
    graph: Any = omnigraph.open(str(store))
    found = {}
    for name in graph.branches():
        branch = graph.branch(name)
        found[f"branch-{name.replace('/', '_')}.jsonl"] = _join(branch.snapshot().export())
        commits = [[each.id, each.message, each.actor] for each in branch.commits()]
        found[f"commits-{name.replace('/', '_')}.json"] = json.dumps(commits, indent=0)
    for tag in graph.tags():
        found[f"tag-{tag.name}.jsonl"] = _join(graph.snapshot(tag.commit_id).export())
    graph.close()
    return found


def _join(lines: Iterator[bytes]) -> str:
    return b"".join(lines).decode()
