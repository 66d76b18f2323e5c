"""Several processes on one socket: each serves alone, and one that dies is started again.

Graphs may be shared by any number of processes, so the workers need to know nothing of each other.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Final

_log = logging.getLogger(__name__)
# The socket of the parent, as a worker inherits it.
SOCKET_VARIABLE: Final = "OMNIGRAPH_SERVER_SOCKET"
# Workers that die so often within so long have a reason that starting them does not cure.
RESTARTS_MAX: Final = 10
RESTARTS_WINDOW_S: Final = 60.0
_PAUSE_S: Final = 0.5
# A worker ends by itself at the deadline; one that cannot is killed so much later.
_MARGIN_S: Final = 5.0


def inherit_socket(environment: Mapping[str, str]) -> socket.socket | None:
    """The socket that a worker was started with; None for a server of one process."""
    number = environment.get(SOCKET_VARIABLE)
    return None if number is None else socket.socket(fileno=int(number))


def follow_parent() -> None:
    """End this worker when its parent has gone, however that ended: nothing would restart it."""

    def wait() -> None:
        # The parent holds the other end of the pipe, and writes nothing.
        os.read(sys.stdin.fileno(), 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="omnigraph-parent", daemon=True).start()


class RestartLimit:
    """How often workers may be started again: a bounded number of times within a window."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=RESTARTS_MAX)

    def may_restart(self, now: float) -> bool:
        """Whether a worker may be started again now, which then counts."""
        if len(self._times) == RESTARTS_MAX and now - self._times[0] < RESTARTS_WINDOW_S:
            return False
        self._times.append(now)
        return True


class WorkerGroup:
    """The processes of a server; each is this very command, with the socket."""

    def __init__(self, opened: socket.socket, count: int, *, drain_s: float) -> None:
        self._opened = opened
        self._drain_s = drain_s
        self._ended = threading.Event()
        self._restarts = RestartLimit()
        self._workers = [self._start() for _ in range(count)]

    def run(self) -> int:
        """Wait for a signal, then for the workers; the worst of their exit codes."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._ended.set())
        signal.signal(signal.SIGHUP, lambda *_: self._send(signal.SIGHUP))
        while not self._ended.wait(_PAUSE_S):
            self._workers = [self._replace_dead(each) for each in self._workers]
        self._send(signal.SIGTERM)
        until = time.monotonic() + self._drain_s + _MARGIN_S
        return max(abs(_wait(each, until)) for each in self._workers)

    def _start(self) -> subprocess.Popen[bytes]:
        number = self._opened.fileno()
        environment = os.environ | {SOCKET_VARIABLE: str(number)}
        # The same interpreter with the same arguments.
        command = [sys.executable, *sys.orig_argv[1:]]
        return subprocess.Popen(  # noqa: S603
            command, env=environment, pass_fds=[number], stdin=subprocess.PIPE
        )

    def _replace_dead(self, worker: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        code = worker.poll()
        if code is None:
            return worker
        _log.error("worker ended", extra={"fields": {"code": code}})
        if not self._restarts.may_restart(time.monotonic()):
            _log.error("workers end again and again: the server ends")
            self._ended.set()
            return worker
        return self._start()

    def _send(self, number: signal.Signals) -> None:
        for worker in self._workers:
            if worker.poll() is None:
                worker.send_signal(number)


def _wait(worker: subprocess.Popen[bytes], until: float) -> int:
    try:
        return worker.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        worker.kill()
        return worker.wait()
