"""Errors of storage: missing, unreadable or unreachable objects."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.errors.base_error import OmnigraphError


class StoredSchemaError(OmnigraphError):
    """An accepted schema whose stored form is damaged, or newer than this program."""

    code = "stored_schema_error"


class StorageError(OmnigraphError):
    """A failed step of the store that did not happen; `operation` and `path` say which."""

    code = "storage_error"
    retryable = True

    def __init__(self, operation: str, path: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{operation} {path}: {reason}", hint=hint)
        self.operation = operation
        self.path = path
        self.reason = reason


class StorageRefusedError(StorageError):
    """A store that will say no again until its address, options or permissions change."""

    code = "storage_refused"
    retryable = False


class StorageFullError(StorageError):
    """A disk or a quota without room for a write, which did not happen."""

    code = "storage_full"

    def __init__(self, operation: str, path: str, reason: str, *, hint: str | None = None) -> None:
        hint = hint or (
            "make room; `omnigraph cleanup --keep 1000 --grace 0s --confirm` removes what dead"
            " writers left, and releases all but the newest 1000 commits of each branch"
        )
        super().__init__(operation, path, reason, hint=hint)


class StorageUnknownError(StorageError):
    """A write whose outcome cannot be known: its acknowledgement was lost."""

    code = "storage_unknown"


class BranchRefusedError(OmnigraphError):
    """A branch name or an operation on a branch that is not allowed."""

    code = "branch_refused"

    def __init__(self, message: str, *, branch: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.branch = branch


class BranchExistsError(BranchRefusedError):
    """A branch of that name is live."""

    code = "branch_exists"

    def __init__(self, branch: str) -> None:
        super().__init__(f"branch '{branch}' already exists", branch=branch)


class BranchNotFoundError(BranchRefusedError):
    """No live branch has that name."""

    code = "branch_not_found"

    def __init__(self, branch: str, *, hint: str | None = None) -> None:
        super().__init__(f"branch '{branch}' not found", branch=branch, hint=hint)


class BranchGoneError(BranchRefusedError):
    """The branch was deleted while a write was under way; nothing was written."""

    code = "branch_gone"

    def __init__(self, branch: str) -> None:
        super().__init__(
            f"branch '{branch}' was deleted",
            branch=branch,
            hint="open the branch again; a branch of the same name is a new one",
        )


class CommitNotFoundError(OmnigraphError):
    """No live branch holds that commit, version or time."""

    code = "commit_not_found"


class SnapshotGoneError(CommitNotFoundError):
    """A commit that was collected: its record may be known, its entities are gone.

    `oldest` is the version of the oldest commit of the branch that can be read, if it is known.
    """

    code = "snapshot_gone"

    def __init__(self, message: str, *, oldest: int | None = None) -> None:
        hint = "ask for a newer commit; a tag keeps a commit from being collected"
        if oldest is not None:
            hint = f"the oldest version that is kept is {oldest}; a tag keeps a commit for good"
        super().__init__(message, hint=hint)
        self.oldest = oldest


class TagExistsError(OmnigraphError):
    """A tag of that name is there."""

    code = "tag_exists"

    def __init__(self, tag: str) -> None:
        super().__init__(f"tag '{tag}' already exists", hint="delete it first, or use another name")
        self.tag = tag


class TagNotFoundError(OmnigraphError):
    """No tag has that name."""

    code = "tag_not_found"

    def __init__(self, tag: str) -> None:
        super().__init__(f"tag '{tag}' not found", hint="look at `omnigraph tag list`")
        self.tag = tag


class HistoryGoneError(OmnigraphError):
    """Commits that a question depends on were collected."""

    code = "history_gone"

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="ask about newer commits; what was collected is gone")


class UnsupportedPlatformError(OmnigraphError, ImportError):
    """The package was imported on a platform that it does not support; `platform` names it."""

    code = "unsupported_platform"

    def __init__(self, platform: str) -> None:
        super().__init__(
            f"omnigraph does not run on {platform}: graphs on a local disk need POSIX locks and"
            " directory syncs",
            hint="use Linux: on Windows, WSL 2 or a container",
        )
        self.platform = platform


class GraphNotFoundError(OmnigraphError):
    """No graph is at this address."""

    code = "graph_not_found"

    def __init__(self, uri: str) -> None:
        super().__init__(f"no graph at {uri}", hint="create one, or check the address")
        self.uri = uri


class GraphExistsError(OmnigraphError):
    """A graph is already at this address."""

    code = "graph_exists"

    def __init__(self, uri: str) -> None:
        super().__init__(f"a graph already exists at {uri}", hint="open it")
        self.uri = uri


class GraphClosedError(OmnigraphError):
    """The graph was closed in this process, or belongs to another one."""

    code = "graph_closed"

    def __init__(self, uri: str, *, hint: str = "open it again") -> None:
        super().__init__(f"the graph at {uri} is closed", hint=hint)
        self.uri = uri


class BlobNotFoundError(OmnigraphError):
    """No entity of that id, or a property without a value."""

    code = "blob_not_found"

    def __init__(self, type_key: str, entity_id: str, property_name: str, *, reason: str) -> None:
        # A key of a type is its name after its kind, which is a word of storage.
        type_name = type_key.rpartition(":")[2]
        super().__init__(f"{type_name} '{entity_id}' has no blob '{property_name}': {reason}")
        self.type_key = type_key
        self.entity_id = entity_id
        self.property = property_name


class RangeNotSatisfiableError(OmnigraphError):
    """A range that lies outside its blob; it is half open."""

    code = "range_not_satisfiable"

    def __init__(self, start: int, end: int, *, length: int) -> None:
        super().__init__(
            f"bytes {start} to {end} are not in a blob of {length}",
            hint="ask for 0 <= start <= end <= size",
        )
        self.start = start
        self.end = end
        self.length = length


class CorruptObjectError(OmnigraphError):
    """A stored object that cannot be read; `path` names it."""

    code = "corrupt_object"

    def __init__(self, path: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path}: {reason}", hint=hint)
        self.path = path
        self.reason = reason


class FormatTooNewError(OmnigraphError):
    """An object written by a newer program than this one."""

    code = "format_too_new"

    def __init__(self, path: str, *, found: int, known: int) -> None:
        super().__init__(
            f"{path} has format {found}; this program reads up to {known}",
            hint="upgrade omnigraph to open this graph",
        )
        self.path = path
        self.found = found
        self.known = known


class UnknownFeatureError(OmnigraphError):
    """A graph with features that this program does not know; `features` are their names."""

    code = "unknown_feature"

    def __init__(self, path: str, *, features: Sequence[str]) -> None:
        super().__init__(
            f"{path} names features that this program does not know: {', '.join(features)}",
            hint="upgrade omnigraph to open this graph",
        )
        self.path = path
        self.features = tuple(features)
