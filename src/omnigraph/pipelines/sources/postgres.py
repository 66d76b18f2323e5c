"""A table or query of PostgreSQL, read by parallel tasks that all see one snapshot.

The driver exports a snapshot and keeps its transaction open while the frame is used; every task
reads a range of the table in a transaction of its own on that snapshot. Tables are cut by blocks;
views and queries by the values of an integer column, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import adbc_driver_manager
import adbc_driver_postgresql.dbapi as dbapi
import pyarrow as pa

from omnigraph.errors import SourceFailed, SourceRefused
from omnigraph.pipelines.definition import PostgresSource
from omnigraph.schema.shape import JsonObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BATCH_BYTES: Final = 16 * 1024**2
# What PostgreSQL calls a table whose rows lie in blocks, and a view that was stored.
_HEAPS: Final = ("r", "m")
_CUT: Final = "__omnigraph_rows"


def position(source: PostgresSource) -> JsonObject:
    """What the ledger keeps: which table or query, never the address."""
    return {"kind": "postgres", "read": source.table or source.query}


@contextmanager
def frame(source: PostgresSource, spark: SparkSession) -> Iterator[DataFrame]:
    """The rows of the source; the snapshot is held until the end."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 — Spark is here by now

    with connected(source.url) as cursor:
        cursor.execute(_BEGIN)
        cursor.execute("SELECT pg_export_snapshot()")
        snapshot = str(_single(cursor))
        schema = _schema(cursor, source)
        texts = _queries(cursor, source)
        task = partial(read_queries, (source.url, snapshot), tuple(texts), schema)
        count = len(texts)
        yield spark.range(0, count, 1, count).mapInArrow(task, from_arrow_schema(schema))


@contextmanager
def connected(url: str) -> Iterator[Any]:  # Any: the library has no types
    """A cursor outside any transaction; failures of the server are errors of the source."""
    try:
        with (
            closing(dbapi.connect(url, autocommit=True)) as connection,
            closing(connection.cursor()) as cursor,
        ):
            yield cursor
    except adbc_driver_manager.OperationalError as failure:
        raise SourceFailed(f"PostgreSQL cannot be read: {_told(failure)}") from failure
    except adbc_driver_manager.Error as failure:
        raise SourceRefused(f"PostgreSQL refuses: {_told(failure)}") from failure


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
            with connected(url) as cursor:
                cursor.adbc_statement.set_options(
                    **{"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)}
                )
                cursor.execute(_BEGIN)
                cursor.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
                cursor.execute(texts[number])
                for rows in cursor.fetch_record_batch():
                    yield _plain_batch(rows, schema)
                cursor.execute("COMMIT")


def _schema(cursor: Any, source: PostgresSource) -> pa.Schema:  # Any: the library has no types
    cursor.execute(f"SELECT * FROM {_relation(source)} LIMIT 0")  # noqa: S608 — the user's own query
    found = cursor.fetch_arrow_table().schema
    return pa.schema([(field.name, _plain_type(field.type)) for field in found])


def _queries(cursor: Any, source: PostgresSource) -> list[str]:  # Any: as above
    """The ranges that together are the source, each as a query."""
    every = f"SELECT * FROM {_relation(source)}"  # noqa: S608 — the user's own query
    if source.key is not None:
        return _key_ranges(cursor, source, every)
    if source.table is None or _kind(cursor, source.table) not in _HEAPS:
        return [every]
    cursor.execute(
        f"SELECT pg_relation_size({_text(source.table)}::regclass)"
        " / current_setting('block_size')::bigint"
    )
    blocks = int(_single(cursor))
    ranges = min(source.ranges, max(blocks, 1))
    edges = [blocks * at // ranges for at in range(1, ranges)]
    # The last range is open: blocks that are added meanwhile hold no row of the snapshot.
    starts, ends = [0, *edges], [*edges, None]
    return [
        f"{every} WHERE ctid >= '({start},0)'::tid"
        + ("" if end is None else f" AND ctid < '({end},0)'::tid")
        for start, end in zip(starts, ends, strict=True)
    ]


def _key_ranges(cursor: Any, source: PostgresSource, every: str) -> list[str]:  # Any: as above
    key = _quoted(source.key or "")
    cursor.execute(
        f"SELECT min({key})::bigint, max({key})::bigint FROM {_relation(source)}"  # noqa: S608 — as above
    )
    low, high = cursor.fetchone()
    if low is None:
        return [every]
    width = high - low + 1
    ranges = min(source.ranges, width)
    edges = [low + width * at // ranges for at in range(1, ranges)]
    starts, ends = [low, *edges], [*edges, high + 1]
    cut = [
        f"{every} WHERE {key} >= {start} AND {key} < {end}"
        for start, end in zip(starts, ends, strict=True)
    ]
    return [*cut, f"{every} WHERE {key} IS NULL"]


def _kind(cursor: Any, table: str) -> str:  # Any: as above
    name = _text(table)
    cursor.execute(f"SELECT relkind FROM pg_class WHERE oid = {name}::regclass")  # noqa: S608 — quoted
    return str(_single(cursor))


def _relation(source: PostgresSource) -> str:
    if source.table is not None:
        return ".".join(_quoted(part) for part in source.table.split("."))
    return f"({(source.query or '').strip().rstrip(';')}) AS {_CUT}"


def _single(cursor: Any) -> Any:  # Any: as above
    return cursor.fetchone()[0]


def _quoted(name: str) -> str:
    bare = name.strip('"')
    return '"' + bare.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + ".".join(_quoted(part) for part in text.split(".")).replace("'", "''") + "'"


def _plain_type(type_: pa.DataType) -> pa.DataType:
    """A type that Spark knows: what PostgreSQL alone knows is read as a text."""
    if isinstance(type_, pa.BaseExtensionType):
        storage = type_.storage_type
        return pa.string() if pa.types.is_fixed_size_binary(storage) else storage
    is_unknown = (
        pa.types.is_interval(type_) or pa.types.is_duration(type_) or pa.types.is_time(type_)
    )
    return pa.string() if is_unknown else type_


def _plain_batch(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for column, field in zip(rows.columns, schema, strict=True):
        if column.type == field.type:
            columns.append(column)
        elif isinstance(column, pa.ExtensionArray) and column.storage.type == field.type:
            columns.append(column.storage)
        else:
            texts = [None if value is None else str(value) for value in column.to_pylist()]
            columns.append(pa.array(texts, field.type))
    return pa.record_batch(columns, schema=schema)


def _told(failure: Exception) -> str:
    """The first line of a failure, which never holds the address with its password."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return lines[0] if lines else type(failure).__name__
