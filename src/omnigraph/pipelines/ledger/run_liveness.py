"""Whether a run that did not say how it ended is still under way: heartbeats, and fences.

A run replaces its heartbeat as long as it works, so that a process of any host can see that it
does. The next run of the pipeline puts a fence before a run without a heartbeat: that one, should
it only have been suspended, publishes nothing any more.

    __pipelines/{pipeline}/beats/{run}.json      when a run was last alive, by the time of the store
    __pipelines/{pipeline}/fences/{run}.json     the run was given up
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, Final

from omnigraph.errors import OmnigraphError, RunFencedError
from omnigraph.ids import decode_ulid_ms
from omnigraph.storage.objects.object_store import Objects

BEAT_S: Final = 30.0
# So long a run is taken for alive: several beats may be late, and clocks may differ by minutes.
LOST_AFTER_S: Final = 300.0
_BEAT: Final = b"{}"


@dataclass(frozen=True, slots=True)
class RunLiveness:
    """The heartbeats and the fences of a pipeline, in the folder of its ledger."""

    objects: Objects
    folder: str

    @contextmanager
    def send_heartbeats(self, run_id: str, *, every_s: float = BEAT_S) -> Iterator[None]:
        """Show until the end that a run is under way."""
        path, ended = self._format_beat_path(run_id), Event()

        def go_on() -> None:
            while not ended.wait(every_s):
                # The next one may succeed; a run that cannot write cannot commit either.
                with suppress(OmnigraphError):
                    self.objects.put(path, _BEAT)

        self.objects.put(path, _BEAT)
        thread = Thread(target=go_on, name=f"heartbeat of run {run_id}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            with suppress(OmnigraphError):
                self.objects.delete([path])

    def fence_lost_runs(self) -> list[str]:
        """Give up the runs without a heartbeat; their ids."""
        lost = [
            entry.path
            for entry in self.objects.list(f"{self.folder}/beats")
            if _is_late(entry.modified)
        ]
        found = [path.rpartition("/")[2].removesuffix(".json") for path in lost]
        for run_id in found:
            self.fence(run_id)
        # Only now: a fence that was not put is put by the next run.
        self.objects.delete(lost)
        return found

    def fence(self, run_id: str) -> None:
        """Give up a run: whatever it does from here on, it publishes nothing."""
        self.objects.put_new(self._format_fence_path(run_id), _BEAT)

    def require_not_fenced(self, run_id: str) -> None:
        """Refuse to publish what a run made that was given up."""
        if self.is_fenced(run_id):
            raise RunFencedError(run_id)

    def is_fenced(self, run_id: str) -> bool:
        """Whether a run was given up."""
        return self.objects.get(self._format_fence_path(run_id)) is not None

    def is_lost(self, run_id: str, started: Mapping[str, Any]) -> bool:  # Any: JSON
        """Whether a run that did not say how it ended is not under way any more."""
        is_here = started.get("host") == socket.gethostname()
        if is_here and not _is_process(started.get("pid")):
            return True
        if self.is_fenced(run_id):
            return True
        # The id of a run is the time at which it began.
        began_s = (decode_ulid_ms(run_id) or 0) / 1000
        return _is_late(self._find_last_beat(run_id) or began_s)

    def delete(self, run_id: str) -> None:
        """Remove what was noted about a run that is removed from the ledger."""
        self.objects.delete([self._format_beat_path(run_id), self._format_fence_path(run_id)])

    def _find_last_beat(self, run_id: str) -> float | None:
        path = self._format_beat_path(run_id)
        entries = self.objects.list(f"{self.folder}/beats", after=path[:-1])
        first = next(iter(entries), None)
        return None if first is None or first.path != path else first.modified

    def _format_beat_path(self, run_id: str) -> str:
        return f"{self.folder}/beats/{run_id}.json"

    def _format_fence_path(self, run_id: str) -> str:
        return f"{self.folder}/fences/{run_id}.json"


def _is_late(at: float) -> bool:
    return time.time() - at > LOST_AFTER_S


def _is_process(pid: object) -> bool:
    """Whether a process of this machine has the number."""
    try:
        os.kill(int(str(pid)), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
