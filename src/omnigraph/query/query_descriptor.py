"""What a query returns, reads and writes, known before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, assert_never

from omnigraph.query.typed_reads import (
    GRAPH_COLUMNS,
    AggregateBlock,
    Binding,
    BlockColumn,
    CheckedQuery,
    Column,
    Condition,
    ExistsBlock,
    ForEach,
    ForTable,
    LateralBlock,
    Let,
    PathMatch,
    Pattern,
    Read,
    Traversal,
    iter_reads,
)
from omnigraph.query.typed_tree import (
    Action,
    AggregateValue,
    Bm25Score,
    DeleteBound,
    DeleteEach,
    DeleteEdges,
    DeleteNodes,
    InsertEdge,
    InsertNode,
    Mutation,
    NearestScore,
    NodeObject,
    NowValue,
    Parameter,
    PatternWrite,
    PropertyValue,
    RecordAction,
    RecordParameter,
    ResultType,
    RowsWrite,
    RrfScore,
    Statement,
    SystemValue,
    UpdateBound,
    UpdateEach,
    UpdateEdges,
    UpdateNodes,
    WriteEach,
)
from omnigraph.schema.catalog import Catalog, EdgeType
from omnigraph.schema.property_types import (
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
)

_KINDS = {
    Scalar.STRING: "string",
    Scalar.BLOB: "blob",
    Scalar.BOOL: "bool",
    Scalar.I32: "int",
    Scalar.U32: "int",
    Scalar.I64: "bigint",
    Scalar.U64: "bigint",
    Scalar.F32: "float",
    Scalar.F64: "float",
    Scalar.DATETIME: "datetime",
    Scalar.DATE: "date",
    Scalar.DURATION: "duration",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A named value of a kind: a column of a result, or a parameter."""

    name: str
    kind: str
    item_kind: str | None
    vector_dimension: int | None
    is_nullable: bool
    # Those of a record, for a list of records.
    fields: tuple[Field, ...] = ()

    def to_json(self) -> dict[str, Any]:  # Any: a JSON document
        """The field as a document; what does not apply is left out."""
        document: dict[str, Any] = {"name": self.name, "kind": self.kind}  # Any: JSON
        if self.item_kind is not None:
            document["item_kind"] = self.item_kind
        if self.vector_dimension is not None:
            document["vector_dim"] = self.vector_dimension
        document["nullable"] = self.is_nullable
        if self.fields:
            document["fields"] = [each.to_json() for each in self.fields]
        return document


@dataclass(frozen=True, slots=True)
class TypeUse:
    """A node or edge type that a query touches."""

    is_edge: bool
    type_name: str

    def to_json(self) -> dict[str, str]:
        """The use as a document."""
        return {"kind": "edge" if self.is_edge else "node", "type_name": self.type_name}


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The result columns of a query and the types it reads and writes, nodes before edges."""

    result: tuple[Field, ...]
    reads: tuple[TypeUse, ...]
    writes: tuple[TypeUse, ...]

    def to_json(self) -> dict[str, Any]:  # Any: a JSON document
        """The descriptor as a document."""
        return {
            "result": [field.to_json() for field in self.result],
            "reads": [use.to_json() for use in self.reads],
            "writes": [use.to_json() for use in self.writes],
        }


def describe_query(checked: CheckedQuery, catalog: Catalog) -> Descriptor:
    """The descriptor of a checked query."""
    match checked:
        case Read():
            result = tuple(map(_describe_column, checked.columns))
            if checked.is_graph:
                result = tuple(_build_field(*each) for each in GRAPH_COLUMNS.items())
            return Descriptor(result, list_used_types(checked, catalog), ())
        case Mutation():
            reads = [use for each in checked.statements for use in _iter_reads(each, catalog)]
            writes = [use for each in checked.statements for use in _iter_writes(each, catalog)]
            return Descriptor((), _sort_uses(reads), _sort_uses(writes))
        case _:
            assert_never(checked)


def list_used_types(read: Read, catalog: Catalog) -> tuple[TypeUse, ...]:
    """The types that the patterns of a read match, nodes before edges."""
    return _sort_uses(_iter_read_uses(read, catalog))


def list_matched_types(mutation: Mutation, catalog: Catalog) -> frozenset[str]:
    """The names of the types that the patterns of a mutation read."""
    reads = [each.source for each in mutation.statements if isinstance(each, PatternWrite)]
    return frozenset(use.type_name for read in reads for use in _iter_read_uses(read, catalog))


def describe_parameters(checked: CheckedQuery) -> tuple[Field, ...]:
    """The declared parameters, and after them those that are lists of records."""
    plain = tuple(map(_describe_parameter, checked.parameters))
    records = checked.records if isinstance(checked, Mutation) else ()
    return (*plain, *map(_describe_records, records))


def describe_property(name: str, type_: PropertyType) -> Field:
    """A property of a type, as a parameter of its type is described."""
    return _build_field(name, type_)


def _describe_records(parameter: RecordParameter) -> Field:
    fields = tuple(map(_describe_parameter, parameter.fields))
    return Field(parameter.name, "list", "object", None, False, fields)


def _describe_parameter(parameter: Parameter) -> Field:
    """One that may be left out is described as one that may be null."""
    is_nullable = True if parameter.default is not None else None
    return _build_field(parameter.name, parameter.type, is_nullable=is_nullable)


# ---- result ----


def _describe_column(column: Column) -> Field:
    is_nullable = True if isinstance(column.value, AggregateValue) else None
    return _build_field(_described_name_of(column), column.type, is_nullable=is_nullable)


def _build_field(name: str, type_: ResultType, *, is_nullable: bool | None = None) -> Field:
    if isinstance(type_, NodeObject):
        return Field(name, "object", None, None, type_.is_nullable or bool(is_nullable))
    nullable = type_.is_nullable if is_nullable is None else is_nullable
    match type_.value:
        case ScalarType(scalar):
            return Field(name, _KINDS[scalar], None, None, nullable)
        case EnumType():
            return Field(name, _KINDS[Scalar.STRING], None, None, nullable)
        case VectorType(dimension):
            return Field(name, "vector", None, dimension, nullable)
        case ListType(element):
            return Field(name, "list", _KINDS[element], None, nullable)
        case _:
            assert_never(type_.value)


def _described_name_of(column: Column) -> str:
    """The alias, or a name shorter than that of the column."""
    if column.alias is not None:
        return column.alias
    match column.value:
        case PropertyValue(_, name):
            return name
        case SystemValue(_, field):
            return f"@{field}"
        case NowValue():
            return "now"
        case AggregateValue(function):
            return str(function)
        case NearestScore():
            return "nearest"
        case Bm25Score():
            return "bm25"
        case RrfScore():
            return "rrf"
        case _:
            return column.name


# ---- types ----


def _sort_uses(uses: Iterable[TypeUse]) -> tuple[TypeUse, ...]:
    return tuple(sorted(set(uses), key=lambda use: (use.is_edge, use.type_name)))


def _build_node_use(type_name: str) -> TypeUse:
    return TypeUse(False, type_name)


def _list_edge_uses(edge: EdgeType) -> tuple[TypeUse, ...]:
    return TypeUse(True, edge.name), _build_node_use(edge.source), _build_node_use(edge.target)


def _iter_read_uses(read: Read, catalog: Catalog) -> Iterator[TypeUse]:
    for each in iter_reads(read):
        yield from _iter_pattern_uses(each.pattern, catalog)


def _iter_pattern_uses(pattern: Pattern, catalog: Catalog) -> Iterator[TypeUse]:
    for clause in pattern.clauses:
        match clause:
            case Binding():
                yield _build_node_use(clause.type_name)
            case Traversal():
                yield from (
                    _build_node_use(clause.source_type),
                    _build_node_use(clause.target_type),
                )
                for step in clause.steps:
                    yield from _list_edge_uses(catalog.edges[step.edge_type])
            case ExistsBlock() | AggregateBlock() | LateralBlock() | BlockColumn():
                yield from _iter_pattern_uses(clause.pattern, catalog)
            case ForTable() | PathMatch():
                yield from _iter_walk_uses(clause, catalog)
            case Condition() | Let() | ForEach():
                pass
            case _:
                assert_never(clause)


def _iter_walk_uses(clause: ForTable | PathMatch, catalog: Catalog) -> Iterator[TypeUse]:
    """The types of a graph that is walked."""
    match clause:
        case ForTable(call=call):
            nodes, edges = call.node_types, tuple(each.edge_type for each in call.edges)
        case PathMatch(type=path):
            nodes, edges = path.node_types, path.edge_types
    yield from map(_build_node_use, nodes)
    for name in edges:
        yield from _list_edge_uses(catalog.edges[name])


def _iter_writes(statement: Statement, catalog: Catalog) -> Iterator[TypeUse]:
    match statement:
        case InsertNode() | UpdateNodes():
            yield _build_node_use(statement.type_name)
        case DeleteNodes(type_name=type_name):
            yield from _iter_deleted(type_name, catalog)
        case InsertEdge() | UpdateEdges() | DeleteEdges():
            yield TypeUse(True, statement.type_name)
        case PatternWrite() | RowsWrite():
            for action in statement.actions:
                yield from _iter_action_writes(action, catalog)
        case _:
            assert_never(statement)


def _iter_deleted(type_name: str, catalog: Catalog) -> Iterator[TypeUse]:
    """A node type, and the edge types whose edges end with its nodes."""
    yield _build_node_use(type_name)
    for edge in catalog.edges.values():
        if type_name in (edge.source, edge.target):
            yield TypeUse(True, edge.name)


def _iter_action_writes(action: Action | RecordAction, catalog: Catalog) -> Iterator[TypeUse]:
    match action:
        case DeleteEach(type_name, False):
            yield from _iter_deleted(type_name, catalog)
        case UpdateEach(type_name, is_edge) | DeleteEach(type_name, is_edge):
            yield TypeUse(is_edge, type_name)
        case WriteEach(type_name, ends):
            yield TypeUse(ends is not None, type_name)
        case DeleteBound(_, types, False):
            for name in types:
                yield from _iter_deleted(name, catalog)
        case UpdateBound(_, types, is_edge) | DeleteBound(_, types, is_edge):
            yield from (TypeUse(is_edge, name) for name in types)
        case _:
            assert_never(action)


def _iter_reads(statement: Statement, catalog: Catalog) -> Iterator[TypeUse]:
    yield from _iter_writes(statement, catalog)
    match statement:
        case InsertEdge(type_name):
            yield from _list_edge_uses(catalog.edges[type_name])
        case PatternWrite(source, actions):
            yield from _iter_read_uses(source, catalog)
            for action in actions:
                if isinstance(action, WriteEach) and action.ends is not None:
                    yield from _list_edge_uses(catalog.edges[action.type_name])
