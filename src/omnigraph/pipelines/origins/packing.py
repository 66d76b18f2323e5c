"""How Spark packs files into partitions: by settings of a session, and by the cores it has.

Records of files have numbers by their partitions, so all jobs over them must see the same ones,
whether executors come or go meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph.engine.distributed import import_spark_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Where nobody sets it, Spark takes the number of cores that there are at the moment.
_PARTITIONS_MIN: Final = "spark.sql.files.minPartitionNum"
_SETTINGS: Final = (
    _PARTITIONS_MIN,
    "spark.sql.files.maxPartitionNum",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
)
# How many use what was set here: kept by the session, which several objects may stand for.
_USERS: Final = "omnigraph.files.users"
# A server does not tell how many cores it has.
_CORES_OF_SERVERS: Final = "64"

_settings_lock: Final = threading.Lock()

PartitionSettings: TypeAlias = tuple[str | None, ...]


def partition_settings_of(spark: SparkSession) -> PartitionSettings:
    """The settings of a session that its partitions of files depend on."""
    return tuple(spark.conf.get(name, None) for name in _SETTINGS)


@contextmanager
def pin_partition_settings(spark: SparkSession) -> Iterator[None]:
    """Let files be packed the same way until the end, as far as nobody changes the settings."""
    with _settings_lock:
        users = int(spark.conf.get(_USERS, None) or 0)
        is_ours = users > 0 or spark.conf.get(_PARTITIONS_MIN, None) is None
        if is_ours and not users:
            spark.conf.set(_PARTITIONS_MIN, _count_cores(spark))
        if is_ours:
            spark.conf.set(_USERS, str(users + 1))
    try:
        yield
    finally:
        if is_ours:
            _unpin_partition_settings(spark)


def _unpin_partition_settings(spark: SparkSession) -> None:
    # Any failure: a session that has ended has no settings, and why it did is told elsewhere.
    with _settings_lock, suppress(Exception):
        users = int(spark.conf.get(_USERS, None) or 0) - 1
        if users > 0:
            spark.conf.set(_USERS, str(users))
            return
        spark.conf.unset(_USERS)
        spark.conf.unset(_PARTITIONS_MIN)


def _count_cores(spark: SparkSession) -> str:
    chosen = spark.conf.get("spark.sql.leafNodeDefaultParallelism", None)
    if chosen is not None:
        return chosen
    if import_spark_module("session").is_connect(spark):
        return spark.conf.get("spark.default.parallelism", None) or _CORES_OF_SERVERS
    return str(spark.sparkContext.defaultParallelism)
