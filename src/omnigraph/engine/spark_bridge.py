"""Imports Spark for the engine, which is below it: Spark is an optional library."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from types import ModuleType

from omnigraph.errors import SparkMissingError


def has_spark() -> bool:
    """Whether PySpark is installed."""
    return find_spec("pyspark") is not None


def import_spark_api() -> ModuleType:
    """What graphs offer on Spark, imported when it is first needed."""
    return import_spark_module("graph_api")


def import_spark_module(name: str) -> ModuleType:
    """A module of `omnigraph.spark`, imported when it is first needed."""
    if not has_spark():
        raise SparkMissingError
    return importlib.import_module(f"omnigraph.spark.{name}")
