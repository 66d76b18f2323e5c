"""Finds damaged objects, and the newest commits that need none of them.

In: the stored objects of a graph. Out: what is damaged or missing, found by its digest, and for
each branch that suffers from it the commit to go back to. Rows are not read: nothing is said of
what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from omnigraph.engine.check.check_problems import Problem, Problems
from omnigraph.engine.check.graph_check import (
    Roots,
    WalkedGraph,
    repeat_while_collected,
    walk_graph,
)
from omnigraph.engine.check.pin_check import DigestCheck, report_missing_files
from omnigraph.errors import CorruptObjectError, StorageError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.table_manifests import build_manifest_path
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import Stream


@dataclass(frozen=True, slots=True)
class DamagedBranch:
    """A branch whose newest commit is not whole.

    `types` cannot be read; `whole` is the newest commit of which all can be read, if there is one.
    """

    branch: str
    types: tuple[str, ...]
    whole: Snapshot | None


@dataclass(frozen=True, slots=True)
class Damage:
    """What was found: objects, those of them that a newest commit needs, and branches."""

    problems: tuple[Problem, ...]
    needed: frozenset[str]
    branches: tuple[DamagedBranch, ...]


def find_damage(objects: Objects, tables: Tables) -> Damage:
    """Read every file of every kept commit, and compare it with its digest; nothing is written.

    Give it tables that were just opened: what this process has open already would hide damage.
    Indexes are left out: they are derived.
    """
    return repeat_while_collected(objects, tables, partial(_search, objects, tables))


def _search(objects: Objects, tables: Tables, problems: Problems) -> tuple[Damage, Roots]:
    graph = walk_graph(objects, tables, problems)
    wholeness = _Wholeness(tables)
    for snapshot in _iter_snapshots(graph):
        wholeness.add(snapshot)
    DigestCheck(objects, tables, problems).check(graph.pinned, current=())
    report_missing_files(objects, wholeness.needed, problems)
    found = problems.list_problems()
    wholeness.damaged = frozenset(each.where for each in found)
    branches = [_judge_branch(graph, stream, wholeness) for stream in graph.roots.streams]
    heads = (pin for head in graph.heads for pin in head.pins.values())
    needed = frozenset(path for pin in heads for path in wholeness.list_files(pin))
    return Damage(found, needed, tuple(each for each in branches if each is not None)), graph.roots


def _iter_snapshots(graph: WalkedGraph) -> Iterator[Snapshot]:
    for line in graph.pinned:
        yield from line.snapshots.values()


def _judge_branch(
    graph: WalkedGraph, stream: Stream, wholeness: _Wholeness
) -> DamagedBranch | None:
    """What is wrong with the newest commit of a branch; None if it is whole."""

    def list_broken_types(at: Snapshot) -> tuple[str, ...]:
        is_readable = graph.schemas.get(at.schema) is not None
        return wholeness.list_broken_types(at) if is_readable else tuple(sorted(at.pins))

    commits = list(_iter_back(graph, stream))
    types = list_broken_types(commits[0]) if commits else ()
    following = max((commits[0].seq + 1) if commits else 0, stream.first_seq)
    is_cut = layout.build_record_path(stream.id, following) in wholeness.damaged
    if commits and not types and not is_cut:
        return None
    whole = next((each for each in commits if not list_broken_types(each)), None)
    return DamagedBranch(stream.branch, types, whole)


def _iter_back(graph: WalkedGraph, stream: Stream) -> Iterator[Snapshot]:
    """The commits of a branch that could be read, the newest first, with those it started from."""
    line, last = graph.walked.get(stream.id), None
    while line is not None:
        for seq in sorted(line.snapshots, reverse=True):
            if last is None or seq <= last:
                yield line.snapshots[seq]
        origins = line.stream.origins
        last = origins[0].seq if origins else None
        line = graph.walked.get(origins[0].stream) if origins else None


class _Wholeness:
    """Which versions of tables can be read, given the objects that are damaged."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        # The files of each version, as far as it says.
        self._files: dict[Pin, frozenset[str]] = {}
        self._unreadable: set[Pin] = set()
        # Each file, and a commit that needs it.
        self.needed: dict[str, str] = {}
        self.damaged: frozenset[str] = frozenset()

    def add(self, snapshot: Snapshot) -> None:
        """Note what a commit needs."""
        for pin in snapshot.pins.values():
            for path in self.list_files(pin):
                self.needed.setdefault(path, f"commit {snapshot.commit}")

    def list_files(self, pin: Pin) -> frozenset[str]:
        """The files of a version; of one that cannot be opened, its manifest."""
        if pin not in self._files:
            try:
                self._files[pin] = frozenset(self._tables.list_references(pin))
            except (CorruptObjectError, StorageError):
                self._files[pin] = frozenset({build_manifest_path(pin)})
                self._unreadable.add(pin)
        return self._files[pin]

    def list_broken_types(self, snapshot: Snapshot) -> tuple[str, ...]:
        """The types of a commit that cannot be read."""
        return tuple(
            type_key
            for type_key, pin in sorted(snapshot.pins.items())
            if not self.damaged.isdisjoint(self.list_files(pin)) or pin in self._unreadable
        )
