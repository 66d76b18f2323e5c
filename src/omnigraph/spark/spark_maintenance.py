"""Compaction and index builds by tasks: they write files, the driver commits them.

The commit is the one of the maintenance in this process: nothing is visible before it, and a
writer that commits meanwhile loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.bulk.task_runner import Runner
from omnigraph.storage.tables.lance_tables import Compacted, Compaction, Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.store_address import StoreAddress, make_local_address
from omnigraph.storage.tables.table_indexes import Indexed, IndexPart, IndexSpec


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """Some fragments of a version that become others."""

    address: StoreAddress
    plan: Compaction


@dataclass(frozen=True, slots=True)
class IndexTask:
    """A part of an index of a version."""

    address: StoreAddress
    pin: Pin
    part: IndexPart


@dataclass(frozen=True, slots=True)
class SparkWorkers:
    """Writes the files of maintenance by the tasks of a runner; see `MaintenanceWorkers`."""

    tables: Tables
    runner: Runner

    def compact(self, plan: Compaction) -> Compacted:
        """The files of a planned compaction: one task for each of its groups of fragments."""
        place = make_local_address(self.tables)
        units = [CompactionTask(place, Compaction(plan.pin, (task,))) for task in plan.tasks]
        parts = self.runner.run(units, rewrite_fragments, stage="compact")
        joined = Compacted(plan.pin, tuple(group for part in parts for group in part.groups))
        return self.tables.with_indexes(joined, self.build_indexes)

    def build_indexes(self, pin: Pin, specs: Sequence[IndexSpec]) -> Indexed | None:
        """Segments over what some indexes do not cover: one task for each of them."""
        place = make_local_address(self.tables)
        parts = self.tables.cut_indexes(pin, specs)
        units = [IndexTask(place, pin, part) for part in parts]
        built = [
            each
            for each in self.runner.run(units, build_index_segment, stage="index")
            if each is not None
        ]
        if not built:
            return None
        segments = tuple(segment for each in built for segment in each.parts)
        return Indexed(pin, segments)


def rewrite_fragments(unit: CompactionTask) -> Compacted:
    """Write the new fragments of a group."""
    return unit.address.tables.rewrite(unit.plan)


def build_index_segment(unit: IndexTask) -> Indexed | None:
    """Write one segment."""
    return unit.address.tables.build_parts(unit.pin, [unit.part])
