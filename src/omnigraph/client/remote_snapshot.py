"""A graph on a server as of one commit."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa

from omnigraph.client.document_decoding import decode_explained, decode_table
from omnigraph.client.http_transport import Call, HttpTransport, Query, iter_lines
from omnigraph.client.remote_diff import RemoteDiff, compute_remote_diff
from omnigraph.client.remote_states import RemoteHandle, build_entity, build_filters, format_state
from omnigraph.client.result_columns import describe_column
from omnigraph.engine import arguments
from omnigraph.engine.blob_reader import Blob
from omnigraph.engine.commit import Commit
from omnigraph.engine.entity_changes import parse_filters
from omnigraph.engine.read_requests import QueryText, ReadEngine, read_query_text, require_engine
from omnigraph.engine.refs import StateRef
from omnigraph.engine.snapshot import EntityKind, Snapshot
from omnigraph.engine.write_results import TableInfo
from omnigraph.errors import EntityNotFoundError, OmnigraphError, TypeNotFoundError
from omnigraph.execution.optimizer.explain_plan import Explained
from omnigraph.execution.query_budget import Cancellation
from omnigraph.execution.result import Result
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.query.query_settings import SettingValue
from omnigraph.schema import accept_schema, load_catalog
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.wire.protocol_names import ARROW, BYTES, COMMIT_HEADER, JSON, PAGE_METADATA


class RemoteSnapshot(RemoteHandle, Snapshot):  # type: ignore[override]  # see RemoteHandle
    """The same questions give the same answers for ever; each is a request."""

    def __init__(self, transport: HttpTransport, commit: Commit, branch: str) -> None:
        self.transport = transport
        self._commit = commit
        self._branch = branch

    @property
    def uri(self) -> str:
        """The address of its graph."""
        return self.transport.url

    @property
    def branch(self) -> str:
        """The branch it was taken of."""
        return self._branch

    @property
    def version(self) -> int:
        """How many commits the branch had before its commit."""
        return self._commit.version

    @property
    def commit(self) -> Commit:
        """The commit that made it."""
        return self._commit

    @cached_property
    def schema(self) -> str:
        """The text of the schema that was in force."""
        found: str = self.transport.get("schema", query=self._state)["schema_source"]
        return found

    @property
    def catalog(self) -> Catalog:
        """The types of that schema."""
        return accept_schema(load_catalog(self.schema)).schema.catalog

    @property
    def _state(self) -> Query:
        return [("snapshot", self._commit.id)]

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
        """Run a read; see `Snapshot.query`."""
        if require_engine(engine) == "spark":
            self._refuse("a read on Spark")
        document = build_read(
            text, name=name, params=params, timeout=timeout, memory=memory, settings=settings
        )
        document["snapshot"] = self._commit.id
        source = document["query"]
        return run_read(
            self.transport, ("query",), document, source, arguments.require_cancellation(cancel)
        )

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
        """How a read is answered; see `Snapshot.explain`."""
        document = build_read(
            text, name=name, params=params, timeout=timeout, memory=memory, settings=settings
        )
        document |= {"snapshot": self._commit.id, "analyze": analyze}
        return explain_read(self.transport, document, arguments.require_cancellation(cancel))

    def export(self, *, types: Collection[str] | None = None) -> Iterator[bytes]:
        """Everything, or some types, as chunks of whole JSON lines that a load reads back."""
        names = arguments.require_optional_texts("types", types)
        document = {"snapshot": self._commit.id, "type_names": names}
        return iter_lines(self.transport, ("export",), document)

    def diff(
        self,
        new: StateRef,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> RemoteDiff:
        """What changed from this state to another one; see `Graph.diff`."""
        parse_filters(kinds, types, ops)
        document = {"old": self._commit.id, "new": format_state("new", new)}
        return compute_remote_diff(self.transport, document, build_filters(kinds, types, ops))

    def blob(
        self,
        kind: EntityKind,
        type_name: str,
        entity_id: str,
        property: str,  # noqa: A002
    ) -> Blob:
        """The blob of a property; one that is null or missing is not found."""
        fields = {"entity": kind, "type": type_name, "id": entity_id, "property": property}
        return open_blob(self.transport, [*fields.items(), *self._state])

    def entity(
        self, type_name: str, entity_id: str, *, kind: EntityKind | None = None
    ) -> JsonObject | None:
        """One entity as the change feed shows it: `properties` and, for an edge, `endpoints`."""
        fields = build_entity(type_name, entity_id, kind)
        try:
            found: JsonObject = self.transport.get("entity", query=[*fields.items(), *self._state])
        except EntityNotFoundError:
            return None
        return found

    def count(self, type_name: str, kind: EntityKind | None = None) -> int:
        """How many entities a type has; of a node and an edge type of one name, the nodes."""
        tables = self.tables()
        wanted = ("node", "edge") if kind is None else (kind,)
        for each in wanted:
            for table in tables:
                if (table.kind, table.type_name) == (each, type_name):
                    return table.rows
        names = sorted({table.type_name for table in tables})
        raise TypeNotFoundError(type_name, hint=suggest_similar(type_name, names))

    def tables(self) -> list[TableInfo]:
        """The table of every type, edges before nodes, then by name."""
        return [decode_table(each) for each in self.to_json()["datasets"]]

    def to_json(self) -> JsonObject:
        """The document of a snapshot, by the name of its branch."""
        found: JsonObject = self.transport.get("snapshot", query=self._state)
        return found | {"graph_branch": self._branch}

    def __repr__(self) -> str:
        return f"Snapshot({self._branch!r}, version={self.version}, commit={self._commit.id!r})"


def build_read(
    text: QueryText,
    *,
    name: str | None,
    params: Mapping[str, object] | None,
    timeout: float | None,
    memory: int | None,
    settings: Mapping[str, SettingValue] | None,
) -> dict[str, Any]:  # Any: JSON values
    """The body of a read, without its state."""
    return {
        "query": read_query_text(text),
        "name": name,
        "params": arguments.normalize_parameters(params),
        "timeout": timeout,
        "memory": memory,
        "settings": None if settings is None else dict(settings),
    }


def explain_read(
    transport: HttpTransport,
    document: dict[str, Any],  # Any: JSON values
    cancel: Cancellation | None,
) -> Explained:
    """How the server answers a read."""
    given = {name: value for name, value in document.items() if value is not None}
    call = Call("POST", ("explain",), document=given, source=given["query"], cancel=cancel)
    return decode_explained(transport.send(call).read_json())


def run_read(
    transport: HttpTransport,
    segments: tuple[str, ...],
    document: dict[str, Any],  # Any: JSON values
    source: str,
    cancel: Cancellation | None = None,
) -> Result:
    """The rows of a read, in Arrow if the server has it."""
    accept = f"{ARROW}, {JSON};q=0.9"
    given = {name: value for name, value in document.items() if value is not None}
    call = Call(
        "POST",
        segments,
        document=given,
        accept=accept,
        source=source,
        cancel=cancel,
        timeout_s=given.get("timeout"),
    )
    reply = transport.send(call)
    if reply.content_type == ARROW:
        rows = pa.ipc.open_stream(reply.content).read_all()
        metadata = rows.schema.metadata or {}
        page = json.loads(metadata.get(PAGE_METADATA, b"{}"))
        rows = rows.replace_schema_metadata(None)
        commit_id = reply.headers.get(COMMIT_HEADER)
    else:
        page = reply.read_json()
        rows = _build_table(page)
        commit_id = page.get("graph_commit_id")
    return Result(
        tuple(map(describe_column, rows.schema)),
        rows,
        commit_id=commit_id,
        total=page.get("total"),
        cursor=page.get("cursor"),
        has_cursor="cursor" in page,
    )


def _build_table(document: dict[str, Any]) -> pa.Table:  # Any: JSON values
    """The rows of a document; their types are those of JSON."""
    rows = document["rows"]
    names = document.get("columns") or sorted({name for row in rows for name in row})
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})


class _RemoteBytes:
    """The bytes of a blob, a range per request; they stay those of its tag."""

    def __init__(self, transport: HttpTransport, query: Query, size: int, etag: str) -> None:
        self._transport = transport
        self._query = query
        self._size = size
        self._etag = etag

    def get_size(self) -> int:
        """How many bytes there are."""
        return self._size

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes of a half-open range, by default all of them."""
        end = self._size if end is None else end
        if start == end:
            return b""
        headers = {"Range": f"bytes={start}-{end - 1}", "If-Match": self._etag}
        call = Call("GET", ("blob",), self._query, accept=BYTES, headers=headers)
        return self._transport.send(call).content


def open_blob(transport: HttpTransport, query: Query) -> Blob:
    """A blob of a server: its size and tag are asked for, its bytes when they are read."""
    try:
        head = transport.send(Call("HEAD", ("blob",), query, accept=BYTES)).headers
    except OmnigraphError as failure:
        # An answer to HEAD has no body: that of GET says why.
        transport.send(Call("GET", ("blob",), query, accept=BYTES, headers=_FIRST_BYTE))
        raise failure from None
    size, etag = int(head["content-length"]), head.get("etag", "")
    return Blob(_RemoteBytes(transport, query, size, etag), etag=etag)


_FIRST_BYTE = {"Range": "bytes=0-0"}
