"""An error as the JSON document that every surface answers a failure with.

`code` is one word of a closed list, on which clients branch; `reason` is the error's own stable
word. At most one further field carries what the error knows.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from omnigraph.error_codes import ErrorCode
from omnigraph.errors.base_error import OmnigraphError
from omnigraph.errors.change_feed_errors import (
    ChangeCursorRejectedError,
    ChangeFeedGapError,
    ChangeSchemaBoundaryError,
    CommitHasNoParentError,
    EntityNotFoundError,
)
from omnigraph.errors.config_errors import ConfigInvalidError
from omnigraph.errors.operator_errors import (
    AddressError,
    AliasError,
    CredentialsError,
    RemoteRefusedError,
    RemoteUnsupportedError,
)
from omnigraph.errors.pipeline_errors import (
    ApprovalRequiredError,
    ExpectationFailedError,
    PipelineNotFoundError,
    PipelineRunNotFoundError,
    SecretMissingError,
    SourceRefusedError,
    TooFewRowsError,
    TooManyDeletedError,
    TooManyRejectedError,
    UncompiledValueError,
)
from omnigraph.errors.policy_errors import PolicyDeniedError
from omnigraph.errors.proposal_errors import ProposalNotFoundError, ProposalRefusedError
from omnigraph.errors.query_errors import (
    CompileError,
    CursorStaleError,
    EmbeddingError,
    ExecutionError,
    InvalidArgumentError,
    ParameterError,
    QueryNotFoundError,
    ResourceLimitError,
    StoredQueryNotFoundError,
    WrongQueryKindError,
)
from omnigraph.errors.storage_errors import (
    BlobNotFoundError,
    BranchExistsError,
    BranchGoneError,
    BranchNotFoundError,
    BranchRefusedError,
    CommitNotFoundError,
    GraphClosedError,
    GraphExistsError,
    GraphNotFoundError,
    HistoryGoneError,
    RangeNotSatisfiableError,
    StorageRefusedError,
    TagExistsError,
    TagNotFoundError,
)
from omnigraph.errors.write_errors import (
    ConflictError,
    KeyConflictError,
    MergeConflictError,
    MigrationUnsupportedError,
    PreconditionFailedError,
    ResolutionStaleError,
    StagingExpiredError,
    WriteRefusedError,
)
from omnigraph.lang.diagnostic_views import describe_diagnostic

JsonObject = dict[str, Any]  # Any: a JSON document


# An error has the code of its nearest ancestor here; what is not listed is a failure of ours, of
# the store or of a program that we call.
_CODES: Final[dict[type[OmnigraphError], ErrorCode | None]] = {
    OmnigraphError: ErrorCode.INTERNAL,
    **dict.fromkeys(
        (
            AddressError,
            AliasError,
            BranchRefusedError,
            ChangeCursorRejectedError,
            CompileError,
            CredentialsError,
            CursorStaleError,
            ConfigInvalidError,
            ExecutionError,
            InvalidArgumentError,
            MigrationUnsupportedError,
            ParameterError,
            QueryNotFoundError,
            RangeNotSatisfiableError,
            RemoteRefusedError,
            RemoteUnsupportedError,
            ResourceLimitError,
            SecretMissingError,
            SourceRefusedError,
            StorageRefusedError,
            ExpectationFailedError,
            TooFewRowsError,
            TooManyDeletedError,
            TooManyRejectedError,
            UncompiledValueError,
            WriteRefusedError,
            WrongQueryKindError,
        ),
        ErrorCode.BAD_REQUEST,
    ),
    **dict.fromkeys(
        (
            BlobNotFoundError,
            BranchNotFoundError,
            CommitNotFoundError,
            EntityNotFoundError,
            GraphNotFoundError,
            HistoryGoneError,
            PipelineNotFoundError,
            PipelineRunNotFoundError,
            ProposalNotFoundError,
            StoredQueryNotFoundError,
            TagNotFoundError,
        ),
        ErrorCode.NOT_FOUND,
    ),
    **dict.fromkeys(
        (
            ApprovalRequiredError,
            BranchExistsError,
            BranchGoneError,
            ChangeSchemaBoundaryError,
            CommitHasNoParentError,
            ConflictError,
            GraphClosedError,
            GraphExistsError,
            KeyConflictError,
            MergeConflictError,
            ProposalRefusedError,
            ResolutionStaleError,
            StagingExpiredError,
            TagExistsError,
        ),
        ErrorCode.CONFLICT,
    ),
    EmbeddingError: ErrorCode.INTERNAL,
    PolicyDeniedError: ErrorCode.FORBIDDEN,
    # Clients know these two by their detail alone.
    ChangeFeedGapError: None,
    PreconditionFailedError: None,
}


def error_code_of(error: type[OmnigraphError]) -> ErrorCode | None:
    """The code of an error; two that clients know by their detail have none."""
    return next(_CODES[base] for base in error.__mro__ if base in _CODES)


def describe_error(error: OmnigraphError) -> JsonObject:
    """The document of a failure."""
    code = error_code_of(type(error))
    document: JsonObject = {"error": error.message}
    if code is not None:
        document["code"] = str(code)
    document |= {"reason": error.code, "retryable": error.retryable}
    if error.hint is not None:
        document["hint"] = error.hint
    return document | _describe_detail(error)


def _describe_detail(error: OmnigraphError) -> JsonObject:
    match error:
        case CompileError():
            return {"diagnostics": [describe_diagnostic(each) for each in error.diagnostics]}
        case ConfigInvalidError():
            return {"problems": [each.to_json() for each in error.problems]}
        case WriteRefusedError():
            violations = [asdict(violation) for violation in error.violations]
            return {"violations": violations, "count": error.count} | _describe_key_conflict(error)
        case MergeConflictError():
            conflicts = [each.to_json() for each in error.conflicts]
            return {"merge_conflicts": conflicts, "count": error.count}
        case PreconditionFailedError():
            detail = {"expected": error.expected, "actual": error.actual}
            return {"precondition_failure": detail}
        case ResourceLimitError():
            fields = ("resource", "limit", "actual")
            return {"resource_limit": {name: getattr(error, name) for name in fields}}
        case RangeNotSatisfiableError():
            fields = ("start", "end", "length")
            return {"blob_range": {name: getattr(error, name) for name in fields}}
        case _:
            return _describe_feed_error(error)


def _describe_key_conflict(error: WriteRefusedError) -> JsonObject:
    if not isinstance(error, KeyConflictError):
        return {}
    fields = ("entity_kind", "type_name", "entity_id")
    return {"key_conflict": {name: getattr(error, name) for name in fields}}


def _describe_feed_error(error: OmnigraphError) -> JsonObject:
    match error:
        case ChangeFeedGapError():
            cursor = {} if error.cursor is None else {"cursor": error.cursor}
            gap = {**cursor, "first_unreadable_commit_id": error.first_unreadable_commit}
            return {"change_feed_gap": gap}
        case CommitHasNoParentError():
            refusal = {"reason": "parentless_commit", "graph_commit_id": error.commit}
            return {"change_diff_refusal": refusal}
        case ChangeSchemaBoundaryError():
            refusal = {
                "reason": "schema_boundary",
                "graph_commit_id": error.commit,
                "type_name": error.type_name,
            }
            return {"change_diff_refusal": refusal}
        case _:
            return {}
