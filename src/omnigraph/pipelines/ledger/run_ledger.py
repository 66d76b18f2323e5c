"""The run ledger: what was started, what became of every target, and how it ended.

Events are objects that are only ever added, so that a run is the fold of its events. Nothing asks
the ledger whether data was written: that is asked of the graph, by the key of the target.

    __pipelines/{pipeline}/runs/{run}/{n:04}.json     the events of a run, in order
    __pipelines/{pipeline}/batches/{n:08}.json        which part of a followed source is the n-th
    __pipelines/{pipeline}/finished/{n:08}.json       all targets have it

`run_liveness` says of a run without an end whether it is under way.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any, Final

from omnigraph.errors import CorruptObjectError
from omnigraph.ids import decode_ulid_ms, generate_ulid, make_lowest_ulid
from omnigraph.pipelines.ledger.rule_outcomes import RuleOutcome
from omnigraph.pipelines.ledger.run_liveness import RunLiveness
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.storage import open_objects
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects

FORMAT: Final = 1
FOLDER: Final = layout.PIPELINES
# A run has at most two events for each attempt at each target, and two more.
EVENTS_MAX: Final = 9_999
# The newest runs are looked for in these last hours first: an hour, a day, a month, a year.
_SEARCH_WINDOWS_H: Final = (1, 24, 24 * 31, 24 * 366)
_HOUR_MS: Final = 3_600_000

RUNNING: Final = "running"
SUCCEEDED: Final = "succeeded"
PARTIAL: Final = "partial"
FAILED: Final = "failed"
# A followed source had nothing new.
UNCHANGED: Final = "unchanged"
# It was stopped, or the process that ran it is gone and did not say how it ended.
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
    # How many records were read; None where they were not counted.
    rows_read: int | None = None
    # What was written, by type.
    entities: Mapping[str, int] = field(default_factory=dict)
    # What was deleted, by type, with the edges of deleted nodes.
    deleted: Mapping[str, int] = field(default_factory=dict)
    # None where only the commit is known.
    rejected: int | None = 0
    # The file that lists the records that were left out.
    rejects: str | None = None
    attempts: int = 0
    is_retryable: bool = False
    is_repeated: bool = False
    # The branch of the run, if it has one, and whether that was merged.
    run_branch: str | None = None
    merged: str | None = None
    # Whether that branch still has to be merged.
    awaits_review: bool = False
    # The proposal to merge it.
    proposal: int | None = None
    # The run that made the commit.
    made_by: str | None = None
    error: str | None = None
    # The code of the error, for programs.
    error_code: str | None = None
    # What was counted of rules: of those with expectations, or of all.
    rules: tuple[RuleOutcome, ...] = ()

    @property
    def has_unknown_outcome(self) -> bool:
        """Whether its run did not say what became of it."""
        return self.status in (RUNNING, INTERRUPTED)

    @property
    def written(self) -> int:
        """How many entities were written."""
        return sum(self.entities.values())

    def to_json(self) -> JsonObject:
        """The part of a run's document that is about a target."""
        return {
            "target": self.target,
            "graph": self.graph,
            "branch": self.branch,
            "idempotency_key": self.key,
            "status": self.status,
            "commit_id": self.commit,
            "entities": dict(self.entities),
            "deleted": dict(self.deleted),
            "rows_read": self.rows_read,
            "rows_written": self.written,
            "rows_deleted": sum(self.deleted.values()),
            "rows_rejected": self.rejected,
            "rejects": self.rejects,
            "attempts": self.attempts,
            "retryable": self.is_retryable,
            "repeated": self.is_repeated,
            "made_by_run_id": self.made_by,
            "run_branch": self.run_branch,
            "merge_commit_id": self.merged,
            "awaiting_review": self.awaits_review,
            "proposal": self.proposal,
            "error": self.error,
            "error_code": self.error_code,
            "rules": [rule.to_json() for rule in self.rules],
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
    ended_at: str | None = None
    error: str | None = None
    actor: str | None = None
    # The slot that a schedule asked for; a followed source has batches of its own instead.
    requested_slot: str | None = None
    # The code of the error, for programs.
    error_code: str | None = None
    # What went wrong beside it: reports that did not arrive.
    warnings: tuple[str, ...] = ()
    # The revision of the cluster that the definition is of.
    revision: int | None = None

    @property
    def rows_read(self) -> int | None:
        """How many records were read; targets share them, so that it is the most of any target."""
        counts = [each.rows_read for each in self.targets if each.rows_read is not None]
        return max(counts, default=None)

    @property
    def is_over(self) -> bool:
        """Whether the run said how it ended."""
        return self.ended_at is not None

    @property
    def awaits_review(self) -> bool:
        """Whether a branch of it still has to be merged."""
        return any(target.awaits_review for target in self.targets)

    @property
    def errors(self) -> list[str]:
        """Why it failed, and then why its targets did."""
        errors = [self.error, *(target.error for target in self.targets)]
        return [error for error in errors if error]

    def find_target(self, name: str) -> TargetRun | None:
        """What became of one target."""
        return next((each for each in self.targets if each.target == name), None)

    def to_json(self) -> JsonObject:
        """The document of a run."""
        conditions = ["PartialPipelineRun"] if self.status == PARTIAL else []
        if any(rule.broken for target in self.targets for rule in target.rules):
            conditions.append("BrokenExpectation")
        if self.awaits_review:
            conditions.append("AwaitingReview")
        return {
            "run_id": self.id,
            "pipeline": self.pipeline,
            "slot": self.slot,
            "definition_digest": self.digest,
            "cluster_revision": self.revision,
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
            "error_code": self.error_code,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class PrunedLedger:
    """How much was removed from a ledger."""

    runs: int
    batches: int


class Ledger:
    """The runs of one pipeline, in a store."""

    def __init__(self, objects: Objects, pipeline: str) -> None:
        self._objects = objects
        self._pipeline = pipeline
        self._folder = f"{FOLDER}/{pipeline}"
        self.liveness = RunLiveness(objects, self._folder)

    @classmethod
    def open(cls, uri: str, pipeline: str) -> Ledger:
        """The ledger of a pipeline at an address: that of a graph, or any other."""
        return cls(open_objects(uri), pipeline)

    def start_run(self, event: Mapping[str, object]) -> RunLog:
        """Begin a run: from here on it is seen, whatever becomes of it."""
        log = RunLog(self._objects, f"{self._folder}/runs/{generate_ulid()}")
        log.add_event("started", {**event, "host": socket.gethostname(), "pid": os.getpid()})
        return log

    def open_run_log(self, run_id: str) -> RunLog:
        """Add events to a run that ended: what became of its branches since."""
        return RunLog(self._objects, f"{self._folder}/runs/{run_id}")

    def list_runs(self, *, limit: int | None = None) -> list[Run]:
        """The newest runs, newest first."""
        return list(islice(self.iter_newest_runs(), limit))

    def iter_newest_runs(self, *, since: datetime | None = None) -> Iterator[Run]:
        """Runs, newest first, down to a time; each is read when it is asked for."""
        oldest = "" if since is None else make_lowest_ulid(int(since.timestamp() * 1000))
        for run_id, paths in self._iter_newest_paths():
            if run_id < oldest:
                return
            yield self._read_run(run_id, paths)

    def _iter_newest_paths(self) -> Iterator[tuple[str, list[str]]]:
        """The objects of each run, newest first: ids begin with a time, so few are listed."""
        folder, oldest = f"{self._folder}/runs", None
        now_ms = time.time_ns() // 1_000_000
        for hours in (*_SEARCH_WINDOWS_H, None):
            first = None if hours is None else make_lowest_ulid(now_ms - hours * _HOUR_MS)
            paths: dict[str, list[str]] = {}
            after = None if first is None else f"{folder}/{first}"
            for entry in self._objects.list(folder, after=after):
                run_id = entry.path.rsplit("/", 2)[1]
                if oldest is not None and run_id >= oldest:
                    break
                paths.setdefault(run_id, []).append(entry.path)
            yield from sorted(paths.items(), reverse=True)
            oldest = first

    def find_run(self, run_id: str) -> Run | None:
        """One run."""
        folder = f"{self._folder}/runs/{run_id}/"
        paths = [each.path for each in self._objects.list(folder)] if decode_ulid_ms(run_id) else []
        return self._read_run(run_id, paths) if paths else None

    def claim_batch(self, number: int, batch: JsonObject) -> JsonObject:
        """Say what the n-th part of a followed source is, unless another run did: theirs counts."""
        if self._objects.put_new(self._format_batch_path(number), encode_document(batch)):
            return batch
        return self._read_event(self._format_batch_path(number))

    def find_last_batch(self) -> tuple[int, JsonObject] | None:
        """The newest part of a followed source that anybody named, and its number."""
        # They are numbered without gaps from the oldest that is kept: few of them are read.
        oldest = next(iter(self._objects.list(f"{self._folder}/batches")), None)
        if oldest is None:
            return None
        low, step = _parse_number(oldest.path), 1
        while self._is_batch_claimed(low + step):
            low, step = low + step, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._is_batch_claimed(middle) else (low, middle)
        return low, self._read_event(self._format_batch_path(low))

    def finish_batch(self, number: int, run_id: str) -> None:
        """Say that every target has a part of a followed source, so that the next one may begin."""
        self._objects.put_new(self._format_finished_path(number), encode_document({"run": run_id}))

    def is_batch_finished(self, number: int) -> bool:
        """Whether every target has a part of a followed source."""
        return self._objects.get(self._format_finished_path(number)) is not None

    def prune(self, before: datetime) -> PrunedLedger:
        """Remove what is older than a time, and that no later run needs.

        The newest run stays, as do runs that are under way or wait for review, and the last batch.
        """
        folder, kept = f"{self._folder}/runs", self._list_kept_runs()
        oldest = make_lowest_ulid(int(before.timestamp() * 1000))
        paths: dict[str, list[str]] = {}
        for entry in self._objects.list(folder):
            run_id = entry.path.rsplit("/", 2)[1]
            if run_id >= oldest:
                break
            if run_id not in kept:
                paths.setdefault(run_id, []).append(entry.path)
        runs = 0
        for run_id, own in paths.items():
            run = self._read_run(run_id, own)
            if run.status != RUNNING and not run.awaits_review:
                # The event that starts a run goes last: without its end, it was interrupted.
                self._objects.delete(sorted(own, reverse=True))
                self.liveness.delete(run_id)
                runs += 1
        return PrunedLedger(runs, self._prune_batches(before))

    def _list_kept_runs(self) -> frozenset[str]:
        """The newest run, and the newest one that came to its targets: the next run asks for it."""
        found = set[str]()
        for run in self.iter_newest_runs():
            found.add(run.id)
            if run.targets:
                break
        return frozenset(found)

    def _prune_batches(self, before: datetime) -> int:
        last = self.find_last_batch()
        listed = self._objects.list(f"{self._folder}/batches") if last is not None else ()
        count = 0
        for entry in listed:
            number = _parse_number(entry.path)
            if last is None or number >= last[0] or entry.modified >= before.timestamp():
                break
            # In their order, so that those that are left have no gap.
            self._objects.delete([entry.path])
            self._objects.delete([self._format_finished_path(number)])
            count += 1
        return count

    def _is_batch_claimed(self, number: int) -> bool:
        return self._objects.get(self._format_batch_path(number)) is not None

    def _format_batch_path(self, number: int) -> str:
        return f"{self._folder}/batches/{number:08}.json"

    def _format_finished_path(self, number: int) -> str:
        return f"{self._folder}/finished/{number:08}.json"

    def _read_run(self, run_id: str, paths: list[str]) -> Run:
        events = [self._read_event(path) for path in sorted(paths)]
        is_lost = partial(self.liveness.is_lost, run_id)
        return fold_events(run_id, self._pipeline, events, is_lost=is_lost)

    def _read_event(self, path: str) -> JsonObject:
        document = read_document(self._objects, path)
        if document is None:
            raise CorruptObjectError(path, "it is gone")
        return document


def _parse_number(path: str) -> int:
    return int(path.rpartition("/")[2].removesuffix(".json"))


class RunLog:
    """The events of one run, written by the process that runs it."""

    def __init__(self, objects: Objects, folder: str) -> None:
        self._objects = objects
        self._folder = folder
        self._next = 0
        self.run_id = folder.rsplit("/", 1)[1]

    def add_event(self, name: str, event: Mapping[str, object]) -> None:
        """Add an event; only the process that began a run adds to it."""
        assert self._next <= EVENTS_MAX, "targets and attempts are bounded"
        data = encode_document({**event, "event": name, "at": _format_now()})
        # A number may be taken by an event that was written though its answer was lost.
        while not self._objects.put_new(f"{self._folder}/{self._next:04}.json", data):
            self._next += 1
        self._next += 1

    def record_target(self, target: TargetRun) -> None:
        """Say what became of a target; a later event of the same one replaces it."""
        self.add_event("target", encode_target(target))

    def add_warning(self, message: str) -> None:
        """Say what went wrong beside the run."""
        self.add_event("warning", {"message": message})


def fold_events(
    run_id: str,
    pipeline: str,
    events: list[JsonObject],
    *,
    is_lost: Callable[[JsonObject], bool] = lambda _: False,
) -> Run:
    """The run that events are about; `is_lost` says of one without an end that it is not alive."""
    started = next((each for each in events if each.get("event") == "started"), {})
    finished = next((each for each in events if each.get("event") == "finished"), None)
    targets: dict[str, TargetRun] = {
        each["target"]: decode_target(each) for each in started.get("targets", [])
    }
    for event in events:
        if event.get("event") == "target":
            targets[event["target"]] = decode_target(event)
    if finished is None:
        status = INTERRUPTED if is_lost(started) else RUNNING
    else:
        status = finished["status"]
    if status != RUNNING:
        targets = {name: _mark_ended(target) for name, target in targets.items()}
    return Run(
        id=run_id,
        pipeline=pipeline,
        slot=started.get("slot", ""),
        digest=started.get("digest", ""),
        trigger=started.get("trigger", ""),
        started_at=started.get("at", ""),
        status=status,
        targets=tuple(targets.values()),
        position=started.get("position"),
        ended_at=None if finished is None else finished["at"],
        error=None if finished is None else finished.get("error"),
        actor=started.get("actor"),
        requested_slot=started.get("asked"),
        error_code=None if finished is None else finished.get("error_code"),
        warnings=tuple(each["message"] for each in events if each.get("event") == "warning"),
        revision=started.get("revision"),
    )


def _mark_ended(target: TargetRun) -> TargetRun:
    """A target of a run that is over: one that was being written is not any more."""
    return replace(target, status=INTERRUPTED) if target.status == RUNNING else target


def status_of(targets: Iterator[TargetRun] | tuple[TargetRun, ...]) -> str:
    """How a run ended: it succeeded only if every target did."""
    statuses = {target.status for target in targets}
    if statuses <= {SUCCEEDED, UNCHANGED}:
        return SUCCEEDED
    return PARTIAL if SUCCEEDED in statuses else FAILED


def encode_target(target: TargetRun) -> dict[str, object]:
    """A target as objects hold it."""
    document = {name: getattr(target, name) for name in TargetRun.__slots__}
    return {**document, "rules": [rule.to_json() for rule in target.rules]}


def decode_target(document: Mapping[str, Any]) -> TargetRun:  # Any: JSON
    """A target, read from an object."""
    given = {name: document[name] for name in TargetRun.__slots__ if name in document}
    given["rules"] = tuple(map(RuleOutcome.from_json, document.get("rules", ())))
    return TargetRun(**given)


def encode_document(document: Mapping[str, object]) -> bytes:
    """The bytes of an object."""
    return json.dumps({"format": FORMAT, **document}, sort_keys=True).encode()


def read_document(objects: Objects, path: str) -> JsonObject | None:
    """The document of an object; None if it is absent."""
    data = objects.get(path)
    if data is None:
        return None
    try:
        document = json.loads(data)
    except ValueError as failure:
        raise CorruptObjectError(path, "it is not JSON") from failure
    if not isinstance(document, dict):
        raise CorruptObjectError(path, "it is not a JSON object")
    return document


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
