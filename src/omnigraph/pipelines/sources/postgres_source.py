"""A table or query of PostgreSQL, read by parallel tasks that all see one snapshot.

The driver exports a snapshot and keeps its transaction open while the frame is used; every task
reads a range of the table in a transaction of its own on that snapshot. Tables are cut by blocks;
views and queries by the values of an integer column, or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import adbc_driver_manager
import adbc_driver_postgresql.dbapi as dbapi
import pyarrow as pa

from omnigraph.errors import SourceFailedError, SourceRefusedError
from omnigraph.pipelines.config.definition import PostgresSource
from omnigraph.pipelines.mapping.record_ids import number_by_content
from omnigraph.schema.schema_shape import JsonObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BATCH_BYTES: Final = 16 * 1024**2
# What PostgreSQL calls a table whose rows lie in blocks, and a view that was stored.
_HEAP_KINDS: Final = ("r", "m")
_SUBQUERY_ALIAS: Final = "__omnigraph_rows"
# What the client library says of a server that it found; anything else may quote the address.
_CONNECTION_FAILED: Final = re.compile(r"connection to server .*? failed: .*")
_LOGIN_REFUSED: Final = re.compile(
    r"password authentication failed|no password supplied|does not exist|no pg_hba.conf entry"
    r"|is not permitted to log in|permission denied"
)
_ADDRESS_HINT: Final = (
    "write it as postgresql://user:password@host:port/database, with %XX for signs"
)


def describe_position(source: PostgresSource) -> JsonObject:
    """What the ledger keeps: which table, never the address nor a query, which may hold secrets."""
    return {"kind": "postgres", "read": source.table or "a query"}


def compute_position(source: PostgresSource, after: Any) -> JsonObject:  # Any: a position, or None
    """What a run reads: of an increment, from the end of the last position to the newest row.

    Within the lag of that end rows may still appear: a digest of those that are there shows it.
    """
    shown = describe_position(source)
    if source.incremental is None:
        return shown
    name, column = source.incremental.cursor, _quote_name(source.incremental.cursor)
    known = after if after is not None and after.get("cursor") == name else {}
    start = known.get("to")
    with open_cursor(source.url) as cursor:
        condition = "" if start is None else f" WHERE {column} > {_quote_value(start)}"
        cursor.execute(
            f"SELECT max({column})::text, pg_typeof(max({column}))::text"  # noqa: S608 — as below
            f" FROM {_format_relation(source)}{condition}"
        )
        newest, type_ = cursor.fetchone()
        end = start if newest is None else newest
        position = {**shown, "cursor": name, "type": type_, "from": start, "to": end}
        if source.incremental.lag_s and end is not None:
            position["late"] = _read_late_digest(cursor, source, position)
    return {**position, "is_empty": start == end and position.get("late") == known.get("late")}


def is_empty(position: JsonObject) -> bool:
    """Whether a position is that of an increment without rows."""
    return bool(position.get("is_empty"))


def _read_late_digest(
    cursor: Any, source: PostgresSource, position: JsonObject
) -> str:  # Any: as below
    condition = _build_increment_condition(source, {**position, "from": position["to"]})
    cursor.execute(
        f"SELECT count(*) || ':' || coalesce(sum(hashtextextended({_SUBQUERY_ALIAS}::text, 0)), 0)"  # noqa: S608 — as below
        f" FROM (SELECT * FROM {_format_relation(source)} WHERE {condition}) AS {_SUBQUERY_ALIAS}"
    )
    return str(_fetch_single(cursor))


def _build_increment_condition(source: PostgresSource, position: JsonObject) -> str | None:
    """The condition that the rows of a position meet; None where those are all rows."""
    if source.incremental is None:
        return None
    column, lag = _quote_name(source.incremental.cursor), source.incremental.lag_s
    if position["to"] is None:
        return "false"
    end = f"{column} <= {_quote_value(position['to'])}"
    if position["from"] is None:
        # Rows without a value are in no other increment.
        return f"({end} OR {column} IS NULL)"
    start = _quote_value(position["from"])
    if lag and not position["type"].startswith(("timestamp", "date")):
        problem = f"'lag' is for times; '{source.incremental.cursor}' is of type {position['type']}"
        raise SourceRefusedError(problem, hint="leave 'lag' out, or name another cursor")
    if lag:
        start = f"{start}::{position['type']} - interval '{lag} seconds'"
    return f"{column} > {start} AND {end}"


@contextmanager
def open_frame(
    source: PostgresSource, spark: SparkSession, position: JsonObject
) -> Iterator[DataFrame]:
    """The rows of a position of the source; the snapshot is held until the end."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 — Spark is here by now

    with open_cursor(source.url) as cursor:
        cursor.execute(_BEGIN)
        cursor.execute("SELECT pg_export_snapshot()")
        snapshot = str(_fetch_single(cursor))
        every = _build_full_query(cursor, source)
        found = _read_columns(cursor, every)
        schema = pa.schema([(field.name, _storage_type_of(field.type)) for field in found])
        texts = _build_range_queries(cursor, _Increment(source, position), every, found)
        task = partial(read_queries, (source.url, snapshot), tuple(texts), schema)
        count = len(texts)
        rows = spark.range(0, count, 1, count).mapInArrow(task, from_arrow_schema(schema))
        yield number_by_content(rows)


def find_identity_columns(source: PostgresSource) -> tuple[str, ...]:
    """The columns that say which row of the source a record is; none if they are not known."""
    if source.key is not None:
        return (source.key.strip('"'),)
    if source.table is None:
        return ()
    with open_cursor(source.url) as cursor:
        table = f"{_quote_text(source.table)}::regclass"
        cursor.execute(
            "SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid"  # noqa: S608 — quoted
            f" AND attnum = ANY(indkey) WHERE indisprimary AND indrelid = {table} ORDER BY attnum"
        )
        return tuple(str(row[0]) for row in cursor.fetchall())


@contextmanager
def open_cursor(url: str) -> Iterator[Any]:  # Any: the library has no types
    """A cursor outside any transaction; failures of the server are errors of the source."""
    with closing(_connect(url)) as connection:
        try:
            with closing(connection.cursor()) as cursor:
                yield cursor
        except adbc_driver_manager.OperationalError as failure:
            raise SourceFailedError(
                f"PostgreSQL cannot be read: {_format_failure(failure)}"
            ) from failure
        except adbc_driver_manager.Error as failure:
            raise SourceRefusedError(f"PostgreSQL refuses: {_format_failure(failure)}") from failure


def _connect(url: str) -> Any:  # Any: as above
    try:
        return dbapi.connect(url, autocommit=True)
    except adbc_driver_manager.Error as failure:
        unreached = _CONNECTION_FAILED.search(str(failure))
    # Outside the clause, so that no traceback shows what the library said.
    if unreached is None:
        message = "PostgreSQL cannot be read: its address is not understood, or names no host"
        raise SourceFailedError(message, hint=_ADDRESS_HINT)
    reason = f"PostgreSQL cannot be read: {unreached[0].strip()}"
    if _LOGIN_REFUSED.search(reason):
        # Another attempt is refused as well, and may lock the account.
        raise SourceRefusedError(reason, hint="look at the user, the password and the database")
    raise SourceFailedError(reason)


def read_queries(
    access: tuple[str, str],
    texts: Sequence[str],
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The rows of the queries whose numbers are in a partition, on one snapshot."""
    url, snapshot = access
    for batch in batches:
        for number in batch.column(0).to_pylist():
            with open_cursor(url) as cursor:
                cursor.adbc_statement.set_options(
                    **{"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)}
                )
                cursor.execute(_BEGIN)
                cursor.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
                cursor.execute(texts[number])
                for rows in cursor.fetch_record_batch():
                    yield _convert_batch(rows, schema)
                cursor.execute("COMMIT")


def _read_columns(cursor: Any, query: str) -> pa.Schema:  # Any: the library has no types
    cursor.execute(f"{query} LIMIT 0")
    found: pa.Schema = cursor.fetch_arrow_table().schema
    return found


def _build_full_query(cursor: Any, source: PostgresSource) -> str:  # Any: as above
    """The query for all rows, in which values that only PostgreSQL knows are texts of its own."""
    every = f"SELECT * FROM {_format_relation(source)}"  # noqa: S608 — the user's own query
    found = _read_columns(cursor, every)
    casts = [_build_text_cast(field.type) for field in found]
    if not any(casts):
        return every
    items = [
        f"{_quote_name(field.name)}{cast} AS {_quote_name(field.name)}"
        if cast
        else _quote_name(field.name)
        for field, cast in zip(found, casts, strict=True)
    ]
    return f"SELECT {', '.join(items)} FROM {_format_relation(source)}"  # noqa: S608 — as above


@dataclass(frozen=True, slots=True)
class _Increment:
    """What is read of a source: all rows, or those of a position."""

    source: PostgresSource
    position: JsonObject

    @property
    def condition(self) -> str | None:
        """The condition that its rows meet."""
        return _build_increment_condition(self.source, self.position)

    @property
    def is_small(self) -> bool:
        """Whether an index finds its rows, so that blocks are not read."""
        return self.position.get("from") is not None


def _build_range_queries(
    cursor: Any,  # Any: as above
    increment: _Increment,
    every: str,
    found: pa.Schema,
) -> list[str]:
    """The ranges that together are the rows of a position, each as a query."""
    if (key := increment.source.key) is not None:
        _require_integer_key(key, found)
        ranges = _build_key_ranges(cursor, increment)
    elif increment.is_small:
        ranges = [None]
    else:
        ranges = _build_block_ranges(cursor, increment.source)
    conditions = [
        " AND ".join(f"({each})" for each in (range_, increment.condition) if each)
        for range_ in ranges
    ]
    return [f"{every} WHERE {each}" if each else every for each in conditions]


def _build_block_ranges(cursor: Any, source: PostgresSource) -> list[str | None]:  # Any: as above
    if source.table is None or _read_relation_kind(cursor, source.table) not in _HEAP_KINDS:
        return [None]
    cursor.execute(
        f"SELECT pg_relation_size({_quote_text(source.table)}::regclass)"
        " / current_setting('block_size')::bigint"
    )
    blocks = int(_fetch_single(cursor))
    ranges = min(source.ranges, max(blocks, 1))
    edges = [blocks * at // ranges for at in range(1, ranges)]
    # The last range is open: blocks that are added meanwhile hold no row of the snapshot.
    starts, ends = [0, *edges], [*edges, None]
    return [
        f"ctid >= '({start},0)'::tid" + ("" if end is None else f" AND ctid < '({end},0)'::tid")
        for start, end in zip(starts, ends, strict=True)
    ]


def _require_integer_key(key: str, found: pa.Schema) -> None:
    name = key.strip('"')
    if name not in found.names:
        raise SourceRefusedError(f"PostgreSQL has no column '{name}' to cut by")
    type_ = found.field(name).type
    if not pa.types.is_integer(type_):
        hint = "name an integer column as 'key', or none"
        raise SourceRefusedError(f"the key '{name}' is of type {type_}, not of integers", hint=hint)


def _build_key_ranges(cursor: Any, increment: _Increment) -> list[str | None]:  # Any: as above
    source, condition = increment.source, increment.condition or "true"
    key = _quote_name(source.key or "")
    cursor.execute(
        f"SELECT min({key})::bigint, max({key})::bigint"  # noqa: S608 — as above
        f" FROM {_format_relation(source)} WHERE {condition}"
    )
    low, high = cursor.fetchone()
    if low is None:
        return [None]
    width = high - low + 1
    ranges = min(source.ranges, width)
    edges = [low + width * at // ranges for at in range(1, ranges)]
    if not edges:
        return [None]
    inner = [f"{key} >= {start} AND {key} < {end}" for start, end in pairwise(edges)]
    # The first and the last are open, and every row is in one of them or between.
    return [f"{key} < {edges[0]} OR {key} IS NULL", *inner, f"{key} >= {edges[-1]}"]


def _read_relation_kind(cursor: Any, table: str) -> str:  # Any: as above
    name = _quote_text(table)
    cursor.execute(f"SELECT relkind FROM pg_class WHERE oid = {name}::regclass")  # noqa: S608 — quoted
    return str(_fetch_single(cursor))


def _format_relation(source: PostgresSource) -> str:
    if source.table is not None:
        return ".".join(_quote_name(part) for part in source.table.split("."))
    return f"({(source.query or '').strip().rstrip(';')}) AS {_SUBQUERY_ALIAS}"


def _fetch_single(cursor: Any) -> Any:  # Any: as above
    return cursor.fetchone()[0]


def _quote_name(name: str) -> str:
    bare = name.strip('"')
    return '"' + bare.replace('"', '""') + '"'


def _quote_value(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quote_text(text: str) -> str:
    return "'" + ".".join(_quote_name(part) for part in text.split(".")).replace("'", "''") + "'"


def _build_text_cast(type_: pa.DataType) -> str:
    """What makes texts of values that Spark does not know, on the server; empty where it does."""
    if pa.types.is_list(type_):
        return (
            "::text[]"
            if _build_text_cast(type_.value_type) or _is_extension(type_.value_type)
            else ""
        )
    if _is_extension(type_):
        return "" if pa.types.is_string(type_.storage_type) else "::text"
    is_unknown = (
        pa.types.is_interval(type_) or pa.types.is_duration(type_) or pa.types.is_time(type_)
    )
    return "::text" if is_unknown else ""


def _is_extension(type_: pa.DataType) -> bool:
    return isinstance(type_, pa.BaseExtensionType)


def _storage_type_of(type_: pa.DataType) -> pa.DataType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _convert_batch(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        column.storage if isinstance(column, pa.ExtensionArray) else column
        for column in rows.columns
    ]
    return pa.record_batch(columns, schema=schema)


def _format_failure(failure: Exception) -> str:
    """The first line of a failure of a server that is connected, which has not seen an address."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return lines[0] if lines else type(failure).__name__
