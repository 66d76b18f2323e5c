"""The Java process of a session, started without a copy of this process.

PySpark forks to start it. Linux does not promise a copy as much memory as a process may have
reserved after hours of work, though it uses little of it: then the fork is refused.
"""

from __future__ import annotations

import atexit
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from pyspark.find_spark_home import _find_spark_home

from omnigraph.errors import SparkFailedError

_PORT: Final = "PYSPARK_GATEWAY_PORT"
_SECRET: Final = "PYSPARK_GATEWAY_SECRET"  # noqa: S105 — the name of a variable
# On a machine that has much other work; on a quiet one it is some seconds.
START_SECONDS: Final = 300
_POLL_SECONDS: Final = 0.05
_END_SECONDS: Final = 10


def start_java(conf: Mapping[str, str]) -> dict[str, str]:
    """Start the Java of a session, if there is none: the variables by which PySpark finds it."""
    core = sys.modules.get("pyspark.core.context")
    has_one = core is not None and vars(core.SparkContext).get("_gateway") is not None
    if has_one or _PORT in os.environ or os.name != "posix":
        return {}
    command = [str(Path(_find_spark_home()) / "bin" / "spark-submit")]
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "gateway"
        variables = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told)}
        java = subprocess.Popen(  # noqa: S603 — the script of the installed library
            [*command, "pyspark-shell"],
            stdin=subprocess.PIPE,
            env=os.environ | variables,
            # What interrupts this process ends its jobs, not Java.
            process_group=0,
        )
        try:
            _await_port(java, told)
        except BaseException:
            _terminate_java(java)
            raise
        atexit.register(_stop_java, java)
        port, size = struct.unpack_from(">ii", info := told.read_bytes())
        return {_PORT: str(port), _SECRET: info[8 : 8 + size].decode()}


def _await_port(java: subprocess.Popen[bytes], told: Path) -> None:
    """Wait until Java tells where it listens."""
    end = time.monotonic() + START_SECONDS
    while not told.is_file():
        if java.poll() is not None:
            raise SparkFailedError("start", f"Java ended with {java.returncode}")
        if time.monotonic() > end:
            raise SparkFailedError("start", f"Java is not ready after {START_SECONDS} seconds")
        time.sleep(_POLL_SECONDS)


def _terminate_java(java: subprocess.Popen[bytes]) -> None:
    """End Java with the script that started it, which has a process group of its own."""
    assert java.stdin is not None
    with suppress(ProcessLookupError):
        os.killpg(java.pid, signal.SIGKILL)
    java.wait()
    java.stdin.close()


def _stop_java(java: subprocess.Popen[bytes]) -> None:
    """Let Java end, as it does when its standard input does."""
    assert java.stdin is not None
    java.stdin.close()
    try:
        java.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        _terminate_java(java)
