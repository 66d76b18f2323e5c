"""Writes that are cut into units: loads of two units, and maintenance by tasks, in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from faults.world import lines, person
from omnigraph import Graph, LoadModeName
from omnigraph.bulk.bulk_sources import BulkSource, JsonLinesSource, stage_rows
from omnigraph.bulk.splits import FileRange, GraphLocation, get_stores
from omnigraph.bulk.task_runner import LocalRunner
from omnigraph.engine import optimize
from omnigraph.spark.spark_maintenance import SparkWorkers

_NEW = person("new", age=3)
_EDGE: dict[str, object] = {"edge": "Knows", "from": "new", "to": "ada", "id": "k9"}
_BLUE: dict[str, object] = {"type": "Team", "data": {"name": "blue"}}
_RED: dict[str, object] = {"type": "Team", "data": {"name": "red"}}


@dataclass(frozen=True, slots=True)
class Texts(BulkSource):
    """JSON lines in memory, a unit of each text."""

    texts: tuple[str, ...]

    def prepare_ranges(self, place: GraphLocation, folder: str) -> tuple[FileRange, ...]:
        """The texts, staged one after the other."""
        return tuple(
            piece
            for number, text in enumerate(self.texts)
            for piece in JsonLinesSource(text.encode(), f"text{number}").prepare_ranges(
                place, folder
            )
        )


@dataclass(frozen=True, slots=True)
class Replacing(Texts):
    """The same, which names people that end, and has all teams."""

    ended: tuple[str, ...]

    @property
    def snapshot_types(self) -> frozenset[str]:
        """Teams that it lacks end."""
        return frozenset({"node:Team"})

    def prepare_ranges(self, place: GraphLocation, folder: str) -> tuple[FileRange, ...]:
        """The texts, and the names of people that end."""
        names, notes = pa.table({"name": self.ended}), get_stores(place).objects
        ended = stage_rows(notes, folder, names, type_name="node:Person", is_deletion=True)
        return (*Texts.prepare_ranges(self, place, folder), ended)


def _load_and_delete(graph: Graph) -> object:
    texts = (lines(person("ada", age=9)), lines(_NEW, _EDGE, _BLUE))
    done = graph.branch().load(Replacing(texts, ("bob",)), mode="merge")
    assert done.deleted["node:Person"] == 1
    return done


def bulk_load(mode: LoadModeName, *texts: str, rejected: int = 0) -> Callable[[Graph], object]:
    """A load of so many units, which has to leave out so many records."""

    def load(graph: Graph) -> object:
        done = graph.branch().load(Texts(texts), mode=mode, on_error="quarantine")
        assert done.rejected == rejected
        return done

    return load


BULK_LOADS: dict[str, Callable[[Graph], object]] = {
    "units-append": bulk_load("append", lines(_NEW), lines(_EDGE)),
    "units-merge": bulk_load("merge", lines(person("ada", age=9)), lines(_NEW, _EDGE)),
    "units-overwrite": bulk_load("overwrite", lines(_BLUE), lines(_RED)),
    "units-rejects": bulk_load(
        "append",
        lines(_NEW, person("old", age=900)),
        lines({"edge": "Knows", "from": "old", "to": "ada"}),
        rejected=2,
    ),
    "units-delete": _load_and_delete,
}


def ensure_indices_by_tasks(graph: Graph) -> object:
    """The indexes of a branch, each segment by a task."""
    done = optimize.ensure_indices(graph._session, graph.branch()._stream, _workers(graph))
    assert done.commit is not None
    assert done.built
    return done


def optimize_by_tasks(graph: Graph) -> object:
    """A compaction whose groups of fragments, and the segments over them, are tasks."""
    done = optimize.optimize(graph._session, graph.branch()._stream, _workers(graph))
    assert done.commit is not None
    assert any(table.fragments_removed for table in done.tables)
    assert any(table.indexes for table in done.tables)
    return done


def _workers(graph: Graph) -> SparkWorkers:
    return SparkWorkers(graph._session.resources.storage.tables, LocalRunner())
