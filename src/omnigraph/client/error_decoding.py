"""Failures of a server as the errors that a graph in this process would raise."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from omnigraph.errors import (
    ChangeFeedGapError,
    ChangeSchemaBoundaryError,
    CommitHasNoParentError,
    CompileError,
    EntityConflict,
    InDoubtError,
    KeyConflictError,
    MergeConflictError,
    OmnigraphError,
    PreconditionFailedError,
    RangeNotSatisfiableError,
    RemoteBusyError,
    RemoteRefusedError,
    RemoteUnavailableError,
    ResourceLimitError,
    Violation,
    WriteRefusedError,
)
from omnigraph.lang.diagnostic_codes import CODES
from omnigraph.lang.diagnostics import Diagnostic, Severity
from omnigraph.lang.source_text import Source, Span

JsonObject = dict[str, Any]  # Any: a JSON document
_TEXT_CHARACTERS_MAX: Final = 500
# What gateways answer for a server that is not there.
_UNAVAILABLE: Final = frozenset({502, 503, 504})
# What a server answers to a request that it does not begin now.
_BUSY: Final = 429
# Of servers that do not say which error it is: the detail says it.
_BY_DETAIL: Final[Mapping[str, type[OmnigraphError]]] = {
    "merge_conflicts": MergeConflictError,
    "key_conflict": KeyConflictError,
    "precondition_failure": PreconditionFailedError,
    "resource_limit": ResourceLimitError,
    "blob_range": RangeNotSatisfiableError,
    "change_feed_gap": ChangeFeedGapError,
    "recovery_required": InDoubtError,
}
_BY_REFUSAL: Final[Mapping[str, type[OmnigraphError]]] = {
    "parentless_commit": CommitHasNoParentError,
    "schema_boundary": ChangeSchemaBoundaryError,
}


def decode_failure(status: int, content: bytes, *, url: str, source: str = "") -> OmnigraphError:
    """The error of an answer that is not a success; diagnostics are about the source text."""
    try:
        document = json.loads(content)
    except ValueError:
        document = None
    if not isinstance(document, dict) or not isinstance(document.get("error"), str):
        text = content.decode(errors="replace").strip()[:_TEXT_CHARACTERS_MAX]
        problem = f"server returned {status}: {text}".rstrip(": ")
        if status in _UNAVAILABLE:
            return RemoteUnavailableError(url, problem)
        refusal = RemoteBusyError if status == _BUSY else RemoteRefusedError
        return refusal(problem, status=status)
    try:
        kind = _find_kind(document)
        fields = {} if kind is None else _decode_fields(kind, document, source)
    except (AttributeError, KeyError, TypeError, ValueError):
        # The server has details of another version; its message says what happened.
        kind, fields = None, {}
    if kind is None:
        # Of a gateway, another status does not say that nothing happened.
        is_busy = status == _BUSY or document.get("retryable") is True
        refusal = RemoteBusyError if is_busy else RemoteRefusedError
        return refusal(document["error"], status=status, hint=document.get("hint"))
    made = kind.__new__(kind, document["error"])
    made.__dict__ |= {"message": document["error"], "hint": document.get("hint")}
    made.__dict__ |= fields
    return made


def _find_kind(document: JsonObject) -> type[OmnigraphError] | None:
    reason = document.get("reason")
    if (found := _list_kinds().get(reason)) is not None:
        return found
    refusal = document.get("change_diff_refusal") or {}
    if (found := _BY_REFUSAL.get(str(refusal.get("reason")))) is not None:
        return found
    return next((kind for name, kind in _BY_DETAIL.items() if name in document), None)


@lru_cache(1)
def _list_kinds() -> Mapping[Any, type[OmnigraphError]]:  # Any: what a document has as its reason
    return {kind.code: kind for kind in _iter_kinds(OmnigraphError)}


def _iter_kinds(kind: type[OmnigraphError]) -> Iterator[type[OmnigraphError]]:
    for below in kind.__subclasses__():
        if below.__module__.startswith("omnigraph.errors"):
            yield below
            yield from _iter_kinds(below)


def _decode_fields(kind: type[OmnigraphError], document: JsonObject, source: str) -> JsonObject:
    """What the error of a document knows besides its message."""
    fields: JsonObject = {}
    for name, decode in _DETAILS.items():
        if isinstance(detail := document.get(name), dict):
            fields |= decode(detail)
    if issubclass(kind, CompileError):
        listed = [_decode_diagnostic(each, source) for each in document.get("diagnostics", ())]
        fields["diagnostics"] = tuple(each for each in listed if each is not None)
    if issubclass(kind, WriteRefusedError):
        found = tuple(Violation(**each) for each in document.get("violations", ()))
        fields |= {"violations": found, "count": document.get("count", len(found))}
    if issubclass(kind, MergeConflictError):
        conflicts = tuple(decode_conflict(each) for each in document.get("merge_conflicts", ()))
        fields |= {"conflicts": conflicts, "count": document.get("count", len(conflicts))}
        fields["operation"] = document["error"].partition(" conflicts")[0]
    return fields


_DETAILS: Final[Mapping[str, Callable[[JsonObject], JsonObject]]] = {
    "key_conflict": dict,
    "precondition_failure": dict,
    "resource_limit": dict,
    "blob_range": dict,
    "recovery_required": lambda detail: {"commit": detail.get("operation_id")},
    "change_feed_gap": lambda detail: {
        "first_unreadable_commit": detail["first_unreadable_commit_id"],
        "cursor": detail.get("cursor"),
    },
    "change_diff_refusal": lambda detail: {
        "commit": detail["graph_commit_id"],
        "type_name": detail.get("type_name"),
    },
}


def decode_conflict(found: JsonObject) -> EntityConflict:
    """A conflict of a merge, with its three states."""
    states = {side: found.get(side) for side in ("base", "ours", "theirs")}
    return EntityConflict(
        found["kind"],
        found["entity_kind"],
        found["type_name"],
        found.get("entity_id"),
        found["message"],
        **states,
        properties=tuple(found.get("properties", ())),
    )


def _decode_diagnostic(found: JsonObject, text: str) -> Diagnostic | None:
    """A finding about a text of this side; None for a code that this version does not know."""
    if found.get("code") not in CODES:
        return None
    source = Source(found.get("file", "query.gq"), text)
    place = found.get("position", {})
    lines = text.splitlines(keepends=True)[: max(0, place.get("line", 1) - 1)]
    start = sum(map(len, lines)) + max(0, place.get("column", 1) - 1)
    return Diagnostic(
        found["code"],
        Severity(found["severity"]),
        found["message"],
        Span(start, start),
        source,
        found.get("fix"),
    )
