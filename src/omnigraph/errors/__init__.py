"""Every error the library raises, in one tree.

    OmnigraphError
    ├── CompileError            a schema or query text has diagnostics of severity error
    ├── QueryNotFound           no query of that name is in the text
    ├── WrongQueryKind          a mutation was to be queried, or a read to mutate
    ├── ParameterError          a parameter is missing, unknown in shape, or of the wrong type
    │   └── UnknownParameter    the query declares none of that name; carries the declared ones
    ├── InvalidArgument         an argument of a call has no meaning; carries its name
    ├── LibraryMissing          an optional library is not installed; carries its name
    │   └── SparkMissing        PySpark is not installed
    ├── JavaMissing             there is no Java that Spark can run on; carries what was tried
    ├── SparkFailed             Spark gave a job up; carries the job and the reason
    │   └── SparkDriverLost     the Java process of Spark's driver ended
    ├── MigrationUnsupported    the planned schema change cannot be applied
    ├── StoredSchemaError       a graph's accepted schema cannot be read by this program
    ├── WriteRefused            a write breaks a rule of the schema; carries its violations
    │   ├── KeyConflict         a strict insert met an existing entity
    │   ├── UnusableKey         a key value cannot identify an entity; carries its row
    │   └── LoadError           input records are malformed; carries their places
    ├── ExecutionError          a checked query could not be evaluated
    │   ├── TypeNotFound        the schema has no type of that name
    │   ├── EmbeddingError      a text has no usable vector; carries its reason
    │   ├── EngineUnsupported   the chosen engine cannot run the query; carries engine and what
    │   ├── QueryTimeout        a query took longer than it may; carries timeout_s
    │   └── QueryCancelled      somebody stopped a query before its end
    ├── StorageError            a step of the store failed and did not happen; carries its path
    │   ├── StorageRefused      the address, options or permissions are wrong; not retryable
    │   ├── StorageFull         a disk or a quota has no room for a write
    │   └── StorageUnknown      a write may have happened: read it back, or write it again
    ├── BranchRefused           a branch name or an operation on a branch is not allowed
    │   ├── BranchExists        a branch of that name is live
    │   ├── BranchNotFound      no live branch has that name
    │   └── BranchGone          the branch was deleted while a write was under way
    ├── CommitNotFound          no live branch holds that commit, version or time
    │   └── SnapshotGone        the commit was collected; carries the oldest version that is kept
    ├── TagExists               a tag of that name is there
    ├── TagNotFound             no tag has that name
    ├── HistoryGone             commits that a question depends on were collected
    ├── CommitHasNoParent       the first commit of a graph cannot be compared with a parent
    ├── ChangeCursorRejected    a cursor or page token does not belong to what is read
    ├── ChangeSchemaBoundary    a commit changed the schema so that entities cannot be compared
    ├── ChangeFeedGap           history was cleaned up before it was read; carries the commit
    ├── EntityNotFound          no entity of that type and id is there
    ├── GraphNotFound           no graph is at this address
    ├── GraphExists             a graph is already at this address
    ├── GraphClosed             the graph was closed in this process
    ├── BlobNotFound            no entity holds such a blob
    ├── RangeNotSatisfiable     a range lies outside its blob; carries start, end and length
    ├── Conflict                another commit changed what this write depends on
    ├── MergeConflict           two sides of a merge do not go together; carries its conflicts
    ├── PreconditionFailed      the head of the branch is not the expected commit
    ├── StagingExpired          a clean-up overtook a write that was stopped for long
    ├── InDoubt                 a commit may or may not have happened; carries its commit id
    ├── CorruptObject           a stored object cannot be read; carries its path
    ├── FormatTooNew            an object was written by a newer program
    ├── PipelineInvalid         a pipeline's definition cannot be run; carries its problems
    ├── PipelineNotFound        no pipeline of that name is defined
    ├── SecretMissing           a value that a pipeline takes from the environment is not set
    ├── SourceFailed            a source of a pipeline cannot be read now
    ├── SourceRefused           a source of a pipeline does not hold what its definition says
    ├── ApprovalRequired        a run would replace data, and nobody approved it
    ├── TooManyRejected         a run would leave out more rows than its target tolerates
    ├── TooFewRows              a run would load fewer rows than its target expects
    ├── RunFailed               targets of a run failed; carries the id of the run
    └── ResourceLimit           a bound was exceeded; carries resource, limit and actual

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
from omnigraph.errors.pipeline_errors import (
    ApprovalRequiredError,
    PipelineInvalidError,
    PipelineNotFoundError,
    Problem,
    RunFailedError,
    SecretMissingError,
    SourceFailedError,
    SourceRefusedError,
    TooFewRowsError,
    TooManyRejectedError,
)
from omnigraph.errors.query_errors import (
    CompileError,
    EmbeddingError,
    EngineUnsupportedError,
    ExecutionError,
    InvalidArgumentError,
    JavaMissingError,
    LibraryMissingError,
    ParameterError,
    QueryCancelledError,
    QueryNotFoundError,
    QueryTimeoutError,
    ResourceLimitError,
    SparkDriverLostError,
    SparkFailedError,
    SparkMissingError,
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
)
from omnigraph.errors.write_errors import (
    VIOLATIONS_SHOWN_MAX,
    ConflictError,
    EntityConflict,
    InDoubtError,
    KeyConflictError,
    LoadError,
    MergeConflictError,
    MigrationUnsupportedError,
    PreconditionFailedError,
    StagingExpiredError,
    UnusableKeyError,
    Violation,
    WriteRefusedError,
    format_violations,
)

__all__ = [
    "VIOLATIONS_SHOWN_MAX",
    "ApprovalRequiredError",
    "BlobNotFoundError",
    "BranchExistsError",
    "BranchGoneError",
    "BranchNotFoundError",
    "BranchRefusedError",
    "ChangeCursorRejectedError",
    "ChangeFeedGapError",
    "ChangeSchemaBoundaryError",
    "CommitHasNoParentError",
    "CommitNotFoundError",
    "CompileError",
    "ConflictError",
    "CorruptObjectError",
    "EmbeddingError",
    "EngineUnsupportedError",
    "EntityConflict",
    "EntityNotFoundError",
    "ExecutionError",
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
    "OmnigraphError",
    "ParameterError",
    "PipelineInvalidError",
    "PipelineNotFoundError",
    "PreconditionFailedError",
    "Problem",
    "QueryCancelledError",
    "QueryNotFoundError",
    "QueryTimeoutError",
    "RangeNotSatisfiableError",
    "ResourceLimitError",
    "RunFailedError",
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
    "StoredSchemaError",
    "TagExistsError",
    "TagNotFoundError",
    "TooFewRowsError",
    "TooManyRejectedError",
    "TypeNotFoundError",
    "UnknownParameterError",
    "UnusableKeyError",
    "Violation",
    "WriteRefusedError",
    "WrongQueryKindError",
    "format_violations",
]
