"""One Spark session per process: the caller's, or one made when it is first needed."""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from omnigraph.bulk.task_tracking import STOP_SECONDS
from omnigraph.errors import InvalidArgumentError, SparkDriverLostError, SparkFailedError
from omnigraph.spark.java_runtime import find_java_home, find_startup_cache, start_java
from omnigraph.spark.spark_failures import FAILURES, format_failure, is_driver_lost

if TYPE_CHECKING:
    from pyspark.sql.session import SparkSession as ClassicSession

MASTER_VARIABLE: Final = "SPARK_MASTER_URL"
REMOTE_VARIABLE: Final = "SPARK_REMOTE"
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
# A task that failed so often fails its job; plain `local[N]` would not retry at all.
ATTEMPTS_MAX: Final = 4
# So long a server may take to answer for the first time.
ANSWER_SECONDS: Final = 20
ANSI: Final = "spark.sql.ansi.enabled"
# What the results of expressions depend on: with ANSI off, what cannot be converted is null.
_SEMANTIC_SETTINGS: Final[Mapping[str, str]] = {ANSI: "true", "spark.sql.session.timeZone": "UTC"}
# Settings that a session of a server can have too: answers must not depend on where they are made.
_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.python.filterPushdown.enabled": "true",
    **_SEMANTIC_SETTINGS,
}
_LOOPBACK: Final = "127.0.0.1"
_QUIET: Final = Path(__file__).with_name("quiet.properties")
_LOCAL: Final = re.compile(r"local(?:\[(?P<cores>\*|\d+)\])?")
_LOCAL_WITH_RETRIES: Final = re.compile(r"local\[(?:\*|\d+)\s*,\s*(?P<attempts>\d+)\]")

_creation_lock: Final = threading.RLock()

# A session, or what makes one: it is asked for when everything else that can fail has not.
SessionProvider: TypeAlias = SparkSession | Callable[[], SparkSession]


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Where Spark runs: a cluster's master, a Spark Connect address, or this machine if neither.

    `conf` are settings of Spark, which win over those chosen here.
    """

    master: str | None = None
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

    def with_environment(self, environment: Mapping[str, str] | None = None) -> SparkOptions:
        """With what the environment says where no argument does."""
        if self.master and self.remote:
            raise InvalidArgumentError(
                "master", "a session has either a master or a remote address, not both"
            )
        if self.master or self.remote:
            return self
        variables = os.environ if environment is None else environment
        remote = variables.get(REMOTE_VARIABLE) or None
        master = None if remote else variables.get(MASTER_VARIABLE) or None
        return SparkOptions(master, remote, self.conf)


# Sessions of callers, and those that are used in their place.
_strict_sessions: Final[WeakKeyDictionary[SparkSession, SparkSession]] = WeakKeyDictionary()
_chosen_options: Final[ContextVar[SparkOptions | None]] = ContextVar("_chosen", default=None)


@contextmanager
def use_options(options: SparkOptions) -> Iterator[None]:
    """Use these options for sessions that are made meanwhile without others."""
    before = _chosen_options.set(options)
    try:
        yield
    finally:
        _chosen_options.reset(before)


def open_session(where: SessionProvider) -> SparkSession:
    """A session; it is made now if it was not before."""
    return where if isinstance(where, SparkSession) or not callable(where) else where()


def get_session(options: SparkOptions | None = None) -> SparkSession:
    """The active session of this process, else a new one, which ends with the process."""
    with _creation_lock:
        asked = options or _chosen_options.get() or SparkOptions()
        _forget_lost_driver()
        if (active := find_active_session()) is not None:
            _require_same_options(active, asked)
            return active
        return _create_session(asked.with_environment())


def _forget_lost_driver() -> None:
    """Forget the Spark of this process if its Java has ended: PySpark would ask it for ever."""
    context = _find_active_context()
    if context is None:
        return
    try:
        context.startTime  # noqa: B018 — asks Java, and nothing is as cheap
    except FAILURES as failure:
        if not is_driver_lost(failure):
            return
        core = sys.modules["pyspark.core.context"].SparkContext
        with suppress(Exception):
            core._gateway.close()  # noqa: SLF001 — its connections lead nowhere
        core._active_spark_context = core._gateway = core._jvm = None  # noqa: SLF001 — as above
        SparkSession._instantiatedSession = None  # noqa: SLF001 — as above
        _strict_sessions.clear()


def get_strict_session(spark: SparkSession) -> SparkSession:
    """A session of the same Spark in which expressions mean what they mean everywhere.

    The settings of the given one belong to the caller and stay as they are.
    """
    if all(_has_setting(spark, key, value) for key, value in _SEMANTIC_SETTINGS.items()):
        return spark
    with _creation_lock:
        if (made := _strict_sessions.get(spark)) is None:
            made = _strict_sessions[spark] = spark.newSession()
            for key, value in _SETTINGS.items():
                made.conf.set(key, value)
        return made


def is_ansi(spark: SparkSession) -> bool:
    """Whether what cannot be converted fails in a session, rather than being null."""
    return _has_setting(spark, ANSI, _SEMANTIC_SETTINGS[ANSI])


def _has_setting(spark: SparkSession, key: str, value: str) -> bool:
    # Spark takes `TRUE` and ` true ` for true, and keeps them as they were written.
    return (spark.conf.get(key) or "").strip().lower() == value.lower()


def find_active_session() -> SparkSession | None:
    """The session that is in use in this process, also one that was not made here."""
    # On Spark Connect the classic class knows none, and the other way round.
    found = SparkSession.getActiveSession()
    if found is None and (connect := sys.modules.get("pyspark.sql.connect.session")) is not None:
        return connect.SparkSession.getActiveSession()  # type: ignore[no-any-return]
    if found is None and (context := _find_active_context()) is not None:
        return SparkSession(context)
    return found


def is_connect(spark: SparkSession) -> bool:
    """Whether a session talks to a Spark Connect server."""
    return ".connect." in type(spark).__module__


def get_attempts_max(spark: SparkSession) -> int:
    """How often a session tries a task before the job fails."""
    master = spark.conf.get("spark.master", "") or ""
    if _LOCAL.fullmatch(master):
        return 1
    if local := _LOCAL_WITH_RETRIES.fullmatch(master):
        return int(local["attempts"])
    # Four is the default of Spark.
    return int(spark.conf.get("spark.task.maxFailures", "4") or "4")


def _find_active_context() -> Any:  # a SparkContext, or None
    """The running Spark of this process: another thread's session is not active in this one."""
    core = sys.modules.get("pyspark.core.context")
    return None if core is None else vars(core.SparkContext).get("_active_spark_context")


def _require_same_options(active: SparkSession, asked: SparkOptions) -> None:
    """Refuse to run somewhere else than asked: a process has one Spark."""
    if asked.remote and not is_connect(active):
        raise InvalidArgumentError("remote", "this process already has a session without a server")
    if asked.master:
        if is_connect(active):
            raise InvalidArgumentError("master", "this process already has a Spark Connect session")
        running = active.sparkContext.master
        if running != _with_retries(asked.master):
            raise InvalidArgumentError(
                "master",
                f"this process already has a session on {running}",
                hint="stop it first, or pass no master",
            )


def _create_session(options: SparkOptions) -> SparkSession:
    if options.remote and not options.remote.startswith("local"):
        with _translate_errors(f"connect to {_hide_parameters(options.remote)}"):
            _require_answer(options.remote)
            builder = SparkSession.builder.remote(options.remote)
            for key, value in {**_SETTINGS, **options.conf}.items():
                builder = builder.config(key, value)
            made = builder.getOrCreate()
    else:
        with (
            _translate_errors("start"),
            _set_environment(_build_variables(options)),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            chosen = {**_configure_folders(options), **build_configuration(options)}
            builder = SparkSession.builder.appName("omnigraph")
            for key, value in chosen.items():
                builder = builder.config(key, value)
            if options.remote:
                builder = builder.remote(options.remote)
            with (
                _set_environment({} if options.remote else start_java(chosen)),
                handle_interrupts(),
            ):
                made = builder.getOrCreate()
    atexit.register(_stop_session, made)
    return made


@contextmanager
def handle_interrupts() -> Iterator[None]:
    """Let Ctrl-C cancel jobs by a call to Java from a thread of its own.

    PySpark makes it in the middle of whatever call is interrupted, which mixes up the answers.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if is_main else None
    logging.getLogger().addFilter(_is_relevant)
    yield
    if before is None:
        return

    def handle(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=_cancel_all, name="omnigraph-cancel-all", daemon=True).start()
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGINT, handle if callable(before) else before)


def _cancel_all() -> None:
    # Any failure: Spark may be gone by now.
    with suppress(Exception):
        if (context := _find_active_context()) is not None:
            context.cancelAllJobs()


def _is_relevant(record: logging.LogRecord) -> bool:
    """Whether a record is not about a call of Py4J's, which raises what it logs."""
    return not str(record.msg).endswith("while sending command.")


def _configure_folders(options: SparkOptions) -> dict[str, str]:
    """Where Spark on this machine keeps tables of its own, else in the folder one works in."""
    if not _is_local(options):
        return {}
    folder = tempfile.mkdtemp(prefix="omnigraph-spark-")
    # It runs after the end of the session, which is registered later.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {"spark.sql.warehouse.dir": folder}


def _require_answer(remote: str) -> None:
    """Refuse a server that does not answer: left alone, PySpark tries for ten minutes."""
    import grpc  # type: ignore[import-untyped]  # noqa: PLC0415 — only servers need it
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415 — as above

    channel = DefaultChannelBuilder(remote).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=ANSWER_SECONDS)
    except grpc.FutureTimeoutError:
        reason = f"no answer within {ANSWER_SECONDS} seconds"
        raise SparkFailedError(f"connect to {_hide_parameters(remote)}", reason) from None
    finally:
        channel.close()


def _hide_parameters(remote: str) -> str:
    """An address without its parameters, of which one may be a token."""
    return remote.partition("/;")[0]


def _with_retries(master: str) -> str:
    """A local master whose tasks are retried like those of a cluster."""
    local = _LOCAL.fullmatch(master)
    return f"local[{local['cores'] or 1},{ATTEMPTS_MAX}]" if local else master


def _is_local(options: SparkOptions) -> bool:
    """Whether all of Spark is on this machine, so that nothing needs to be reached from others."""
    place = options.remote or options.master or "local"
    return place.startswith(("local", f"spark://{_LOOPBACK}:", "spark://localhost:"))


def build_configuration(options: SparkOptions) -> dict[str, str]:
    """The settings of a session: those that options have, and ours where they have none."""
    is_local = (options.remote or options.master or "local").startswith("local")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        **_SETTINGS,
        "spark.task.maxFailures": str(ATTEMPTS_MAX),
        # A cancelled task may still end what it writes, and report it.
        "spark.python.task.killTimeout": f"{int(STOP_SECONDS)}s",
    }
    if _is_local(options):
        chosen |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
    if is_local:
        chosen["spark.sql.shuffle.partitions"] = str(2 * (cores or 1))
    else:
        chosen["spark.speculation"] = "true"
    chosen |= options.conf
    if not options.remote:
        # What Java is started with depends on it: YARN and Kubernetes bring libraries of theirs.
        chosen["spark.master"] = _with_retries(options.master or "local[*]")
    chosen[JAVA_OPTIONS] = _build_java_options(options.conf.get(JAVA_OPTIONS, ""))
    return chosen


def _build_java_options(given: str) -> str:
    # What Java thinks of its own cache would go to standard output.
    quiet = f"-Dlog4j2.configurationFile={_QUIET.as_uri()}", "-Xlog:disable"
    ours = [*quiet, "-XX:+UseSerialGC"]
    cache = None if "-XX:AOTCache" in given else find_startup_cache()
    if cache is not None:
        ours.append(f"-XX:AOTCache={cache}")
    return " ".join([*ours, *([given] if given else [])])


def _build_variables(options: SparkOptions) -> dict[str, str]:
    chosen = {
        "JAVA_HOME": str(find_java_home()),
        "PYSPARK_PYTHON": options.conf.get("spark.pyspark.python")
        or os.environ.get("PYSPARK_PYTHON")
        or sys.executable,
    }
    if _is_local(options):
        chosen |= {"SPARK_LOCAL_IP": _LOOPBACK, "SPARK_LOCAL_HOSTNAME": "localhost"}
    return chosen


@contextmanager
def _set_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables for the Java that is started meanwhile; the environment is as before afterwards."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _translate_errors(job: str) -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        if is_driver_lost(error):
            raise SparkDriverLostError(job) from error
        raise SparkFailedError(job, format_failure(error)) from error


def first_line_of(error: BaseException) -> str:
    """What an error says first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _stop_session(made: ClassicSession) -> None:
    """End a session that was made here, unless it has ended."""
    # Whatever fails here: the process ends, and Java with it.
    with suppress(Exception):
        made.stop()
