"""The names of branches: their events are complete, readable, and lead to streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from omnigraph.engine.check.check_problems import Problems
from omnigraph.errors import BranchNotFoundError, CorruptObjectError, FormatTooNewError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.json_fields import decode_fields
from omnigraph.versioning.record import MAIN, MAIN_BRANCH, Stream


def check_refs(objects: Objects, branches: Branches, problems: Problems) -> list[Stream]:
    """Report what is wrong with the events of names; the streams of all live branches."""
    for name, events in _list_events(objects).items():
        for generation in range(1, max(events) + 1):
            if generation not in events:
                path = layout.build_ref_event_path(name, generation)
                problems.add("branch", path, "it is missing below newer events")
        for generation, path in sorted(events.items()):
            read = partial(_require_event, objects, path, is_create=generation % 2 == 1)
            problems.attempt("branch", path, read)
    return [MAIN, *_list_live_streams(branches, problems)]


def report_nameless_streams(objects: Objects, problems: Problems) -> None:
    """Name the streams that no event of a branch leads to: they cannot be read."""
    # Listed before the events, which follow their streams: few branches in creation are named.
    stored = _list_stored_streams(objects)
    if len(stored) < 2:
        return
    named = {MAIN.id, *_list_named_streams(objects)}
    for stream, records in sorted(stored.items()):
        if stream not in named:
            message = (
                f"holds {records} records of a stream that no branch event names; it is ignored"
            )
            problems.add_notice("stream", layout.build_stream_folder(stream), message)


def was_named(objects: Objects, branch: str, stream: str) -> bool:
    """Whether a name stands for a stream, or once stood for it."""
    for entry in objects.list(layout.build_branch_folder(branch)):
        data = objects.get(entry.path)
        with suppress(CorruptObjectError, FormatTooNewError):
            if data is not None and decode_fields(entry.path, data).get_text("stream") == stream:
                return True
    return False


def _list_stored_streams(objects: Objects) -> dict[str, int]:
    """How many records each stream has; other folders have no dot in their names."""
    root = layout.build_stream_folder("")
    found: dict[str, int] = {}
    for entry in objects.list(root.rstrip("/")):
        name, is_below, _ = entry.path.removeprefix(root).partition("/")
        if is_below and "." in name:
            found[name] = found.get(name, 0) + (layout.parse_record_path(entry.path) is not None)
    return found


def _list_named_streams(objects: Objects) -> Iterator[str]:
    for events in _list_events(objects).values():
        for generation, path in events.items():
            data = objects.get(path) if generation % 2 == 1 else None
            # A torn event is a problem of its own.
            with suppress(CorruptObjectError, FormatTooNewError):
                if data is not None:
                    yield decode_fields(path, data).get_text("stream")


def _list_events(objects: Objects) -> dict[str, dict[int, str]]:
    """The path of every event, by name and generation."""
    events: dict[str, dict[int, str]] = {}
    for entry in objects.list(layout.BRANCHES):
        found = layout.parse_ref_event_path(entry.path)
        if found is not None:
            events.setdefault(found[0], {})[found[1]] = entry.path
    return events


def _require_event(objects: Objects, path: str, *, is_create: bool) -> None:
    data = objects.get(path)
    if data is None:
        raise CorruptObjectError(path, "it was listed, and it is absent")
    decode_fields(path, data).require("op", "create" if is_create else "delete")


def _list_live_streams(branches: Branches, problems: Problems) -> list[Stream]:
    streams = []
    for name in branches.list():
        if name == MAIN_BRANCH:
            continue
        try:
            stream = problems.attempt("branch", name, partial(_resolve_stream, branches, name))
        except _Deleted:
            continue
        if stream is not None:
            streams.append(stream)
    return streams


class _Deleted(Exception):
    """A branch that was deleted after it was listed: not a problem."""


def _resolve_stream(branches: Branches, name: str) -> Stream:
    try:
        return branches.resolve(name)
    except BranchNotFoundError as error:
        raise _Deleted from error
