"""Every error the library raises, in one tree.

    OmnigraphError
    ├── CompileError                  a schema or query text has diagnostics of severity error
    ├── QueryNotFoundError            no query of that name is in the text
    ├── StoredQueryNotFoundError      no stored query of that name may be called
    ├── WrongQueryKindError           a mutation passed to `query`, or a read passed to `mutate`
    ├── ParameterError                a parameter is missing, or its value does not fit
    │   └── UnknownParameterError     the query does not declare it; carries the declared ones
    ├── InvalidArgumentError          an argument of a call has no meaning; carries its name
    ├── CursorStaleError              a cursor is of another question, or its commit was collected
    ├── LibraryMissingError           an optional library is not installed; carries its name
    │   └── SparkMissingError         PySpark is not installed
    ├── UnsupportedPlatformError      the package was imported on a platform such as Windows
    ├── JavaMissingError              there is no Java that Spark can run on; carries what was tried
    ├── SparkFailedError              a Spark job failed; carries the job and the reason
    │   └── SparkDriverLostError      the Java process of Spark's driver ended
    ├── MigrationUnsupportedError     the planned schema change cannot be applied
    ├── StoredSchemaError             a graph's accepted schema cannot be read by this program
    ├── WriteRefusedError             a write breaks a rule of the schema; carries its violations
    │   ├── KeyConflictError          a strict insert met an existing entity
    │   ├── AmbiguousUpdateError      rows give one entity different values
    │   ├── ValueFaultError           an assigned value that cannot be computed
    │   ├── UnusableKeyError          a key value cannot identify an entity; carries its row
    │   └── LoadError                 input records are malformed; carries their places
    ├── ExecutionError                a checked query could not be evaluated
    │   ├── TypeNotFoundError         the schema has no type of that name
    │   ├── NegativeWeightError       an edge has a weight below zero; carries its type and id
    │   ├── EmbeddingError            a text has no usable vector; carries its reason
    │   │   └── EmbeddingUnavailableError   the provider gave no answer in time; retryable
    │   ├── EngineUnsupportedError    the chosen engine cannot run the query; carries the engine
    │   ├── QueryTimeoutError         a query took longer than it may; carries timeout_s
    │   └── QueryCancelledError       a query was cancelled before its end
    ├── StorageError                  a step of the store did not happen; carries its path
    │   ├── StorageRefusedError       the address, options or permissions are wrong; not retryable
    │   ├── StorageFullError          a disk or a quota has no room for a write
    │   └── StorageUnknownError       a write may have happened: read it back, or write it again
    ├── BranchRefusedError            a branch name or an operation on a branch is not allowed
    │   ├── BranchExistsError         a branch of that name is live
    │   ├── BranchNotFoundError       no live branch has that name
    │   └── BranchGoneError           the branch was deleted while a write was under way
    ├── CommitNotFoundError           no live branch holds that commit, version or time
    │   └── SnapshotGoneError         the commit was collected; carries the oldest kept version
    ├── TagExistsError                a tag of that name exists
    ├── TagNotFoundError              no tag has that name
    ├── ProposalNotFoundError         no proposal has that number
    ├── ProposalRefusedError          what may not happen to a proposal as it is; carries its number
    ├── HistoryGoneError              commits that a question depends on were collected
    ├── CommitHasNoParentError        the first commit of a graph cannot be compared with a parent
    ├── ChangeCursorRejectedError     a cursor or page token does not belong to what is read
    ├── ChangeSchemaBoundaryError     entities before and after a schema change cannot be compared
    ├── ChangeFeedGapError            history was cleaned up before it was read; carries the commit
    ├── EntityNotFoundError           no entity has that type and id
    ├── GraphNotFoundError            no graph is at this address
    ├── GraphExistsError              a graph is already at this address
    ├── GraphClosedError              the graph was closed in this process
    ├── BlobNotFoundError             no entity holds such a blob
    ├── RangeNotSatisfiableError      a range lies outside its blob; carries start, end and length
    ├── ConflictError                 another commit changed what this write depends on
    ├── MergeConflictError            the two sides of a merge conflict; carries the conflicts
    ├── ResolutionStaleError          the conflicts that a resolution decides are other ones by now
    ├── PreconditionFailedError       the head of the branch is not the expected commit
    ├── SchemaMovedError              the schema in force is not the expected one
    ├── StagingExpiredError           a clean-up may have removed the staged files of a write
    ├── InDoubtError                  a commit may or may not have happened; carries its commit id
    ├── CorruptObjectError            a stored object cannot be read; carries its path
    ├── FormatTooNewError             an object was written by a newer program
    ├── UnknownFeatureError           a graph has features that this program does not know
    ├── ClusterError                  a cluster cannot be used as it is applied; carries why
    ├── ConfigInvalidError            a configuration file has problems; carries them
    │   ├── PipelineInvalidError      a pipeline definition has problems
    │   └── PolicyInvalidError        a policy bundle, or a file of its cases, has problems
    ├── PolicyDeniedError             no rule of the policy allows an act; carries its actor
    │   └── RowsGuardedError          it allows some rows, where none can be left out
    ├── PolicyFailedError             a policy cannot be compiled or evaluated
    ├── PipelineNotFoundError         no pipeline of that name is defined
    ├── PipelineRunNotFoundError      no run of that id is in the ledger
    ├── SecretMissingError            a value that a pipeline takes from the environment is not set
    ├── SourceFailedError             a source of a pipeline cannot be read now
    ├── SourceRefusedError            a source of a pipeline does not hold what its definition says
    ├── UncompiledValueError          a value that a mapping without Spark does not judge
    ├── ApprovalRequiredError         a run would replace data without an approval
    ├── TooManyRejectedError          a run would leave out more rows than its target tolerates
    ├── TooManyDeletedError           a run would delete more entities than a rule allows
    ├── RunFencedError                a run of a pipeline that was given up wants to publish
    ├── TooFewRowsError               a run would load fewer rows than its target expects
    ├── ExpectationFailedError        rows of a run are not as a rule expects; carries the counts
    ├── RunFailedError                targets of a run failed; carries the id of the run
    ├── AddressError                  no graph is addressed, or several, or not in a way that works
    ├── CredentialsError              a token cannot be read or stored
    ├── AliasError                    no alias has that name, or its arguments do not fit
    ├── RemoteUnavailableError        a server cannot be reached, or does not answer as one
    ├── RemoteRefusedError            a server refused a request before its graph was asked
    │   └── RemoteBusyError           it may do it later
    ├── RemoteUnsupportedError        only the storage of a graph can do this, not a server
    └── ResourceLimitError            a bound was exceeded; carries resource, limit and actual

Modules: `base_error` is the root; `query_errors`, `write_errors`, `storage_errors`,
`change_feed_errors`, `config_errors`, `policy_errors`, `proposal_errors` and `pipeline_errors` hold
the classes by subject; `error_documents` turns an error into the JSON document that every surface
returns for a failure.

Every error has `code` (a stable snake_case word), `retryable`, and `hint` (what to do, or None).
"""

from __future__ import annotations

from omnigraph.errors.base_error import (
    OmnigraphError,
)
from omnigraph.errors.change_feed_errors import (
    ChangeCursorRejectedError,
    ChangeFeedGapError,
    ChangeSchemaBoundaryError,
    CommitHasNoParentError,
    EntityNotFoundError,
)
from omnigraph.errors.cluster_errors import ClusterError
from omnigraph.errors.config_errors import ConfigInvalidError, Problem
from omnigraph.errors.operator_errors import (
    AddressError,
    AliasError,
    CredentialsError,
    RemoteBusyError,
    RemoteRefusedError,
    RemoteUnavailableError,
    RemoteUnsupportedError,
)
from omnigraph.errors.pipeline_errors import (
    ApprovalRequiredError,
    ExpectationFailedError,
    PipelineInvalidError,
    PipelineNotFoundError,
    PipelineRunNotFoundError,
    RunFailedError,
    RunFencedError,
    SecretMissingError,
    SourceFailedError,
    SourceRefusedError,
    TooFewRowsError,
    TooManyDeletedError,
    TooManyRejectedError,
    UncompiledValueError,
)
from omnigraph.errors.policy_errors import (
    PolicyDeniedError,
    PolicyFailedError,
    PolicyInvalidError,
    RowsGuardedError,
)
from omnigraph.errors.proposal_errors import ProposalNotFoundError, ProposalRefusedError
from omnigraph.errors.query_errors import (
    CompileError,
    CursorStaleError,
    EmbeddingError,
    EmbeddingUnavailableError,
    EngineUnsupportedError,
    ExecutionError,
    InvalidArgumentError,
    JavaMissingError,
    LibraryMissingError,
    NegativeWeightError,
    ParameterError,
    QueryCancelledError,
    QueryNotFoundError,
    QueryTimeoutError,
    ResourceLimitError,
    SparkDriverLostError,
    SparkFailedError,
    SparkMissingError,
    StoredQueryNotFoundError,
    TypeNotFoundError,
    UnknownParameterError,
    WrongQueryKindError,
)
from omnigraph.errors.storage_errors import (
    BlobNotFoundError,
    BranchExistsError,
    BranchGoneError,
    BranchNotFoundError,
    BranchRefusedError,
    CommitNotFoundError,
    CorruptObjectError,
    FormatTooNewError,
    GraphClosedError,
    GraphExistsError,
    GraphNotFoundError,
    HistoryGoneError,
    RangeNotSatisfiableError,
    SnapshotGoneError,
    StorageError,
    StorageFullError,
    StorageRefusedError,
    StorageUnknownError,
    StoredSchemaError,
    TagExistsError,
    TagNotFoundError,
    UnknownFeatureError,
    UnsupportedPlatformError,
)
from omnigraph.errors.write_errors import (
    VIOLATIONS_SHOWN_MAX,
    AmbiguousUpdateError,
    ConflictError,
    EntityConflict,
    InDoubtError,
    KeyConflictError,
    LoadError,
    MergeConflictError,
    MigrationUnsupportedError,
    PreconditionFailedError,
    ResolutionStaleError,
    SchemaMovedError,
    StagingExpiredError,
    UnusableKeyError,
    ValueFaultError,
    Violation,
    WriteRefusedError,
    format_violations,
)

__all__ = [
    "VIOLATIONS_SHOWN_MAX",
    "AddressError",
    "AliasError",
    "AmbiguousUpdateError",
    "ApprovalRequiredError",
    "BlobNotFoundError",
    "BranchExistsError",
    "BranchGoneError",
    "BranchNotFoundError",
    "BranchRefusedError",
    "ChangeCursorRejectedError",
    "ChangeFeedGapError",
    "ChangeSchemaBoundaryError",
    "ClusterError",
    "CommitHasNoParentError",
    "CommitNotFoundError",
    "CompileError",
    "ConfigInvalidError",
    "ConflictError",
    "CorruptObjectError",
    "CredentialsError",
    "CursorStaleError",
    "EmbeddingError",
    "EmbeddingUnavailableError",
    "EngineUnsupportedError",
    "EntityConflict",
    "EntityNotFoundError",
    "ExecutionError",
    "ExpectationFailedError",
    "FormatTooNewError",
    "GraphClosedError",
    "GraphExistsError",
    "GraphNotFoundError",
    "HistoryGoneError",
    "InDoubtError",
    "InvalidArgumentError",
    "JavaMissingError",
    "KeyConflictError",
    "LibraryMissingError",
    "LoadError",
    "MergeConflictError",
    "MigrationUnsupportedError",
    "NegativeWeightError",
    "OmnigraphError",
    "ParameterError",
    "PipelineInvalidError",
    "PipelineNotFoundError",
    "PipelineRunNotFoundError",
    "PolicyDeniedError",
    "PolicyFailedError",
    "PolicyInvalidError",
    "PreconditionFailedError",
    "Problem",
    "ProposalNotFoundError",
    "ProposalRefusedError",
    "QueryCancelledError",
    "QueryNotFoundError",
    "QueryTimeoutError",
    "RangeNotSatisfiableError",
    "RemoteBusyError",
    "RemoteRefusedError",
    "RemoteUnavailableError",
    "RemoteUnsupportedError",
    "ResolutionStaleError",
    "ResourceLimitError",
    "RowsGuardedError",
    "RunFailedError",
    "RunFencedError",
    "SchemaMovedError",
    "SecretMissingError",
    "SnapshotGoneError",
    "SourceFailedError",
    "SourceRefusedError",
    "SparkDriverLostError",
    "SparkFailedError",
    "SparkMissingError",
    "StagingExpiredError",
    "StorageError",
    "StorageFullError",
    "StorageRefusedError",
    "StorageUnknownError",
    "StoredQueryNotFoundError",
    "StoredSchemaError",
    "TagExistsError",
    "TagNotFoundError",
    "TooFewRowsError",
    "TooManyDeletedError",
    "TooManyRejectedError",
    "TypeNotFoundError",
    "UncompiledValueError",
    "UnknownFeatureError",
    "UnknownParameterError",
    "UnsupportedPlatformError",
    "UnusableKeyError",
    "ValueFaultError",
    "Violation",
    "WriteRefusedError",
    "WrongQueryKindError",
    "format_violations",
]
