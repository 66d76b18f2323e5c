"""Definitions as data: what a pipeline reads, and where that goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

from croniter import croniter

from omnigraph.config.yaml_reader import Position
from omnigraph.pipelines.config.csv_dialect import STANDARD_CSV, CsvDialect
from omnigraph.pipelines.config.deletion_rules import ChangeOperations
from omnigraph.pipelines.config.expectations import (
    DEFAULT_REJECT_LIMIT,
    Expectation,
    RejectLimit,
)
from omnigraph.pipelines.config.report_settings import ReportSettings

_CRON_FIELDS: Final = 5

# A scheduler that was down takes up the newest slot within this time; older ones are skipped.
SLOT_DELAY_MAX: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Incremental:
    """What is new in a source: records whose cursor is above that of the last run.

    `param` is the parameter of an HTTP service that takes the position.
    """

    cursor: str
    lag_s: int = 0
    param: str | None = None


@dataclass(frozen=True, slots=True)
class ColumnDrift:
    """What becomes of files whose columns are new, missing, or of another type."""

    new: str = "ignore"
    missing: str = "fail"
    changed: str = "fail"


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files on disk or S3; paths are absolute, or addresses."""

    kind = "files"
    paths: tuple[str, ...]
    format: str | None = None
    columns: str | None = None
    is_multiline: bool = False
    encoding: str = "utf-8"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    csv: CsvDialect = STANDARD_CSV
    # Only files that the last run did not see as they are now.
    is_new_only: bool = False
    drift: ColumnDrift = ColumnDrift()


@dataclass(frozen=True, slots=True)
class PostgresSource:
    """A table or a query of PostgreSQL."""

    kind = "postgres"
    url: str = field(repr=False)
    table: str | None = None
    query: str | None = None
    key: str | None = None
    ranges: int = 8
    incremental: Incremental | None = None


@dataclass(frozen=True, slots=True)
class Paging:
    """How to get the next page of an HTTP service; without any, there is one page."""

    link: str | None = None
    cursor: str | None = None
    page: str | None = None
    offset: str | None = None
    param: str = "cursor"
    first: int = 1
    pages_max: int = 10_000


@dataclass(frozen=True, slots=True)
class OAuth:
    """Where a token is issued for the credentials of a client."""

    token_url: str = field(repr=False)
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class HttpSource:
    """JSON from an HTTP service."""

    kind = "http"
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    token: str | None = field(default=None, repr=False)
    records: str | None = None
    paging: Paging = Paging()
    # What is posted; without it, requests are GETs.
    body: str | None = field(default=None, repr=False)
    oauth: OAuth | None = None
    # Requests a second.
    rate: int | None = None
    timeout_s: int = 30
    columns: str | None = None
    incremental: Incremental | None = None


@dataclass(frozen=True, slots=True)
class FeedSource:
    """The change feed of another graph."""

    kind = "graph"
    uri: str
    branch: str = "main"
    types: tuple[str, ...] = ()
    ops: tuple[str, ...] = ("insert", "update")
    start: str = "beginning"
    changes_max: int = 1_000_000
    per: str = "entity"
    columns: str | None = None


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """Messages of topics."""

    kind = "kafka"
    servers: str
    topics: tuple[str, ...]
    start: str = "beginning"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    messages_max: int = 10_000_000
    columns: str | None = None


@dataclass(frozen=True, slots=True)
class SparkSource:
    """Whatever a data source of Spark reads."""

    kind = "spark"
    format: str
    paths: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    columns: str | None = None


@dataclass(frozen=True, slots=True)
class SqlSource:
    """A query of Spark SQL over the other sources, which are views with their names."""

    kind = "sql"
    query: str


@dataclass(frozen=True, slots=True)
class PythonSource:
    """What a function returns: `module:name`, of the folder of the definition or installed."""

    kind = "python"
    function: str
    folder: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class DltSource:
    """A table of dlt: what a source of dlt gives, or what a pipeline of dlt delivers.

    `function` makes the source, as of a `PythonSource`; without one, a run gets the table from the
    pipeline of dlt whose destination names the definition.
    """

    kind = "dlt"
    table: str
    folder: str
    function: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


Source: TypeAlias = (
    FileSource
    | PostgresSource
    | HttpSource
    | FeedSource
    | KafkaSource
    | SparkSource
    | SqlSource
    | PythonSource
    | DltSource
)


def is_incremental(source: Source) -> bool:
    """Whether a run reads only what is new in a source that has all records at all times."""
    match source:
        case FileSource():
            return source.is_new_only
        case PostgresSource() | HttpSource():
            return source.incremental is not None
        case _:
            return False


def is_partial(source: Source) -> bool:
    """Whether a run reads only what is new in a source."""
    return is_incremental(source) or isinstance(source, FeedSource | KafkaSource)


@dataclass(frozen=True, slots=True)
class TargetGraph:
    """A graph that is written to: its address, and a schema to check with before it exists."""

    uri: str
    schema: Path | None
    position: Position


@dataclass(frozen=True, slots=True)
class RunBranch:
    """A branch for each run; `is_automatic` says that the run merges it."""

    name: str
    is_automatic: bool


@dataclass(frozen=True, slots=True)
class Target:
    """One commit on one branch of one graph."""

    graph: str
    branch: str
    mode: str
    mapping: RecordMapping
    position: Position
    run_branch: RunBranch | None = None
    on_error: str = "fail"
    rejects: str | None = None
    max_rejected: RejectLimit = DEFAULT_REJECT_LIMIT
    min_rows: int = 0

    @property
    def name(self) -> str:
        """What keys and the ledger call the target."""
        return f"{self.graph}/{self.branch}"


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a target is tried, and the pause before the second attempt."""

    attempts: int = 3
    wait_s: int = 2


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A definition; `digest` covers it and every mapping, `folder` is where paths start."""

    name: str
    file: str
    folder: Path
    sources: Mapping[str, Source]
    graphs: Mapping[str, TargetGraph]
    targets: tuple[Target, ...]
    digest: str
    # Covers only what decides which data is written: sources, targets and mappings.
    content: str
    schedule: str | None = None
    retry: Retry = Retry()
    env_file: Path | None = None
    ledger: str | None = None
    description: str | None = None
    # How long the ledger keeps runs; None for ever.
    keep_runs_s: int | None = None
    reports: ReportSettings = field(default_factory=ReportSettings)
    # Where the columns of a source are declared, by its name.
    column_positions: Mapping[str, Position] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def overwrites(self) -> bool:
        """Whether a run replaces data of whole types."""
        return any(target.mode == "overwrite" for target in self.targets)


@dataclass(frozen=True, slots=True)
class Expression:
    """A Spark SQL expression over the record."""

    sql: str
    position: Position


@dataclass(frozen=True, slots=True)
class Interpolation:
    """Texts and expressions in turn: the text of all of them together."""

    # Texts at even places, expressions at odd ones.
    parts: tuple[str, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value for every record."""

    value: Any  # Any: a value of YAML
    position: Position


@dataclass(frozen=True, slots=True)
class EmbeddedText:
    """The vector of a text, made by the embedder of the process."""

    sql: str
    position: Position


Value: TypeAlias = Expression | Interpolation | Constant | EmbeddedText


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An end of an edge: one value, or a value for each member of a key (`members`)."""

    value: Value | None
    members: Mapping[str, Value]
    position: Position


@dataclass(frozen=True, slots=True)
class Explode:
    """One record for each element of an array."""

    sql: str
    name: str
    position: Position


@dataclass(frozen=True, slots=True)
class Chunk:
    """One record for each piece of a text."""

    sql: str
    words: int
    overlap: int
    position: Position


@dataclass(frozen=True, slots=True)
class MappingRule:
    """What a record gives of one type; an edge has two ends, a node has none."""

    type_name: str
    position: Position
    values: Mapping[str, Value]
    source: str | None = None
    where: str | None = None
    explode: tuple[Explode, ...] = ()
    chunk: Chunk | None = None
    is_distinct: bool = False
    # Columns of which the greatest values are those of the record that counts for its entity.
    latest: tuple[str, ...] = ()
    id: Value | None = None
    ends: tuple[Endpoint, Endpoint] | None = None
    # Which records delete their entities.
    operations: ChangeOperations | None = None
    # How many entities of the type that the source lacks are deleted at most; None if none are.
    missing_max: RejectLimit | None = None
    expectations: tuple[Expectation, ...] = ()
    # Of its fields by their names, and of each property by `set.` and its name.
    positions: Mapping[str, Position] = field(default_factory=dict, repr=False, compare=False)

    def position_of(self, name: str) -> Position:
        """Where a field is written, or where the rule starts."""
        return self.positions.get(name, self.position)

    @property
    def is_edge(self) -> bool:
        """Whether it gives edges."""
        return self.ends is not None

    def gives_type_of(self, other: MappingRule) -> bool:
        """Whether both give entities of one type; edges are named in any case."""
        if self.is_edge and other.is_edge:
            return self.type_name.lower() == other.type_name.lower()
        return self.is_edge == other.is_edge and self.type_name == other.type_name

    @property
    def deletes(self) -> bool:
        """Whether a run may delete entities for it."""
        return self.operations is not None or self.missing_max is not None


@dataclass(frozen=True, slots=True)
class RecordMapping:
    """A mapping: its rules, the file they are in, and the text the digest is made of.

    `paths` lead to the rules through the document, by place.
    """

    file: str
    rules: tuple[MappingRule, ...]
    text: str
    paths: Mapping[Position, str] = field(default_factory=dict, repr=False, compare=False)


def is_schedule(text: str) -> bool:
    """Whether a text is a cron expression of five fields that ever comes true."""
    return len(text.split()) == _CRON_FIELDS and croniter.is_valid(text, strict=True)


def find_due_slot(schedule: str, now: datetime) -> datetime | None:
    """The newest slot that is not in the future, unless it is too long ago."""
    # The previous one of a moment later: a slot at this very minute is due.
    later = now.astimezone(UTC) + timedelta(microseconds=1)
    slot: datetime = croniter(schedule, later).get_prev(datetime)
    return None if now - slot > SLOT_DELAY_MAX else slot


def compute_next_slot(schedule: str, now: datetime) -> datetime:
    """The first slot that is still to come."""
    found: datetime = croniter(schedule, now.astimezone(UTC)).get_next(datetime)
    return found


def format_slot(slot: datetime) -> str:
    """The name of a slot in keys and branches."""
    return slot.astimezone(UTC).strftime("%Y-%m-%dT%H-%MZ")
