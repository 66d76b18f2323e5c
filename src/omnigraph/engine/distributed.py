"""The way from the engine to Spark, which is an optional library above it."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from types import ModuleType

from omnigraph.errors import SparkMissing


def has_spark() -> bool:
    """Whether PySpark is installed."""
    return find_spec("pyspark") is not None


def spark_entry() -> ModuleType:
    """What graphs offer on Spark, imported when it is first needed."""
    return spark_module("entry")


def spark_module(name: str) -> ModuleType:
    """A module of `omnigraph.spark`, imported when it is first needed."""
    if not has_spark():
        raise SparkMissing
    return importlib.import_module(f"omnigraph.spark.{name}")
