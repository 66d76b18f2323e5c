"""One Spark session for all tests here, on one worker of the test run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
# Tasks that tests define are imported by the workers, which do not know the folder of the tests.
_PATHS = (str(HERE), str(HERE.parent))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))
            # The first of them waits for Java to start, on a machine that has other work.
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two cores of this machine, which retries its tasks."""
    from omnigraph.spark.session import SparkOptions, session  # noqa: PLC0415 — starts nothing

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*_PATHS, *([before] if before else [])])
    made = session(SparkOptions(master="local[2]"))
    yield made
    made.stop()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before
