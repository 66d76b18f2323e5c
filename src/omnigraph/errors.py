"""Every error the library raises, in one tree.

    OmnigraphError
    ├── CompileError            a schema or query text has diagnostics of severity error
    ├── QueryNotFound           no query of that name is in the text
    ├── ParameterError          a parameter is missing, unknown in shape, or of the wrong type
    ├── MigrationUnsupported    the planned schema change cannot be applied
    ├── StoredSchemaError       a graph's accepted schema cannot be read by this program
    ├── WriteRefused            a write breaks a rule of the schema; nothing was written
    │   ├── KeyConflict         a strict insert met an existing entity
    │   ├── UnusableKey         a key value cannot identify an entity; carries its row
    │   └── LoadError           an input record is malformed; carries its line or record number
    ├── ExecutionError          a checked query could not be evaluated
    ├── StorageError            a step of the store failed and did not happen; carries its path
    │   ├── StorageRefused      the address, options or permissions are wrong; not retryable
    │   └── StorageUnknown      a write may have happened: read it back, or write it again
    ├── BranchRefused           a branch name or an operation on a branch is not allowed
    │   ├── BranchExists        a branch of that name is live
    │   ├── BranchNotFound      no live branch has that name
    │   └── BranchGone          the branch was deleted while a write was under way
    ├── CommitNotFound          no live branch holds that commit, version or time
    ├── GraphNotFound           no graph is at this address
    ├── GraphExists             a graph is already at this address
    ├── Conflict                another commit changed what this write depends on
    ├── PreconditionFailed      the head of the branch is not the expected commit
    ├── StagingExpired          written files waited too long for their commit
    ├── InDoubt                 a commit may or may not have happened; carries its commit id
    ├── CorruptObject           a stored object cannot be read; carries its path
    ├── FormatTooNew            an object was written by a newer program
    └── ResourceLimit           a bound was exceeded; carries resource, limit and actual

Every error has `code` (a stable snake_case word), `retryable`, and `hint` (what to do, or None).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from omnigraph.diagnostics import Diagnostic, Severity, render_human


class OmnigraphError(Exception):
    """The root of the tree."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CompileError(OmnigraphError):
    """A schema or query text that cannot be used; `diagnostics` say why, all of them."""

    code = "compile_error"

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        errors = [found for found in self.diagnostics if found.severity is Severity.ERROR]
        super().__init__("\n".join(render_human(found) for found in errors))


class QueryNotFound(OmnigraphError):
    """No query of that name is in the text."""

    code = "query_not_found"

    def __init__(self, name: str | None, *, hint: str | None = None) -> None:
        missing = "the text needs a query name" if name is None else f"query '{name}' not found"
        super().__init__(missing, hint=hint)
        self.name = name


class ParameterError(OmnigraphError):
    """A supplied parameter does not fit its declaration."""

    code = "parameter_error"


class MigrationUnsupported(OmnigraphError):
    """A schema change that cannot be applied to existing data."""

    code = "migration_unsupported"


class StoredSchemaError(OmnigraphError):
    """An accepted schema whose stored form is damaged, or newer than this program."""

    code = "stored_schema_error"


class WriteRefused(OmnigraphError):
    """A write that breaks a rule of the schema."""

    code = "write_refused"


class KeyConflict(WriteRefused):
    """A strict insert met an existing entity."""

    code = "key_conflict"

    def __init__(self, type_name: str, entity_id: str) -> None:
        super().__init__(
            f"{type_name} '{entity_id}' already exists",
            hint="use mode 'merge' to replace existing entities",
        )
        self.type_name = type_name
        self.entity_id = entity_id


class UnusableKey(WriteRefused):
    """A key value that cannot identify an entity; `row` counts from 0."""

    code = "unusable_key"

    def __init__(self, type_key: str, *, member: str, row: int, value: str) -> None:
        super().__init__(
            f"{type_key} row {row}: '{member}' is {value}, which cannot identify an entity",
            hint="give every key property a finite value",
        )
        self.type_key = type_key
        self.member = member
        self.row = row
        self.value = value


class LoadError(WriteRefused):
    """An input record that cannot be read; `record` counts from 1."""

    code = "load_error"

    def __init__(self, message: str, *, record: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.record = record


class ExecutionError(OmnigraphError):
    """A checked query that could not be evaluated."""

    code = "execution_error"


class StorageError(OmnigraphError):
    """A failed step of the store that did not happen; `operation` and `path` say which."""

    code = "storage_error"
    retryable = True

    def __init__(self, operation: str, path: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{operation} {path}: {reason}", hint=hint)
        self.operation = operation
        self.path = path
        self.reason = reason


class StorageRefused(StorageError):
    """A store that will say no again until its address, options or permissions change."""

    code = "storage_refused"
    retryable = False


class StorageUnknown(StorageError):
    """A write whose outcome cannot be known: its acknowledgement was lost."""

    code = "storage_unknown"


class BranchRefused(OmnigraphError):
    """A branch name or an operation on a branch that is not allowed."""

    code = "branch_refused"

    def __init__(self, message: str, *, branch: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.branch = branch


class BranchExists(BranchRefused):
    """A branch of that name is live."""

    code = "branch_exists"

    def __init__(self, branch: str) -> None:
        super().__init__(f"branch '{branch}' already exists", branch=branch)


class BranchNotFound(BranchRefused):
    """No live branch has that name."""

    code = "branch_not_found"

    def __init__(self, branch: str, *, hint: str | None = None) -> None:
        super().__init__(f"branch '{branch}' not found", branch=branch, hint=hint)


class BranchGone(BranchRefused):
    """The branch was deleted while a write was under way; nothing was written."""

    code = "branch_gone"

    def __init__(self, branch: str) -> None:
        super().__init__(
            f"branch '{branch}' was deleted",
            branch=branch,
            hint="open the branch again; a branch of the same name is a new one",
        )


class CommitNotFound(OmnigraphError):
    """No live branch holds that commit, version or time."""

    code = "commit_not_found"


class GraphNotFound(OmnigraphError):
    """No graph is at this address."""

    code = "graph_not_found"

    def __init__(self, uri: str) -> None:
        super().__init__(f"no graph at {uri}", hint="create one, or check the address")
        self.uri = uri


class GraphExists(OmnigraphError):
    """A graph is already at this address."""

    code = "graph_exists"

    def __init__(self, uri: str) -> None:
        super().__init__(f"a graph already exists at {uri}", hint="open it")
        self.uri = uri


class Conflict(OmnigraphError):
    """Another commit changed what this write depends on; nothing was written."""

    code = "conflict"
    retryable = True

    def __init__(
        self,
        message: str,
        *,
        type_key: str | None = None,
        entity_id: str | None = None,
        commit: str | None = None,
    ) -> None:
        super().__init__(message, hint="read the branch again and repeat the write")
        self.type_key = type_key
        self.entity_id = entity_id
        self.commit = commit


class PreconditionFailed(OmnigraphError):
    """The head of the branch is not the expected commit; nothing was written."""

    code = "precondition_failed"

    def __init__(self, branch: str, *, expected: str, actual: str) -> None:
        super().__init__(
            f"branch '{branch}' is at commit {actual}, not at {expected}",
            hint="read the branch again and decide on its new state",
        )
        self.branch = branch
        self.expected = expected
        self.actual = actual


class StagingExpired(OmnigraphError):
    """Written files that waited so long for their commit that they may have been collected."""

    code = "staging_expired"
    retryable = True


class InDoubt(OmnigraphError):
    """A commit that may or may not have happened; `commit` names it."""

    code = "in_doubt"

    def __init__(self, message: str, *, commit: str | None = None) -> None:
        super().__init__(message, hint="look the commit up by its id before repeating the write")
        self.commit = commit


class CorruptObject(OmnigraphError):
    """A stored object that cannot be read; `path` names it."""

    code = "corrupt_object"

    def __init__(self, path: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path}: {reason}", hint=hint)
        self.path = path
        self.reason = reason


class FormatTooNew(OmnigraphError):
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


class ResourceLimit(OmnigraphError):
    """A bound that was exceeded before anything durable happened."""

    code = "resource_limit"

    def __init__(self, resource: str, *, limit: int, actual: int, hint: str | None = None) -> None:
        super().__init__(f"{resource} is limited to {limit}, this needs {actual}", hint=hint)
        self.resource = resource
        self.limit = limit
        self.actual = actual
