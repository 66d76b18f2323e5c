"""A Spark cluster of real processes on the loopback interface: a master, workers, and drivers.

Every process is started in a session of its own, which all that it starts belongs to: what is ended
here is exactly that.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
from pyspark.find_spark_home import _find_spark_home

from omnigraph.spark.java_runtime import find_java_home, find_startup_cache

HOST = "127.0.0.1"
# On a machine that has much other work; on a quiet one it is ten seconds.
_STARTS_WITHIN_S = 300.0
_LOOK_S = 0.05
_TESTS = Path(__file__).parents[1]
_DRIVER = Path(__file__).with_name("driver.py")

T = TypeVar("T")


@dataclass(frozen=True)
class Started:
    """A process, with all that it has started."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def processes(self) -> list[int]:
        """Those of its session that run, however they are related."""
        found = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
        return [pid for pid in found if _session_of(pid) == self.process.pid]

    def kill(self) -> None:
        """End all of it at once, as a machine that loses its power does."""
        # Again: a process may have been started while the others were ended.
        while pids := self.processes:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                # What was not sent yet has nobody to go to.
                with suppress(BrokenPipeError):
                    pipe.close()

    def told(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-4000:]


@dataclass
class Cluster:
    """A master and its workers, each with one core.

    Workers are on different addresses of this machine: Spark starts a second attempt of a task that
    is slow only on another one.
    """

    folder: Path
    workers: list[Started] = field(default_factory=list)
    _started: list[Started] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.port, self.page = free_port(), free_port()

    @property
    def url(self) -> str:
        """What `--master` takes."""
        return f"spark://{HOST}:{self.port}"

    def start(self, workers: int) -> None:
        """Start the master and its workers, and wait until they know each other."""
        ports = ["--port", str(self.port), "--webui-port", str(self.page)]
        self._spark("deploy.master.Master", ["--host", HOST, *ports], "master")
        for _ in range(workers):
            self.add_worker()
        self.await_workers()

    def add_worker(self) -> None:
        """Start another worker."""
        name, host = f"worker-{len(self._started)}", f"127.0.0.{len(self._started)}"
        arguments = ["--host", host, "--cores", "1", "--memory", "1g", "--webui-port", "0"]
        place = ["--work-dir", str(self.folder / name), self.url]
        started = self._spark("deploy.worker.Worker", [*arguments, *place], name, host)
        self.workers.append(started)

    def start_connect(self, port: int, master: str) -> None:
        """Start a Spark Connect server."""
        conf = {
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(port),
            "spark.ui.enabled": "false",
            "spark.driver.extraJavaOptions": java_options(),
            "spark.sql.shuffle.partitions": "4",
        }
        chosen = [part for item in conf.items() for part in ("--conf", "=".join(item))]
        service = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
        jar = next((Path(_find_spark_home()) / "jars").glob("spark-connect_*.jar"))
        arguments = ["--master", master, *chosen, *service, str(jar)]
        self._spark("deploy.SparkSubmit", arguments, "connect")

    def await_workers(self) -> None:
        """Wait until the master can use all workers."""
        self.await_that(lambda: self._alive() == len(self.workers), "the workers of the cluster")

    def kill_worker_of(self, pid: int) -> None:
        """End the worker of which a process is, with its executors, and start another instead."""
        (worker,) = (each for each in self.workers if pid in each.processes)
        self.workers.remove(worker)
        worker.kill()
        self.add_worker()

    def await_that(self, is_so: Callable[[], T | None], what: str) -> T:
        """Wait for something; fails with the logs of what runs if it does not come."""
        end = time.monotonic() + _STARTS_WITHIN_S
        while time.monotonic() < end:
            if found := is_so():
                return found
            time.sleep(_LOOK_S)
        logs = "\n".join(f"--- {each.log.name}\n{each.told()}" for each in self._started)
        raise AssertionError(f"{what} did not come\n{logs}")

    def driver(self, **variables: str) -> Driver:
        """Start a process for commands that run on Spark."""
        environment = os.environ | {"PYTHONPATH": str(_TESTS)} | variables
        command = [sys.executable, str(_DRIVER)]
        name = f"driver-{len(self._started)}"
        return Driver(self._run(command, name, environment, is_asked=True))

    def options(self, **executor_variables: str) -> list[str]:
        """Options of a command that runs on this cluster."""
        variables = {"PYTHONPATH": str(_TESTS), **executor_variables}
        chosen = [
            "spark.executor.memory=600m",
            "spark.executor.cores=1",
            f"spark.executor.extraJavaOptions={java_options()}",
            "spark.sql.shuffle.partitions=4",
            # As soon as most others are done: what is held is held for long.
            "spark.speculation.multiplier=1.1",
            "spark.speculation.quantile=0.5",
            *(f"spark.executorEnv.{name}={value}" for name, value in variables.items()),
        ]
        return ["--master", self.url, *(part for each in chosen for part in ("--spark-conf", each))]

    def end(self) -> None:
        """End all that was started."""
        for each in reversed(self._started):
            each.kill()

    def _alive(self) -> int:
        # Pages are there before what they show is.
        with suppress(httpx.HTTPError, ValueError):
            found = httpx.get(f"http://{HOST}:{self.page}/json/", trust_env=False).json()
            return sum(each["state"] == "ALIVE" for each in found["workers"])
        return 0

    def _spark(
        self, program: str, arguments: Sequence[str], name: str, host: str = HOST
    ) -> Started:
        home = Path(_find_spark_home())
        settings = self.folder / "settings"
        settings.mkdir(exist_ok=True)
        environment = os.environ | {
            "JAVA_HOME": str(find_java_home()),
            # A server has no driver that tells it which Python has the packages.
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(home),
            "SPARK_CONF_DIR": str(settings),
            "SPARK_LOCAL_IP": host,
            "PYTHONPATH": str(_TESTS),
            "SPARK_LOCAL_DIRS": str(self.folder / f"{name}-scratch"),
            "SPARK_DAEMON_MEMORY": "800m" if name == "connect" else "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"-Dspark.master.rest.enabled=false {java_options()}",
        }
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.{program}"]
        return self._run([*command, *arguments], name, environment)

    def _run(
        self,
        command: Sequence[str],
        name: str,
        environment: dict[str, str],
        *,
        is_asked: bool = False,
    ) -> Started:
        log = self.folder / f"{name}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command,
                env=environment,
                cwd=self.folder,
                stdin=subprocess.PIPE if is_asked else subprocess.DEVNULL,
                stdout=subprocess.PIPE if is_asked else file,
                stderr=file,
                start_new_session=True,
            )
        self._started.append(Started(process, log))
        return self._started[-1]


@dataclass(frozen=True)
class Driver:
    """A process that runs commands on one session of Spark."""

    started: Started

    def begin(self, *command: str) -> None:
        """Begin a command of `omnigraph`; `answer` waits for its end."""
        self._ask({"command": command})

    def output(self) -> str:
        """What the command that was begun prints; fails unless it succeeds."""
        answer = self._answer()
        assert answer["code"] == 0, answer
        return str(answer["output"])

    def ran(self, *command: str) -> str:
        """What a command prints; fails unless it succeeds."""
        self.begin(*command)
        return self.output()

    def refused(self, *command: str) -> str:
        """What a command says that does not succeed."""
        self.begin(*command)
        answer = self._answer()
        assert answer["code"] != 0, answer
        return str(answer["errors"])

    def called(self, function: Callable[..., object], *arguments: str) -> Any:
        """What a function of a module of tests answers there."""
        name = f"{function.__module__}:{function.__qualname__}"
        self._ask({"call": name, "arguments": arguments})
        return self._answer()

    def _ask(self, what: dict[str, object]) -> None:
        stdin = self.started.process.stdin
        assert stdin is not None
        stdin.write(json.dumps(what).encode() + b"\n")
        stdin.flush()

    def _answer(self) -> Any:
        assert self.started.process.stdout is not None
        line = self.started.process.stdout.readline()
        assert line, self.started.told()
        return json.loads(line)


@contextmanager
def running(folder: Path, *, workers: int) -> Iterator[Cluster]:
    """A cluster that runs until the end."""
    cluster = Cluster(folder)
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.end()


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])


def java_options() -> str:
    """What makes Java start sooner."""
    cache = find_startup_cache()
    return "-XX:+UseSerialGC -Xlog:disable" + (f" -XX:AOTCache={cache}" if cache else "")


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid) if not _is_zombie(pid) else None
    except OSError:
        return None


def _is_zombie(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "Z"


__all__ = ["HOST", "Cluster", "Driver", "Started", "free_port", "java_options", "running"]
