"""Java that dies: a typed error that says so, and another attempt in another session."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.core.context import SparkContext
from pyspark.errors import PySparkException

from omnigraph.errors import SourceRefusedError, SparkDriverLostError, SparkFailedError
from omnigraph.spark import spark_failures
from omnigraph.spark.spark_failures import error_of, is_driver_lost, raise_on_driver_loss

TESTS = Path(__file__).parent.parent


@pytest.mark.timeout(1200)
def test_a_process_whose_java_is_killed_says_so_and_goes_on_with_another(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "spark.lost_driver_program", str(tmp_path)],
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=1100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize(
    ("failure", "is_lost"),
    [
        (ConnectionRefusedError(111, "Connection refused"), True),
        (ConnectionResetError(), True),
        (EOFError(), True),
        (Py4JNetworkError("Answer from Java side is empty"), True),
        (PySparkException("<_InactiveRpcError: status = StatusCode.UNAVAILABLE>"), True),
        (Py4JError("An error occurred while calling o1.collect"), True),
        (Py4JError("An error occurred while calling o1.collect. Trace:\njava.lang.X"), False),
        (PySparkException("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"), False),
    ],
)
def test_failures_of_the_connection_to_java_are_told_apart(
    failure: Exception, *, is_lost: bool
) -> None:
    assert is_driver_lost(failure) is is_lost
    error = error_of("write", failure)
    assert isinstance(error, SparkDriverLostError) is is_lost
    assert isinstance(error, SparkFailedError | SourceRefusedError)


def test_a_failure_is_led_back_to_the_one_that_caused_it() -> None:
    failure = Py4JError("o1 does not exist in the JVM")
    failure.__cause__ = Py4JNetworkError("Answer from Java side is empty")
    told = "Spark could not write: the Java process"
    with pytest.raises(SparkDriverLostError, match=told), raise_on_driver_loss("write"):
        raise failure


@pytest.mark.parametrize("is_listening", [True, False])
def test_a_name_that_java_does_not_know_is_a_lost_driver_where_java_is_gone(
    monkeypatch: pytest.MonkeyPatch, *, is_listening: bool
) -> None:
    monkeypatch.setattr(spark_failures, "_ENDING_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as java:
        address, port = java.getsockname()
        parameters = SimpleNamespace(address=address, port=port)
        gateway = SimpleNamespace(gateway_parameters=parameters)
        monkeypatch.setattr(SparkContext, "_gateway", gateway)
        if not is_listening:
            java.close()
        failure = Py4JError("PythonUtils does not exist in the JVM")
        assert is_driver_lost(failure) is not is_listening
        assert error_of("load the records", failure).retryable
