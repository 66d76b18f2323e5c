from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph.bulk.task_runner import Runner, Stage
from omnigraph.errors import BranchNotFoundError, InvalidArgumentError, SparkFailedError
from omnigraph.spark.java_warmup import multiply_by_two
from omnigraph.spark.spark_jobs import SparkRunner, run_tasks
from spark import spark_tasks
from spark.spark_tasks import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.smoke
def test_answers_come_in_the_order_of_units(spark: SparkSession) -> None:
    stages: list[Stage] = []
    runner: Runner = SparkRunner(spark, stages.append)
    answers = runner.run([Job(number) for number in range(7)], spark_tasks.square, stage="square")
    assert answers == [0, 1, 4, 9, 16, 25, 36]
    assert stages[0] == Stage("square", 0, 7)
    assert stages[-1] == Stage("square", 7, 7)
    assert [stage.done for stage in stages] == sorted(stage.done for stage in stages)


def test_no_units_and_one_unit_are_no_special_cases(spark: SparkSession) -> None:
    assert run_tasks(spark, [], spark_tasks.square, stage="square") == []
    assert run_tasks(spark, [21], multiply_by_two, stage="double") == [42]


@pytest.mark.smoke
def test_an_error_of_the_library_is_raised_as_it_is(spark: SparkSession) -> None:
    jobs = [Job(number) for number in range(4)]
    with pytest.raises(BranchNotFoundError) as caught:
        run_tasks(spark, jobs, spark_tasks.refuse_two, stage="refuse")
    assert caught.value.branch == "review"
    assert caught.value.hint == "look again"
    assert str(caught.value) == "branch 'review' not found"


def test_another_error_fails_the_job_and_is_named(spark: SparkSession) -> None:
    jobs = [Job(number) for number in range(3)]
    with pytest.raises(SparkFailedError, match="ValueError: two is not for me"):
        run_tasks(spark, jobs, spark_tasks.fail_at_two, stage="count")


def test_a_retryable_error_is_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    jobs = [Job(number, str(tmp_path)) for number in range(3)]
    answers = run_tasks(spark, jobs, spark_tasks.succeed_the_second_time, stage="retry")
    assert answers == [0, 1, 2]
    assert (tmp_path / "tried-2").exists()


def test_a_function_without_a_module_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InvalidArgumentError, match="not a function of an installed module"):
        run_tasks(spark, [1], lambda number: number, stage="count")
