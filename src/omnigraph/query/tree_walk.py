"""Walking plans and typed expressions: the one place that knows their shape.

A plan is a chain of operators linked by `input`; it may be thousands long, so chains are walked in
loops. Only correlated blocks and expressions nest, and the parser bounds that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from omnigraph.query.logical_plan import (
    LEAVES,
    Aggregate,
    BlockColumn,
    CompareBlock,
    Exists,
    Expand,
    Extend,
    Filter,
    Having,
    Lateral,
    Limit,
    Operator,
    Outer,
    ParameterLimit,
    PathExpand,
    Project,
    Rank,
    ReadPlan,
    Scan,
    Sort,
    StageRows,
    TableFunction,
    Unit,
    Unnest,
)
from omnigraph.query.typed_tree import (
    AggregateValue,
    AllOf,
    AnyOf,
    Bm25Score,
    BoundValue,
    ColumnValue,
    Compare,
    Constant,
    EdgeValue,
    Expr,
    FunctionValue,
    GuardTest,
    IsNull,
    ListOf,
    Member,
    NearestScore,
    Negation,
    NodeValue,
    NowValue,
    ParameterValue,
    PathValue,
    Prefix,
    PropertyValue,
    RrfScore,
    ScoreValue,
    Substring,
    SystemValue,
    TextMatch,
)

Chain = tuple[Operator, ...]

# The operators that have a block.
BLOCKS = (Exists, CompareBlock, Lateral, BlockColumn)
# Those that end a stage of a pattern: what uses their variables comes after them.
STAGES = (Lateral, Unnest, TableFunction, Extend, BlockColumn, PathExpand)

# The fields of each expression that hold expressions: one, a tuple of them, or None.
CHILD_FIELDS: dict[type[Expr], tuple[str, ...]] = {
    Constant: (),
    ParameterValue: (),
    NowValue: (),
    PropertyValue: (),
    SystemValue: (),
    NodeValue: (),
    PathValue: (),
    EdgeValue: (),
    BoundValue: (),
    ColumnValue: (),
    ListOf: ("items",),
    FunctionValue: ("arguments",),
    Compare: ("left", "right"),
    Member: ("item", "items"),
    Substring: ("text", "part"),
    Prefix: ("text", "prefix"),
    IsNull: ("operand",),
    AllOf: ("operands",),
    AnyOf: ("operands",),
    Negation: ("operand",),
    TextMatch: ("query", "edits"),
    # Its conditions are about a variable of their own.
    GuardTest: (),
    NearestScore: ("query",),
    Bm25Score: ("query",),
    RrfScore: ("arms", "k"),
    ScoreValue: ("score",),
    AggregateValue: ("argument", "fraction", "order"),
}
_READS_VARIABLE = (
    PropertyValue,
    SystemValue,
    NodeValue,
    PathValue,
    EdgeValue,
    BoundValue,
    TextMatch,
    GuardTest,
    NearestScore,
    Bm25Score,
)


# ---- expressions ----


def is_variable_reader(expr: Expr) -> bool:
    """Whether an expression is about a variable itself, whatever is inside it."""
    return isinstance(expr, _READS_VARIABLE)


def iter_children(expr: Expr) -> Iterator[Expr]:
    """The expressions directly inside one."""
    for name in CHILD_FIELDS[type(expr)]:
        child: Expr | tuple[Expr, ...] | None = getattr(expr, name)
        if isinstance(child, tuple):
            yield from child
        elif child is not None:
            yield child


def map_expression(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with `change` applied to every part of it, innermost first."""
    return change(map_children(expr, lambda child: map_expression(child, change)))


def map_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with `change` applied to the expressions directly inside it."""
    changed: dict[str, Expr | tuple[Expr, ...]] = {}
    for name in CHILD_FIELDS[type(expr)]:
        child: Expr | tuple[Expr, ...] | None = getattr(expr, name)
        if isinstance(child, tuple):
            several = tuple(map(change, child))
            if any(new is not old for new, old in zip(several, child, strict=True)):
                changed[name] = several
        elif child is not None and (single := change(child)) is not child:
            changed[name] = single
    # mypy cannot tie the field names of a union to their values; the table above does.
    return replace(expr, **changed) if changed else expr  # type: ignore[arg-type]


def iter_subexpressions(expr: Expr) -> Iterator[Expr]:
    """The expression and everything inside it."""
    yield expr
    for child in iter_children(expr):
        yield from iter_subexpressions(child)


def variables_of(expr: Expr) -> frozenset[str]:
    """The variables an expression reads."""
    return frozenset(
        part.variable for part in iter_subexpressions(expr) if isinstance(part, _READS_VARIABLE)
    )


def rename_variables(expr: Expr, new_name: Callable[[str], str]) -> Expr:
    """The expression with other names for its variables."""

    def rename(part: Expr) -> Expr:
        if isinstance(part, _READS_VARIABLE):
            return replace(part, variable=new_name(part.variable))
        return part

    return map_expression(expr, rename)


# ---- operators ----


def chain_of(root: Operator) -> Chain:
    """The operators of a plan, leaf first."""
    found = [root]
    while not isinstance(found[-1], LEAVES):
        found.append(found[-1].input)
    return tuple(reversed(found))


def link_chain(chain: Iterable[Operator]) -> Operator:
    """The plan of a chain of operators, leaf first, whatever their inputs were."""
    root: Operator | None = None
    for operator in chain:
        if root is None or isinstance(operator, LEAVES):
            assert root is None, "only the first operator of a chain is a leaf"
            root = operator
        elif operator.input is not root:
            root = replace(operator, input=root)
        else:
            root = operator
    assert root is not None
    return root


def map_chains(root: Operator, change: Callable[[Chain], Iterable[Operator]]) -> Operator:
    """The plan with `change` applied to the chain of every block, then to its own.

    Plans of stages are plans of their own.
    """

    def with_block(operator: Operator) -> Operator:
        if not isinstance(operator, BLOCKS):
            return operator
        block = map_chains(operator.block, change)
        return operator if block is operator.block else replace(operator, block=block)

    return link_chain(change(tuple(map(with_block, chain_of(root)))))


def expressions_of(operator: Operator) -> tuple[Expr, ...]:
    """The expressions an operator evaluates itself, without those inside its block."""
    match operator:
        case Unit() | Outer() | StageRows() | Exists() | Limit() | ParameterLimit() | PathExpand():
            return ()
        case Scan() | Expand():
            return operator.conditions
        case Filter(condition=expr) | Unnest(items=expr) | Extend(value=expr) | Rank(score=expr):
            return (expr,)
        case TableFunction(call=call):
            return call.values
        case CompareBlock():
            argument = () if operator.argument is None else (operator.argument,)
            return (*argument, operator.value)
        case Having():
            return operator.conditions
        case BlockColumn(value=value):
            return () if value is None else (value,)
        case Aggregate() | Project():
            return tuple(column.value for column in operator.columns)
        case Sort() | Lateral():
            return tuple(key.value for key in operator.keys)
        case _:
            assert_never(operator)


def bound_variables_of(operator: Operator) -> frozenset[str]:
    """The variables an operator binds."""
    match operator:
        case StageRows():
            return frozenset({operator.variable, *(each.variable for each in operator.entities)})
        case Scan():
            return frozenset({operator.variable})
        case Expand():
            target = None if operator.target_is_bound else operator.target
            return frozenset(name for name in (target, operator.edge_variable) if name is not None)
        case Unnest(variable=variable, position=position):
            return frozenset({variable} if position is None else {variable, position})
        case TableFunction(variables=variables, joined=joined):
            return frozenset(each.name for each in variables) - frozenset(joined)
        case Extend() | BlockColumn():
            return frozenset({operator.variable})
        case PathExpand():
            path = frozenset({operator.variable, operator.length, operator.rank})
            return path if operator.target_is_bound else path | {operator.target}
        case Lateral():
            return frozenset().union(*map(bound_variables_of, chain_of(operator.block)))
        case _:
            return frozenset()


def map_stages(root: Operator, change: Callable[[ReadPlan], ReadPlan]) -> Operator:
    """The plan with `change` applied to the plans of its stages."""
    leaf, *others = chain_of(root)
    if not isinstance(leaf, StageRows):
        return root
    return link_chain([replace(leaf, plans=tuple(map(change, leaf.plans))), *others])


def used_variables_of(operator: Operator) -> frozenset[str]:
    """The variables an operator needs from its input."""
    used = set().union(*map(variables_of, expressions_of(operator)))
    match operator:
        case Expand() | PathExpand():
            used |= {operator.source, operator.target}
        case TableFunction():
            used |= set(operator.joined)
        case Exists() | CompareBlock() | Lateral() | BlockColumn():
            block = chain_of(operator.block)
            used |= set().union(*map(used_variables_of, block))
            used -= set().union(*map(bound_variables_of, block))
        case _:
            pass
    return frozenset(used - bound_variables_of(operator))
