"""Compaction and index builds by tasks: they write files, the driver commits them.

The commit is the one of the maintenance in this process: nothing is visible before it, and whoever
writes meanwhile loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.spark.scans import Place, place_here
from omnigraph.storage.index_files import Indexed, IndexPart, IndexSpec
from omnigraph.storage.pins import Pin
from omnigraph.storage.tables import Compacted, Compaction, Tables
from omnigraph.writers.bulk.runner import Runner


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Some fragments of a version that become others."""

    place: Place
    plan: Compaction


@dataclass(frozen=True, slots=True)
class IndexWork:
    """A part of an index of a version."""

    place: Place
    pin: Pin
    part: IndexPart


@dataclass(frozen=True, slots=True)
class TaskWorkers:
    """Writes the files of maintenance by the tasks of a runner; see `maintain.Workers`."""

    tables: Tables
    runner: Runner

    def compact(self, plan: Compaction) -> Compacted:
        """The files of a planned compaction: one task for each of its groups of fragments."""
        place = place_here(self.tables)
        units = [Rewrite(place, Compaction(plan.pin, (task,))) for task in plan.tasks]
        parts = self.runner.run(units, rewrite, stage="compact")
        joined = Compacted(plan.pin, tuple(group for part in parts for group in part.groups))
        return self.tables.with_indexes(joined, self.build_indexes)

    def build_indexes(self, pin: Pin, specs: Sequence[IndexSpec]) -> Indexed | None:
        """Segments over what some indexes do not cover: one task for each of them."""
        place = place_here(self.tables)
        parts = self.tables.cut_indexes(pin, specs)
        units = [IndexWork(place, pin, part) for part in parts]
        built = [each for each in self.runner.run(units, index, stage="index") if each is not None]
        if not built:
            return None
        segments = tuple(segment for each in built for segment in each.parts)
        return Indexed(pin, segments)


def rewrite(unit: Rewrite) -> Compacted:
    """Write the new fragments of a group."""
    return unit.place.tables.rewrite(unit.plan)


def index(unit: IndexWork) -> Indexed | None:
    """Write one segment."""
    return unit.place.tables.build_parts(unit.pin, [unit.part])
