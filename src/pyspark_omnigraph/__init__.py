"""Registers the data source `omnigraph` in every Spark session: Spark looks for such packages."""

from omnigraph.spark.datasource import OmnigraphSource as DefaultSource

__all__ = ["DefaultSource"]
