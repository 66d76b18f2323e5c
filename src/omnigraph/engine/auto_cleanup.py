"""Automatic clean-up: after commits, on a background thread, if it is turned on.

Whether a graph forgets its past is for its owner to say, so it is off unless the environment turns
it on. It is safe in any number of processes; an object records the last run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Final

from omnigraph.durations import parse_duration
from omnigraph.errors import (
    CorruptObjectError,
    FormatTooNewError,
    InvalidArgumentError,
    OmnigraphError,
)
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning import Snapshot
from omnigraph.versioning.gc.gc_roots import Policy
from omnigraph.versioning.json_fields import decode_fields, encode_fields

VARIABLE: Final = "OMNIGRAPH_CLEANUP"
OFF: Final = "off"
ON: Final = "on"
# What `on` keeps: a commit goes when it is neither among the newest nor that young.
DEFAULT: Final = Policy(keep=100, older_than_s=7 * 86_400.0)
# A collection reads every kept version, so it has to be worth it.
INTERVAL_S: Final = 6 * 3600.0
# Without that many commits of this process there is hardly anything to collect.
COMMITS_MIN: Final = 100


def read_policy(environment: Mapping[str, str]) -> Policy | None:
    """What the environment asks for, such as `keep=100,older-than=7d`; None if it is off."""
    text = environment.get(VARIABLE, OFF).strip().lower()
    if text in ("", OFF):
        return None
    if text == ON:
        return DEFAULT
    bounds = dict(part.partition("=")[::2] for part in text.split(","))
    keep, older = bounds.pop("keep", None), bounds.pop("older-than", None)
    seconds = None if older is None else parse_duration(older)
    is_wrong = bool(bounds) or (older is not None and seconds is None)
    if is_wrong or (keep is not None and not (keep.isascii() and keep.isdigit() and int(keep))):
        raise InvalidArgumentError(
            VARIABLE, f"'{text}' says no policy", hint="write off, on, or keep=100,older-than=7d"
        )
    return Policy(None if keep is None else int(keep), None if seconds is None else float(seconds))


class AutoCleanup:
    """Runs a clean-up now and then."""

    def __init__(
        self,
        objects: Objects,
        executor: Executor,
        *,
        clean: Callable[[], object],
        now_us: Callable[[], int],
    ) -> None:
        self._objects = objects
        self._executor = executor
        self._clean = clean
        self._now_us = now_us
        self._lock = threading.Lock()
        self._commits = 0
        self._is_running = False
        self.last_error: OmnigraphError | None = None

    def consider(self, snapshot: Snapshot) -> None:
        """Hear of a commit; now and then, see whether a clean-up is due."""
        del snapshot  # It says nothing about the other branches.
        with self._lock:
            self._commits += 1
            if self._commits < COMMITS_MIN or self._is_running:
                return
            self._commits, self._is_running = 0, True
        try:
            self._executor.submit(self._run)
        except RuntimeError:
            # The executor is shut down: the program is ending, and nothing depends on this.
            self._is_running = False

    def _run(self) -> None:
        try:
            if self._is_due():
                # Said first: a collection that fails is not tried after every commit.
                data = encode_fields(layout.CLEANUP, {"at": self._now_us()})
                self._objects.put(layout.CLEANUP, data)
                self._clean()
        except OmnigraphError as error:
            self.last_error = error
        finally:
            self._is_running = False

    def _is_due(self) -> bool:
        data = self._objects.get(layout.CLEANUP)
        try:
            at = 0 if data is None else decode_fields(layout.CLEANUP, data).get_integer("at")
        except (CorruptObjectError, FormatTooNewError):
            at = 0
        return self._now_us() - at >= INTERVAL_S * 1_000_000
