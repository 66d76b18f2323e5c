"""The run that Java's start-up cache is made of: a session, a query and a mapped frame."""

from __future__ import annotations

from omnigraph.spark.spark_jobs import run_tasks
from omnigraph.spark.spark_session import JAVA_OPTIONS, SparkOptions, get_session


def main(cache: str) -> None:
    """Use Spark as a load and a read do; Java writes down what it learned when it ends."""
    options = SparkOptions("local[2]", conf={JAVA_OPTIONS: f"-XX:AOTCacheOutput={cache}"})
    spark = get_session(options)
    run_tasks(spark, list(range(4)), multiply_by_two, stage="warm")
    spark.range(1000).selectExpr("id % 7 AS k").groupBy("k").count().orderBy("k").toArrow()
    spark.stop()


def multiply_by_two(number: int) -> int:
    """Some work."""
    return number * 2
