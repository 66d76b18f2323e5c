"""Loads of every size: chooses the engine, and prepares its input.

A load of one process holds its rows in memory. A bulk load is cut into units, which run in threads
of this process or as tasks on Spark; both end in the same commit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias, TypeGuard, cast

from omnigraph.bulk.bulk_load import BulkLoad, BulkOptions
from omnigraph.bulk.bulk_sources import (
    BulkSource,
    FileSource,
    JsonLinesSource,
    TableSource,
    TypedFileSource,
)
from omnigraph.bulk.splits import GraphLocation, Stores
from omnigraph.bulk.task_runner import LocalRunner, Runner, StageProgress
from omnigraph.engine.commit import commit_of, counts_of
from omnigraph.engine.commit_loop import SchemaChanged, Terms, WriteOutcome, write
from omnigraph.engine.graph_session import Session
from omnigraph.engine.resources import Resources
from omnigraph.engine.spark_bridge import has_spark, import_spark_module
from omnigraph.engine.write_operations import LoadOperation
from omnigraph.engine.write_results import LoadResult
from omnigraph.errors import InvalidArgumentError, StorageError
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.storage.objects.source_files import S3, list_source_files
from omnigraph.versioning import Stream, Transaction
from omnigraph.writers.inputs import Dialect, InputOptions, InputSource, Text
from omnigraph.writers.inputs.input_reader import find_table_reader
from omnigraph.writers.load_records import LoadMode
from omnigraph.writers.prepare import Request

# Files this large are left to Spark, or to units in this process where there is no Spark.
AUTO_BYTES_MIN: Final = 1024**3
# The same where Spark is at hand anyway: a cluster is named in the environment.
AUTO_CLUSTER_BYTES_MIN: Final = 256 * 1024**2
_MEMORY: Final = "memory://"
_CLUSTER_VARIABLES: Final = ("SPARK_MASTER_URL", "SPARK_REMOTE")


# What a load reads: besides the sources of one process, files by type, and whatever can be cut.
AnySource: TypeAlias = InputSource | Mapping[str, str | os.PathLike[str]] | BulkSource


class LoadEngine(Enum):
    """The engine of a load."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


class OnError(Enum):
    """What becomes of a load with records that cannot be written."""

    FAIL = "fail"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What a caller decides about a load."""

    mode: LoadMode
    options: InputOptions
    engine: LoadEngine = LoadEngine.AUTO
    on_error: OnError = OnError.FAIL
    rejects: str | None = None
    stages: StageProgress | None = None

    @property
    def needs_bulk(self) -> bool:
        """Whether only a bulk load can do what is asked."""
        is_asked = self.on_error is OnError.QUARANTINE or self.rejects is not None
        return is_asked or self.engine is LoadEngine.SPARK


def load_source(
    session: Session,
    stream: Stream,
    source: AnySource,
    request: LoadRequest,
    terms: Terms,
) -> LoadResult:
    """Load a source into a branch, by the engine that is asked for or fits its size."""
    resources = session.resources
    if not _is_bulk(source, request, resources):
        return _load_locally(session, stream, source, request, terms)
    _require_strict(request)
    bulk = _build_bulk_source(source, request, resources)
    runner = _create_runner(request, resources, source)
    place = _build_graph_location(resources)
    is_quarantine = request.on_error is OnError.QUARANTINE
    bulk_terms = BulkOptions(request.mode, is_quarantine, request.rejects)
    load = BulkLoad(place, bulk, terms=bulk_terms, runner=runner, keys=resources.keys)
    operation = BulkLoadOperation(load, request.mode)
    try:
        written = write(session, stream, operation, terms)
    finally:
        load.finish()
    counts = operation.counts if operation.counts is not None and not written.is_repeated else None
    result = _build_result(session, stream, request, written, counts)
    if not is_quarantine:
        return result
    return replace(result, rejected=load.rejected, rejects=load.rejects)


class BulkLoadOperation:
    """A bulk load as a write: its rows are written once for each schema."""

    def __init__(self, load: BulkLoad, mode: LoadMode) -> None:
        self._load = load
        self._mode = mode
        self.counts: LoadCounts | None = None

    @property
    def may_repeat(self) -> bool:
        """An overwrite ends what others wrote meanwhile without having seen it."""
        return self._mode is not LoadMode.OVERWRITE

    def prepare(self, view: View, request: Request) -> Transaction:
        """The load on a view; an empty one is a commit too."""
        if self._load.digest not in (None, view.schema.digest):
            self._load.discard_rows()
            raise SchemaChanged
        transaction = self._load.prepare(view, request)
        self.counts = (
            self._load.count_records(TypeKind.NODE, view),
            self._load.count_records(TypeKind.EDGE, view),
        )
        return transaction

    def abandon(self) -> None:
        """Remove what was written for a load that will never be a commit."""
        self._load.discard_rows()


LoadCounts: TypeAlias = tuple[Mapping[str, int], Mapping[str, int]]


def _load_locally(
    session: Session,
    stream: Stream,
    source: AnySource,
    request: LoadRequest,
    terms: Terms,
) -> LoadResult:
    assert not isinstance(source, BulkSource), "what is cut into pieces is a bulk load"
    assert not _are_files_by_type(source), "files by type are a bulk load"
    operation = LoadOperation(
        session.resources, cast("InputSource", source), mode=request.mode, options=request.options
    )
    written = write(session, stream, operation, terms)
    # A record may hold the loads of others too, unless it was made by a request with a key.
    loaded = None if written.is_repeated else operation.loaded
    counts = None if loaded is None else (loaded.nodes, loaded.edges)
    return _build_result(session, stream, request, written, counts)


def _build_result(
    session: Session,
    stream: Stream,
    request: LoadRequest,
    written: WriteOutcome,
    counts: LoadCounts | None,
) -> LoadResult:
    assert written.record is not None, "an empty load is a commit too"
    nodes, edges = counts_of(written.record) if counts is None else counts
    return LoadResult(
        uri=session.uri,
        branch=stream.branch,
        mode=request.mode.value,
        nodes=nodes,
        edges=edges,
        commit=commit_of(written.record),
        is_repeated=written.is_repeated,
    )


def _is_bulk(source: AnySource, request: LoadRequest, resources: Resources) -> bool:
    if request.needs_bulk or isinstance(source, BulkSource):
        return True
    if is_spark_frame(source) or _is_on_s3(source) or _are_files_by_type(source):
        return True
    if request.engine is LoadEngine.LOCAL or request.options.dialect is not Dialect.STRICT:
        return False
    return _measure_paths(source, resources) >= _choose_bulk_bytes_min()


def _choose_bulk_bytes_min() -> int:
    is_cluster_named = any(os.environ.get(name) for name in _CLUSTER_VARIABLES)
    return AUTO_CLUSTER_BYTES_MIN if is_cluster_named else AUTO_BYTES_MIN


def _measure_paths(source: object, resources: Resources) -> int:
    """The size of the files of paths; 0 for what is not a path or does not exist."""
    paths = list(source.values()) if _are_files_by_type(source) else [source]
    found = 0
    for path in paths:
        if isinstance(path, str | os.PathLike):
            with suppress(OSError, ValueError, StorageError):
                files, _ = list_source_files(os.fspath(path), resources.storage.options)
                found += sum(file.size for file in files)
    return found


def _require_strict(request: LoadRequest) -> None:
    if request.options.dialect is not Dialect.STRICT:
        raise InvalidArgumentError(
            "dialect", "only a local load that fails on errors reads the compatible dialect"
        )


def _create_runner(request: LoadRequest, resources: Resources, source: object) -> Runner:
    """Spark where it is asked for; else threads of this process."""
    wants_spark = request.engine is LoadEngine.SPARK or _needs_spark(source)
    is_large = _measure_paths(source, resources) >= _choose_bulk_bytes_min()
    in_memory = resources.storage.objects.uri.startswith(_MEMORY)
    if request.engine is LoadEngine.AUTO and is_large and has_spark() and not in_memory:
        wants_spark = True
    if not wants_spark:
        return LocalRunner(request.stages)
    if in_memory:
        raise InvalidArgumentError(
            "engine", "executors cannot reach a graph in the memory of this process"
        )
    runner: Runner = import_spark_module("frame_load").make_runner(source, request.stages)
    return runner


def _build_graph_location(resources: Resources) -> GraphLocation:
    """Where the graph is; units that run in this process use what it is open with."""
    storage = resources.storage
    here = Stores(storage.tables, storage.objects, resources.schemas)
    return GraphLocation(storage.objects.uri, storage.options, storage.is_durable, here)


def _build_bulk_source(source: AnySource, request: LoadRequest, resources: Resources) -> BulkSource:
    """A source that can be cut into pieces."""
    if isinstance(source, BulkSource):
        return source
    type_name = request.options.type
    if isinstance(source, str | os.PathLike):
        return FileSource(os.fspath(source), type_name, resources.storage.options)
    if _are_files_by_type(source):
        uris = {name: os.fspath(path) for name, path in source.items()}
        return TypedFileSource(uris, resources.storage.options)
    if isinstance(source, Text):
        text = source.text
        data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
        return JsonLinesSource(data, source.name)
    if is_spark_frame(source):
        found: BulkSource = import_spark_module("frame_load").FrameSource(
            ((_require_type_name(type_name), source),)
        )
        return found
    reader = find_table_reader(source)
    if reader is None:
        raise InvalidArgumentError(
            "source", "a bulk load takes a path, Text, a table or a frame, not single records"
        )
    return TableSource(reader, _require_type_name(type_name))


def _require_type_name(type_name: str | None) -> str:
    if type_name is None:
        raise InvalidArgumentError("type", "a table does not say of which type its rows are")
    return type_name


def is_spark_frame(source: object) -> bool:
    """Whether something is a DataFrame of Spark, classic or remote."""
    kind = type(source)
    return kind.__module__.partition(".")[0] == "pyspark" and kind.__name__ == "DataFrame"


def _are_files_by_type(source: object) -> TypeGuard[Mapping[str, str | os.PathLike[str]]]:
    """Whether a source names the files of each type."""
    return (
        isinstance(source, Mapping)
        and bool(source)
        and all(isinstance(path, str | os.PathLike) for path in source.values())
        and all(isinstance(name, str) for name in source)
        and "type" not in source
        and "edge" not in source
    )


def _needs_spark(source: object) -> bool:
    """Whether the rows of a source can only be had from Spark."""
    is_ours = type(source).__module__.startswith("omnigraph.spark.")
    return is_spark_frame(source) or is_ours


def _is_on_s3(source: object) -> bool:
    return isinstance(source, str) and source.startswith(S3)
