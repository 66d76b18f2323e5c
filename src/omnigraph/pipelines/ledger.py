"""The run ledger: what was started, what became of every target, and how it ended.

Events are objects that are only ever added, so that a run is the fold of its events. Nobody asks
the ledger whether data was written: that is asked of the records, by the key of the target.

    __pipelines/{pipeline}/runs/{run}/{n:04}.json     the events of a run, in order
    __pipelines/{pipeline}/batches/{n:08}.json        which part of a followed source is the n-th
    __pipelines/{pipeline}/finished/{n:08}.json       all targets have it
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from omnigraph.errors import CorruptObject
from omnigraph.ids import new_ulid
from omnigraph.schema.shape import JsonObject
from omnigraph.storage import open_objects
from omnigraph.storage.objects import Objects

FORMAT: Final = 1
_FOLDER: Final = "__pipelines"
# A run has an event for each attempt at each target, and two more.
EVENTS_MAX: Final = 9_999

RUNNING: Final = "running"
SUCCEEDED: Final = "succeeded"
PARTIAL: Final = "partial"
FAILED: Final = "failed"
# A followed source had nothing new.
UNCHANGED: Final = "unchanged"
# The process that ran it is gone, and it did not say how it ended.
INTERRUPTED: Final = "interrupted"


@dataclass(frozen=True, slots=True)
class TargetRun:
    """What became of one target; `is_repeated` says that an earlier run had made the commit."""

    target: str
    graph: str
    branch: str
    key: str
    status: str = RUNNING
    commit: str | None = None
    # What was written, by type.
    entities: Mapping[str, int] = field(default_factory=dict)
    rejected: int = 0
    attempts: int = 0
    is_retryable: bool = False
    is_repeated: bool = False
    # The branch of the run, if it has one, and whether that was merged.
    run_branch: str | None = None
    merged: str | None = None
    error: str | None = None

    @property
    def written(self) -> int:
        """How many entities were written."""
        return sum(self.entities.values())

    def to_json(self) -> JsonObject:
        """The part of a run's document that tells of a target."""
        return {
            "target": self.target,
            "graph": self.graph,
            "branch": self.branch,
            "idempotency_key": self.key,
            "status": self.status,
            "commit_id": self.commit,
            "entities": dict(self.entities),
            "rows_written": self.written,
            "rows_rejected": self.rejected,
            "attempts": self.attempts,
            "retryable": self.is_retryable,
            "repeated": self.is_repeated,
            "run_branch": self.run_branch,
            "merge_commit_id": self.merged,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Run:
    """A run, folded from its events."""

    id: str
    pipeline: str
    slot: str
    digest: str
    trigger: str
    started_at: str
    status: str
    targets: tuple[TargetRun, ...] = ()
    position: Any = None  # Any: what a source says of where it was read
    rows_read: int | None = None
    ended_at: str | None = None
    error: str | None = None
    actor: str | None = None
    # The slot that a schedule asked for; a followed source has batches of its own instead.
    asked: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether the run said how it ended."""
        return self.ended_at is not None

    def target(self, name: str) -> TargetRun | None:
        """What became of one target."""
        return next((each for each in self.targets if each.target == name), None)

    def to_json(self) -> JsonObject:
        """The document of a run."""
        conditions = ["PartialPipelineRun"] if self.status == PARTIAL else []
        return {
            "run_id": self.id,
            "pipeline": self.pipeline,
            "slot": self.slot,
            "definition_digest": self.digest,
            "trigger": self.trigger,
            "actor_id": self.actor,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "status": self.status,
            "conditions": conditions,
            "source_position": self.position,
            "rows_read": self.rows_read,
            "targets": [target.to_json() for target in self.targets],
            "error": self.error,
        }


class Ledger:
    """The runs of one pipeline, in a store."""

    def __init__(self, objects: Objects, pipeline: str) -> None:
        self._objects = objects
        self._pipeline = pipeline
        self._folder = f"{_FOLDER}/{pipeline}"

    @classmethod
    def at(cls, uri: str, pipeline: str) -> Ledger:
        """The ledger of a pipeline at an address: that of a graph, or any other."""
        return cls(open_objects(uri), pipeline)

    def start(self, event: Mapping[str, object]) -> RunLog:
        """Begin a run: from here on it is seen, whatever becomes of it."""
        log = RunLog(self._objects, f"{self._folder}/runs/{new_ulid()}")
        log.add("started", {**event, "host": socket.gethostname(), "pid": os.getpid()})
        return log

    def runs(self, *, limit: int | None = None) -> list[Run]:
        """The newest runs, newest first."""
        paths: dict[str, list[str]] = {}
        for entry in self._objects.list(f"{self._folder}/runs"):
            paths.setdefault(entry.path.rsplit("/", 2)[1], []).append(entry.path)
        newest = sorted(paths, reverse=True)[:limit]
        return [self._folded(run_id, paths[run_id]) for run_id in newest]

    def run(self, run_id: str) -> Run | None:
        """One run."""
        paths = [each.path for each in self._objects.list(f"{self._folder}/runs/{run_id}")]
        return self._folded(run_id, paths) if paths else None

    def claim(self, number: int, batch: JsonObject) -> JsonObject:
        """Say what the n-th part of a followed source is, unless somebody did: theirs counts."""
        path = f"{self._folder}/batches/{number:08}.json"
        if self._objects.put_new(path, _encoded(batch)):
            return batch
        return self._read(path)

    def last_batch(self) -> tuple[int, JsonObject] | None:
        """The newest part of a followed source that anybody named, and its number."""
        path = None
        for entry in self._objects.list(f"{self._folder}/batches"):
            path = entry.path
        if path is None:
            return None
        return int(path.rsplit("/", 1)[1].removesuffix(".json")), self._read(path)

    def finish_batch(self, number: int, run_id: str) -> None:
        """Say that every target has a part of a followed source, so that the next one may begin."""
        self._objects.put_new(self._finished(number), _encoded({"run": run_id}))

    def is_finished(self, number: int) -> bool:
        """Whether every target has a part of a followed source."""
        return self._objects.get(self._finished(number)) is not None

    def _finished(self, number: int) -> str:
        return f"{self._folder}/finished/{number:08}.json"

    def _folded(self, run_id: str, paths: list[str]) -> Run:
        return fold(run_id, self._pipeline, [self._read(path) for path in sorted(paths)])

    def _read(self, path: str) -> JsonObject:
        data = self._objects.get(path)
        try:
            document = json.loads(data or b"")
        except ValueError as failure:
            raise CorruptObject(path, "it is no JSON") from failure
        if not isinstance(document, dict):
            raise CorruptObject(path, "it is no JSON object")
        return document


class RunLog:
    """The events of one run, written by the process that runs it."""

    def __init__(self, objects: Objects, folder: str) -> None:
        self._objects = objects
        self._folder = folder
        self._next = 0
        self.run_id = folder.rsplit("/", 1)[1]

    def add(self, name: str, event: Mapping[str, object]) -> None:
        """Add an event; only the process that began a run adds to it."""
        assert self._next <= EVENTS_MAX, "targets and attempts are bounded"
        path = f"{self._folder}/{self._next:04}.json"
        self._objects.put_new(path, _encoded({**event, "event": name, "at": _now()}))
        self._next += 1

    def target(self, target: TargetRun) -> None:
        """Say what became of a target; a later event of the same one replaces it."""
        self.add("target", _fields(target))


def fold(run_id: str, pipeline: str, events: list[JsonObject]) -> Run:
    """The run that events tell of."""
    started = next((each for each in events if each.get("event") == "started"), {})
    finished = next((each for each in events if each.get("event") == "finished"), None)
    targets: dict[str, TargetRun] = {
        each["target"]: TargetRun(**each) for each in started.get("targets", [])
    }
    position, rows_read = started.get("position"), None
    for event in events:
        if event.get("event") == "target":
            known = {name: event[name] for name in TargetRun.__slots__ if name in event}
            targets[event["target"]] = TargetRun(**known)
        elif event.get("event") == "read":
            rows_read = max(rows_read or 0, event.get("rows") or 0)
    return Run(
        id=run_id,
        pipeline=pipeline,
        slot=started.get("slot", ""),
        digest=started.get("digest", ""),
        trigger=started.get("trigger", ""),
        started_at=started.get("at", ""),
        status=_unfinished_status(started) if finished is None else finished["status"],
        targets=tuple(targets.values()),
        position=position,
        rows_read=rows_read,
        ended_at=None if finished is None else finished["at"],
        error=None if finished is None else finished.get("error"),
        actor=started.get("actor"),
        asked=started.get("asked"),
    )


def _unfinished_status(started: JsonObject) -> str:
    """Running, unless its process was on this machine and is gone."""
    if started.get("host") != socket.gethostname():
        return RUNNING
    try:
        os.kill(int(started.get("pid", 0)), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return INTERRUPTED
    except PermissionError:
        return RUNNING
    return RUNNING


def outcome_of(targets: Iterator[TargetRun] | tuple[TargetRun, ...]) -> str:
    """How a run ended: it succeeded only if every target did."""
    statuses = {target.status for target in targets}
    if statuses <= {SUCCEEDED, UNCHANGED}:
        return SUCCEEDED
    return PARTIAL if SUCCEEDED in statuses else FAILED


def _fields(target: TargetRun) -> dict[str, object]:
    return {name: getattr(target, name) for name in TargetRun.__slots__}


def started_target(target: TargetRun) -> dict[str, object]:
    """A target as the event that starts a run names it."""
    return _fields(target)


def _encoded(document: Mapping[str, object]) -> bytes:
    return json.dumps({"format": FORMAT, **document}, sort_keys=True).encode()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
