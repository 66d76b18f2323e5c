"""The bodies of failures: at most one detail is there besides the text, the code and the hint."""

from __future__ import annotations

from pydantic import ConfigDict

from omnigraph.error_codes import ErrorCode
from omnigraph.wire.wire_answers import MergeConflictOutput
from omnigraph.wire.wire_enums import ChangeDiffRefusalReason, EntityKindOutput
from omnigraph.wire.wire_model import Answer, JsonObject, UInt64


class DatasetVersionConflictOutput(Answer):
    """A type that another write changed first."""

    entity_kind: EntityKindOutput
    type_name: str
    expected_published_dataset_version: UInt64
    actual_published_dataset_version: UInt64


class ReadSetConflictOutput(Answer):
    """What a write was prepared on, and what is there now."""

    member: str
    expected: str | None
    actual: str | None


class KeyConflictOutput(Answer):
    """An entity that exists already."""

    entity_kind: EntityKindOutput
    type_name: str
    entity_id: str | None = None


class ResourceLimitOutput(Answer):
    """A bound that was exceeded."""

    resource: str
    limit: UInt64
    actual: UInt64


class BlobRangeOutput(Answer):
    """A half-open range that is not in its blob."""

    start: UInt64
    end: UInt64
    length: UInt64


class ExternalBlobSourceOutput(Answer):
    """A blob that could not be fetched."""

    uri: str
    reason: str


class RecoveryRequiredOutput(Answer):
    """A write that has to be recovered first."""

    operation_id: str


class PreconditionFailureOutput(Answer):
    """The commit that was expected, and the newest one."""

    expected: str
    actual: str | None = None


class ChangeFeedGapOutput(Answer):
    """History that was cleaned up before it was read."""

    cursor: str | None = None
    first_unreadable_commit_id: str


class ChangeDiffRefusalOutput(Answer):
    """A commit that cannot be compared with its parent."""

    reason: ChangeDiffRefusalReason
    graph_commit_id: str
    type_name: str | None = None


class ErrorMessage(Answer):
    """What failed, its code, its own stable word, and what to do."""

    error: str
    code: ErrorCode | None = None
    reason: str | None = None
    retryable: bool | None = None
    hint: str | None = None


class ErrorOutput(ErrorMessage):
    """The body of a failure."""

    model_config = ConfigDict(extra="forbid")

    merge_conflicts: list[MergeConflictOutput] | None = None
    published_dataset_version_conflict: DatasetVersionConflictOutput | None = None
    read_set_conflict: ReadSetConflictOutput | None = None
    key_conflict: KeyConflictOutput | None = None
    resource_limit: ResourceLimitOutput | None = None
    blob_range: BlobRangeOutput | None = None
    external_blob_source: ExternalBlobSourceOutput | None = None
    recovery_required: RecoveryRequiredOutput | None = None
    precondition_failure: PreconditionFailureOutput | None = None
    change_feed_gap: ChangeFeedGapOutput | None = None
    change_diff_refusal: ChangeDiffRefusalOutput | None = None
    diagnostics: list[JsonObject] | None = None
    problems: list[JsonObject] | None = None
    violations: list[JsonObject] | None = None
    count: UInt64 | None = None


class ChangeErrorOutput(ErrorMessage):
    """The body of a failure of a route about changes."""

    resource_limit: ResourceLimitOutput | None = None
    recovery_required: RecoveryRequiredOutput | None = None
    change_feed_gap: ChangeFeedGapOutput | None = None
    change_diff_refusal: ChangeDiffRefusalOutput | None = None
