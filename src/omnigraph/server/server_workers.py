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
from collections.abc import Mapping
from typing import Final

_log = logging.getLogger(__name__)
# The socket of the parent, as a worker inherits it.
SOCKET_VARIABLE: Final = "OMNIGRAPH_SERVER_SOCKET"
# A worker that dies at once, again and again, has a reason that starting it does not cure.
_RESTARTS_MAX: Final = 100
_PAUSE_S: Final = 0.5


def inherit_socket(environment: Mapping[str, str]) -> socket.socket | None:
    """The socket that a worker was started with; None for a server of one process."""
    number = environment.get(SOCKET_VARIABLE)
    return None if number is None else socket.socket(fileno=int(number))


class WorkerGroup:
    """The processes of a server; each is this very command, with the socket."""

    def __init__(self, opened: socket.socket, count: int) -> None:
        self._opened = opened
        self._ended = threading.Event()
        self._restarts_left = _RESTARTS_MAX
        self._workers = [self._start() for _ in range(count)]

    def run(self) -> int:
        """Wait for a signal, then for the workers; the worst of their exit codes."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._ended.set())
        signal.signal(signal.SIGHUP, lambda *_: self._send(signal.SIGHUP))
        while not self._ended.wait(_PAUSE_S):
            self._workers = [self._replace_dead(each) for each in self._workers]
        self._send(signal.SIGTERM)
        return max(abs(each.wait()) for each in self._workers)

    def _start(self) -> subprocess.Popen[bytes]:
        number = self._opened.fileno()
        environment = os.environ | {SOCKET_VARIABLE: str(number)}
        # The same interpreter with the same arguments.
        command = [sys.executable, *sys.orig_argv[1:]]
        return subprocess.Popen(command, env=environment, pass_fds=[number])  # noqa: S603

    def _replace_dead(self, worker: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        code = worker.poll()
        if code is None:
            return worker
        _log.error("worker ended", extra={"fields": {"code": code}})
        self._restarts_left -= 1
        if self._restarts_left < 0:
            self._ended.set()
            return worker
        return self._start()

    def _send(self, number: signal.Signals) -> None:
        for worker in self._workers:
            if worker.poll() is None:
                worker.send_signal(number)
