"""Every error the library raises, in one tree.

    OmnigraphError
    ├── CompileError            a schema or query text has diagnostics of severity error
    ├── QueryNotFound           no query of that name is in the text
    ├── ParameterError          a parameter is missing, unknown in shape, or of the wrong type
    ├── MigrationUnsupported    the planned schema change cannot be applied
    ├── StoredSchemaError       a graph's accepted schema cannot be read by this program
    ├── WriteRefused            a write breaks a rule of the schema; nothing was written
    │   ├── KeyConflict         a strict insert met an existing entity
    │   └── LoadError           an input record is malformed; carries its line or record number
    ├── ExecutionError          a checked query could not be evaluated
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


class LoadError(WriteRefused):
    """An input record that cannot be read; `record` counts from 1."""

    code = "load_error"

    def __init__(self, message: str, *, record: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.record = record


class ExecutionError(OmnigraphError):
    """A checked query that could not be evaluated."""

    code = "execution_error"


class ResourceLimit(OmnigraphError):
    """A bound that was exceeded before anything durable happened."""

    code = "resource_limit"

    def __init__(self, resource: str, *, limit: int, actual: int, hint: str | None = None) -> None:
        super().__init__(f"{resource} is limited to {limit}, this needs {actual}", hint=hint)
        self.resource = resource
        self.limit = limit
        self.actual = actual
