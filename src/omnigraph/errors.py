"""Every error the library raises, in one tree.

    OmnigraphError
    ├── CompileError            a schema or query text has diagnostics of severity error
    ├── QueryNotFound           no query of that name is in the text
    ├── WrongQueryKind          a mutation was to be queried, or a read to mutate
    ├── ParameterError          a parameter is missing, unknown in shape, or of the wrong type
    ├── InvalidArgument         an argument of a call has no meaning; carries its name
    ├── MigrationUnsupported    the planned schema change cannot be applied
    ├── StoredSchemaError       a graph's accepted schema cannot be read by this program
    ├── WriteRefused            a write breaks a rule of the schema; carries its violations
    │   ├── KeyConflict         a strict insert met an existing entity
    │   ├── UnusableKey         a key value cannot identify an entity; carries its row
    │   └── LoadError           input records are malformed; carries their places
    ├── ExecutionError          a checked query could not be evaluated
    │   └── TypeNotFound        the schema has no type of that name
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
    ├── GraphClosed             the graph was closed in this process
    ├── BlobNotFound            no entity holds such a blob
    ├── RangeNotSatisfiable     a range lies outside its blob; carries start, end and length
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
from dataclasses import dataclass
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


class WrongQueryKind(OmnigraphError):
    """A mutation that was to be queried, or a read that was to mutate."""

    code = "wrong_query_kind"

    def __init__(self, name: str, *, is_mutation: bool) -> None:
        kind, verb = ("a mutation", "mutate") if is_mutation else ("a read", "query")
        super().__init__(f"query '{name}' is {kind}", hint=f"run it with {verb}")
        self.name = name


class ParameterError(OmnigraphError):
    """A supplied parameter does not fit its declaration."""

    code = "parameter_error"


class InvalidArgument(OmnigraphError):
    """An argument of a call that has no meaning; `argument` names it."""

    code = "invalid_argument"

    def __init__(self, argument: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{argument}: {message}", hint=hint)
        self.argument = argument


class MigrationUnsupported(OmnigraphError):
    """A schema change that cannot be applied to existing data."""

    code = "migration_unsupported"


class StoredSchemaError(OmnigraphError):
    """An accepted schema whose stored form is damaged, or newer than this program."""

    code = "stored_schema_error"


# How many violations of one write are told one by one; the others are counted.
VIOLATIONS_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: `message` says it all, the other fields say it to a program.

    `place` is where the value came from, such as `people.jsonl line 7`; None for a mutation.
    """

    rule: str
    message: str
    type_name: str | None = None
    property: str | None = None
    value: str | None = None
    entity_id: str | None = None
    place: str | None = None

    def __str__(self) -> str:
        return self.message if self.place is None else f"{self.place}: {self.message}"


class WriteRefused(OmnigraphError):
    """A write that breaks rules of the schema; nothing was written.

    `violations` are the first of them, `count` is how many there are.
    """

    code = "write_refused"

    def __init__(
        self,
        message: str,
        *,
        violations: Sequence[Violation] = (),
        count: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.violations = tuple(violations)
        self.count = len(self.violations) if count is None else count


def told(violations: Sequence[Violation], count: int) -> str:
    """The message for some violations: one line each, and how many more there are."""
    shown = violations[:VIOLATIONS_SHOWN_MAX]
    more = count - len(shown)
    return "\n".join([*map(str, shown), *([f"… and {more} more"] if more else [])])


class KeyConflict(WriteRefused):
    """A strict insert met existing entities; `type_name` and `entity_id` name the first of them.

    `count` is how many there are, of which `others` are told too.
    """

    code = "key_conflict"

    def __init__(
        self,
        type_name: str,
        entity_id: str,
        *,
        place: str | None = None,
        others: Sequence[Violation] = (),
        count: int | None = None,
    ) -> None:
        violations = [self.violation(type_name, entity_id, place), *others]
        known = len(violations) if count is None else count
        super().__init__(
            told(violations, known),
            violations=violations,
            count=known,
            hint="use mode 'merge' to replace existing entities",
        )
        self.type_name = type_name
        self.entity_id = entity_id

    @staticmethod
    def violation(type_name: str, entity_id: str, place: str | None) -> Violation:
        """One entity that exists, and where another one of its id came from."""
        message = f"{type_name} '{entity_id}' already exists"
        return Violation(
            "key", message, type_name=type_name, value=entity_id, entity_id=entity_id, place=place
        )


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
    """Input that cannot be read; `record` is the first bad one from 1, or 0 for all of it."""

    code = "load_error"

    def __init__(
        self,
        message: str,
        *,
        record: int,
        violations: Sequence[Violation] = (),
        count: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, violations=violations, count=count, hint=hint)
        self.record = record


class ExecutionError(OmnigraphError):
    """A checked query that could not be evaluated."""

    code = "execution_error"


class TypeNotFound(ExecutionError):
    """The schema has no node or edge type of that name."""

    code = "type_not_found"

    def __init__(self, name: str, *, hint: str | None = None) -> None:
        super().__init__(f"unknown type '{name}'", hint=hint)
        self.name = name


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


class GraphClosed(OmnigraphError):
    """The graph was closed in this process, or belongs to another one."""

    code = "graph_closed"

    def __init__(self, uri: str, *, hint: str = "open it again") -> None:
        super().__init__(f"the graph at {uri} is closed", hint=hint)
        self.uri = uri


class BlobNotFound(OmnigraphError):
    """No entity of that id, or a property without a value."""

    code = "blob_not_found"

    def __init__(self, type_key: str, entity_id: str, property_name: str, *, reason: str) -> None:
        super().__init__(f"{type_key} '{entity_id}' has no blob '{property_name}': {reason}")
        self.type_key = type_key
        self.entity_id = entity_id
        self.property = property_name


class RangeNotSatisfiable(OmnigraphError):
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
