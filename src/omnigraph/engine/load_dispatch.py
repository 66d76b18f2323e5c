"""Loads of every size: chooses the engine, and prepares its input.

A load of one process holds its rows in memory. A bulk load is cut into units, which run in threads
of this process or as tasks on Spark; both end in the same commit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeGuard

from omnigraph.bulk.bulk_sources import (
    BulkSource,
    CombinedSource,
    FileSource,
    JsonLinesSource,
    TableSource,
)
from omnigraph.bulk.splits import GraphLocation, RowTerms, Stores, build_input_error
from omnigraph.bulk.task_runner import LocalRunner, Runner, StageProgress
from omnigraph.embedding.embedder import EmbedMode
from omnigraph.engine import arguments
from omnigraph.engine.commit import commit_of, counts_of
from omnigraph.engine.commit_loop import SchemaChanged, Terms, WriteOutcome, write
from omnigraph.engine.graph_session import Session
from omnigraph.engine.resources import Resources
from omnigraph.engine.spark_bridge import has_spark, import_spark_module
from omnigraph.engine.write_operations import LoadOperation
from omnigraph.engine.write_results import LoadResult
from omnigraph.errors import InvalidArgumentError, StorageError
from omnigraph.policy.acts import Act, Action
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.storage.objects.source_files import S3, list_source_files
from omnigraph.versioning import Stream, Transaction
from omnigraph.writers.inputs import Dialect, InputOptions, InputSource, Progress, Text
from omnigraph.writers.inputs.input_reader import find_table_reader
from omnigraph.writers.inputs.input_rows import Missing
from omnigraph.writers.inputs.record_tables import (
    WrongColumnError,
    build_column_table,
    build_record_tables,
    iter_record_chunks,
)
from omnigraph.writers.load_records import LoadMode
from omnigraph.writers.prepare import Request

if TYPE_CHECKING:
    from omnigraph.bulk.bulk_load import BulkLoad

# Files this large are left to Spark, or to units in this process where there is no Spark.
AUTO_BYTES_MIN: Final = 1024**3
# The same where Spark is at hand anyway: a cluster is named in the environment.
AUTO_CLUSTER_BYTES_MIN: Final = 256 * 1024**2
_MEMORY: Final = "memory://"
_PATHS: Final = (str, os.PathLike)
_CLUSTER_VARIABLES: Final = ("SPARK_MASTER_URL", "SPARK_REMOTE")


# What a load reads: besides the sources of one process, whatever can be cut.
AnySource: TypeAlias = InputSource | BulkSource


# The choices of a load, as callers spell them.
LoadModeName: TypeAlias = Literal["append", "merge", "patch", "overwrite"]
LoadEngineName: TypeAlias = Literal["auto", "local", "spark"]
OnErrorName: TypeAlias = Literal["fail", "quarantine"]
MissingName: TypeAlias = Literal["insert", "skip", "error"]
DialectName: TypeAlias = Literal["strict", "compatible"]
EmbedModeName: TypeAlias = Literal["never", "write", "later"]


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
    embed: EmbedMode = EmbedMode.NEVER

    @property
    def needs_bulk(self) -> bool:
        """Whether only a bulk load can do what is asked."""
        is_asked = self.on_error is OnError.QUARANTINE or self.rejects is not None
        return is_asked or self.engine is LoadEngine.SPARK


def build_input_options(
    mode: str, dialect: str, type_name: str | None, progress: Progress | None, missing: str
) -> InputOptions:
    """How the input of a load is read, as a caller says it."""
    if missing != Missing.INSERT.value and mode != LoadMode.PATCH.value:
        raise InvalidArgumentError(
            "missing",
            f"a load with mode '{mode}' inserts entities: leave it out",
            hint="with mode 'patch', 'skip' and 'error' are for ids that do not exist",
        )
    return InputOptions(
        dialect=arguments.parse_choice(Dialect, "dialect", dialect),
        type=arguments.require_optional_text("type", type_name),
        progress=progress,
        is_patch=mode in (LoadMode.MERGE.value, LoadMode.PATCH.value),
        patches_records=mode == LoadMode.PATCH.value,
        missing=arguments.parse_choice(Missing, "missing", missing),
    )


def load_source(
    session: Session,
    stream: Stream,
    source: AnySource,
    request: LoadRequest,
    terms: Terms,
) -> LoadResult:
    """Load a source into a branch, by the engine that is asked for or fits its size."""
    # Before the source is opened, or Spark is started for it.
    session.authorize(Act(Action.CHANGE, stream.branch))
    resources = session.resources
    request = replace(request, options=replace(request.options, now=resources.environment.now_ms()))
    source = _find_export(source, request, resources)
    if not _is_bulk(source, request, resources):
        return _load_locally(session, stream, source, request, terms)
    _require_strict(request)
    _require_own_vectors(request)
    if terms.is_dry and request.rejects is not None:
        raise InvalidArgumentError("rejects", "a dry run writes no file: leave it out")
    from omnigraph.bulk.bulk_load import BulkLoad, BulkOptions  # noqa: PLC0415 — few loads are bulk

    list_members = partial(_list_default_members, session, stream)
    bulk = _build_bulk_source(source, request, resources, list_members)
    runner = _create_runner(request, resources, source)
    place = _build_graph_location(resources)
    is_quarantine = request.on_error is OnError.QUARANTINE
    row_terms = RowTerms(request.options.now, request.options.missing)
    bulk_terms = BulkOptions(request.mode, is_quarantine, request.rejects, row_terms)
    load = BulkLoad(place, bulk, terms=bulk_terms, runner=runner, keys=resources.keys)
    operation = BulkLoadOperation(load, request.mode)
    try:
        written = write(session, stream, operation, terms)
    finally:
        load.finish()
    if request.embed is EmbedMode.LATER and not terms.is_dry:
        resources.vector_builder.consider(stream)
    counts = operation.counts if operation.counts is not None and not written.is_repeated else None
    result = _build_result(session, stream, request, (written, terms), counts)
    if load.deleted and counts is not None:
        result = replace(result, deleted=load.deleted)
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

    def list_acts(self, branch: str) -> tuple[Act, ...]:
        """It changes its branch."""
        return (Act(Action.CHANGE, branch),)

    def prepare(self, view: View, request: Request) -> Transaction | None:
        """The load on a view; an empty one is a commit too, unless its source says otherwise."""
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
    operation = LoadOperation(
        session.resources,
        source,
        mode=request.mode,
        options=request.options,
        embed=request.embed,
    )
    written = write(session, stream, operation, terms)
    if operation.fill is not None and operation.fill.pending and not terms.is_dry:
        session.resources.vector_builder.consider(stream)
    # A record may hold the loads of others too, unless it was made by a request with a key.
    loaded = None if written.is_repeated else operation.loaded
    counts = None if loaded is None else (loaded.nodes, loaded.edges)
    return _build_result(session, stream, request, (written, terms), counts)


def _build_result(
    session: Session,
    stream: Stream,
    request: LoadRequest,
    outcome: tuple[WriteOutcome, Terms],
    counts: LoadCounts | None,
) -> LoadResult:
    written, terms = outcome
    found: LoadCounts
    if written.record is None:
        commit, found = session.read_commit(session.read_head(stream)), ({}, {})
    else:
        commit, found = commit_of(written.record), counts_of(written.record)
    nodes, edges = found if counts is None else counts
    return LoadResult(
        uri=session.uri,
        branch=stream.branch,
        mode=request.mode.value,
        nodes=nodes,
        edges=edges,
        commit=commit,
        is_repeated=written.is_repeated,
        is_dry=terms.is_dry,
        is_unchanged=written.record is None and not terms.is_dry,
    )


def _is_bulk(source: AnySource, request: LoadRequest, resources: Resources) -> bool:
    if request.needs_bulk or isinstance(source, BulkSource):
        return True
    parts = _list_parts(source, request)
    if any(is_spark_frame(each) or _is_on_s3(each) for each in parts):
        return True
    if _is_by_type(source, request) and all(isinstance(each, _PATHS) for each in parts):
        return True
    if request.engine is LoadEngine.LOCAL or request.options.dialect is not Dialect.STRICT:
        return False
    return _measure_paths(parts, resources) >= _choose_bulk_bytes_min()


def _find_export(source: AnySource, request: LoadRequest, resources: Resources) -> AnySource:
    """The files of an export by type if a path is that of one, else the source itself."""
    if request.options.type is not None or not isinstance(source, _PATHS):
        return source
    address = os.fspath(source)
    if not address.startswith(S3) and not os.path.isdir(address):
        return source
    from omnigraph.exports.export_folder import find_export  # noqa: PLC0415 — few loads are bulk

    return find_export(address, resources.storage.options) or source


def _is_by_type(source: object, request: LoadRequest) -> TypeGuard[Mapping[str, Any]]:
    """Whether a source is a source for each type; with a type, a mapping has its columns."""
    if not isinstance(source, Mapping) or request.options.type is not None:
        return False
    # One record is a mapping, too, and a mistake.
    is_named = bool(source) and all(isinstance(name, str) for name in source)
    return is_named and {"type", "edge"}.isdisjoint(source)


def _list_parts(source: object, request: LoadRequest) -> list[object]:
    """The sources of all types, or the one source."""
    return list(source.values()) if _is_by_type(source, request) else [source]


def _choose_bulk_bytes_min() -> int:
    is_cluster_named = any(os.environ.get(name) for name in _CLUSTER_VARIABLES)
    return AUTO_CLUSTER_BYTES_MIN if is_cluster_named else AUTO_BYTES_MIN


def _measure_paths(sources: Iterable[object], resources: Resources) -> int:
    """The size of the files of paths; 0 for what is not a path or does not exist."""
    found = 0
    for path in sources:
        if isinstance(path, _PATHS):
            with suppress(OSError, ValueError, StorageError):
                files, _ = list_source_files(os.fspath(path), resources.storage.options)
                found += sum(file.size for file in files)
    return found


def _require_strict(request: LoadRequest) -> None:
    if request.options.dialect is not Dialect.STRICT:
        raise InvalidArgumentError(
            "dialect", "only a local load that fails on errors reads the compatible dialect"
        )


def _require_own_vectors(request: LoadRequest) -> None:
    """Refuse a bulk load that would have to compare texts with those that are stored."""
    if request.embed is EmbedMode.WRITE:
        raise InvalidArgumentError(
            "embed", "a bulk load does not fill vectors while it writes", hint="use 'later'"
        )
    if request.embed is EmbedMode.LATER and request.mode.keeps_entities:
        raise InvalidArgumentError(
            "embed",
            "a bulk load that changes entities does not clear the vectors of changed texts",
            hint="load with 'never', and give the vectors or null with the texts",
        )


def _create_runner(request: LoadRequest, resources: Resources, source: object) -> Runner:
    """Spark where it is asked for; else threads of this process."""
    parts = _list_parts(source, request)
    framed = next((each for each in parts if _needs_spark(each)), None)
    wants_spark = request.engine is LoadEngine.SPARK or framed is not None
    is_large = _measure_paths(parts, resources) >= _choose_bulk_bytes_min()
    in_memory = resources.storage.objects.uri.startswith(_MEMORY)
    if request.engine is LoadEngine.AUTO and is_large and has_spark() and not in_memory:
        wants_spark = True
    if not wants_spark:
        return LocalRunner(request.stages)
    if in_memory:
        raise InvalidArgumentError(
            "engine", "executors cannot reach a graph in the memory of this process"
        )
    runner: Runner = import_spark_module("frame_load").make_runner(framed, request.stages)
    return runner


def _build_graph_location(resources: Resources) -> GraphLocation:
    """Where the graph is; units that run in this process use what it is open with."""
    storage = resources.storage
    here = Stores(storage.tables, storage.objects, resources.schemas)
    return GraphLocation(storage.objects.uri, storage.options, storage.is_durable, here)


def _list_default_members(session: Session, stream: Stream, type_name: str) -> tuple[str, ...]:
    """The properties of a type that have a default: what lacks them differs from a null."""
    catalog = session.open_view(session.read_head(stream)).accepted.catalog
    name = type_name.rpartition(":")[2]
    type_ = catalog.nodes.get(name) or catalog.find_edge(name)
    properties = () if type_ is None else type_.properties.values()
    return tuple(each.name for each in properties if each.default is not None)


def _build_bulk_source(
    source: AnySource,
    request: LoadRequest,
    resources: Resources,
    list_members: Callable[[str], tuple[str, ...]],
) -> BulkSource:
    """A source that can be cut into pieces."""
    if isinstance(source, BulkSource):
        return source
    if not _is_by_type(source, request):
        return _build_single_source(source, request.options.type, request, resources, list_members)
    if any(map(is_spark_frame, source.values())):
        return _build_frame_source(source)
    return CombinedSource(
        tuple(
            _build_single_source(each, name, request, resources, list_members)
            for name, each in source.items()
        )
    )


def _build_single_source(
    source: object,
    type_name: str | None,
    request: LoadRequest,
    resources: Resources,
    list_members: Callable[[str], tuple[str, ...]],
) -> BulkSource:
    if isinstance(source, _PATHS):
        return FileSource(os.fspath(source), type_name, resources.storage.options)
    if isinstance(source, Text):
        text = source.text
        data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
        return JsonLinesSource(data, source.name, type_name)
    if is_spark_frame(source):
        return _build_frame_source({_require_type_name(type_name): source})
    reader = find_table_reader(source)
    if reader is not None:
        return TableSource(reader, _require_type_name(type_name))
    if type_name is None or isinstance(source, bytes) or not isinstance(source, Iterable):
        raise InvalidArgumentError(
            "source",
            "a bulk load takes a path, Text, a table or a frame, not single records",
            hint="give records of one type with type=NAME",
        )
    is_patch, optional = request.options.is_patch, list_members(type_name)
    return _build_record_source(source, type_name, is_patch=is_patch, optional=optional)


def _build_frame_source(frames: Mapping[str, object]) -> BulkSource:
    """Frames of Spark by their types."""
    if not all(map(is_spark_frame, frames.values())):
        raise InvalidArgumentError(
            "source", "frames of Spark are not loaded together with other sources"
        )
    found: BulkSource = import_spark_module("frame_load").FrameSource(tuple(frames.items()))
    return found


def _build_record_source(
    source: Iterable[Any], type_name: str, *, is_patch: bool, optional: tuple[str, ...]
) -> BulkSource:
    """A dict of columns, or plain records, as tables."""
    try:
        if isinstance(source, Mapping):
            return TableSource(build_column_table(source).to_reader(), type_name)
        tables = [
            table
            for chunk in map(_require_records, iter_record_chunks(source))
            for table, _ in build_record_tables(
                chunk, first_number=1, is_patch=is_patch, optional=optional
            )
        ]
    except (WrongColumnError, TypeError) as failure:
        raise build_input_error("records", str(failure)) from failure
    return CombinedSource(tuple(TableSource(table.to_reader(), type_name) for table in tables))


def _require_records(chunk: list[Any]) -> list[Mapping[str, Any]]:
    for each in chunk:
        if not isinstance(each, Mapping):
            raise WrongColumnError(f"a record is a dict, not a {type(each).__name__}")
    return chunk


def _require_type_name(type_name: str | None) -> str:
    if type_name is None:
        raise InvalidArgumentError("type", "a table does not say of which type its rows are")
    return type_name


def is_spark_frame(source: object) -> bool:
    """Whether something is a DataFrame of Spark, classic or remote."""
    kind = type(source)
    return kind.__module__.partition(".")[0] == "pyspark" and kind.__name__ == "DataFrame"


def _needs_spark(source: object) -> bool:
    """Whether the rows of a source can only be had from Spark."""
    return is_spark_frame(source) or (isinstance(source, BulkSource) and source.needs_spark)


def _is_on_s3(source: object) -> bool:
    return isinstance(source, str) and source.startswith(S3)
