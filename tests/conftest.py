"""Options and fixtures every test module may use."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

import places
from omnigraph.execution.sources.source_cache import FOLDER_VARIABLE, OFF

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stores import S3Server

HERE = Path(__file__).parent
MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 — pytest makes a private folder in it
# Several times what all tests hold at once: in a container it is often a few megabytes.
MEMORY_BYTES_MIN = 4 * 2**30

# The same examples every time: a failure can be run again, and a green build stays green. What
# `make test` tries a few times, `make test-slow` tries again with four times as many.
settings.register_profile("quick", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("suite", derandomize=True, deadline=None)
# Other examples every time, ten times as many; those that failed are kept and tried first.
settings.register_profile(
    "nightly",
    max_examples=1000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=DirectoryBasedExampleDatabase(HERE.parent / ".hypothesis" / "examples"),
)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bless", action="store_true", help="rewrite the expectations of data-file cases"
    )
    parser.addoption(
        "--arm", choices=["spark"], help="run the data-file cases on this arm alone (use -n0)"
    )
    parser.addoption(
        "--on", choices=["s3"], help="where graphs live (default: in memory and on the disk)"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "on_disk: only about the disk; left out with `--on s3`")
    config.addinivalue_line("markers", "slow: left to `make test-slow`; `make test` runs the rest")
    config.addinivalue_line("markers", "smoke: of the tests on Spark, one that `make test` runs")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Of a run in the background; processes that tests interrupt would ignore it too.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _keep_files_in_memory()
    # What tests leave behind is theirs alone: no cache in somebody's home.
    os.environ.setdefault(FOLDER_VARIABLE, OFF)
    # Nor does the config of the developer have a part in them.
    os.environ["OMNIGRAPH_HOME"] = os.devnull
    if config.getoption("--on") == "s3":
        places.use_s3()


def _keep_files_in_memory() -> None:
    """Tests sync thousands of files, and would wait for the disk; `--basetemp` leads back to it."""
    if MEMORY_FOLDER.is_dir() and shutil.disk_usage(MEMORY_FOLDER).free >= MEMORY_BYTES_MIN:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_FOLDER))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if places.is_on_s3():
        left_out = [item for item in items if item.get_closest_marker("on_disk")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    seed = config.getoption("randomly_seed", default=None)
    if seed is not None:
        # A quiet run has no header, which would show it.
        terminalreporter.write_line(f"The order of the tests: --randomly-seed={seed}")
    skipped = [each.nodeid for each in terminalreporter.stats.get("skipped", [])]
    if any(each.startswith("tests/browser/") for each in skipped):
        terminalreporter.write_line("NOT TESTED: the web interface, for want of Chromium", red=True)


def pytest_unconfigure() -> None:
    places.end()


@pytest.fixture
def bless(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--bless"))


@pytest.fixture(scope="session")
def s3() -> S3Server:
    """A running S3 server."""
    return places.server()


@pytest.fixture(autouse=True)
def _graphs_on_s3_end_with_their_test() -> Iterator[None]:
    with places.forgetting():
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two cores of this machine, which retries its tasks.

    Whoever uses it is in the group `spark`: all of them run in one process of the test run.
    """
    from omnigraph.spark.spark_session import SparkOptions, get_session  # noqa: PLC0415 — starts nothing

    # Tasks that tests define are imported by the workers, which do not know the folder of tests.
    paths = (str(HERE / "spark"), str(HERE))
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *([before] if before else [])])
    made = get_session(SparkOptions(master="local[2]"))
    yield made
    made.stop()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


@pytest.fixture(autouse=True)
def _spark_is_in_one_process(request: pytest.FixtureRequest) -> None:
    """Sessions in several processes would work, and take the memory and the time of several."""
    is_shared = "PYTEST_XDIST_WORKER" in os.environ
    if is_shared and "spark" in request.fixturenames:
        assert request.node.nodeid.endswith("@spark")
