from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from omnigraph.spark.spark_jobs import reason_of

TRACE = """Traceback (most recent call last):
  File "/opt/python/tasks.py", line 7, in run
    import omnigraph: why
    ^^^^^^
ModuleNotFoundError: No module named 'omnigraph'
 SQLSTATE: 38000
\tat org.apache.spark.api.python.PythonRunner.read(PythonRunner.scala:1)"""


@pytest.mark.parametrize(
    "before",
    [
        "An exception was thrown from the Python worker. Please see the stack trace below.\n",
        "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: ",
        "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times\n",
    ],
)
def test_what_a_task_raised_is_the_reason_wherever_its_trace_begins(before: str) -> None:
    assert reason_of(PySparkException(before + TRACE)) == (
        "ModuleNotFoundError: No module named 'omnigraph'"
    )


def test_without_a_trace_the_reason_is_what_spark_says() -> None:
    failure = PySparkException("[NO_ROOM] There is no room left. SQLSTATE: 53000\nat org.apache")
    assert reason_of(failure) == "There is no room left."
