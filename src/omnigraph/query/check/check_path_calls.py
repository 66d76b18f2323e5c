"""Functions of paths."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from omnigraph.query import ast, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.typed_tree import PathPart, PathValue

PATH_FUNCTIONS: Final = frozenset({"length", "nodes", "edges"})


def check_path_call(
    context: CheckContext, call: ast.FunctionCall, path: PathValue
) -> typed_tree.Expr | None:
    """`length($p)`, `nodes($p)` or `edges($p)`."""
    if path.type.part is not PathPart.WHOLE:
        message = f"{call.name}() needs a path, got the {path.type.part} of one"
        context.report_error("T112", call.span, message)
        return None
    if call.name == "length":
        type_ = typed_tree.I64.as_nullable(path.type.is_nullable)
        return typed_tree.BoundValue(typed_tree.path_length_of(path.variable), type_)
    return PathValue(path.variable, replace(path.type, part=PathPart(call.name)))
