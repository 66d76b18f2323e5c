"""How the parts of a query that fit one line are written, with the fewest parentheses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import assert_never

from omnigraph.lang.text_printer import quote_string
from omnigraph.query.ast import (
    AggregateBlock,
    AggregateCall,
    AllRows,
    And,
    AnyEdge,
    Arithmetic,
    ArithmeticOp,
    Binding,
    BlockValue,
    Bm25,
    BooleanLiteral,
    BranchCreate,
    BranchDelete,
    BranchList,
    BranchMerge,
    BranchStatement,
    Case,
    Clause,
    Comparison,
    Computation,
    DateLiteral,
    DateTimeLiteral,
    EdgeName,
    ExistsBlock,
    Expr,
    Filter,
    FloatLiteral,
    ForEach,
    ForTable,
    FunctionCall,
    HopBounds,
    Identifier,
    IntegerLiteral,
    LateralBlock,
    Let,
    ListLiteral,
    Literal,
    Membership,
    Minus,
    NamedArgument,
    NamedEdges,
    Nearest,
    Not,
    NotBlock,
    Now,
    NullLiteral,
    NullTest,
    Or,
    OrderKey,
    Parameter,
    PathClause,
    Projection,
    PropertyAccess,
    RankCall,
    ResetSetting,
    Rrf,
    SetSetting,
    Setting,
    Show,
    StringLiteral,
    SystemAccess,
    SystemField,
    TextPredicate,
    TextTest,
    Traversal,
    TypeTest,
    Variable,
)
from omnigraph.query.table_call_printer import print_edge_selection, print_for_table
from omnigraph.schema.ast import Name

Operation = Or | And | Not | Comparison | TextTest | Membership | NullTest | TypeTest

# How tightly an expression holds together; what binds looser than its place needs parentheses.
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGNED, _OPERAND = range(1, 9)
_SUMS = (ArithmeticOp.ADD, ArithmeticOp.SUBTRACT)
_PLAIN_NAME = re.compile(r"[a-z_][A-Za-z0-9_]*")
# Between two variables these words are operators.
_OPERATOR_WORDS = frozenset({"and", "or", "in", "not"})


def print_expr(expr: Expr) -> str:
    """An expression, so that reading it gives the same tree."""
    match expr:
        case (
            Or()
            | And()
            | Not()
            | Comparison()
            | TextTest()
            | Membership()
            | NullTest()
            | TypeTest()
        ):
            return _print_operation(expr)
        case Nearest() | Bm25() | Rrf() | AggregateCall() | TextPredicate() | Now():
            return _print_call(expr)
        case Variable() | PropertyAccess() | SystemAccess() | SystemField() | Identifier():
            return _print_name(expr)
        case FunctionCall() | Case() | Minus() | Arithmetic():
            return _print_computation(expr)
        case BlockValue():
            return _print_block_value(expr)
        case NullLiteral() | AllRows():
            return "null" if isinstance(expr, NullLiteral) else "*"
        case _:
            return _print_literal(expr)


# ---- expressions ----


def _print_operation(expr: Operation) -> str:
    match expr:
        case Or(operands):
            return " or ".join(_print_within(operand, _AND) for operand in operands)
        case And(operands):
            return " and ".join(_print_within(operand, _NOT) for operand in operands)
        case Not(operand):
            return f"not {_print_within(operand, _NOT)}"
        case Comparison(op, left, right):
            return f"{_print_within(left, _SUM)} {op} {_print_within(right, _SUM)}"
        case TextTest(op, left, right, is_call=True):
            return f"{op}({print_expr(left)}, {print_expr(right)})"
        case TextTest(op, left, right):
            return f"{_print_within(left, _SUM)} {op} {_print_within(right, _SUM)}"
        case Membership(item, items):
            return f"{_print_within(item, _SUM)} in {_print_within(items, _SUM)}"
        case NullTest(operand, is_negated):
            return f"{_print_within(operand, _SUM)} is {'not ' if is_negated else ''}null"
        case TypeTest(variable, types, is_negated):
            names = " | ".join(each.text for each in types)
            shown = f"({names})" if len(types) > 1 else names
            return f"${variable.name} is {'not ' if is_negated else ''}{shown}"
        case _:
            assert_never(expr)


def _print_computation(expr: Computation) -> str:
    match expr:
        case FunctionCall(name, arguments, options):
            written = [*map(print_expr, arguments), *map(_print_option, options)]
            return f"{name}({', '.join(written)})"
        case Case(branches, otherwise):
            parts = [f"{print_expr(test)}: {print_expr(value)}" for test, value in branches]
            parts += [] if otherwise is None else [f"else: {print_expr(otherwise)}"]
            return f"case {{ {', '.join(parts)} }}"
        case Minus(operand):
            return f"-{_print_within(operand, _OPERAND)}"
        case Arithmetic(op, left, right):
            own = _precedence_of(expr)
            return f"{_print_within(left, own)} {op} {_print_within(right, own + 1)}"
        case _:
            assert_never(expr)


def _print_option(option: NamedArgument) -> str:
    return f"{option.name.text}: {print_expr(option.value)}"


def _print_within(expr: Expr, tightness: int) -> str:
    text = print_expr(expr)
    return text if _precedence_of(expr) >= tightness else f"({text})"


def _precedence_of(expr: Expr) -> int:
    match expr:
        case Or():
            return _OR
        case And():
            return _AND
        case Not():
            return _NOT
        case TextTest(is_call=True):
            return _OPERAND
        case Comparison() | TextTest() | Membership() | NullTest() | TypeTest():
            return _COMPARISON
        case Arithmetic(op):
            return _SUM if op in _SUMS else _PRODUCT
        case Minus():
            return _SIGNED
        case _:
            return _OPERAND


def _print_call(expr: RankCall | AggregateCall | TextPredicate | Now) -> str:
    match expr:
        case Nearest(target, query, options):
            written = [print_expr(target), print_expr(query), *map(_print_option, options)]
            return f"nearest({', '.join(written)})"
        case Bm25(target, query):
            return f"bm25({print_expr(target)}, {print_expr(query)})"
        case Rrf(arms, k):
            # A rank call without the name would be one more arm.
            name = "k: " if isinstance(k, Nearest | Bm25) else ""
            last = [] if k is None else [name + print_expr(k)]
            return f"rrf({', '.join([*map(print_expr, arms), *last])})"
        case AggregateCall():
            return _print_aggregate(expr)
        case TextPredicate(function, target, query, edits):
            return f"{function}({_print_arguments(target, query, edits)})"
        case Now():
            return "now()"
        case _:
            assert_never(expr)


def _print_block_value(expr: BlockValue) -> str:
    if expr.call is not None:
        head = _print_aggregate(expr.call)
    else:
        head = "exists" if expr.function is None else str(expr.function)
    return f"{head} {{ {print_clauses(expr.clauses)} }}"


def _print_aggregate(call: AggregateCall) -> str:
    inner = ("distinct " if call.is_distinct else "") + _print_arguments(call.argument, call.second)
    if call.order:
        inner += f" order {{ {', '.join(map(print_order_key, call.order))} }}"
    if call.limit is not None:
        inner += f" limit {call.limit}"
    return f"{call.function}({inner})"


def _print_arguments(*arguments: Expr | None) -> str:
    return ", ".join(print_expr(argument) for argument in arguments if argument is not None)


def _print_name(expr: Variable | PropertyAccess | SystemAccess | SystemField | Identifier) -> str:
    match expr:
        case Variable(name):
            return f"${name}"
        case PropertyAccess(variable, name, is_optional):
            return f"${variable.name}.{name.text}{'?' if is_optional else ''}"
        case SystemAccess(variable, name):
            return f"${variable.name}.@{name.text}"
        case SystemField(name):
            return f"@{name}"
        case Identifier(name):
            return name
        case _:
            assert_never(expr)


def _print_literal(expr: Literal) -> str:
    match expr:
        case IntegerLiteral(value):
            return str(value)
        case FloatLiteral(text):
            return text
        case StringLiteral(value):
            return quote_string(value)
        case BooleanLiteral(value):
            return "true" if value else "false"
        case DateLiteral(text):
            return f"date({quote_string(text)})"
        case DateTimeLiteral(text):
            return f"datetime({quote_string(text)})"
        case ListLiteral(items):
            return f"[{', '.join(print_expr(item) for item in items)}]"
        case _:
            assert_never(expr)


# ---- clauses, items, parameters ----


def print_clauses(clauses: Iterable[Clause]) -> str:
    """The clauses of a block on one line."""
    return "; ".join(map(print_clause, clauses))


def print_clause(clause: Clause) -> str:
    """A clause on one line."""
    match clause:
        case Binding(matches=matches):
            members = ", ".join(
                f"{each.property.text}: {print_expr(each.value)}" for each in matches
            )
            return print_binding_head(clause) + (f" {{ {members} }}" if members else "")
        case Traversal():
            return print_traversal(clause)
        case Filter():
            return print_filter(clause)
        case Let(variable, value):
            return f"let ${variable.name} = {print_expr(value)}"
        case ForEach(variable, position, items):
            second = "" if position is None else f", ${position.name}"
            return f"for ${variable.name}{second} in {print_expr(items)}"
        case ForTable():
            return print_for_table(clause, print_expr)
        case PathClause():
            return print_path(clause)
        case NotBlock() | ExistsBlock() | AggregateBlock() | LateralBlock():
            head, tail = print_block_frame(clause)
            return f"{head} {{ {print_clauses(clause.clauses)} }}{tail}"
        case _:
            assert_never(clause)


def print_block_frame(
    clause: NotBlock | ExistsBlock | AggregateBlock | LateralBlock,
) -> tuple[str, str]:
    """What stands before and after the braces of a block."""
    match clause:
        case NotBlock():
            return "not", ""
        case ExistsBlock():
            return "exists", ""
        case AggregateBlock(function, argument, _, op, value):
            head = str(function) if argument is None else f"{function}({print_expr(argument)})"
            return head, f" {op} {_print_within(value, _SUM)}"
        case LateralBlock(order=order, limit=limit, offset=offset, having=having):
            keys = ", ".join(map(print_order_key, order))
            tail = f" having {{ {'; '.join(map(print_expr, having))} }}" if having else ""
            tail += f" order {{ {keys} }}" if keys else ""
            tail += "" if limit is None else f" limit {print_count(limit)}"
            return clause.word, tail + ("" if offset is None else f" offset {print_count(offset)}")
        case _:
            assert_never(clause)


def print_count(count: int | Variable) -> str:
    """A number of rows."""
    return str(count) if isinstance(count, int) else print_expr(count)


def print_filter(clause: Filter) -> str:
    """A filter; what alone would be a traversal, such as `$a * $b`, gets parentheses."""
    text = print_expr(clause.condition)
    match clause.condition:
        case TextTest(left=Variable(), right=Variable(), is_call=False) | Arithmetic():
            return f"({text})"
        case _:
            # After another clause a minus sign would be a subtraction.
            return f"({text})" if text.startswith("-") else text


def print_traversal(clause: Traversal) -> str:
    """A traversal."""
    match clause.edges:
        case AnyEdge():
            edges = "*"
        case NamedEdges(names):
            edges = " | ".join(_print_edge_name(name) for name in names)
        case _:
            assert_never(clause.edges)
    if clause.is_undirected:
        edges = f"<{edges}>"
    elif isinstance(clause.edges, NamedEdges) and len(clause.edges.names) > 1:
        edges = f"({edges})"
    elif clause.edge_variable is None and clause.bounds is None and edges in _OPERATOR_WORDS:
        edges = quote_string(edges)
    if clause.edge_variable is not None:
        edges = f"${clause.edge_variable.name}:{edges}"
    return f"${clause.source.name} {edges}{_print_bounds(clause.bounds)} ${clause.target.name}"


def _print_bounds(bounds: HopBounds | None) -> str:
    if bounds is None:
        return ""
    return f"{{{bounds.minimum},{'' if bounds.maximum is None else bounds.maximum}}}"


def print_path(clause: PathClause) -> str:
    """A path."""
    selector = "" if clause.selector is None else f"{clause.selector} "
    ends = f"${clause.source.name}", f"${clause.target.name}"
    edges = print_edge_selection(clause.edges.members) + _print_bounds(clause.bounds)
    return f"path ${clause.variable.name} = {selector}{ends[0]} {edges} {ends[1]}"


def _print_edge_name(name: EdgeName) -> str:
    return quote_string(name.text) if name.is_quoted else name.text


def print_binding_head(clause: Binding) -> str:
    """A binding without its property matches."""
    return f"${clause.variable.name}: {clause.type_name.text}"


def print_projection(item: Projection) -> str:
    """An item of `return`."""
    text = print_expr(item.value)
    return text if item.alias is None else f"{text} as {item.alias.text}"


def print_order_key(key: OrderKey) -> str:
    """An item of `order`."""
    text = print_expr(key.value)
    return text if key.direction is None else f"{text} {key.direction}"


def print_parameter(parameter: Parameter) -> str:
    """A declared parameter."""
    default = "" if parameter.default is None else f" = {print_expr(parameter.default)}"
    return f"${parameter.name.text}: {parameter.type}{default}"


# ---- settings and statements ----


def print_setting(setting: Setting) -> str:
    """A settings line."""
    match setting:
        case SetSetting(name, value, is_word):
            shown = quote_string(value) if isinstance(value, str) and not is_word else value
            return f"set {name.text} = {shown};"
        case ResetSetting(name):
            return f"reset {'all' if name is None else name.text};"
        case _:
            assert_never(setting)


def print_statement(statement: BranchStatement | Show) -> str:
    """A statement of one line."""
    match statement:
        case BranchCreate(name, parent):
            suffix = "" if parent is None else f" from {_print_branch_name(parent)}"
            return f"branch create {_print_branch_name(name)}{suffix}"
        case BranchDelete(name):
            return f"branch delete {_print_branch_name(name)}"
        case BranchMerge(source, target):
            suffix = "" if target is None else f" into {_print_branch_name(target)}"
            return f"branch merge {_print_branch_name(source)}{suffix}"
        case BranchList():
            return "branch list"
        case Show(name):
            return f"show {'all' if name is None else name.text};"
        case _:
            assert_never(statement)


def _print_branch_name(name: Name) -> str:
    return name.text if _PLAIN_NAME.fullmatch(name.text) else quote_string(name.text)
