"""Reads of the newest state of a branch: what a snapshot offers, without taking one first."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.bulk.task_runner import StageProgress
from omnigraph.engine.blob_reader import Blob
from omnigraph.engine.commit import Commit
from omnigraph.engine.noun_views import render_state
from omnigraph.engine.snapshot import EntityKind, ExportFormatName, Snapshot
from omnigraph.engine.write_results import TableInfo
from omnigraph.rows.type_dataset import TypeDataset
from omnigraph.schema.schema_shape import JsonObject

if TYPE_CHECKING:
    from omnigraph.exports.file_export import ExportResult


class BranchReads(ABC):
    """Each read sees the newest commit of its moment; several of one state need a snapshot."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The graph as it is now, pinned."""

    @property
    def uri(self) -> str:
        """The address of its graph."""
        return self.snapshot().uri

    @property
    def head(self) -> Commit:
        """Its newest commit."""
        return self.snapshot().commit

    @property
    def commit(self) -> Commit:
        """Its newest commit, as of a snapshot."""
        return self.snapshot().commit

    @property
    def version(self) -> int:
        """How many commits came before its newest one."""
        return self.snapshot().version

    @property
    def schema(self) -> str:
        """The text of the schema in force."""
        return self.snapshot().schema

    def dataset(
        self, type_name: str, kind: EntityKind | None = None, *, blobs: bool = False
    ) -> TypeDataset:
        """The entities of a type as a pyarrow dataset; see `Snapshot.dataset`."""
        return self.snapshot().dataset(type_name, kind, blobs=blobs)

    def to_arrow(
        self, type_name: str, kind: EntityKind | None = None, *, blobs: bool = False
    ) -> pa.Table:
        """The entities of a type as an Arrow table; see `Snapshot.to_arrow`."""
        return self.snapshot().to_arrow(type_name, kind, blobs=blobs)

    def to_networkx(
        self, types: Collection[str] | None = None, *, vectors: bool = False
    ) -> Any:  # networkx is optional
        """Everything, or some types, as a graph of networkx; see `Snapshot.to_networkx`."""
        return self.snapshot().to_networkx(types, vectors=vectors)

    def to_rustworkx(
        self, types: Collection[str] | None = None, *, vectors: bool = False
    ) -> Any:  # rustworkx is optional
        """Everything, or some types, as a graph of rustworkx; see `Snapshot.to_rustworkx`."""
        return self.snapshot().to_rustworkx(types, vectors=vectors)

    def to_igraph(
        self, types: Collection[str] | None = None, *, vectors: bool = False
    ) -> Any:  # igraph is optional
        """Everything, or some types, as a graph of igraph; see `Snapshot.to_igraph`."""
        return self.snapshot().to_igraph(types, vectors=vectors)

    def to_pyg(self, types: Collection[str] | None = None) -> Any:  # PyTorch is optional
        """Everything, or some types, for PyTorch Geometric; see `Snapshot.to_pyg`."""
        return self.snapshot().to_pyg(types)

    def export_files(
        self,
        path: str | os.PathLike[str],
        *,
        format: ExportFormatName | None = None,  # noqa: A002 — the usual name
        types: Collection[str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        progress: StageProgress | None = None,
    ) -> ExportResult:
        """Write all types, or some, as files for other programs; see `Snapshot.export_files`."""
        return self.snapshot().export_files(
            path, format=format, types=types, storage_options=storage_options, progress=progress
        )

    def entity(
        self, type_name: str, entity_id: str, *, kind: EntityKind | None = None
    ) -> JsonObject | None:
        """One entity as the change feed shows it: `properties` and, for an edge, `endpoints`."""
        return self.snapshot().entity(type_name, entity_id, kind=kind)

    def blob(
        self,
        kind: EntityKind,
        type_name: str,
        entity_id: str,
        property: str,  # noqa: A002
    ) -> Blob:
        """The blob of a property; one that is null or missing is not found."""
        return self.snapshot().blob(kind, type_name, entity_id, property)

    def count(self, type_name: str, kind: EntityKind | None = None) -> int:
        """How many entities a type has; of a node and an edge type of one name, the nodes."""
        return self.snapshot().count(type_name, kind)

    def tables(self) -> list[TableInfo]:
        """The table of every type, edges before nodes, then by name."""
        return self.snapshot().tables()

    def _repr_html_(self) -> str:
        return render_state(self)
