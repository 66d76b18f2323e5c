"""A snapshot: a graph as of one commit, with every operation that reads."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from omnigraph import versioning
from omnigraph.bulk.task_runner import LocalRunner, StageProgress
from omnigraph.changes.rows_by_id import fetch_rows
from omnigraph.changes.type_difference import decode_images, encode_images
from omnigraph.engine import arguments
from omnigraph.engine.blob_reader import Blob, open_blob
from omnigraph.engine.commit import Commit
from omnigraph.engine.diff import Diff, compute_diff
from omnigraph.engine.entity_changes import parse_filters
from omnigraph.engine.graph_session import Session
from omnigraph.engine.noun_views import render_state
from omnigraph.engine.read_cursors import COLLECTED, ReadCursor, find_snapshot
from omnigraph.engine.read_requests import (
    PreparedRead,
    QueryText,
    ReadEngine,
    ReadRequest,
    build_read_request,
    prepare_read,
    require_engine,
)
from omnigraph.engine.refs import StateRef, resolve
from omnigraph.engine.visible_rows import VisibleRows, compile_limits, require_all_rows
from omnigraph.engine.write_results import TableInfo
from omnigraph.errors import (
    BlobNotFoundError,
    CursorStaleError,
    InvalidArgumentError,
    SnapshotGoneError,
    TypeNotFoundError,
)
from omnigraph.execution.optimizer.explain_plan import Explained
from omnigraph.execution.optimizer.plan_split import read_types_of
from omnigraph.execution.query_budget import Cancellation
from omnigraph.execution.result import Result
from omnigraph.format_version import IR_VERSION
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.policy.acts import Act, Action
from omnigraph.query.query_settings import SettingValue
from omnigraph.rows.json_export import export_lines
from omnigraph.rows.type_dataset import TypeDataset
from omnigraph.rows.view import View, table_types_of
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.schema_shape import JsonObject

if TYPE_CHECKING:
    from omnigraph.exports.file_export import ExportResult

EntityKind = Literal["node", "edge"]
# What an export writes.
ExportFormatName = Literal["parquet", "jsonl", "csv", "graphml", "gexf"]


class Snapshot:
    """An immutable graph: the same questions give the same answers for ever."""

    def __init__(self, session: Session, at: versioning.Snapshot) -> None:
        self._session = session
        self._at = at
        self._opened: View | None = None

    @property
    def at(self) -> versioning.Snapshot:
        """The schema and the pins it consists of."""
        return self._at

    @property
    def uri(self) -> str:
        """The address of its graph."""
        return self._session.uri

    @property
    def branch(self) -> str:
        """The branch it was taken of."""
        return self._at.stream.branch

    @property
    def version(self) -> int:
        """How many commits the branch had before its commit."""
        return self._at.seq

    @property
    def commit(self) -> Commit:
        """The commit that made it."""
        self._session.authorize(Act(Action.READ, self.branch), None)
        return self._session.read_commit(self._at)

    @property
    def schema(self) -> str:
        """The text of the schema that was in force."""
        return self.view.schema.source

    @property
    def catalog(self) -> Catalog:
        """The types of the schema that was in force, for the layers below."""
        return self.view.catalog

    @property
    def view(self) -> View:
        """The snapshot with its schema and its tables, for the layers below."""
        return self.open_for(Action.READ, None)

    def open_for(self, action: Action, types: Collection[str] | None) -> View:
        """The snapshot for a caller who does something with some types, or with all of them."""
        self._session.require_open()
        act = Act(action, self.branch)
        require_all_rows(self._session.authorize_rows(act, types), act, types, self._view.catalog)
        return self._view

    def _open_rows(self, action: Action, types: Collection[str]) -> tuple[View, VisibleRows]:
        """The snapshot for a caller who leaves out the rows of some types that he does not see."""
        self._session.require_open()
        limits = self._session.authorize_rows(Act(action, self.branch), types)
        view = self._view
        guards = () if limits is None else compile_limits(limits, view.catalog)
        now = self._session.resources.environment.now_ms()
        return view, VisibleRows(view, guards, now=now)

    @property
    def _own_view(self) -> View:
        """The snapshot where its rows are not read, or where reading them was allowed."""
        self._session.require_open()
        return self._view

    @property
    def _view(self) -> View:
        # Not a cached property: all snapshots would share its lock.
        if self._opened is None:
            self._opened = self._session.open_view(self._at)
        return self._opened

    def query(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        text: QueryText,
        *,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        settings: Mapping[str, SettingValue] | None = None,
        cancel: Cancellation | None = None,
        engine: ReadEngine = "local",
    ) -> Result:
        """Run a read; a text with one declaration needs no name. A `Path` is a file with the text.

        After `timeout` seconds, from the first character of the text to the last row, it is
        stopped, and one that needs more than `memory` bytes is refused. `cancel` lets another
        thread stop it. `settings` hold unless the text changes them. The `spark` engine answers the
        same by tasks of the active Spark session, or of one it makes; it does not rank.
        """
        request = build_read_request(
            text,
            name=name,
            params=params,
            timeout=timeout,
            memory=memory,
            settings=settings,
            cancel=cancel,
        )
        return self.answer(request, engine)

    def answer(self, request: ReadRequest, engine: ReadEngine = "local") -> Result:
        """Run the read of a request, for the layers above."""
        return self.answer_named(request, engine)[1]

    def answer_named(
        self, request: ReadRequest, engine: ReadEngine = "local"
    ) -> tuple[str, Result]:
        """The name of the read of a request, which its text may leave out, and its result."""
        if require_engine(engine) == "spark":
            with self._session.guard_reads(self._at):
                read = self._prepare(request)
                return read.plan.name, read.run_on_spark()
        with self._session.admit_read(request.text, request.name):
            return self.answer_in_turn(request)

    def answer_in_turn(self, request: ReadRequest) -> tuple[str, Result]:
        """What `answer_named` does, for a caller that has admitted the read."""
        with self._session.guard_reads(self._at):
            read = self._prepare(request)
            if (cursor := self._find_elsewhere(read)) is None:
                return read.plan.name, read.run()
        with self._open_cursor(cursor) as there:
            return there.answer_in_turn(request)

    def explain(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        text: QueryText,
        *,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        analyze: bool = True,
        timeout: float | None = None,
        memory: int | None = None,
        settings: Mapping[str, SettingValue] | None = None,
        cancel: Cancellation | None = None,
    ) -> Explained:
        """How a read is answered: its operators, where they read, and their rows.

        To analyze it, it is run, within the bounds of `query`; then rows and times are measured.
        Otherwise no parameter is needed.
        """
        request = build_read_request(
            text,
            name=name,
            params=params,
            timeout=timeout,
            memory=memory,
            settings=settings,
            cancel=cancel,
        )
        return self.describe(request, analyze=analyze)[1]

    def describe(self, request: ReadRequest, *, analyze: bool) -> tuple[str, Explained]:
        """The name of the read of a request, and how it is answered, for the layers above."""
        with self._session.guard_reads(self._at):
            read = self._prepare(request, is_partial=not analyze)
            if (cursor := self._find_elsewhere(read)) is None:
                return read.plan.name, read.explain(analyze=analyze)
        with self._open_cursor(cursor) as there:
            return there.describe(request, analyze=analyze)

    def _find_elsewhere(self, read: PreparedRead) -> ReadCursor | None:
        """The cursor of a read that goes on in another commit."""
        cursor = read.cursor
        return None if cursor is None or cursor.commit == self._at.commit else cursor

    @contextmanager
    def _open_cursor(self, cursor: ReadCursor) -> Iterator[Snapshot]:
        """The state that the first page was read from."""
        try:
            yield Snapshot(self._session, find_snapshot(self._session, self._at, cursor))
        except SnapshotGoneError as gone:
            raise CursorStaleError(COLLECTED) from gone

    def _prepare(self, request: ReadRequest, *, is_partial: bool = False) -> PreparedRead:
        view, session, act = self._own_view, self._session, Act(Action.READ, self.branch)
        limits = session.authorize_rows(act)
        read = prepare_read(session.resources, view, request, limits=limits, is_partial=is_partial)
        if session.limits_types:
            session.authorize_rows(act, {key.name for key in read_types_of(read.plan.root)})
        return read

    def dataset(
        self, type_name: str, kind: EntityKind | None = None, *, blobs: bool = False
    ) -> TypeDataset:
        """The entities of a type as a pyarrow dataset, for DuckDB, DataFusion, polars and others.

        Its columns are `@id`, for edges `@src` and `@dst`, and all properties; blobs, which may be
        large, only if they are asked for.
        """
        type_key = self.type_key(type_name, kind)
        view, visible = self._open_rows(Action.READ, [type_name])
        return TypeDataset(view, type_key, *visible.build_filter(type_key), has_blobs=blobs)

    def to_arrow(
        self, type_name: str, kind: EntityKind | None = None, *, blobs: bool = False
    ) -> pa.Table:
        """The entities of a type as an Arrow table, with the columns of `dataset`.

        Loaded with `mode="merge"`, it changes nothing but what was changed in it: properties for
        which it has no column, such as blobs, keep their values.
        """
        with self._session.guard_reads(self._at):
            return self.dataset(type_name, kind, blobs=blobs).to_table()

    def to_networkx(
        self, types: Collection[str] | None = None, *, vectors: bool = False
    ) -> Any:  # networkx is optional
        """Everything, or some types, as a `MultiDiGraph` of networkx.

        A node is called `(type, id)` and an edge has `(type, id)` as its key; properties are
        attributes. Vectors, which take most of the time and memory, only if they are asked for.
        """
        from omnigraph.networks.networkx_graph import to_networkx  # noqa: PLC0415 — as below

        with self._session.guard_reads(self._at):
            return to_networkx(*self._select_types(types), has_vectors=vectors)

    def to_rustworkx(
        self, types: Collection[str] | None = None, *, vectors: bool = False
    ) -> Any:  # rustworkx is optional
        """Everything, or some types, as a `PyDiGraph` of rustworkx.

        Nodes and edges are dictionaries of `@id`, `@type` and properties.
        """
        from omnigraph.networks.rustworkx_graph import to_rustworkx  # noqa: PLC0415 — as below

        with self._session.guard_reads(self._at):
            return to_rustworkx(*self._select_types(types), has_vectors=vectors)

    def to_igraph(
        self, types: Collection[str] | None = None, *, vectors: bool = False
    ) -> Any:  # igraph is optional
        """Everything, or some types, as a directed `Graph` of igraph.

        Vertices and edges have `@id`, `@type` and the properties of all types as attributes.
        """
        from omnigraph.networks.igraph_graph import to_igraph  # noqa: PLC0415 — as below

        with self._session.guard_reads(self._at):
            return to_igraph(*self._select_types(types), has_vectors=vectors)

    def to_pyg(self, types: Collection[str] | None = None) -> Any:  # PyTorch is optional
        """Everything, or some types, as a `HeteroData` of PyTorch Geometric.

        Numbers, booleans and vectors are tensors, with NaN for null; `@id` has the ids of a type.
        """
        from omnigraph.networks.pyg_graph import to_pyg  # noqa: PLC0415 — few programs need it

        with self._session.guard_reads(self._at):
            return to_pyg(*self._select_types(types))

    def _select_types(self, types: Collection[str] | None) -> tuple[View, list[TypeKey]]:
        """The snapshot for a caller who reads all types, or those of some names."""
        names = arguments.require_optional_texts("types", types)
        view = self.open_for(Action.READ, names)
        if names is None:
            return view, list(view.types)
        for name in names:
            self.type_key(name, None)
        return view, [each for each in view.types if each.name in names]

    def export(self, *, types: Collection[str] | None = None) -> Iterator[bytes]:
        """Everything, or some types, as chunks of whole JSON lines that a load reads back."""
        names = arguments.require_optional_texts("types", types)
        return self._guard_lines(export_lines(self.open_for(Action.EXPORT, names), types=names))

    def export_files(
        self,
        path: str | os.PathLike[str],
        *,
        format: ExportFormatName | None = None,  # noqa: A002 — the usual name
        types: Collection[str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        progress: StageProgress | None = None,
    ) -> ExportResult:
        """Write all types, or some, to a new directory or `s3://` prefix, in folders by type.

        GraphML and GEXF are one file; a path that ends so needs no `format`, which is otherwise
        Parquet. A directory or file appears at once; on S3 `_SUCCESS` comes last. Without
        `storage_options` those of the graph are used. `Graph.spark.export` does it by tasks.
        """
        from omnigraph.exports.file_export import export_to  # noqa: PLC0415 — few programs export

        names = arguments.require_optional_texts("types", types)
        view = self.open_for(Action.EXPORT, names)
        keys = [key for key in view.types if names is None or key.name in names]
        for name in names or ():
            self.type_key(name)
        stored = self._session.resources.storage.tables.options
        options = stored if storage_options is None else arguments.require_options(storage_options)
        with self._session.guard_reads(self._at):
            return export_to(
                view,
                keys,
                LocalRunner(progress),
                address=arguments.require_address(path),
                options=options,
                format_name=format,
            )

    def _guard_lines(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        with self._session.guard_reads(self._at):
            yield from lines

    def diff(
        self,
        new: StateRef,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> Diff:
        """What changed from this state to another one; see `Graph.diff`."""
        session = self._session
        state = resolve(session, "new", new).at
        return compute_diff(session, self._at, state, parse_filters(kinds, types, ops))

    def blob(
        self,
        kind: EntityKind,
        type_name: str,
        entity_id: str,
        property: str,  # noqa: A002
    ) -> Blob:
        """The blob of a property; one that is null or missing is not found."""
        type_key = self.type_key(type_name, arguments.require_text("kind", kind))
        arguments.require_text("entity_id", entity_id)
        arguments.require_text("property", property)
        with self._session.guard_reads(self._at):
            view, visible = self._open_rows(Action.READ, [type_name])
            if not visible.has_entity(type_key, entity_id):
                reason = f"no {type_key.name} has this id"
                raise BlobNotFoundError(str(type_key), entity_id, property, reason=reason)
            return open_blob(view, type_key, entity_id=entity_id, property_name=property)

    def entity(
        self, type_name: str, entity_id: str, *, kind: EntityKind | None = None
    ) -> JsonObject | None:
        """One entity as the change feed shows it: `properties` and, for an edge, `endpoints`."""
        type_key = self.type_key(type_name, kind)
        ids = pa.array([arguments.require_text("entity_id", entity_id)], pa.large_string())
        view, visible = self._open_rows(Action.READ, [type_name])
        if not visible.has_entity(type_key, entity_id):
            return None
        rows = fetch_rows(view, type_key, ids)
        found: list[JsonObject | None] = decode_images(
            encode_images(rows, view.get_shape(type_key))
        )
        return found[0] if found else None

    def count(self, type_name: str, kind: EntityKind | None = None) -> int:
        """How many entities a type has; of a node and an edge type of one name, the nodes."""
        type_key = self.type_key(type_name, kind)
        _, visible = self._open_rows(Action.READ, [type_name])
        if visible.are_limited(type_key):
            with self._session.guard_reads(self._at):
                return visible.count(type_key)
        return self._at.pins[str(type_key)].rows

    def tables(self) -> list[TableInfo]:
        """The table of every type, edges before nodes, then by name."""
        view = self.view
        return [
            TableInfo(
                *(str(key.kind), key.name, pin.path, pin.version, pin.rows),
                columns=view.get_shape(key).columns,
            )
            for key in sorted(table_types_of(view.catalog), key=str)
            for pin in [self._at.pins[str(key)]]
        ]

    def list_readable_types(self) -> list[tuple[TypeKey, NodeType | EdgeType]]:
        """The types that the caller may read, nodes before edges, for the layers above."""
        catalog = self.open_for(Action.READ, ()).catalog
        types: list[tuple[TypeKey, NodeType | EdgeType]] = [
            *((TypeKey(TypeKind.NODE, each.name), each) for each in catalog.nodes.values()),
            *((TypeKey(TypeKind.EDGE, each.name), each) for each in catalog.edges.values()),
        ]
        types.sort(key=lambda each: (each[0].kind is TypeKind.EDGE, each[0].name))
        if not self._session.limits_types:
            return types
        act = Act(Action.READ, self.branch)
        return [each for each in types if self._session.is_allowed(act, [each[0].name])]

    def to_json(self) -> JsonObject:
        """The document that commands and servers answer for a snapshot: SnapshotOutput."""
        return {
            "graph_branch": self.branch,
            "graph_manifest_version": self.version,
            "internal_schema_version": IR_VERSION,
            "datasets": [table.to_json() for table in self.tables()],
        }

    def type_key(self, type_name: str, kind: str | None = None) -> TypeKey:
        """The type of a name, for the layers below; without a kind, a node wins over an edge."""
        catalog = self._own_view.catalog
        arguments.require_text("type_name", type_name)
        match kind:
            case None:
                is_node = type_name in catalog.nodes or type_name not in catalog.edges
                type_key = TypeKey(TypeKind.NODE if is_node else TypeKind.EDGE, type_name)
            case "node" | "edge":
                type_key = TypeKey(TypeKind(kind), type_name)
            case _:
                raise InvalidArgumentError("kind", f"'{kind}' is neither 'node' nor 'edge'")
        types = table_types_of(catalog)
        if type_key not in types:
            names = sorted({known.name for known in types if kind in (None, known.kind.value)})
            raise TypeNotFoundError(type_name, hint=suggest_similar(type_name, names))
        return type_key

    def __repr__(self) -> str:
        return f"Snapshot({self.branch!r}, version={self.version}, commit={self._at.commit!r})"

    def _repr_html_(self) -> str:
        return render_state(self)
