"""The bodies of answers about types, and about texts that are not run."""

from __future__ import annotations

from pydantic import Field

from omnigraph.wire.wire_answers import QueryParamOutput
from omnigraph.wire.wire_enums import EntityKindOutput, ParamKind
from omnigraph.wire.wire_model import Answer, JsonObject, UInt32, UInt64


class PropertyOutput(Answer):
    """A property of a type; `type` is spelled as in a schema."""

    name: str
    type: str
    kind: ParamKind
    item_kind: ParamKind | None = None
    vector_dim: UInt32 | None = None
    nullable: bool
    values: list[str] | None = Field(None, description="The words of an enum.")
    indexed: bool | None = None
    unique: bool | None = None
    embed_source: str | None = None
    description: str | None = None


class SchemaTypeOutput(Answer):
    """A type; `source` and `target` are the node types at the ends of an edge."""

    kind: EntityKindOutput
    name: str
    entity_count: UInt64
    key: list[str] | None = None
    source: str | None = None
    target: str | None = None
    description: str | None = None
    properties: list[PropertyOutput]


class SchemaTypesOutput(Answer):
    """The types that the caller may read: nodes before edges, each by name."""

    graph_commit_id: str
    types: list[SchemaTypeOutput]


class TextPositionOutput(Answer):
    """A place in a text: line and column from 1, byte from 0."""

    line: UInt64
    column: UInt64
    byte: UInt64


class DiagnosticOutput(Answer):
    """A finding about a text, from its first character to the one after its last."""

    code: str
    severity: str
    message: str
    position: TextPositionOutput
    end: TextPositionOutput
    fix: str | None = None
    suggestion: JsonObject | None = None


class CheckedQueryOutput(Answer):
    """A query of a text that has no error: what it takes and what it returns."""

    name: str
    mutation: bool
    params: list[QueryParamOutput]
    result: list[QueryParamOutput]
    nodes: dict[str, str] | None = Field(
        None, description="The types of the columns that hold whole nodes."
    )


class QueryCheckOutput(Answer):
    """What a compiler finds in a text; a query with an error is only in the diagnostics."""

    diagnostics: list[DiagnosticOutput]
    queries: list[CheckedQueryOutput]
