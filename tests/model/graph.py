"""The model of a graph: reads, mutations, loads and exports."""

from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple

from dialects import each, export_text, stored
from model import loading
from model.expressions import At, Entity, Params, Row, has_fault
from model.reading import Embed, Reader
from model.store import Store, Type, types_of
from model.validation import Batch, validate
from omnigraph.errors import (
    ExecutionError,
    KeyConflictError,
    ValueFaultError,
    WriteRefusedError,
)
from omnigraph.query import logical_plan as plan
from omnigraph.query import typed_tree as typed
from omnigraph.query.ast import WriteVerb
from omnigraph.query.limit_binding import bind_limit, read_limit
from omnigraph.query.tree_walk import variables_of
from omnigraph.schema.catalog import EdgeType, NodeType


class Affected(NamedTuple):
    """How many entities a mutation wrote or deleted."""

    nodes: int
    edges: int

    @property
    def changed(self) -> bool:
        """Whether there is anything to commit."""
        return self != (0, 0)


class Loaded(NamedTuple):
    """How many records of each type were loaded."""

    nodes: dict[str, int]
    edges: dict[str, int]


class ModelGraph(Store):
    """A graph in memory; a write happens completely or not at all."""

    def read(
        self,
        read: plan.ReadPlan,
        params: Params,
        *,
        now: int,
        embed: Embed | None = None,
        work_limit: int = 1_000_000,
    ) -> list[Row]:
        """The rows of a read: values by column name; a bare node is its entity."""
        reader = Reader(self, {**params, typed.NOW_NAME: now}, embed, work_limit)
        limit = read.open_limit
        read = read if limit is None else bind_limit(read, read_limit(limit, params))
        reader.check_options(read.root)
        return list(reader.rows(read.root, {}))

    def mutate(self, mutation: typed.Mutation, params: Params, *, now: int) -> Affected:
        """Run the statements in order and keep the result if it is valid."""
        after = self.copy()
        batches: list[Batch] = []
        for statement in mutation.statements:
            batches += _run(after, statement, {**params, typed.NOW_NAME: now})
        loaded = self._become(after, batches)
        return Affected(sum(loaded.nodes.values()), sum(loaded.edges.values()))

    def load(
        self,
        records: str,
        *,
        mode: Literal["overwrite", "append", "merge", "patch"],
        dialect: Literal["strict", "compatible"] = "strict",
    ) -> Loaded:
        """Write the records of a text and keep the result if it is valid."""
        after = self.copy()
        return self._become(
            after, loading.load(after, records, mode, is_strict=dialect == "strict")
        )

    def _become(self, after: Store, batches: list[Batch]) -> Loaded:
        validate(self, after, batches)
        self.nodes, self.edges = after.nodes, after.edges
        counts = Loaded({}, {})
        for type_, entities in batches:
            found = counts.edges if isinstance(type_, EdgeType) else counts.nodes
            found[type_.name] = found.get(type_.name, 0) + len(entities)
        return counts

    def export(self, types: Collection[str] | None = None) -> str:
        """One line per entity, of all types or some, that a load reads back unchanged."""
        if unknown := set(types or ()) - self.nodes.keys() - self.edges.keys():
            raise ExecutionError(f"unknown type '{min(unknown)}'")
        shown = [type_ for type_ in types_of(self.catalog) if type_.name in (types or [type_.name])]
        edges_first = sorted(shown, key=lambda type_: isinstance(type_, NodeType))
        tables = [(type_, self.table(type_)) for type_ in edges_first]
        return export_text(self.catalog, tables)


def _run(graph: Store, statement: typed.Statement, params: Params) -> list[Batch]:
    """One statement, on what the ones before it left; the batches hold what it touched."""
    is_edge = isinstance(statement, typed.InsertEdge | typed.UpdateEdges | typed.DeleteEdges)
    type_: Type = (graph.catalog.edges if is_edge else graph.catalog.nodes)[statement.type_name]
    if isinstance(statement, typed.DeleteNodes | typed.DeleteEdges):
        return _delete(graph, type_, _selected(graph, type_, statement.conditions, params))
    computed = [each for each in statement.assignments if variables_of(each.value)]
    constant = [each for each in statement.assignments if each not in computed]
    values = _assigned(type_, constant, At({}, params))
    if isinstance(statement, typed.UpdateNodes | typed.UpdateEdges):
        written = [
            node | values | _assigned(type_, computed, At({typed.ROW: node}, params))
            for node in _selected(graph, type_, statement.conditions, params)
        ]
    else:
        if isinstance(statement, typed.InsertEdge):
            at = At({}, params)
            values |= {"@src": at(statement.source), "@dst": at(statement.target)}
        written = [_written(graph, type_, values, statement.verb, (computed, params))]
    graph.table(type_).update({entity["@id"]: entity for entity in written})
    return [(type_, written)]


def _written(
    graph: Store,
    type_: Type,
    values: Entity,
    verb: WriteVerb,
    rest: tuple[list[typed.Assign], Params],
) -> Entity:
    """The entity that a verb makes of constant values, and of what reads the old entity."""
    computed, params = rest
    is_known = type_.key is not None and None not in (
        values.get("@src", ""),
        values.get("@dst", ""),
    )
    id_ = graph.entity(type_, values)["@id"] if is_known else None
    old = graph.table(type_).get(id_) if id_ is not None else None
    if verb is WriteVerb.CREATE and old is not None:
        raise KeyConflictError(type_.name, old["@id"])
    if verb is WriteVerb.UPSERT:
        nulls = dict.fromkeys(type_.properties)
        values |= _assigned(type_, computed, At({typed.ROW: old or nulls}, params))
        if old is not None:
            return old | values
    return _inserted(graph, type_, values)


def _selected(
    graph: Store, type_: Type, conditions: Iterable[typed.Expr], params: Params
) -> list[Entity]:
    rows = [(found, At({typed.ROW: found}, params)) for found in graph.table(type_).values()]
    return [found for found, at in rows if all(at(each) is True for each in conditions)]


def _assigned(type_: Type, assignments: Iterable[typed.Assign], at: At) -> Entity:
    values: Entity = {}
    for name, expr in ((assign.property, assign.value) for assign in assignments):
        value, property_type = at(expr), type_.properties[name].type
        if value is None and has_fault(expr, at):
            entity = at.row.get(typed.ROW, {})
            raise ValueFaultError(type_.name, name, entity_id=entity.get("@id"))
        if value is None and not property_type.is_nullable:
            raise WriteRefusedError(
                f"cannot assign null to non-nullable property '{name}' of {type_.name}"
            )
        try:
            if isinstance(value, tuple) and None in value:
                raise ValueError("null is not allowed as an element")
            values[name] = each(stored, value, property_type)
        except ValueError as failure:
            raise WriteRefusedError(f"{type_.name}.{name}: {failure}") from failure
    return values


def _inserted(graph: Store, type_: Type, values: Entity) -> Entity:
    for name, property_ in type_.properties.items():
        if name not in values and not property_.type.is_nullable:
            raise WriteRefusedError(f"missing required property '{name}' of {type_.name}")
    if None in (values.get("@src", ""), values.get("@dst", "")):
        raise WriteRefusedError(f"cannot assign null to an end of {type_.name}")
    return graph.entity(type_, values)


def _delete(graph: Store, type_: Type, entities: list[Entity]) -> list[Batch]:
    ids = {entity["@id"] for entity in entities}
    for id_ in ids:
        del graph.table(type_)[id_]
    batches: list[Batch] = [(type_, entities)]
    for edge_type in graph.catalog.edges.values() if isinstance(type_, NodeType) else ():
        sources = ids if edge_type.source == type_.name else set()
        targets = ids if edge_type.target == type_.name else set()
        edges = graph.table(edge_type).values()
        incident = [edge for edge in edges if edge["@src"] in sources or edge["@dst"] in targets]
        batches += _delete(graph, edge_type, incident)
    return batches
