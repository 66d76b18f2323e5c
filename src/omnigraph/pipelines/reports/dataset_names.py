"""What sources and targets are called as datasets, by the naming rules of OpenLineage.

A name holds hosts, paths and tables, also of addresses that come from the environment: by these,
lineage of several tools meets. It never holds a user, a password or a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, assert_never
from urllib.parse import SplitResult, urlsplit

from omnigraph.pipelines.config.definition import (
    DltSource,
    FeedSource,
    FileSource,
    HttpSource,
    KafkaSource,
    PostgresSource,
    PythonSource,
    Source,
    SparkSource,
    SqlSource,
)
from omnigraph.pipelines.sources.http_source import origin_of

_POSTGRES_PORT: Final = 5432
_KAFKA_PORT: Final = 9092


@dataclass(frozen=True, slots=True, order=True)
class DatasetName:
    """A dataset: where it is, and what it is called there."""

    namespace: str
    name: str


def name_type(address: str, branch: str, type_name: str) -> DatasetName:
    """A type of a graph on a branch."""
    place = _name_location(address)
    return DatasetName(place.namespace, f"{place.name}/{branch}/{type_name}")


def iter_source_names(name: str, source: Source) -> Iterator[DatasetName]:
    """The datasets of a source; a query has none of its own, because it reads other sources."""
    match source:
        case FileSource():
            yield from map(_name_location, source.paths)
        case PostgresSource():
            yield _name_postgres(name, source)
        case HttpSource():
            yield DatasetName(origin_of(source.url), name)
        case FeedSource():
            yield from _iter_feed_names(source)
        case KafkaSource():
            host, _, port = source.servers.partition(",")[0].strip().partition(":")
            namespace = f"kafka://{host}:{port or _KAFKA_PORT}"
            yield from (DatasetName(namespace, topic) for topic in source.topics)
        case SparkSource():
            known = [_name_location(path) for path in source.paths]
            yield from known or [DatasetName("spark", f"{source.format}/{name}")]
        case SqlSource():
            pass
        case PythonSource():
            yield DatasetName("python", source.function)
        case DltSource():
            yield DatasetName("dlt", f"{source.function or name}.{source.table}")
        case _:
            assert_never(source)


def _iter_feed_names(source: FeedSource) -> Iterator[DatasetName]:
    yield from (name_type(source.uri, source.branch, each) for each in source.types)
    if not source.types:
        place = _name_location(source.uri)
        yield DatasetName(place.namespace, f"{place.name}/{source.branch}")


def _name_postgres(name: str, source: PostgresSource) -> DatasetName:
    parts = _split(source.url)
    if parts is None or parts.hostname is None:
        return DatasetName("postgres", name)
    namespace = f"postgres://{parts.hostname}:{_find_port(parts) or _POSTGRES_PORT}"
    database = parts.path.strip("/")
    table = source.table or name
    is_plain = source.table is not None and "." not in table
    return DatasetName(
        namespace, f"{database}.public.{table}" if is_plain else f"{database}.{table}"
    )


def _name_location(address: str) -> DatasetName:
    """A path of this machine, or a place in a store."""
    parts = _split(address) if "://" in address else None
    if parts is None or parts.scheme == "file":
        return DatasetName("file", address.removeprefix("file://"))
    port = _find_port(parts)
    host = (parts.hostname or "") + ("" if port is None else f":{port}")
    return DatasetName(f"{parts.scheme}://{host}", parts.path.strip("/"))


def _split(address: str) -> SplitResult | None:
    try:
        return urlsplit(address)
    except ValueError:
        return None


def _find_port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        return None
