"""Runs a declarative pipeline of Spark in a process of its own, which has a Connect session."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.pipelines import cli

from omnigraph.spark.spark_session import SparkOptions, get_session

if __name__ == "__main__":
    get_session(SparkOptions(remote="local[2]"))
    cli.run(Path(sys.argv[1]), full_refresh=[], full_refresh_all=False, refresh=[], dry=False)
