"""An error as the JSON document that every surface answers a failure with.

`code` is one word of a closed list, on which clients branch; `reason` is the error's own stable
word. At most one further field carries what the error knows.
"""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import Any, Final

from omnigraph.diagnostics import to_json
from omnigraph.errors.asking import (
    CompileError,
    EmbeddingError,
    ExecutionError,
    InvalidArgument,
    ParameterError,
    QueryNotFound,
    ResourceLimit,
    WrongQueryKind,
)
from omnigraph.errors.base import OmnigraphError
from omnigraph.errors.following import (
    ChangeCursorRejected,
    ChangeFeedGap,
    ChangeSchemaBoundary,
    CommitHasNoParent,
    EntityNotFound,
)
from omnigraph.errors.merging import MergeConflict
from omnigraph.errors.pipelines import (
    ApprovalRequired,
    PipelineInvalid,
    PipelineNotFound,
    SecretMissing,
    SourceRefused,
    TooFewRows,
    TooManyRejected,
)
from omnigraph.errors.stored import (
    BlobNotFound,
    BranchExists,
    BranchGone,
    BranchNotFound,
    BranchRefused,
    CommitNotFound,
    GraphClosed,
    GraphExists,
    GraphNotFound,
    HistoryGone,
    RangeNotSatisfiable,
    StorageRefused,
    TagExists,
    TagNotFound,
)
from omnigraph.errors.writing import (
    Conflict,
    KeyConflict,
    MigrationUnsupported,
    PreconditionFailed,
    StagingExpired,
    WriteRefused,
)

JsonObject = dict[str, Any]  # Any: a JSON document


class ErrorCode(StrEnum):
    """The closed list of codes."""

    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    BAD_REQUEST = "bad_request"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CONFLICT = "conflict"
    TOO_MANY_REQUESTS = "too_many_requests"
    INTERNAL = "internal"


# An error has the code of its nearest ancestor here; what is not listed is a failure of ours, of
# the store or of a program that we call.
_CODES: Final[dict[type[OmnigraphError], ErrorCode | None]] = {
    OmnigraphError: ErrorCode.INTERNAL,
    **dict.fromkeys(
        (
            BranchRefused,
            ChangeCursorRejected,
            CompileError,
            ExecutionError,
            InvalidArgument,
            MigrationUnsupported,
            ParameterError,
            PipelineInvalid,
            QueryNotFound,
            RangeNotSatisfiable,
            ResourceLimit,
            SecretMissing,
            SourceRefused,
            StorageRefused,
            TooFewRows,
            TooManyRejected,
            WriteRefused,
            WrongQueryKind,
        ),
        ErrorCode.BAD_REQUEST,
    ),
    **dict.fromkeys(
        (
            BlobNotFound,
            BranchNotFound,
            CommitNotFound,
            EntityNotFound,
            GraphNotFound,
            HistoryGone,
            PipelineNotFound,
            TagNotFound,
        ),
        ErrorCode.NOT_FOUND,
    ),
    **dict.fromkeys(
        (
            ApprovalRequired,
            BranchExists,
            BranchGone,
            ChangeSchemaBoundary,
            CommitHasNoParent,
            Conflict,
            GraphClosed,
            GraphExists,
            KeyConflict,
            MergeConflict,
            StagingExpired,
            TagExists,
        ),
        ErrorCode.CONFLICT,
    ),
    EmbeddingError: ErrorCode.INTERNAL,
    # Clients know these two by their detail alone.
    ChangeFeedGap: None,
    PreconditionFailed: None,
}


def error_code(error: type[OmnigraphError]) -> ErrorCode | None:
    """The code of an error; two that clients know by their detail have none."""
    return next(_CODES[base] for base in error.__mro__ if base in _CODES)


def error_document(error: OmnigraphError) -> JsonObject:
    """The document of a failure."""
    code = error_code(type(error))
    document: JsonObject = {"error": error.message}
    if code is not None:
        document["code"] = str(code)
    document |= {"reason": error.code, "retryable": error.retryable}
    if error.hint is not None:
        document["hint"] = error.hint
    return document | _detail(error)


def _detail(error: OmnigraphError) -> JsonObject:
    match error:
        case CompileError():
            return {"diagnostics": [to_json(each) for each in error.diagnostics]}
        case PipelineInvalid():
            return {"problems": [each.to_json() for each in error.problems]}
        case WriteRefused():
            violations = [asdict(violation) for violation in error.violations]
            return {"violations": violations, "count": error.count} | _key_conflict(error)
        case MergeConflict():
            conflicts = [each.to_json() for each in error.conflicts]
            return {"merge_conflicts": conflicts, "count": error.count}
        case PreconditionFailed():
            detail = {"expected": error.expected, "actual": error.actual}
            return {"precondition_failure": detail}
        case ResourceLimit():
            fields = ("resource", "limit", "actual")
            return {"resource_limit": {name: getattr(error, name) for name in fields}}
        case RangeNotSatisfiable():
            fields = ("start", "end", "length")
            return {"blob_range": {name: getattr(error, name) for name in fields}}
        case _:
            return _feed_detail(error)


def _key_conflict(error: WriteRefused) -> JsonObject:
    if not isinstance(error, KeyConflict):
        return {}
    return {"key_conflict": {"type_name": error.type_name, "entity_id": error.entity_id}}


def _feed_detail(error: OmnigraphError) -> JsonObject:
    match error:
        case ChangeFeedGap():
            cursor = {} if error.cursor is None else {"cursor": error.cursor}
            gap = {**cursor, "first_unreadable_commit_id": error.first_unreadable_commit}
            return {"change_feed_gap": gap}
        case CommitHasNoParent():
            refusal = {"reason": "parentless_commit", "graph_commit_id": error.commit}
            return {"change_diff_refusal": refusal}
        case ChangeSchemaBoundary():
            refusal = {
                "reason": "schema_boundary",
                "graph_commit_id": error.commit,
                "type_name": error.type_name,
            }
            return {"change_diff_refusal": refusal}
        case _:
            return {}
