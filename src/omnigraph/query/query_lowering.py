"""Checked queries to logical plans.

In: a checked query. Out: its plan, in the order the text suggests, before any rewrite. Guarantee:
no two variables of a plan have the same name, so a block variable that shares its name with one
outside, or with one of another block, gets another name here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from omnigraph.lang.diagnostics import Poll
from omnigraph.query import path_lowering, typed_reads
from omnigraph.query.group_lowering import GroupLowering
from omnigraph.query.logical_plan import (
    BlockColumn,
    CompareBlock,
    Exists,
    Expand,
    Extend,
    Filter,
    Lateral,
    Leaf,
    Limit,
    Operator,
    Outer,
    ParameterLimit,
    PathExpand,
    Plan,
    Project,
    Rank,
    ReadPlan,
    ResultColumn,
    Sort,
    StageEntity,
    StageRows,
    TableFunction,
    Unit,
    Unnest,
)
from omnigraph.query.pattern_assembly import (
    NO_INPUT,
    PatternNode,
    PatternParts,
    Test,
)
from omnigraph.query.pattern_stages import Step, assemble_stages
from omnigraph.query.tie_breaks import (
    iter_lateral_patterns,
    list_pattern_ties,
    list_tiebreak_values,
)
from omnigraph.query.tree_walk import rename_variables
from omnigraph.query.typed_reads import (
    GRAPH_COLUMNS,
    AggregateBlock,
    Binding,
    CarriedEntity,
    CheckedQuery,
    Condition,
    ExistsBlock,
    ForEach,
    ForTable,
    LateralBlock,
    Let,
    OrderKey,
    PathMatch,
    Pattern,
    Read,
    Stage,
    Traversal,
)
from omnigraph.query.typed_tree import (
    STRING,
    AggregateValue,
    Expr,
    Mutation,
    NearestScore,
    NodeValue,
    ParameterValue,
    RrfScore,
    Score,
    SystemName,
    SystemValue,
)
from omnigraph.schema.type_sets import is_type_set


def lower_query(checked: CheckedQuery, poll: Poll = lambda: None) -> Plan:
    """The plan of a checked query; a mutation is its own plan."""
    match checked:
        case Read():
            return _lower_read(checked, poll)
        case Mutation():
            return checked
        case _:
            assert_never(checked)


def _lower_read(read: Read, poll: Poll) -> ReadPlan:
    return _lower_stage(read, _NameScope({}, poll), read.input)[0]


def _lower_stage(
    read: Read, names: _NameScope, source: Stage | None
) -> tuple[ReadPlan, _NameScope]:
    """The plan of a read, and the names of its variables; `names` has those that were given."""
    leaf, start = _lower_start(source, names)
    scope = start.enter(read.pattern)
    matched = _lower_pattern(read.pattern, leaf, scope)
    renamed = _rename_read(read, scope) if scope.is_renamed else read
    ties: list[Expr] = []
    if read.order or read.rank is not None or read.is_aggregated:
        ties += map(scope.rename_expression, list_tiebreak_values(read))
    lower = _lower_aggregated if read.is_aggregated else _lower_rows
    root = lower(renamed, matched, ties)
    plan = ReadPlan(
        name=read.name,
        parameters=read.parameters,
        root=root,
        columns=_list_result_columns(read),
        is_ordered=bool(read.order) or read.rank is not None,
        open_limit=_find_open_limit(root),
        after=read.after,
        has_total=read.has_total,
        is_graph=read.is_graph,
    )
    return plan, scope


def _list_result_columns(read: Read) -> tuple[ResultColumn, ...]:
    if read.is_graph:
        return tuple(ResultColumn(*each) for each in GRAPH_COLUMNS.items())
    return tuple(ResultColumn(column.name, column.type) for column in read.columns)


def _rename_read(read: Read, scope: _NameScope) -> Read:
    """What a read makes of its rows, in the names of the plan."""
    rename = scope.rename_expression
    rank = None if read.rank is None else rename(read.rank)
    assert rank is None or isinstance(rank, Score)
    return replace(
        read,
        columns=tuple(replace(each, value=rename(each.value)) for each in read.columns),
        having=tuple(map(rename, read.having)),
        rank=rank,
        order=tuple(replace(each, value=rename(each.value)) for each in read.order),
    )


# ---- stages ----


def _lower_start(stage: Stage | None, names: _NameScope) -> tuple[Unit | StageRows, _NameScope]:
    """The leaf of a read, and the names of the variables that its rows bind."""
    if stage is None:
        return Unit(), names.start_read({})
    lowered = [_lower_stage(_carry_ids(each, stage), names, each.input) for each in stage.reads]
    entities: list[StageEntity] = []
    for each in stage.entities:
        name = _name_entity(each, stage, lowered[0][1], {entity.variable for entity in entities})
        entities.append(StageEntity(each.name, name, each.types, each.is_edge, each.is_nullable))
    leaf = StageRows(
        tuple(plan for plan, _ in lowered),
        stage.operators,
        stage.variable,
        tuple(entities),
        stage.values,
    )
    return leaf, names.start_read({each.column: each.variable for each in entities})


def _carry_ids(read: Read, stage: Stage) -> Read:
    """A read whose entities are their ids; the order of rows is not carried, only what it cuts."""
    types = {
        each.name: STRING.as_nullable(each.is_nullable)
        for each in stage.entities
        # An id alone does not say which type of several.
        if each.is_edge or not is_type_set(each.types[0])
    }
    columns = tuple(
        replace(
            column,
            value=SystemValue(column.value.variable, SystemName.ID, types[column.name]),
            type=types[column.name],
        )
        if column.name in types and isinstance(column.value, NodeValue)
        else column
        for column in read.columns
    )
    is_cut = read.limit is not None or read.offset is not None
    return replace(read, columns=columns, order=read.order if is_cut else ())


def _name_entity(
    entity: CarriedEntity, stage: Stage, scope: _NameScope, given: Collection[str]
) -> str:
    """The name that an entity has already, unless several reads have it, or it is given."""
    value = next(each.value for each in stage.reads[0].columns if each.name == entity.name)
    assert isinstance(value, NodeValue | SystemValue)
    name = scope.resolve_name(value.variable)
    if len(stage.reads) > 1 or value.variable != entity.name or name in given:
        return scope.reserve_name(entity.name)
    return name


def _find_open_limit(root: Operator) -> ParameterLimit | None:
    """The limit of a plan that parameters give: nothing but columns is above it."""
    top = root.input if isinstance(root, Project) else root
    return top if isinstance(top, ParameterLimit) else None


def _lower_rows(read: Read, matched: Operator, ties: Sequence[Expr]) -> Operator:
    keys = read.order
    for condition in read.having:
        matched = Filter(matched, condition)
    if read.rank is not None:
        matched = _add_rank(read, matched, read.rank)
        is_descending = not isinstance(read.rank, NearestScore)
        keys = (OrderKey(read.rank, is_descending), *keys)
    if keys:
        matched = _add_sort(matched, keys, ties)
    return Project(_add_limit(matched, read), read.columns)


def _lower_aggregated(read: Read, matched: Operator, ties: Sequence[Expr]) -> Operator:
    if read.rank is not None:
        matched = _add_rank(read, matched, read.rank)
    if isinstance(read.rank, NearestScore):
        # Only `nearest` selects: its nearest rows feed the aggregate.
        matched = _add_limit(
            _add_sort(matched, (OrderKey(read.rank),), ties),
            replace(read, offset=None, after=None),
        )
    grouping = GroupLowering(read, ties)
    root = _add_limit(grouping.lower_groups(matched), read)
    return grouping.project_groups(root)


def _add_rank(read: Read, matched: Operator, score: Score) -> Rank:
    window = None
    if isinstance(score, RrfScore) and isinstance(read.limit, int):
        window = read.limit + (read.offset if isinstance(read.offset, int) else 0)
    return Rank(matched, score, window)


def _add_sort(matched: Operator, keys: tuple[OrderKey, ...], ties: Sequence[Expr]) -> Sort:
    return Sort(matched, (*keys, *map(OrderKey, ties)))


def _add_limit(operator: Operator, read: Read) -> Operator:
    count, offset = read.limit, read.offset
    if isinstance(count, ParameterValue) or isinstance(offset, ParameterValue):
        return ParameterLimit(operator, count, offset, read.after)
    if count is None and not offset:
        return operator
    return Limit(operator, count, offset or 0, read.after)


def _iter_values(pattern: Pattern) -> Iterator[str]:
    """The variables that clauses of a pattern bind to values."""
    for clause in pattern.clauses:
        if isinstance(clause, Let | ForEach | typed_reads.BlockColumn):
            yield clause.variable
        if isinstance(clause, ForEach) and clause.position is not None:
            yield clause.position
        if isinstance(clause, ForTable):
            yield from (each.name for each in clause.introduced)
        if isinstance(clause, PathMatch):
            yield from path_lowering.list_path_values(clause)


# ---- patterns ----


@dataclass(frozen=True, slots=True)
class _NameScope:
    """The plan's name for each variable that a pattern or one around it introduces."""

    names: dict[str, str]
    poll: Poll
    outer: _NameScope | None = None
    is_renamed: bool = False
    # How often each name was introduced so far, in all scopes of the plan.
    taken: Counter[str] = field(default_factory=Counter)

    def enter(self, pattern: Pattern) -> _NameScope:
        """The scope inside a pattern and its lateral blocks; a name that is taken gets a suffix."""
        own = [
            name
            for each in (pattern, *iter_lateral_patterns(pattern))
            for name in (*dict(each.nodes), *dict(each.edges), *_iter_values(each))
        ]
        names = {name: self.reserve_name(name) for name in own}
        is_renamed = self.is_renamed or any(name != names[name] for name in own)
        return _NameScope(names, self.poll, self, is_renamed, self.taken)

    def start_read(self, names: dict[str, str]) -> _NameScope:
        """The scope of a read whose rows bind nothing but some variables."""
        is_renamed = any(name != given for name, given in names.items())
        return _NameScope(names, self.poll, None, is_renamed, self.taken)

    def reserve_name(self, name: str) -> str:
        """A name that no other variable of the plan has."""
        self.taken[name] += 1
        return name if self.taken[name] == 1 else f"{name}#{self.taken[name]}"

    def find(self, variable: str) -> str | None:
        """The plan's name of a variable, or None if nothing introduces it."""
        scope: _NameScope | None = self
        while scope is not None:
            if variable in scope.names:
                return scope.names[variable]
            scope = scope.outer
        return None

    def resolve_name(self, variable: str) -> str:
        """The plan's name of a variable."""
        return self.find(variable) or variable

    def rename_expression(self, expr: Expr) -> Expr:
        """An expression in the plan's names."""
        return rename_variables(expr, self.resolve_name) if self.is_renamed else expr


def _lower_pattern(pattern: Pattern, leaf: Leaf, scope: _NameScope) -> Operator:
    types = dict(pattern.nodes)
    # Declared variables come first: a group starts at the first of its bindings.
    declared = [each.variable for each in pattern.clauses if isinstance(each, Binding)]
    conditions: dict[str, list[Expr]] = {name: [] for name in (*declared, *types) if name in types}
    traversals: list[Expand] = []
    tests: list[Test] = []
    steps: list[Step] = []
    for clause in pattern.clauses:
        scope.poll()
        match clause:
            case Binding(variable=variable):
                matches = map(scope.rename_expression, clause.conditions)
                if variable in types:
                    conditions[variable] += matches
                else:
                    tests += (Filter(NO_INPUT, condition) for condition in matches)
            case Traversal():
                traversals.append(_lower_traversal(clause, scope))
            case Condition():
                tests.append(Filter(NO_INPUT, scope.rename_expression(clause.value)))
            case ExistsBlock() | AggregateBlock():
                tests.append(_lower_block(clause, scope))
            case LateralBlock():
                steps.append(_lower_lateral(clause, scope))
            case Let() | ForEach() | ForTable() | PathMatch():
                steps.append(_lower_value(clause, scope))
            case typed_reads.BlockColumn():
                steps.append(_lower_block_column(clause, scope))
            case _:
                assert_never(clause)
    nodes = tuple(
        PatternNode(scope.resolve_name(variable), types[variable], tuple(matches))
        for variable, matches in conditions.items()
    )
    parts = PatternParts(nodes, tuple(traversals), tuple(tests))
    return assemble_stages(leaf, *path_lowering.release_targets(parts, steps))


def _lower_value(
    clause: Let | ForEach | ForTable | PathMatch, scope: _NameScope
) -> Extend | Unnest | TableFunction | PathExpand:
    match clause:
        case PathMatch():
            return path_lowering.lower_path(clause, scope.resolve_name)
        case ForTable(call=call, variables=variables, joined=joined):
            named = tuple(replace(each, name=scope.resolve_name(each.name)) for each in variables)
            known = tuple(map(scope.resolve_name, joined))
            return TableFunction(NO_INPUT, call, named, known)
        case Let(variable=variable, value=value):
            name = scope.resolve_name(variable)
            return Extend(NO_INPUT, name, scope.rename_expression(value))
        case ForEach(variable=variable, position=position, items=items):
            name = scope.resolve_name(variable)
            place = None if position is None else scope.resolve_name(position)
            return Unnest(NO_INPUT, name, place, scope.rename_expression(items))


def _lower_block_column(block: typed_reads.BlockColumn, outer: _NameScope) -> BlockColumn:
    scope = outer.enter(block.pattern)
    inner = _lower_pattern(block.pattern, Outer(), scope)
    value = block.value
    if value is not None:
        if value.is_ordered:
            ties = list_pattern_ties(block.pattern)
            value = replace(
                value,
                order=(*value.order, *ties),
                is_descending=(*value.is_descending, *(False for _ in ties)),
            )
        renamed = scope.rename_expression(value)
        assert isinstance(renamed, AggregateValue)
        value = renamed
    return BlockColumn(NO_INPUT, inner, outer.resolve_name(block.variable), value)


def _lower_lateral(block: LateralBlock, scope: _NameScope) -> Lateral:
    """A block whose variables belong to the scope around it."""
    keys: tuple[OrderKey, ...] = ()
    if block.limit is not None or block.offset:
        ties = map(OrderKey, list_pattern_ties(block.pattern))
        keys = tuple(
            replace(key, value=scope.rename_expression(key.value)) for key in (*block.keys, *ties)
        )
    inner = _lower_pattern(block.pattern, Outer(), scope)
    return Lateral(NO_INPUT, inner, block.is_optional, keys, block.limit, block.offset)


def _lower_block(block: ExistsBlock | AggregateBlock, outer: _NameScope) -> Exists | CompareBlock:
    scope = outer.enter(block.pattern)
    inner = _lower_pattern(block.pattern, Outer(), scope)
    match block:
        case ExistsBlock():
            return Exists(NO_INPUT, inner, block.is_negated)
        case AggregateBlock():
            argument = None if block.argument is None else scope.rename_expression(block.argument)
            return CompareBlock(
                NO_INPUT,
                inner,
                block.function,
                argument,
                block.op,
                outer.rename_expression(block.value),
            )
        case _:
            assert_never(block)


def _lower_traversal(traversal: Traversal, scope: _NameScope) -> Expand:
    edge = traversal.edge_variable
    return Expand(
        NO_INPUT,
        source=scope.resolve_name(traversal.source),
        source_type=traversal.source_type,
        steps=traversal.steps,
        target=scope.resolve_name(traversal.target),
        target_type=traversal.target_type,
        is_undirected=traversal.is_undirected,
        edge_variable=None if edge is None else scope.resolve_name(edge),
        is_selection=traversal.is_selection,
        minimum=traversal.minimum,
        maximum=traversal.maximum,
    )
