"""The declared parameters of a query."""

from __future__ import annotations

from omnigraph.query import ast, typed
from omnigraph.query.check.context import CheckContext


def declare_parameters(
    context: CheckContext, parameters: tuple[ast.Parameter, ...]
) -> tuple[typed.Parameter, ...]:
    """Check the declarations and make them known to the context; of a repeated name, the last."""
    for parameter in parameters:
        name = parameter.name.text
        if name in context.parameters:
            context.report_deprecated(
                ("T106", "L315"),
                parameter.name.span,
                f"parameter '${name}' is declared twice; the last declaration counts",
                hint="remove one of them",
            )
        context.parameters[name] = parameter.type if _is_free(context, parameter) else None
    return tuple(
        typed.Parameter(name, type_)
        for name, type_ in context.parameters.items()
        if type_ is not None
    )


def _is_free(context: CheckContext, parameter: ast.Parameter) -> bool:
    if parameter.name.text != typed.NOW_NAME:
        return True
    context.report_error(
        "T100",
        parameter.name.span,
        f"parameter '${typed.NOW_NAME}' is reserved",
        hint="write now()",
    )
    return False
