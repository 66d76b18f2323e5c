"""Calls of table functions as text."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.lang.text_printer import quote_string
from omnigraph.query.ast import (
    EdgeMember,
    EdgeSelection,
    EdgeWay,
    Expr,
    ForTable,
    NodeSelection,
    TableCall,
)

PrintExpr = Callable[[Expr], str]


def print_for_table(clause: ForTable, print_expr: PrintExpr) -> str:
    """`for $a, $s in function(name: value)`."""
    names = ", ".join(f"${each.name}" for each in clause.variables)
    return f"for {names} in {_print_call(clause.call, print_expr)}"


def _print_call(call: TableCall, print_expr: PrintExpr) -> str:
    arguments: list[str] = []
    for each in call.arguments:
        match each.value:
            case NodeSelection(names):
                text = _join([name.text for name in names]) if names else "*"
            case EdgeSelection(members):
                text = print_edge_selection(members)
            case value:
                text = print_expr(value)
        arguments.append(f"{each.name.text}: {text}")
    return f"{call.function.text}({', '.join(arguments)})"


def print_edge_selection(members: tuple[EdgeMember, ...]) -> str:
    """The edges of a graph or of a path."""
    if all(each.way is EdgeWay.BOTH for each in members):
        return f"<{' | '.join(map(_print_name, members))}>"
    return _join([_print_member(each) for each in members])


def _print_member(member: EdgeMember) -> str:
    name = _print_name(member)
    match member.way:
        case EdgeWay.FORWARD:
            return name
        case EdgeWay.BACKWARD:
            return f"^{name}"
        case EdgeWay.BOTH:
            return f"<{name}>"


def _print_name(member: EdgeMember) -> str:
    return quote_string(member.text) if member.is_quoted else member.text


def _join(parts: list[str]) -> str:
    return f"({' | '.join(parts)})" if len(parts) > 1 else parts[0]
