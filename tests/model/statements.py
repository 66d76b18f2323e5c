"""Statements of mutations: each changes the graph that the ones before it left."""

from collections.abc import Iterable, Mapping
from typing import Any

from dialects import each, from_json, stored
from model.expressions import At, Entity, Params, Row, has_fault
from model.store import Store, Type
from model.validation import Batch
from omnigraph.errors import (
    AmbiguousUpdateError,
    KeyConflictError,
    ParameterError,
    ValueFaultError,
    WriteRefusedError,
)
from omnigraph.query import typed_tree as typed
from omnigraph.query.ast import WriteVerb
from omnigraph.query.entity_conditions import compile_default
from omnigraph.query.tree_walk import variables_of
from omnigraph.schema.catalog import NodeType

Plain = (
    typed.InsertNode
    | typed.InsertEdge
    | typed.UpdateNodes
    | typed.UpdateEdges
    | typed.DeleteNodes
    | typed.DeleteEdges
)


def run(graph: Store, statement: Plain, params: Params) -> list[Batch]:
    """One statement, on what the ones before it left; the batches hold what it touched."""
    is_edge = isinstance(statement, typed.InsertEdge | typed.UpdateEdges | typed.DeleteEdges)
    type_: Type = (graph.catalog.edges if is_edge else graph.catalog.nodes)[statement.type_name]
    if isinstance(statement, typed.DeleteNodes | typed.DeleteEdges):
        return _delete(graph, type_, _selected(graph, type_, statement.conditions, params))
    computed = [each for each in statement.assignments if variables_of(each.value)]
    constant = [each for each in statement.assignments if each not in computed]
    if isinstance(statement, typed.UpdateNodes | typed.UpdateEdges):
        found = _selected(graph, type_, statement.conditions, params)
        try:
            values = _assigned(type_, constant, At({}, params))
        except WriteRefusedError as refusal:
            # The address of a blob matters only where there is an entity to have it.
            if found or "external URI" not in refusal.message:
                raise
        written = [
            node | values | _assigned(type_, computed, At({typed.ROW: node}, params))
            for node in found
        ]
    else:
        values = _assigned(type_, constant, At({}, params))
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
    return inserted(graph, type_, values, params)


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


def inserted(
    graph: Store, type_: Type, values: Entity, params: Params, *, id_: str | None = None
) -> Entity:
    """A new entity, which has the defaults of what it is given no value of."""
    for name, property_ in type_.properties.items():
        if name not in values and property_.must_be_given:
            raise WriteRefusedError(f"missing required property '{name}' of {type_.name}")
    _require_ends(type_, values)
    defaults = {name: each.default for name, each in type_.properties.items() if each.default}
    while waiting := defaults.keys() - values.keys():
        ready = [name for name in waiting if waiting.isdisjoint(defaults[name].members)]
        at = At({typed.ROW: dict.fromkeys(type_.properties) | values}, params)
        values = values | _assigned(type_, [compile_default(name, type_) for name in ready], at)
    return graph.entity(type_, values, id_=id_)


def _require_ends(type_: Type, values: Entity) -> None:
    if None in (values.get("@src", ""), values.get("@dst", "")):
        raise WriteRefusedError(f"cannot assign null to an end of {type_.name}")


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


def read_records(
    mutation: typed.Mutation,
    given: Mapping[str, Any],  # Any: JSON
) -> dict[str, list[Entity]]:
    """The records of the parameters that are lists of records."""
    return {wanted.name: _read_list(wanted, given) for wanted in mutation.records}


def _read_list(parameter: typed.RecordParameter, given: Mapping[str, Any]) -> list[Entity]:
    name, fields = parameter.name, {field.name: field.type for field in parameter.fields}
    if name not in given:
        raise ParameterError(f"parameter '{name}' not provided")
    if not isinstance(given[name], list):
        raise ParameterError(f"parameter '{name}': expected a list of records")
    records: list[Entity] = []
    for record in given[name]:
        if unknown := record.keys() - fields.keys():
            raise ParameterError(f"parameter '{name}': there is no field '{min(unknown)}'")
        if missing := [f for f, type_ in fields.items() if not (f in record or type_.is_nullable)]:
            raise ParameterError(f"parameter '{name}': '{missing[0]}' is missing")
        records.append({f: from_json(record.get(f), fields[f], is_strict=True) for f in fields})
    return records


def act(
    graph: Store,
    action: typed.Action | typed.RecordAction,
    rows: list[Row],
    params: Params,
) -> list[Batch]:
    """One action on the rows of a pattern, or on records."""
    if isinstance(action, typed.WriteEach):
        return [_write_each(graph, action, rows, params)]
    if isinstance(action, typed.UpdateEach | typed.DeleteEach):
        return _act_on_named(graph, action, rows, params)
    batches: list[Batch] = []
    rows = [row for row in rows if row[action.variable]["@id"] is not None]
    for name in action.types:
        type_ = (graph.catalog.edges if action.is_edge else graph.catalog.nodes)[name]
        own = [row for row in rows if row[action.variable].get("@type", name) == name]
        table = graph.table(type_)
        if isinstance(action, typed.DeleteBound):
            ids = {row[action.variable]["@id"] for row in own} & table.keys()
            batches += _delete(graph, type_, [table[id_] for id_ in sorted(ids)])
            continue
        given: dict[str, Entity] = {}
        for row in own:
            id_ = row[action.variable]["@id"]
            _agree(type_, given, id_, _assigned(type_, action.assignments, At(row, params)))
        written = [table[id_] | values for id_, values in given.items() if id_ in table]
        table.update({entity["@id"]: entity for entity in written})
        batches.append((type_, written))
    return batches


def _act_on_named(
    graph: Store,
    action: typed.UpdateEach | typed.DeleteEach,
    rows: list[Row],
    params: Params,
) -> list[Batch]:
    """What is done to the entity that each record names, if there is one."""
    type_: Type = (graph.catalog.edges if action.is_edge else graph.catalog.nodes)[action.type_name]
    table, given, named = graph.table(type_), dict[str, Entity](), dict[str, Entity]()
    for row in rows:
        wanted = {each.property: At(row, params)(each.value) for each in action.identity}
        for entity in table.values():
            if None not in wanted.values() and wanted.items() <= entity.items():
                named[entity["@id"]] = entity
                if isinstance(action, typed.UpdateEach):
                    at = At(row | {typed.ROW: entity}, params)
                    _agree(type_, given, entity["@id"], _assigned(type_, action.assignments, at))
    if isinstance(action, typed.DeleteEach):
        return _delete(graph, type_, [named[id_] for id_ in sorted(named)])
    written = [named[id_] | values for id_, values in given.items()]
    table.update({entity["@id"]: entity for entity in written})
    return [(type_, written)]


def _write_each(graph: Store, action: typed.WriteEach, rows: list[Row], params: Params) -> Batch:
    type_: Type = (graph.catalog.nodes if action.ends is None else graph.catalog.edges)[
        action.type_name
    ]
    given: dict[str, Entity] = {}
    repeated: str | None = None
    for number, row in enumerate(rows):
        at = At(_with_old(graph, type_, action, row, params), params)
        values = _assigned(type_, action.assignments, at)
        if action.ends is not None:
            values |= dict(zip(("@src", "@dst"), map(at, action.ends), strict=True))
            _require_ends(type_, values)
        id_ = graph.entity(type_, values)["@id"] if type_.key else str(number)
        repeated = repeated or (id_ if id_ in given else None)
        _agree(type_, given, id_, values)
    if action.verb is WriteVerb.CREATE and repeated is not None:
        raise KeyConflictError(type_.name, repeated)
    written = [
        _written(graph, type_, values, action.verb, ([], params)) for values in given.values()
    ]
    graph.table(type_).update({entity["@id"]: entity for entity in written})
    return type_, written


def _with_old(graph: Store, type_: Type, action: typed.WriteEach, row: Row, params: Params) -> Row:
    """A row with the entity that it writes, as it is, if values read that."""
    if not any(typed.ROW in variables_of(each.value) for each in action.assignments):
        return row
    at = At(row, params)
    keys = [each for each in action.assignments if each.property in (type_.key or ())]
    values = _assigned(type_, keys, at)
    values |= dict(zip(("@src", "@dst"), map(at, action.ends or ()), strict=False))
    entity = graph.entity(type_, values)
    nulls = dict.fromkeys(entity) | {"@id": entity["@id"]}
    return row | {typed.ROW: graph.table(type_).get(entity["@id"], nulls)}


def _agree(type_: Type, given: dict[str, Entity], id_: str, values: Entity) -> None:
    """Note the values for an entity, which earlier rows must not have given others."""
    for name, value in given.setdefault(id_, values).items():
        if values[name] != value:
            shown = repr(value), repr(values[name])
            raise AmbiguousUpdateError(type_.name, id_, name, values=shown)
