"""Classifies failures of Spark: data that no attempt can read, or a job that may be retried."""

from __future__ import annotations

import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkException,
)

from omnigraph.errors import (
    OmnigraphError,
    SourceRefusedError,
    SparkDriverLostError,
    SparkFailedError,
)
from omnigraph.lang.quoting import sanitize_message

# What a call to Java raises when Java is gone: of the connection, or of a stream of rows from it.
_NETWORK: Final = (Py4JNetworkError, ConnectionError, EOFError)
# What a job can raise: failures that PySpark has no class for come as Java's own.
FAILURES: Final = (PySparkException, Py4JError, *_NETWORK)
# How a Spark Connect client says that nothing answers at the address of its server.
_CONNECTION_LOST: Final = re.compile(r"StatusCode\.UNAVAILABLE|SESSION_CLOSED|SESSION_NOT_FOUND")
# What Py4J says of a call that got no answer at all: nothing of Java follows.
_NO_ANSWER: Final = re.compile(r"An error occurred while calling \S+")
# Its error for a name that it did not get from Java: Java does not know it, or did not answer.
_UNKNOWN_NAME: Final = re.compile(r"\S+ does not exist in the JVM")
# A process that is being killed closes its connections one after the other.
_ENDING_SECONDS: Final = 2.0
_ENDING_POLL_SECONDS: Final = 0.05
# Of the failures that led to one another, so many are examined.
_CHAIN_MAX: Final = 16
# A state of SQL that begins so is about data: a value that cannot be cast, a zero to divide by.
_DATA_STATE: Final = "22"
_DATA_CLASSES: Final = re.compile(
    r"MALFORMED_\w+|USER_RAISED_EXCEPTION|FAILED_READ_FILE(?!\.FILE_NOT_EXIST)|INVALID_\w+_SCHEMA"
    r"|CANNOT_READ_FILE_FOOTER|FIELD_NOT_FOUND"
)
_CLASS: Final = re.compile(r"\[([A-Z0-9_.]+)\]\s*")
_STATE: Final = re.compile(r"SQLSTATE: (\w{5})")
_JAVA: Final = re.compile(
    r"^(?:An error occurred while calling \S+|: [\w.$]+(?:Exception|Error): )"
)
# What tasks of ours raise about files that are not what their names say.
_UNREADABLE: Final = re.compile(
    r"^(?:pyarrow\.lib\.Arrow(?:Invalid|TypeError|KeyError)|UnicodeDecodeError"
    r"|omnigraph\.errors\.\w+\.SourceRefusedError): (.*)$",
    re.MULTILINE,
)
# What else our code raises in tasks.
_TASK_ERROR: Final = re.compile(r"^omnigraph\.errors\.\w+\.\w+: (.*)$", re.MULTILINE)


@contextmanager
def translate_source_errors(name: str) -> Iterator[None]:
    """Failures while a source is examined, as errors of ours; `name` is that of the source."""
    try:
        yield
    except FAILURES as failure:
        if is_driver_lost(failure):
            raise SparkDriverLostError(f"read source '{name}'") from failure
        reason = find_data_fault(failure) or format_failure(failure)
        if find_data_fault(failure) or _is_definition_error(failure):
            raise SourceRefusedError(f"source '{name}': {reason}") from failure
        raise SparkFailedError(f"read source '{name}'", reason) from failure


def error_of(job: str, failure: Exception) -> OmnigraphError:
    """The error for a job that failed: trying again does not help where data is at fault."""
    if is_driver_lost(failure):
        return SparkDriverLostError(job)
    reason = find_data_fault(failure)
    if reason is not None:
        return SourceRefusedError(
            f"Spark could not {job}: {reason}", hint="mend the data, then repeat it"
        )
    return SparkFailedError(job, format_failure(failure))


@contextmanager
def raise_on_driver_loss(job: str) -> Iterator[None]:
    """Raise a typed error if Java ends meanwhile; all other failures pass."""
    try:
        yield
    except FAILURES as failure:
        if is_driver_lost(failure):
            raise SparkDriverLostError(job) from failure
        raise


def is_driver_lost(failure: BaseException) -> bool:
    """Whether a call failed because the Java process, or the server, is not there any more."""
    found: BaseException | None = failure
    for _ in range(_CHAIN_MAX):
        if found is None or isinstance(found, OmnigraphError):
            return False
        if isinstance(found, _NETWORK) or _has_no_answer(found):
            return True
        if isinstance(found, PySparkException) and _CONNECTION_LOST.search(str(found)):
            return True
        found = found.__cause__ or found.__context__
    return False


def _has_no_answer(failure: BaseException) -> bool:
    if not isinstance(failure, Py4JError) or isinstance(failure, Py4JJavaError):
        return False
    text = str(failure).strip()
    if _NO_ANSWER.fullmatch(text):
        return True
    return _UNKNOWN_NAME.fullmatch(text) is not None and not _is_java_listening()


def _is_java_listening() -> bool:
    """Whether the Java of this process takes connections, and goes on to take them for a while."""
    core = sys.modules.get("pyspark.core.context")
    gateway = None if core is None else vars(core.SparkContext).get("_gateway")
    if gateway is None:
        return False
    parameters = gateway.gateway_parameters
    end = time.monotonic() + _ENDING_SECONDS
    while time.monotonic() < end:
        try:
            socket.create_connection((parameters.address, parameters.port), 1.0).close()
        except OSError:
            return False
        time.sleep(_ENDING_POLL_SECONDS)
    return True


def find_data_fault(failure: Exception) -> str | None:
    """What is wrong with the data that Spark read; None if that is not why it failed."""
    text = str(failure)
    own = _UNREADABLE.search(text)
    if own is not None:
        return sanitize_message(own[1])
    class_, state = _CLASS.search(text), _STATE.search(text)
    is_state = state is not None and state[1].startswith(_DATA_STATE)
    is_class = class_ is not None and _DATA_CLASSES.match(class_[1]) is not None
    return format_failure(failure) if is_state or is_class else None


def _is_definition_error(failure: Exception) -> bool:
    """Whether Spark rejected a definition."""
    return isinstance(failure, AnalysisException | ParseException | IllegalArgumentException)


def format_failure(failure: Exception) -> str:
    """The sentence of a failure, without its class and its state."""
    if task_error := _TASK_ERROR.search(str(failure)):
        return sanitize_message(task_error[1])
    lines = [_JAVA.sub("", line.strip()) for line in str(failure).splitlines()]
    said = [line for line in lines if line]
    caused = [line for line in said if line.startswith("Caused by: ") and _CLASS.search(line)]
    first = next(iter(said), type(failure).__name__)
    if _CLASS.search(first) is None and caused:
        first = caused[0]
    text = _CLASS.split(first, maxsplit=1)[-1]
    return sanitize_message(text.partition(" SQLSTATE:")[0].strip())
