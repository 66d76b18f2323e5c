"""Schema objects, each read once and named once when it cannot be."""

from __future__ import annotations

from omnigraph.engine.checks.numbers import SchemaIds
from omnigraph.engine.checks.problems import Problems
from omnigraph.execution.view import table_types_of
from omnigraph.storage import layout
from omnigraph.storage.objects import Objects
from omnigraph.versioning.schemas import Schemas, StoredSchema


class SchemaCheck:
    """The schemas that the records of a graph name."""

    def __init__(self, objects: Objects, problems: Problems) -> None:
        self._schemas = Schemas(objects)
        self._problems = problems
        self._numbers = SchemaIds()
        self._read: dict[str, StoredSchema | None] = {}
        self._types: dict[str, frozenset[str]] = {}

    def get(self, digest: str) -> StoredSchema | None:
        """A schema, or None when it cannot be read, which is reported."""
        if digest not in self._read:
            place = layout.build_schema_path(digest)
            stored = self._problems.attempt("schema", place, lambda: self._schemas.get(digest))
            self._read[digest] = stored
            for message in () if stored is None else self._numbers.find_conflicts(stored.accepted):
                self._problems.add("schema", place, message)
        return self._read[digest]

    def list_type_keys(self, digest: str) -> frozenset[str] | None:
        """The keys of the types that a schema gives tables to."""
        stored = self.get(digest)
        if stored is None:
            return None
        if digest not in self._types:
            self._types[digest] = frozenset(map(str, table_types_of(stored.catalog)))
        return self._types[digest]
