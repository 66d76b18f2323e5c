"""Repair: foreign writes to tables, derived objects that are stale or damaged, and lost files.

Commits need no repair: one that has its record is whole, and one without it never was. What others
commit to the linear history of a table is not part of the graph, and no read of the graph sees it.
A file that the disk has damaged cannot be made again, unless it is derived: a repair says where it
can come from, and which commit is whole without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from omnigraph.engine.check.check_problems import Problem
from omnigraph.engine.check.damage_search import Damage, DamagedBranch, find_damage
from omnigraph.engine.graph_session import Session
from omnigraph.errors import (
    CommitNotFoundError,
    CorruptObjectError,
    FormatTooNewError,
    InvalidArgumentError,
    StorageError,
)
from omnigraph.html_views import HtmlDocument
from omnigraph.rows.view import View
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.table_manifests import LinearHistory
from omnigraph.versioning import Log, Record, Snapshot, Stream
from omnigraph.versioning.json_fields import decode_fields
from omnigraph.versioning.log import REMOTE_HINT_EVERY
from omnigraph.versioning.log_snapshot import decode_checkpoint, snapshot_of
from omnigraph.writers.maintain import rebuild_damaged_indexes


class Classification(StrEnum):
    """What was done to the linear history of a table."""

    NO_DRIFT = "no_drift"
    MAINTENANCE = "verified_maintenance"
    SUSPICIOUS = "suspicious"
    UNVERIFIABLE = "unverifiable"


class Action(StrEnum):
    """What a repair does about it."""

    NONE = "none"
    PREVIEW = "preview"
    HEALED = "healed"
    REFUSED = "refused"
    FORCED = "forced"


@dataclass(frozen=True, slots=True)
class RepairedTable:
    """One table: what was found in its linear history, and what became of that."""

    type_key: str
    path: str
    version: str
    linear_version: int
    classification: Classification
    action: Action
    operations: tuple[str, ...] = ()
    error: str | None = None

    def to_json(self) -> JsonObject:
        """Its part of the document."""
        return {
            "type_key": self.type_key,
            "published_dataset_version": self.version,
            "lance_head_version": self.linear_version,
            "classification": str(self.classification),
            "action": str(self.action),
            "operations": list(self.operations),
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class RepairedObject:
    """A derived object that is missing, stale or torn, and what became of it."""

    path: str
    reason: str
    action: Action

    def to_json(self) -> JsonObject:
        """Its part of the document."""
        return {"path": self.path, "reason": self.reason, "action": str(self.action)}


@dataclass(frozen=True, slots=True)
class DamagedObject:
    """An object that is not as it was written, and what can be done; no repair can make it."""

    path: str
    reason: str
    advice: str

    def to_json(self) -> JsonObject:
        """Its part of the document."""
        return {"path": self.path, "reason": self.reason, "advice": self.advice}


@dataclass(frozen=True, slots=True)
class BrokenBranch:
    """A branch whose newest commit cannot be read completely, and the commit to go back to."""

    branch: str
    types: tuple[str, ...]
    whole_commit: str | None
    whole_version: int | None

    def to_json(self) -> JsonObject:
        """Its part of the document."""
        return {
            "branch": self.branch,
            "unreadable_types": list(self.types),
            "whole_commit_id": self.whole_commit,
            "whole_version": self.whole_version,
        }


@dataclass(frozen=True, slots=True, repr=False)
class RepairReport(HtmlDocument):
    """What a repair found and did; without `confirm` it only looked."""

    uri: str
    confirm: bool
    force: bool
    version: int | None
    tables: tuple[RepairedTable, ...]
    derived: tuple[RepairedObject, ...]
    damaged: tuple[DamagedObject, ...] = ()
    branches: tuple[BrokenBranch, ...] = ()

    def __repr__(self) -> str:
        found = f"tables={len(self.tables)}, derived={len(self.derived)}"
        return f"RepairReport({found}, damaged={len(self.damaged)}, confirm={self.confirm})"

    @property
    def is_refused(self) -> bool:
        """Whether something was left alone because its origin is unknown."""
        return any(table.action is Action.REFUSED for table in self.tables)

    def to_json(self) -> JsonObject:
        """The document of a repair."""
        return {
            "uri": self.uri,
            "confirm": self.confirm,
            "force": self.force,
            "graph_manifest_version": self.version,
            "datasets": [table.to_json() for table in self.tables],
            "derived": [each.to_json() for each in self.derived],
            "damaged": [each.to_json() for each in self.damaged],
            "broken_branches": [each.to_json() for each in self.branches],
        }


def repair(session: Session, *, confirm: bool, force: bool) -> RepairReport:
    """Look at the tables and the derived objects of all branches, and put them right."""
    if force and not confirm:
        raise InvalidArgumentError(
            "force", "it says how to repair", hint="pass confirm=True as well"
        )
    resources = session.resources
    streams = [resources.branches.resolve(name) for name in resources.branches.list()]
    heads = {stream: head for stream in streams if (head := _read_head(session, stream))}
    derived = [
        each for stream in streams for each in _repair_derived(session, stream, confirm=confirm)
    ]
    indexes = _repair_indexes(session, list(heads), confirm=confirm)
    tables = [
        _repair_table(session, type_key, head, confirm=confirm, force=force)
        for type_key, head in _list_tables(list(heads.values()))
    ]
    # Last, so that what was made anew is not found damaged.
    damage = _find_damage(session)
    known = {each.path for each in derived}
    return RepairReport(
        session.uri,
        confirm,
        force,
        next((head.seq for head in heads.values()), None),
        tuple(tables),
        (*derived, *indexes),
        tuple(_advise(damage, each) for each in damage.problems if each.where not in known),
        tuple(map(_describe_branch, damage.branches)),
    )


def _read_head(session: Session, stream: Stream) -> Snapshot | None:
    """The newest commit of a branch; None where it cannot be read, which is found as damage."""
    try:
        return session.resources.log.read_head(stream).snapshot
    except (CorruptObjectError, FormatTooNewError, CommitNotFoundError):
        return None


def _find_damage(session: Session) -> Damage:
    storage = session.resources.storage
    tables = storage.tables if storage.reopen is None else storage.reopen()
    return find_damage(storage.objects, tables)


def _advise(damage: Damage, problem: Problem) -> DamagedObject:
    advice = "restore it from a copy of the graph"
    if problem.where.startswith(f"{layout.TABLES}/") and problem.where not in damage.needed:
        advice += "; only older commits need it, and a clean-up that lets them go removes it"
    return DamagedObject(problem.where, problem.message, advice)


def _describe_branch(found: DamagedBranch) -> BrokenBranch:
    whole = found.whole
    return BrokenBranch(
        found.branch,
        found.types,
        None if whole is None else whole.commit,
        None if whole is None else whole.seq,
    )


def _repair_indexes(
    session: Session, streams: list[Stream], *, confirm: bool
) -> list[RepairedObject]:
    """Damaged index segments of the newest commits, which are built anew from the rows."""
    found = {path for stream in streams for path in _list_damaged_indexes(session, stream)}
    for stream in streams if found and confirm else ():
        newest = partial(_open_newest, session, stream)
        rebuild_damaged_indexes(newest, session.resources.publishers)
    left = {path for stream in streams for path in _list_damaged_indexes(session, stream)}
    return [
        RepairedObject(path, *_judge_index(path in left, confirm=confirm)) for path in sorted(found)
    ]


def _open_newest(session: Session, stream: Stream) -> View:
    return session.open_view(session.read_head(stream))


def _judge_index(is_left: bool, *, confirm: bool) -> tuple[str, Action]:
    if not is_left:
        return "its digest is not the one in its name", Action.HEALED
    if not confirm:
        return "its digest is not the one in its name", Action.PREVIEW
    return "it is damaged, and so are the rows that it was made of", Action.NONE


def _list_damaged_indexes(session: Session, stream: Stream) -> list[str]:
    tables, found = session.resources.storage.tables, list[str]()
    for pin in session.resources.log.read_head(stream).snapshot.pins.values():
        # A version that cannot be opened is found as damage.
        with suppress(CorruptObjectError, StorageError):
            folders = tables.find_damaged_indexes(pin, is_thorough=True)
            found += [f"{pin.path}/{each.path}" for each in folders]
    return found


def _list_tables(heads: list[Snapshot]) -> Iterator[tuple[str, Snapshot]]:
    """Every table once, by the first branch that has it; main is the first one."""
    seen: set[str] = set()
    for head in heads:
        for type_key, pin in sorted(head.pins.items()):
            if pin.path not in seen:
                yield type_key, head
            seen.add(pin.path)


def _repair_table(
    session: Session, type_key: str, head: Snapshot, *, confirm: bool, force: bool
) -> RepairedTable:
    storage = session.resources.storage
    pin = head.pins[type_key]
    failure: str | None = None
    try:
        linear = storage.tables.read_linear_history(pin.path)
    except StorageError as error:
        linear, failure = LinearHistory(0, None), error.reason
    classification = _classify_history(linear)
    action = _choose_action(classification, confirm=confirm, force=force)
    if action in (Action.HEALED, Action.FORCED):
        # The versions of others go; their files follow with the next clean-up.
        storage.objects.delete(f"{pin.path}/{name}" for name in linear.manifests)
    return RepairedTable(
        type_key=type_key,
        path=pin.path,
        version=pin.version,
        linear_version=linear.version,
        classification=classification,
        action=action,
        operations=linear.operations or (),
        error=failure,
    )


def _classify_history(linear: LinearHistory) -> Classification:
    if not linear.is_foreign and linear.operations is not None:
        return Classification.NO_DRIFT
    if linear.operations is None:
        return Classification.UNVERIFIABLE
    return Classification.MAINTENANCE if linear.is_maintenance else Classification.SUSPICIOUS


def _choose_action(classification: Classification, *, confirm: bool, force: bool) -> Action:
    if classification is Classification.NO_DRIFT:
        return Action.NONE
    if not confirm:
        return Action.PREVIEW
    if classification is Classification.MAINTENANCE:
        return Action.HEALED
    return Action.FORCED if force else Action.REFUSED


def _repair_derived(session: Session, stream: Stream, *, confirm: bool) -> Iterator[RepairedObject]:
    """The hint and the checkpoints of a branch that do not say what its records say."""
    log = session.resources.log
    if _read_head(session, stream) is None:
        return
    found = {**dict(_find_stale_checkpoints(log, stream)), **_find_missing_checkpoint(log, stream)}
    reason = _find_hint_problem(log, stream)
    if reason is not None:
        found[layout.build_hint_path(stream.id)] = reason
    if found and confirm:
        log.objects.delete(path for path in found if path != layout.build_hint_path(stream.id))
        log.rebuild(stream)
    action = Action.HEALED if confirm else Action.PREVIEW
    yield from (RepairedObject(path, reason, action) for path, reason in sorted(found.items()))


def _find_hint_problem(log: Log, stream: Stream) -> str | None:
    last = log.read_head(stream).next_seq - 1
    path = layout.build_hint_path(stream.id)
    data = log.objects.get(path)
    if data is None:
        # A branch with few commits of its own may have none yet.
        return "it is missing" if last - stream.first_seq >= REMOTE_HINT_EVERY else None
    try:
        seq = decode_fields(path, data).get_integer("seq")
    except (CorruptObjectError, FormatTooNewError):
        return "it is torn"
    is_near = 0 <= last - seq < REMOTE_HINT_EVERY
    return None if is_near else f"it names version {seq}, and the newest is {last}"


def _find_missing_checkpoint(log: Log, stream: Stream) -> dict[str, str]:
    """The first checkpoint of a branch, if it is missing and can be made again."""
    path = layout.build_checkpoint_path(stream.id, max(stream.first_seq - 1, 0))
    if stream.origins and log.objects.get(path) is None:
        with suppress(CommitNotFoundError, CorruptObjectError):
            log.read_snapshot(stream, stream.first_seq - 1)
            return {path: "it is missing"}
    return {}


def _find_stale_checkpoints(log: Log, stream: Stream) -> Iterator[tuple[str, str]]:
    """Those that are not what their record says; those without a whole record are skipped."""
    for entry in log.objects.list(layout.build_checkpoint_folder(stream.id)):
        seq = layout.parse_checkpoint_path(entry.path)
        data = log.objects.get(entry.path)
        if seq is None or data is None:
            continue
        record = log.read(stream.owner_of(seq).id, seq)
        if not (isinstance(record, Record) and record.is_whole):
            continue
        try:
            kept = decode_checkpoint(stream, seq, data)
        except (CorruptObjectError, FormatTooNewError):
            yield entry.path, "it is torn"
        else:
            if kept != snapshot_of(record, stream):
                yield entry.path, "it is not what its record says"
