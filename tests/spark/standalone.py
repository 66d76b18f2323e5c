"""A Spark cluster of real processes on the loopback interface: a master, workers, and drivers.

Every process is started in a session of its own, which all that it starts belongs to: what is ended
here is exactly that.
"""

from __future__ import annotations

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

from omnigraph.spark.java import java_home, start_up_cache

HOST = "127.0.0.1"
# On a machine that has much other work; on a quiet one it is ten seconds.
_STARTS_WITHIN_S = 300.0
_LOOK_S = 0.05
_COMMAND = "from omnigraph.cli.app import main; main()"

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

    def told(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-4000:]


@dataclass
class Cluster:
    """A master and its workers, each with one core."""

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
        name = f"worker-{len(self._started)}"
        arguments = ["--host", HOST, "--cores", "1", "--memory", "1g", "--webui-port", "0"]
        place = ["--work-dir", str(self.folder / name), self.url]
        self.workers.append(self._spark("deploy.worker.Worker", [*arguments, *place], name))

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

    def kill(self, worker: Started) -> None:
        """End a worker with its executors."""
        self.workers.remove(worker)
        worker.kill()

    def await_that(self, is_so: Callable[[], T | None], what: str) -> T:
        """Wait for something; fails with the logs of what runs if it does not come."""
        end = time.monotonic() + _STARTS_WITHIN_S
        while time.monotonic() < end:
            if found := is_so():
                return found
            time.sleep(_LOOK_S)
        logs = "\n".join(f"--- {each.log.name}\n{each.told()}" for each in self._started)
        raise AssertionError(f"{what} did not come\n{logs}")

    def begin(self, arguments: Sequence[str], settings: Sequence[str] = ()) -> Driver:
        """Start `omnigraph` with arguments, as the driver of a job on this cluster."""
        page, name = free_port(), f"driver-{len(self._started)}"
        events = self.folder / f"{name}-events"
        events.mkdir()
        chosen = [
            "spark.executor.memory=600m",
            "spark.executor.cores=1",
            f"spark.executor.extraJavaOptions={java_options()}",
            # How far a job is can be asked only while the driver shows pages.
            "spark.ui.enabled=true",
            f"spark.ui.port={page}",
            "spark.eventLog.enabled=true",
            f"spark.eventLog.dir={events.as_uri()}",
            "spark.eventLog.compress=false",
            "spark.eventLog.rolling.enabled=false",
            *settings,
        ]
        options = [part for each in chosen for part in ("--spark-conf", each)]
        command = [sys.executable, "-c", _COMMAND, *arguments, "--master", self.url, *options]
        return Driver(self._run(command, name, dict(os.environ)), page, events)

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

    def _spark(self, program: str, arguments: Sequence[str], name: str) -> Started:
        home = Path(_find_spark_home())
        settings = self.folder / "settings"
        settings.mkdir(exist_ok=True)
        environment = os.environ | {
            "JAVA_HOME": str(java_home()),
            # A server has no driver that tells it which Python has the packages.
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(home),
            "SPARK_CONF_DIR": str(settings),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(self.folder / f"{name}-scratch"),
            "SPARK_DAEMON_MEMORY": "800m" if name == "connect" else "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"-Dspark.master.rest.enabled=false {java_options()}",
        }
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.{program}"]
        return self._run([*command, *arguments], name, environment)

    def _run(self, command: Sequence[str], name: str, environment: dict[str, str]) -> Started:
        log = self.folder / f"{name}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command,
                env=environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(Started(process, log))
        return self._started[-1]


@dataclass(frozen=True)
class Driver:
    """A command that runs on a cluster, and the page on which its Spark tells how far it is."""

    started: Started
    page: int
    events: Path

    def busy(self, cluster: Cluster, *, done: int = 1) -> Started | None:
        """A worker on which a task runs and so many are done already, or none yet."""
        if self.started.process.poll() is not None:
            raise AssertionError(f"the command has ended\n{self.started.told()}")
        for executor in self._executors():
            if executor["activeTasks"] and executor["completedTasks"] >= done:
                return next(
                    (each for each in cluster.workers if _has_executor(each, executor["id"])), None
                )
        return None

    def result(self) -> str:
        """What the command printed; fails unless it succeeded."""
        code = self.started.process.wait()
        assert code == 0, self.started.told()
        return self.started.log.read_text()

    @property
    def executors_lost(self) -> int:
        """How many of its executors ended before it did, as the log of its Spark tells."""
        (log,) = self.events.iterdir()
        return log.read_text().count('"Event":"SparkListenerExecutorRemoved"')

    def _executors(self) -> list[dict[str, Any]]:
        root = f"http://{HOST}:{self.page}/api/v1/applications"
        with suppress(httpx.HTTPError, ValueError):
            with httpx.Client(trust_env=False) as client:
                (application,) = client.get(root).json()
                found = client.get(f"{root}/{application['id']}/executors").json()
            return [each for each in found if each["id"] != "driver"]
        return []


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
    cache = start_up_cache()
    return "-XX:+UseSerialGC -Xlog:disable" + (f" -XX:AOTCache={cache}" if cache else "")


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid) if not _is_zombie(pid) else None
    except OSError:
        return None


def _is_zombie(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "Z"


def _has_executor(worker: Started, executor: str) -> bool:
    for pid in worker.processes:
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            if "--executor-id" in words and words[words.index("--executor-id") + 1] == executor:
                return True
    return False


__all__ = ["HOST", "Cluster", "Driver", "Started", "free_port", "java_options", "running"]
