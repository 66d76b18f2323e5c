from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from omnigraph.errors import SparkFailedError
from omnigraph.spark import java_runtime


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark whose start is a script of the test, for a process without a Java."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(java_runtime, "_find_spark_home", lambda: str(tmp_path))
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.delitem(sys.modules, "pyspark.core.context", raising=False)
    return tmp_path


def _script(home: Path, text: str) -> None:
    script = home / "bin" / "spark-submit"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)


def test_a_java_that_is_not_ready_in_time_is_ended(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java_runtime, "START_SECONDS", 1)
    _script(home, f"sleep 600 & echo $! > {home}/child; wait")
    with pytest.raises(SparkFailedError, match="Java is not ready after 1 seconds"):
        java_runtime.start_java({})
    child = int((home / "child").read_text())
    end = time.monotonic() + 10
    while _runs(child):
        assert time.monotonic() < end, "what the script started goes on"
        time.sleep(0.01)


def test_a_java_that_ends_is_told(home: Path) -> None:
    _script(home, "exit 3")
    with pytest.raises(SparkFailedError, match="Java ended with 3"):
        java_runtime.start_java({})


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
