"""What decides between rows that an order leaves equal: ids, and then values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.query import path_lowering
from omnigraph.query.typed_reads import (
    CarriedEntity,
    ForEach,
    ForTable,
    LateralBlock,
    Pattern,
    Read,
)
from omnigraph.query.typed_table_calls import TableVariable
from omnigraph.query.typed_tree import (
    ANONYMOUS_PREFIX,
    I64,
    BoundValue,
    Expr,
    NodeValue,
    SystemName,
    SystemValue,
    element_type_of,
)
from omnigraph.schema.type_sets import is_type_set, list_member_types


def list_tiebreak_values(read: Read) -> tuple[Expr, ...]:
    """What orders equal rows: ids of named variables by name, of anonymous endpoints, then values.

    A value that is computed from the others orders nothing more. Rows of combined reads have
    nothing but columns, which order them from left to right.
    """
    stage = read.input
    if stage is not None and stage.operators:
        return tuple(
            SystemValue(column.value.variable, SystemName.ID)
            if isinstance(column.value, NodeValue) and not is_type_set(column.value.type.type_name)
            else column.value
            for column in read.columns
        )
    if stage is None:
        return list_pattern_ties(read.pattern)
    values = sorted(stage.values, key=lambda value: value.property)
    return (*list_pattern_ties(read.pattern, stage.entities), *values)


def list_pattern_ties(
    pattern: Pattern, carried: Sequence[CarriedEntity] = ()
) -> tuple[SystemValue | BoundValue, ...]:
    """Those of the variables of a pattern, and of entities that come with its rows."""
    patterns = [pattern, *iter_lateral_patterns(pattern)]
    types = dict(edge for each in patterns for edge in each.edges)
    types |= {name: list_member_types(own) for each in patterns for name, own in each.nodes}
    for each in carried:
        types[each.name] = each.types if each.is_edge else list_member_types(each.types[0])
    nodes = [variable for each in patterns for variable, _ in each.nodes]
    nodes += (each.name for one in patterns for each in _iter_table_nodes(one))
    anonymous = [variable for variable in nodes if variable.startswith(ANONYMOUS_PREFIX)]
    named = sorted({*nodes, *types} - set(anonymous))
    values: list[SystemValue | BoundValue] = []
    for variable in (*named, *anonymous):
        # Ids are unique within a type only.
        if len(types.get(variable, ())) > 1:
            values.append(SystemValue(variable, SystemName.TYPE))
        values.append(SystemValue(variable, SystemName.ID))
    items = [each for one in patterns for each in one.clauses if isinstance(each, ForEach)]
    bound = {each.variable: element_type_of(each.items) for each in items}
    bound |= {each.position: I64 for each in items if each.position is not None}
    values += path_lowering.list_path_ranks(each for one in patterns for each in one.clauses)
    values += (BoundValue(name, bound[name]) for name in sorted(bound))
    return tuple(values)


def iter_lateral_patterns(pattern: Pattern) -> Iterator[Pattern]:
    """The patterns of the lateral blocks of one, whose variables can be seen after them."""
    for clause in pattern.clauses:
        if isinstance(clause, LateralBlock):
            yield clause.pattern
            yield from iter_lateral_patterns(clause.pattern)


def _iter_table_nodes(pattern: Pattern) -> Iterator[TableVariable]:
    """The node variables that tables bind."""
    for clause in pattern.clauses:
        if isinstance(clause, ForTable):
            yield from (each for each in clause.introduced if each.is_node)
