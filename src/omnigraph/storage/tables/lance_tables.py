"""The tables of a graph, on Lance: the only way to read, write or change one.

Every change of a table is a detached commit: a private child of a pinned version that nothing but
its own pin can reach. A table's linear history never moves after its creation, so a writer that
dies at any step leaves unreferenced files, and no reader ever sees a part of a commit. In:
pins, rows and row ids. Out: pins. The pins become visible when a record names them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, TypeAlias, assert_never

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.dataset import Index as Segment
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.storage.objects.object_store import open_objects
from omnigraph.storage.tables import file_digests, fragment_compaction, table_indexes
from omnigraph.storage.tables.added_columns import (
    ConvertedColumn,
    WidenedTable,
    append_fields,
    write_converted_columns,
)
from omnigraph.storage.tables.blob_columns import (
    is_blob,
    make_blob_field,
    to_logical_schema,
    to_stored_schema,
)
from omnigraph.storage.tables.deletion_vectors import DeletionVectors
from omnigraph.storage.tables.file_digests import StoredFile, VersionUse
from omnigraph.storage.tables.fragment_compaction import Compacted, Compaction
from omnigraph.storage.tables.fragments import FRAGMENT_ROWS_MAX, CompleteFragments, admit_fragments
from omnigraph.storage.tables.fsync import FileSyncer
from omnigraph.storage.tables.lance_errors import translate_lance_errors
from omnigraph.storage.tables.pins import Pin, Staged, list_file_names
from omnigraph.storage.tables.recent_writes import (
    RecentWrites,
    RowChanges,
    RowIds,
    select_cached_rows,
)
from omnigraph.storage.tables.row_ids import read_fragment_row_ids
from omnigraph.storage.tables.stored_rows import conform_rows
from omnigraph.storage.tables.table_handles import Handles
from omnigraph.storage.tables.table_indexes import Index, Indexed, IndexPart, IndexSpec
from omnigraph.storage.tables.table_manifests import (
    LinearHistory,
    linear_of,
    manifest_of,
    references_of,
    sidecars_of,
)
from omnigraph.storage.tables.table_reader import Table

__all__ = [
    "Compacted",
    "Compaction",
    "Index",
    "IndexPart",
    "IndexSpec",
    "Indexed",
    "Pin",
    "Staged",
    "Table",
    "Tables",
    "make_blob_field",
]

# What makes segments of indexes of a version that no version has yet.
BuildIndexes: TypeAlias = Callable[[Pin, Sequence[IndexSpec]], Indexed | None]


class Tables:
    """The gateway to all tables of one graph."""

    def __init__(
        self,
        root_uri: str,
        *,
        is_durable: bool = True,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._handles = Handles(root_uri, options=options)
        self._verifier = self._handles.verifier
        self._options = options
        self._kills = DeletionVectors(self._verifier)
        self._recent = RecentWrites()
        self._disk = FileSyncer(self._handles.root, is_durable=is_durable)

    @property
    def root(self) -> str:
        """The address that the paths of tables start from."""
        return self._handles.root

    @property
    def options(self) -> Mapping[str, str] | None:
        """What leads to the store beside its address, for a process that opens it too."""
        return self._options

    def create(self, path: str, schema: pa.Schema) -> Pin:
        """A new, empty table; its linear history ends here."""
        dataset = self._handles.create(path, to_stored_schema(schema))
        self._disk.persist(path, [manifest_of(dataset)])
        return self._handles.pin_of(path, dataset, high_water=0)

    def open(self, pin: Pin) -> Table:
        """The pinned version, for reading."""
        dataset = self._handles.get(pin)
        return Table(pin, dataset, self._verifier)

    def find_changes_since(self, table: Table, known: Container[str]) -> RowChanges | None:
        """What this process changed since one of some versions; None if it did not make all of it.

        Nothing is read but the metadata of versions that are open.
        """
        return self._recent.find_changes_since(
            table.pin, known, schema=table.schema, row_ids_of=self._row_ids_of
        )

    def has_changes_since(self, pin: Pin, known: Container[str]) -> bool:
        """Whether this process made a version of one of some others."""
        return self._recent.find_steps(pin, known) is not None

    def _row_ids_of(self, path: str, version: str, fragments: Sequence[int]) -> RowIds | None:
        dataset = self._handles.get_known(path, version)
        with translate_lance_errors("fragments", path):
            return None if dataset is None else read_fragment_row_ids(dataset, fragments)

    def write(
        self, pin: Pin, rows: pa.Table | pa.RecordBatchReader, *, is_synced: bool = True
    ) -> Staged:
        """Write rows beside the table; columns left out must be nullable and read as null.

        What is not synced here is synced by the version that this process makes of it: one wait for
        the disk instead of two.
        """
        dataset = self._handles.get(pin)
        with translate_lance_errors("write", pin.path):
            schema = to_logical_schema(dataset.schema)
        complete, fragments = CompleteFragments(), list[FragmentMetadata]()
        try:
            with (
                conform_rows(rows, schema, path=pin.path) as reader,
                translate_lance_errors("write", pin.path),
            ):
                is_one = isinstance(rows, pa.Table) and rows.num_rows <= FRAGMENT_ROWS_MAX
                written = write_fragments(
                    reader,
                    dataset,
                    max_rows_per_file=FRAGMENT_ROWS_MAX,
                    progress=None if is_one else complete,
                )
            with translate_lance_errors("write", pin.path):
                fragments += self._seal_fragments(pin.path, schema, written)
            files = _list_files(chain.from_iterable(map(list_file_names, fragments)), schema)
            if is_synced:
                self._disk.persist(pin.path, files)
        except BaseException:
            # Lance removes the file it was at and leaves those before it, though the disk be full.
            with suppress(Exception):
                names = [f"data/{name}" for each in fragments for name in list_file_names(each)]
                self._remove(
                    [*complete.list_files(pin.path), *(f"{pin.path}/{name}" for name in names)]
                )
            raise
        return Staged(
            path=pin.path,
            fragments=tuple(fragments),
            rows=sum(fragment.physical_rows for fragment in fragments),
            above=pin.high_water,
            cached_rows=select_cached_rows(rows),
            unsynced=() if is_synced else tuple(files),
        )

    def discard(self, written: Staged | Compacted | Indexed | WidenedTable) -> None:
        """Remove files that will never be in a version; their writer must not use them."""
        match written:
            case Staged():
                self._remove(written.list_files)
            case Compacted():
                self._remove([f"{written.pin.path}/data/{name}" for name in written.files])
                if written.indexed is not None:
                    self.discard(written.indexed)
            case WidenedTable():
                self._remove([f"{written.path}/data/{each.file}" for each in written.fragments])
            case Indexed():
                self._remove((), folders=[f"{written.pin.path}/{at}" for at in written.folders])
            case _:
                assert_never(written)

    def _remove(self, files: Sequence[str], *, folders: Sequence[str] = ()) -> None:
        objects = open_objects(self._handles.root, options=self._options)
        folders = [*folders, *map(sidecars_of, files)]
        below = [entry.path for folder in folders for entry in objects.list(folder.rstrip("/"))]
        objects.delete([*files, *below])

    def forget_unpublished(self) -> None:
        """Write deletion files anew for writes under way: a collector may remove the old ones."""
        self._kills.forget()

    def append(self, pin: Pin, staged: Sequence[Staged]) -> Pin:
        """The version with the staged rows added."""
        dataset = self._handles.get(pin)
        with translate_lance_errors("append", pin.path):
            fragments = admit_fragments(dataset, staged, pin=pin)
        if not fragments:
            return pin
        tip = self._commit(pin, LanceOperation.Append(fragments), files=_list_unsynced(staged))
        self._recent.record_version(tip, pin, staged=staged)
        return tip

    def replace(
        self,
        pin: Pin,
        *,
        dead: pa.Array,
        staged: Sequence[Staged] = (),
        addresses: pa.Array | None = None,
    ) -> Pin:
        """The version without the rows of these row ids, and with the staged rows added.

        `addresses` are those of the same rows in this very version, if they are known.
        A new copy of a row always has a new row id: a reader of one version finds what came since
        by the row ids it does not know.
        """
        dataset = self._handles.get(pin)
        with translate_lance_errors("replace", pin.path):
            fragments = admit_fragments(dataset, staged, pin=pin)
            if len(dead):
                self._verifier.require(pin, dataset, VersionUse.LOOKUP)
            killed = self._kills.write_vectors(dataset, dead, pin=pin, addresses=addresses)
        if not (fragments or killed.shrunk or killed.gone):
            return pin
        operation = LanceOperation.Update(
            removed_fragment_ids=killed.gone,
            updated_fragments=killed.shrunk,
            new_fragments=fragments,
        )
        tip = self._commit(pin, operation, files=[*killed.files, *_list_unsynced(staged)])
        self._recent.record_version(tip, pin, dead=dead.cast(pa.uint64()), staged=staged)
        return tip

    def overwrite(self, pin: Pin, staged: Sequence[Staged]) -> Pin:
        """The version that holds the staged rows only; its indexes are gone."""
        dataset = self._handles.get(pin)
        with translate_lance_errors("overwrite", pin.path):
            fragments = admit_fragments(dataset, staged, pin=pin)
            operation = LanceOperation.Overwrite(dataset.lance_schema, fragments)
        return self._commit(pin, operation, files=_list_unsynced(staged))

    def add_columns(self, pin: Pin, schema: pa.Schema) -> Pin:
        """The version with these nullable columns at the end, null in every row."""
        dataset = self._handles.get(pin)
        with translate_lance_errors("add_columns", pin.path):
            wider = append_fields(dataset, schema, path=pin.path)
            fragments = [fragment.metadata for fragment in dataset.get_fragments()]
            operation = LanceOperation.Merge(fragments, wider, preserves_nullability=True)
        tip = self._commit(pin, operation)
        self._recent.record_version(tip, pin)
        return tip

    def convert_columns(
        self, pin: Pin, columns: Sequence[ConvertedColumn], *, own: list[Any]
    ) -> Pin:
        """The version with more columns, whose values are made of others; `own` gets its files."""
        dataset = self._handles.get(pin)
        new = pa.schema([each.field for each in columns])
        with translate_lance_errors("convert_columns", pin.path):
            wider = append_fields(dataset, new, path=pin.path)
            self._require_inputs(pin, dataset, dataset.fragment_ids())
            seal = partial(self._seal_fragments, pin.path, new)
            own.append(written := WidenedTable(pin.path, []))
            written.fragments.extend(write_converted_columns(dataset, columns, seal=seal))
            parts = [each.metadata for each in written.fragments]
            operation = LanceOperation.Merge(parts, wider, preserves_nullability=True)
        return self._commit(
            pin, operation, files=[f"data/{each.file}" for each in written.fragments]
        )

    def plan_compaction(self, pin: Pin, *, is_thorough: bool = False) -> Compaction | None:
        """The next useful rewrite of small or half-dead fragments, or None.

        A thorough one joins whatever can be joined, at any cost.
        """
        with translate_lance_errors("plan_compaction", pin.path):
            dataset = self._handles.get(pin)
            return fragment_compaction.plan_compaction(dataset, pin, is_thorough=is_thorough)

    def compact(self, plan: Compaction) -> Compacted:
        """Write the files of a planned compaction; no version shows them yet."""
        return self.with_indexes(self.rewrite(plan), self.build_indexes)

    def rewrite(self, plan: Compaction) -> Compacted:
        """Write the data files of a planned compaction, or of some of its tasks."""
        dataset = self._handles.get(plan.pin)
        groups: list[fragment_compaction.Rewritten] = []
        require = partial(self._require_inputs, plan.pin, dataset)
        with translate_lance_errors("compact", plan.pin.path):
            schema = to_logical_schema(dataset.schema)
        seal = partial(self._seal_fragments, plan.pin.path, schema)
        try:
            with translate_lance_errors("compact", plan.pin.path):
                groups.extend(
                    fragment_compaction.execute_compaction(
                        dataset, plan, require_inputs=require, seal=seal
                    )
                )
            compacted = Compacted(plan.pin, tuple(groups))
            self._disk.persist(plan.pin.path, _list_files(compacted.files, schema))
        except BaseException:
            with suppress(Exception):
                self.discard(Compacted(plan.pin, tuple(groups)))
            raise
        return compacted

    def replay(self, work: Compacted | Indexed, pin: Pin) -> Pin | None:
        """Maintenance applied to a version as new as you like.

        None means that a compaction has to be planned again; an index only loses what no longer
        fits, which may be all of it.
        """
        if isinstance(work, Indexed):
            return self._with_segments(work, pin)
        with translate_lance_errors("replay", pin.path):
            step = self._rewrite(work, pin)
        if step is None:
            return None
        # The versions in between are wrong by themselves: only the last one is given away.
        tip = self._commit(pin, step.rewrite)
        tip = self.replace(tip, dead=step.revived)
        tip = tip if work.indexed is None else self._with_segments(work.indexed, tip)
        self._recent.record_version(tip, pin)
        return tip

    def build_indexes(self, pin: Pin, specs: Sequence[IndexSpec]) -> Indexed | None:
        """Index what some indexes do not cover, or lack altogether; no version shows it yet.

        None when there is nothing to do.
        """
        return self.build_parts(pin, self.cut_indexes(pin, specs))

    def cut_indexes(
        self, pin: Pin, specs: Sequence[IndexSpec], *, rows_max: int | None = None
    ) -> list[IndexPart]:
        """What indexes do not cover, in parts that can be built at the same time."""
        dataset = self._handles.get_own(pin)
        with translate_lance_errors("cut_indexes", pin.path):
            damaged = self._verifier.find_damaged_segments(pin, dataset)
            return [
                part
                for spec in specs
                for part in table_indexes.cut_index(dataset, spec, damaged, rows_max)
            ]

    def build_parts(self, pin: Pin, parts: Sequence[IndexPart]) -> Indexed | None:
        """Build parts of indexes; no version shows them yet. None when there is nothing to do."""
        dataset = self._handles.get_own(pin)
        built: list[table_indexes.BuiltSegment] = []
        seal = partial(self._seal_segment, pin.path)
        try:
            with translate_lance_errors("build_indexes", pin.path):
                plans = table_indexes.plan_segments(
                    dataset, parts, partial(self._verifier.find_damaged_inputs, pin)
                )
                # Indexes of several columns are made of the same files.
                fragments = {id_ for each in plans for id_ in each.plan.fragment_ids}
                self._require_inputs(pin, dataset, fragments)
                built.extend(table_indexes.build_segments(dataset, plans, seal))
            indexed = Indexed(pin, tuple(built))
            self._disk.persist(pin.path, indexed.folders)
        except BaseException:
            with suppress(Exception):
                self.discard(Indexed(pin, tuple(built)))
            raise
        return indexed if built else None

    def list_references(self, pin: Pin) -> set[str]:
        """Every object the version needs; a path with a closing slash means all below it."""
        with translate_lance_errors("references", pin.path):
            return {f"{pin.path}/{name}" for name in references_of(self._handles.get(pin))}

    def read_linear_history(self, path: str) -> LinearHistory:
        """What the linear history of a table has come to."""
        latest = self._handles.open_latest(path)
        with translate_lance_errors("read_transaction", path):
            return linear_of(latest)

    def list_stored_files(self, pin: Pin) -> list[StoredFile]:
        """The data files, deletion files and index segments of a version, with their digests."""
        dataset = self._handles.get(pin)
        with translate_lance_errors("stored_files", pin.path):
            return [
                *file_digests.list_data_files(dataset),
                *file_digests.list_index_folders(dataset),
            ]

    def compute_manifest_digest(self, pin: Pin) -> str | None:
        """The digest that a pin without one should have; None where manifests have none."""
        return self._handles.compute_manifest_digest(pin)

    def find_damage(self, path: str, file: StoredFile) -> str | None:
        """What is wrong with a file of a table that has a digest, read as a whole."""
        with translate_lance_errors("read", path):
            return self._verifier.find_problem(path, file)

    def find_damaged_indexes(self, pin: Pin, *, is_thorough: bool = False) -> list[StoredFile]:
        """The index segments of a version that are not as they were written; no read uses them.

        Of large ones only a thorough look finds it.
        """
        dataset = self._handles.get(pin)
        with translate_lance_errors("read", pin.path):
            found = self._verifier.find_damaged_segments(pin, dataset, is_thorough=is_thorough)
        return [file_digests.build_segment_folder(name) for name in sorted(found)]

    def _require_inputs(self, pin: Pin, dataset: LanceDataset, fragments: Collection[int]) -> None:
        self._verifier.require_inputs(pin.path, file_digests.list_data_files(dataset, fragments))

    def _seal_fragments(
        self, path: str, schema: pa.Schema, fragments: Iterable[FragmentMetadata]
    ) -> list[FragmentMetadata]:
        if not self._verifier.is_active:
            return list(fragments)
        has_blobs = any(map(is_blob, schema))
        return file_digests.seal_data(f"{self.root}/{path}", fragments, has_blobs=has_blobs)

    def _seal_segment(self, path: str, segment: Segment) -> Segment:
        if not self._verifier.is_active:
            return segment
        return file_digests.seal_segment(f"{self.root}/{path}", segment)

    def _rewrite(self, compacted: Compacted, pin: Pin) -> fragment_compaction.Replay | None:
        planned, current = self._handles.get(compacted.pin), self._handles.get(pin)
        # Which rows died meanwhile is copied into new deletion files.
        left = set(compacted.inputs).intersection(current.fragment_ids())
        for dataset, inputs in ((planned, compacted.inputs), (current, left)):
            self._verifier.require_inputs(
                pin.path, file_digests.list_deletion_files(dataset, inputs)
            )
        return fragment_compaction.replay_compaction(
            compacted, planned=planned, current=current, pin=pin
        )

    def with_indexes(self, compacted: Compacted, build: BuildIndexes) -> Compacted:
        """A compaction with segments for the indexes that forget rewritten rows.

        They are made before a commit waits for them, on a private version, whose new fragments
        have the ids that they will also have in the version that is given away.
        """
        dataset = self._handles.get(compacted.pin)
        with translate_lance_errors("lost_coverage", compacted.pin.path):
            damaged = self._verifier.find_damaged_segments(compacted.pin, dataset)
            forgetful = table_indexes.find_lost_coverage(dataset, compacted.inputs, damaged)
        if not forgetful:
            return compacted
        step = self._rewrite(compacted, compacted.pin)
        assert step is not None, "a compaction fits the version it was planned on"
        tip = self._commit(compacted.pin, step.rewrite)
        specs = [IndexSpec(index.name, index.column) for index in forgetful]
        return dataclasses.replace(compacted, indexed=build(tip, specs))

    def _with_segments(self, indexed: Indexed, pin: Pin) -> Pin:
        with translate_lance_errors("add_segments", pin.path):
            operation = table_indexes.apply_segments(self._handles.get(pin), indexed)
        return pin if operation is None else self._commit_index(pin, operation)

    def _commit_index(self, pin: Pin, operation: LanceOperation.CreateIndex) -> Pin:
        folders = [f"_indices/{segment.uuid}/" for segment in operation.new_indices]
        tip = self._commit(pin, operation, files=folders)
        self._recent.record_version(tip, pin)
        return tip

    def _commit(
        self, pin: Pin, operation: LanceOperation.BaseOperation, *, files: Sequence[str] = ()
    ) -> Pin:
        # A crash before or after this commit leaves files that no record refers to. All of them
        # are on the disk before the pin is given away, hence before a record can name it.
        tip = self._handles.commit(pin, operation)
        self._disk.persist(pin.path, [*files, manifest_of(self._handles.get(tip))])
        return tip


def _list_files(names: Iterable[str], schema: pa.Schema) -> list[str]:
    """Data files and the folders of their blobs, relative to the table."""
    files = [f"data/{name}" for name in names]
    return [*files, *map(sidecars_of, files)] if any(map(is_blob, schema)) else files


def _list_unsynced(staged: Sequence[Staged]) -> list[str]:
    return [name for part in staged for name in part.unsynced]
